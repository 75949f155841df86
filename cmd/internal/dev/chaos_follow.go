package dev

import (
	"fmt"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// ask is one capture, cancel or refund that producers ask for.
type ask struct {
	oracle.FollowUp
	intent int
}

// plan is what a producer asks for about one payment. It waits until that stands so, and asks for one group after another, all of a group at once.
type plan struct {
	at     time.Duration // not before
	intent int
	want   payments.Status // "": that it is there is enough
	groups [][]*delivery
}

// The mix of plans, in one of so many intents.
const (
	refundEvery = 10 // of those that are charged at once
	raceEvery   = 40 // of those, a cancel beside the charge itself
	heldPlans   = 7  // kinds of plans for what is held
	takenPlans  = 6  // kinds of plans for what is taken
	planAfter   = 6 * time.Second
	overMost    = 3 // refunds of which only one fits
)

// planner draws one plan.
type planner struct {
	*chaosWork
	plan  *plan
	asked int
}

// follow draws what is asked for about an intent, or nothing.
func (w *chaosWork) follow(i int, at time.Duration) error {
	random := w.following
	intent, held := w.intents[i], w.cards[i].manual
	if intent.Declines || at > w.duration*4/5 {
		return nil
	}
	p := &planner{chaosWork: w, plan: &plan{intent: i, at: at + time.Duration(random.Int64N(int64(planAfter)))}}
	var err error
	switch n := random.IntN(raceEvery); {
	case held:
		p.plan.want = payments.StatusRequiresCapture
		err = p.held(random.IntN(heldPlans))
	case n == 0:
		p.plan.at = at
		err = p.group(wish{kind: payments.KindCancel, overHTTP: true, may: codeInvalidState, late: true})
	case n < raceEvery/refundEvery+1:
		p.plan.want = payments.StatusSucceeded
		err = p.taken(random.IntN(takenPlans))
	}
	if err == nil && len(p.plan.groups) > 0 {
		w.plans = append(w.plans, p.plan)
	}
	return err
}

// wish is one follow-up to be drawn: its deliveries are over HTTP, or over either.
type wish struct {
	kind     payments.Kind
	amount   int64 // 0: all there is
	overHTTP bool
	may      string // the code with which it may be refused; over NATS it is a dead letter invalid then
	must     string // the code with which it must be refused
	late     bool   // it may come too late, and end without having done anything
}

// The codes with which follow-ups are refused.
const (
	codeInvalidState = "invalid_state"
	codeExceeds      = "amount_exceeds_available"
)

// taken draws refunds of what was taken.
func (p *planner) taken(kind int) error {
	amount := p.intents[p.plan.intent].Money.Amount
	part := amount/int64(3+p.following.IntN(6)) + 1 // at most five fit beside each other
	switch kind {
	case 0:
		return p.group(wish{kind: payments.KindRefund})
	case 1:
		return p.group(wish{kind: payments.KindRefund, amount: part})
	case 2, 3: // several at once, some of them of the same amount
		var list []wish
		for n := range 2 + p.following.IntN(2) {
			list = append(list, wish{kind: payments.KindRefund, amount: amount/5 + int64(n/2)})
		}
		return p.group(list...)
	case 4: // only one of them fits
		var list []wish
		for range overMost {
			list = append(list, wish{kind: payments.KindRefund, amount: amount/2 + 1, may: codeExceeds})
		}
		return p.group(list...)
	}
	if err := p.group(wish{kind: payments.KindRefund, amount: part, overHTTP: true}); err != nil {
		return err
	}
	if err := p.group(wish{kind: payments.KindRefund, overHTTP: true}); err != nil {
		return err
	}
	return p.group(wish{kind: payments.KindRefund, amount: 1, overHTTP: true, must: codeExceeds})
}

// held draws captures and cancels of what is held.
func (p *planner) held(kind int) error {
	amount := p.intents[p.plan.intent].Money.Amount
	part := amount - p.following.Int64N(amount/2)
	capture := wish{kind: payments.KindCapture, amount: part}
	switch kind {
	case 0:
		return p.group(wish{kind: payments.KindCapture})
	case 1:
		return p.group(capture)
	case 2:
		return p.group(wish{kind: payments.KindCancel})
	case 3: // one of the two stands, and the other is refused
		capture.may = codeInvalidState
		return p.group(capture, wish{kind: payments.KindCancel, may: codeInvalidState})
	case 4:
		capture.may = codeInvalidState
		return p.group(capture, wish{kind: payments.KindCapture, may: codeInvalidState})
	case 5: // refunded before it is taken, and no more than that
		capture.overHTTP = true
		if err := p.group(capture); err != nil {
			return err
		}
		half := wish{kind: payments.KindRefund, amount: part/2 + 1, may: codeExceeds}
		return p.group(half, half)
	}
	if err := p.group(wish{kind: payments.KindCapture, amount: amount + 1, overHTTP: true, must: codeExceeds}); err != nil {
		return err
	}
	return p.group(capture)
}

// group adds deliveries that are sent at once: each follow-up one to three times.
func (p *planner) group(list ...wish) error {
	var all []*delivery
	for _, f := range list {
		key := fmt.Sprintf("%s-%06d-%d", f.kind, p.plan.intent, p.asked)
		p.asked++
		intent := p.intents[p.plan.intent]
		a := &ask{intent: p.plan.intent, FollowUp: oracle.FollowUp{
			TenantID: demoTenant, Key: key, Kind: f.kind, Customer: intent.Money.Customer, Amount: f.amount, Refused: f.late,
		}}
		ways := p.following.IntN(3) // NATS, HTTP, both
		for n := range 1 + p.following.IntN(3) {
			m, err := p.delivery(f, a, !f.overHTTP && (ways == 0 || ways == 2 && n%2 == 0))
			if err != nil {
				return err
			}
			all = append(all, m)
		}
	}
	p.plan.groups = append(p.plan.groups, all)
	return nil
}

// delivery is one request or message that asks for a follow-up.
func (p *planner) delivery(f wish, a *ask, overNATS bool) (*delivery, error) {
	id := payments.NewID(demoTenant, p.intents[a.intent].Key).String()
	m := &delivery{key: a.Key, ask: a, door: p.following.IntN(2), refusal: f.must, may: f.may}
	if f.must != "" {
		m.ask = nil // what must be refused is never asked for: were it done, nobody would know it
	}
	wire := schema.Intent{}
	if f.amount > 0 {
		wire.Amount = schema.Some(f.amount)
	}
	if f.kind == payments.KindRefund {
		wire.Metadata = map[string]string{"order": a.Key}
	}
	var err error
	if overNATS {
		wire.IdempotencyKey, wire.Kind, wire.PaymentID = schema.Some(a.Key), schema.Some(string(f.kind)), schema.Some(id)
		if f.may != "" {
			m.reason = payments.ReasonInvalid
		}
		lane := p.subjects.Intent
		if p.following.IntN(bulkEvery) == 0 {
			lane = p.subjects.Bulk
		}
		if m.subject, err = lane(demoTenant); err != nil {
			return nil, err
		}
	} else {
		m.path = "/v1/payments/" + id + "/" + string(f.kind)
		if f.kind == payments.KindRefund {
			m.path += "s"
		}
		if p.following.IntN(5) == 0 {
			m.prefer = "wait=2"
		}
	}
	m.body, err = schema.EncodeIntent(wire)
	return m, err
}
