package stripesim

import "net/http"

// savedMethod is one state of a payment method that was attached to a customer:
// a test payment method under an id of its own, usable again and again until
// it is detached, and then never more.
type savedMethod struct {
	ID       string `json:"id"`
	Method   string `json:"method"`             // the test payment method's name
	Customer string `json:"customer,omitempty"` // empty once it is detached
	Created  int64  `json:"created"`
}

func (m *savedMethod) view() *methodView {
	v := methods[m.Method].view(m.ID, m.Created)
	v.Customer = optional(m.Customer)
	return v
}

// save takes a new state in; nil changes nothing. Call with the book's mu held.
func (a *account) save(m *savedMethod) {
	if m != nil {
		a.saved[m.ID] = m
	}
}

// usedUp is Stripe's refusal of a payment method that was detached.
const usedUp = "The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, shared with a connected account without Customer attachment, or was detached from a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach it to a Customer first."

// use gives the PaymentIntent the payment method that id names, or keeps the
// one it has if id is empty; and refuses one that cannot be used.
func (e env) use(in *intent, id string) *apiError {
	if id == "" && in.MethodID == "" {
		id = in.Method
	}
	name, shown := id, id
	if id == "" {
		name, shown = in.Method, in.MethodID
	}
	saved := e.saved[shown]
	switch {
	case saved == nil:
	case saved.Customer == "":
		return invalid("", "", usedUp)
	case in.Customer == "":
		return invalid("", "", "The payment method supplied ("+shown+") belongs to the Customer "+saved.Customer+". Please include the Customer in the `customer` parameter on the PaymentIntent.")
	case in.Customer != saved.Customer:
		return invalid("resource_missing", "payment_method", "The customer does not have a payment method with the ID "+shown+". The payment method must be attached to the customer.")
	default:
		name = saved.Method
	}
	if err := checkMethod(in, name); err != nil {
		return err
	}
	if saved == nil && id != "" {
		shown = e.ids.method(e.seq)
	}
	in.Method, in.MethodID = name, shown
	return nil
}

func noSuchMethod(id string) *apiError {
	return notFound("payment_method", "No such PaymentMethod: '"+clip(id)+"'")
}

func kept(m *savedMethod) effect { return effect{answer: answer{saved: m}} }

var attachSpec = spec{"customer": {}}

// attach is POST /v1/payment_methods/{id}/attach.
type attach struct{ id, customer string }

func (*attach) target() string { return "" }

func parseAttach(id string, pairs []pair) (operation, *apiError) {
	v, e := attachSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	if v.scalars["customer"] == "" {
		return nil, missingParam("customer")
	}
	if e := checkCustomer(v.scalars["customer"]); e != nil {
		return nil, e
	}
	return &attach{id: id, customer: v.scalars["customer"]}, nil
}

func (o *attach) apply(e env, _ *intent) effect {
	if saved := e.saved[o.id]; saved != nil {
		switch saved.Customer {
		case o.customer:
			return kept(saved)
		case "":
			return refused(invalid("", "", "This PaymentMethod was previously used without being attached to a Customer or was detached from a Customer, and may not be used again."), nil)
		}
		return refused(invalid("", "", "The payment method you provided has already been attached to a customer."), nil)
	}
	m, ok := methods[o.id]
	if !ok {
		return refused(noSuchMethod(o.id), nil)
	}
	if m.outcome == outcomeDecline && o.id != "pm_card_chargeCustomerFail" { // which attaches, and fails when it is charged
		return refused(&apiError{Status: http.StatusPaymentRequired, Type: typeCard, Code: m.code, DeclineCode: m.decline, Message: m.message, DocURL: docURL(m.code)}, nil)
	}
	return kept(&savedMethod{ID: e.ids.method(e.seq), Method: o.id, Customer: o.customer, Created: e.now.Unix()})
}

// detach is POST /v1/payment_methods/{id}/detach.
type detach struct{ id string }

func (*detach) target() string { return "" }

func parseDetach(id string, pairs []pair) (operation, *apiError) {
	_, e := noParams.read(pairs)
	return &detach{id: id}, e
}

func (o *detach) apply(e env, _ *intent) effect {
	saved := e.saved[o.id]
	switch {
	case saved == nil && methods[o.id].kind == "":
		return refused(noSuchMethod(o.id), nil)
	case saved == nil || saved.Customer == "":
		return refused(invalid("", "", "The payment method you provided is not attached to a customer so detachment is impossible."), nil)
	}
	next := *saved
	next.Customer = ""
	return kept(&next)
}
