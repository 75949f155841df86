package stripesim

import (
	"net/http"
	"strings"
)

var confirmSpec = spec{
	"payment_method": {}, "off_session": {}, "return_url": {}, "receipt_email": {}, "error_on_requires_action": {}, "capture_method": {},
}

// confirmation holds the parameters that decide a confirm, on its own or as
// part of a create.
type confirmation struct {
	method      string
	offSession  bool
	returnURL   string
	errorOnAuth bool
	receipt     string
	capture     string // empty leaves it as it is
}

func readConfirmation(v *values) (c *confirmation, e *apiError) {
	c = &confirmation{method: v.scalars["payment_method"]}
	// off_session is a boolean, or the reason as an enumeration.
	switch v.scalars["off_session"] {
	case "one_off", "recurring":
		c.offSession = true
	default:
		if c.offSession, e = v.flag("off_session"); e != nil {
			return nil, e
		}
	}
	if c.returnURL, e = v.url("return_url"); e != nil {
		return nil, e
	}
	if c.errorOnAuth, e = v.flag("error_on_requires_action"); e != nil {
		return nil, e
	}
	return c, nil
}

// redirectRule refuses an on-session confirm that could redirect the customer
// without a way back (docs.stripe.com/changelog/2023-08-16/automatic-payment-methods).
func (c *confirmation) redirectRule(in *intent) *apiError {
	if c.offSession || in.Redirects != "always" || in.ReturnURL != "" {
		return nil
	}
	return invalid("", "return_url", "This PaymentIntent accepts payment methods that may redirect your customer, so you must provide a `return_url`. To accept none that redirect, set `automatic_payment_methods[enabled]` to `true` and `automatic_payment_methods[allow_redirects]` to `never` when you create it.")
}

// confirm is POST /v1/payment_intents/{id}/confirm.
type confirm struct {
	id string
	confirmation
}

func (c *confirm) target() string { return c.id }

func parseConfirm(id string, pairs []pair) (operation, *apiError) {
	v, e := confirmSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	args, e := readConfirmation(v)
	if e != nil {
		return nil, e
	}
	if args.receipt, e = v.email("receipt_email"); e != nil {
		return nil, e
	}
	if args.capture, e = v.choice("capture_method", "", "automatic", "automatic_async", "manual"); e != nil {
		return nil, e
	}
	return &confirm{id: id, confirmation: *args}, nil
}

func (c *confirm) apply(e env, current *intent) effect {
	switch current.Status {
	case needsMethod, needsConfirmation, needsAction:
	case succeeded:
		return wrongState(current, "You cannot confirm this PaymentIntent because it has already succeeded after being previously confirmed.")
	default:
		return wrongState(current, "You cannot confirm this PaymentIntent because it has a status of "+current.Status+". Only a PaymentIntent with one of the following statuses may be confirmed: requires_confirmation, requires_action, requires_payment_method.")
	}
	next := *current
	if c.receipt != "" {
		next.Receipt = c.receipt
	}
	if c.capture != "" {
		next.Capture = c.capture
	}
	if c.returnURL != "" {
		next.ReturnURL = c.returnURL
	}
	if c.method == "" && next.Method == "" {
		return wrongState(current, "You cannot confirm this PaymentIntent because it's missing a payment method. Confirm it again with one.")
	}
	if err := c.redirectRule(&next); err != nil {
		return refused(err, nil)
	}
	return c.run(e, &next)
}

// checkMethod refuses payment methods that do not exist or do not fit.
func checkMethod(in *intent, name string) *apiError {
	m, ok := methods[name]
	if !ok {
		return invalid("resource_missing", "payment_method", "No such PaymentMethod: '"+clip(name)+"'")
	}
	if !contains(in.Types, m.kind) {
		return invalid("payment_intent_incompatible_payment_method", "payment_method", "The PaymentMethod provided ("+m.kind+") is not allowed for this PaymentIntent. It allows: "+strings.Join(in.Types, ", ")+".")
	}
	if m.kind == "us_bank_account" && in.Capture == "manual" {
		return invalid("", "capture_method", "The payment method type us_bank_account does not support manual capture.")
	}
	return nil
}

// run confirms next, which is the operation's own copy.
func (c *confirmation) run(e env, next *intent) effect {
	if err := e.use(next, c.method); err != nil {
		return refused(err, nil)
	}
	next.Action, next.LastError = "", nil
	m := methods[next.Method]
	switch m.outcome {
	case outcomeDecline:
		return decline(e, next, m)
	case outcomeAuthenticate:
		return c.authenticate(e, next, m)
	case outcomeAuthOnSession:
		if !c.offSession {
			return c.authenticate(e, next, m)
		}
		return charge(e, next)
	case outcomeDebit, outcomeDebitFails, outcomeDebitStays:
		next.Status = processing
		next.Charge, next.ChargeKey = e.ids.charge(e.seq), e.key
		if m.outcome != outcomeDebitStays {
			next.Due = e.now.Add(e.settle).UnixNano()
		}
		return done(next)
	}
	return charge(e, next)
}

// charge moves the money, or sets it aside for a later capture.
func charge(e env, next *intent) effect {
	next.Charge, next.ChargeKey = e.ids.charge(e.seq), e.key
	if next.Capture == "manual" {
		next.Status, next.Capturable = needsCapture, next.Amount
		next.Due = e.now.Add(captureLifetime).UnixNano()
	} else {
		next.Status, next.Received = succeeded, next.Amount
	}
	eff := done(next)
	eff.charge = &chargeNote{ID: next.Charge, Captured: next.Capture != "manual", Key: e.key}
	return eff
}

func (c *confirmation) authenticate(e env, next *intent, m method) effect {
	if c.offSession || c.errorOnAuth {
		return decline(e, next, m)
	}
	next.Status = needsAction
	next.Action = "https://hooks.stripe.com/redirect/authenticate/" + next.ID
	return done(next)
}

// decline answers 402 with the PaymentIntent, which lives on without its
// payment method, and a failed charge that moved nothing.
func decline(e env, next *intent, m method) effect {
	view := m.view(next.MethodID, e.now.Unix())
	next.Charge, next.ChargeKey = e.ids.charge(e.seq), ""
	next.Status, next.Method, next.MethodID = needsMethod, "", ""
	next.LastError = &apiError{Type: typeCard, Code: m.code, DeclineCode: m.decline, Message: m.message,
		Charge: next.Charge, DocURL: docURL(m.code), PaymentMethod: view}
	err := *next.LastError
	err.Status, err.showIntent = http.StatusPaymentRequired, true
	eff := done(next)
	eff.err = &err
	return eff
}
