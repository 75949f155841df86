package oracle

import (
	"fmt"

	"github.com/oncepay/oncepay/payments"
)

// FollowUp is one capture, cancel or refund as its producers know it.
type FollowUp struct {
	TenantID string
	Key      string
	Kind     payments.Kind
	Customer string // of the payment that it is about
	Amount   int64  // 0: all there is, and of a cancel
	// Refused: Stripe, or the payment as it stands, does not allow it, so that it may end without having done anything.
	Refused bool
	// Acknowledged: it was accepted, by a 2xx or a PubAck.
	Acknowledged bool
}

// Operation is what the store says of one capture, cancel or refund.
type Operation struct {
	ID       string
	TenantID string
	Key      string
	Kind     payments.Kind
	Payment  string // the id of its payment, as Payment.ID is written
	Status   payments.Status
	Amount   int64
}

// Refund is money given back, in Stripe's ledger.
type Refund struct {
	ID       string
	Customer string // of the charge
	Amount   int64
	Failed   bool // it was made, and the money has come back
}

// about are the follow-ups of one payment, as the three accounts have them.
type about struct {
	intent  Intent
	asked   []FollowUp
	rows    []Operation
	refunds []Refund
	payment Payment
	charges []Charge
}

// judgeFollowUps holds what was asked about payments against what Stripe did and what we say of it. Refunds are matched by their payment's customer and
// their amount alone, as a multiset: ids, keys and metadata are what a fault of ours would get wrong.
func (v *Verdict) judgeFollowUps(r Run) {
	all := map[string]*about{}
	of := func(customer string) *about {
		if all[customer] == nil {
			all[customer] = &about{}
		}
		return all[customer]
	}
	for _, i := range r.Intents {
		of(i.Money.Customer).intent = i
	}
	customers := map[string]string{}
	for _, p := range r.Payments {
		customers[p.ID] = p.Customer
		of(p.Customer).payment = p
	}
	letters := map[name]bool{}
	for _, d := range r.DeadLetters {
		letters[name{d.TenantID, d.Key}] = true
	}
	asked, rows := map[name]FollowUp{}, map[name]Operation{}
	for _, f := range r.FollowUps {
		asked[name{f.TenantID, f.Key}] = f
	}
	for _, o := range r.Operations {
		of(customers[o.Payment]).rows = append(of(customers[o.Payment]).rows, o)
		rows[name{o.TenantID, o.Key}] = o
		if _, known := asked[name{o.TenantID, o.Key}]; !known {
			v.find(&v.Unattributed, "a %s that nobody asked for: %s %s", o.Kind, o.TenantID, o.Key)
		}
	}
	for n, f := range asked {
		row, stored := rows[n]
		v.followUp(f, row, stored, letters[n], customers[row.Payment])
		f.Acknowledged = f.Acknowledged && (stored || !letters[n]) // what became a dead letter was not accepted
		of(f.Customer).asked = append(of(f.Customer).asked, f)
	}
	for _, refund := range r.Refunds {
		of(refund.Customer).refunds = append(of(refund.Customer).refunds, refund)
	}
	for _, c := range r.Charges {
		of(c.Customer).charges = append(of(c.Customer).charges, c)
	}
	for customer, a := range all {
		v.refunds(customer, a)
		v.taken(customer, a)
	}
}

// followUp holds one that was asked for against its row.
func (v *Verdict) followUp(f FollowUp, row Operation, stored, letter bool, customer string) {
	id := fmt.Sprintf("the %s %s %s", f.Kind, f.TenantID, f.Key)
	switch {
	case !stored && f.Acknowledged && !letter:
		v.find(&v.Lost, "%s was acknowledged and is in no row and no dead letter", id)
	case !stored:
	case row.Kind != f.Kind || customer != f.Customer || f.Amount > 0 && row.Amount != f.Amount:
		v.find(&v.Misrecorded, "%s is stored as a %s of %d for %q, and was asked for as one of %d for %q", id, row.Kind, row.Amount, customer, f.Amount, f.Customer)
	case row.Status.HasTicket() && row.Status != payments.StatusPending:
		v.find(&v.Unsettled, "%s is still %s", id, row.Status)
	case !row.Status.Final() && row.Status != payments.StatusPending:
		v.find(&v.Unsettled, "%s came to rest as %s", id, row.Status)
	case row.Status.Final() && row.Status != payments.StatusSucceeded && !f.Refused:
		v.find(&v.Misrecorded, "%s could have been done, and is %s", id, row.Status)
	}
}

// refunds holds the refunds of one payment, by amount, against those that producers asked for and those that are recorded.
func (v *Verdict) refunds(customer string, a *about) {
	c := countRefunds(a)
	for amount, n := range c.amounts {
		switch {
		case c.excess > c.open && n.made > n.asked && n.asked+c.open > 0:
			v.find(&v.DoubleRefunds, "%d refunds of %d were made for %q; %d were asked for, and %d of whatever was left", n.made, amount, customer, n.asked, c.open)
		case c.excess > c.open && n.made > n.asked:
			v.find(&v.Unattributed, "%d refunds of %d were made for %q, and nobody asked for that", n.made, amount, customer)
		case n.made > n.recorded:
			v.find(&v.Unattributed, "%d refunds of %d were made for %q, and %d are known", n.made, amount, customer, n.recorded)
		case n.made < n.recorded:
			v.find(&v.Misrecorded, "%d refunds of %d for %q are recorded as made, and %d were", n.recorded, amount, customer, n.made)
		case n.made < n.due:
			v.find(&v.Lost, "%d refunds of %d for %q were acknowledged, and %d were made", n.due, amount, customer, n.made)
		}
	}
	if c.made < c.due {
		v.find(&v.Lost, "%d refunds for %q were acknowledged, and %d were made", c.due, customer, c.made)
	}
	if c.given > a.taken() {
		v.find(&v.DoubleRefunds, "%d were given back to %q, of whom %d were taken", c.given, customer, a.taken())
	}
	if c.emptied && c.given < a.taken() {
		v.find(&v.Misrecorded, "all that was left was to be given back to %q, of whom %d were taken, and %d were given", customer, a.taken(), c.given)
	}
	if len(a.rows)+len(a.refunds) > 0 && (a.payment.Refunded != c.recorded || !c.pending && c.recorded != c.given) {
		v.find(&v.Misrecorded, "the payment of %q says %d were refunded, its refunds say %d, and Stripe says %d", customer, a.payment.Refunded, c.recorded, c.given)
	}
}

// refundCount is what was asked for, recorded and made of the refunds of one payment.
type refundCount struct {
	amounts map[int64]*struct{ asked, due, recorded, made int }
	// due were acknowledged and can be made. open were asked for without an amount: they may be of any.
	due, open, made int
	excess          int   // refunds beyond those that were asked for with their amount
	given, recorded int64 // money
	pending         bool
	emptied         bool // one of all that was left is recorded as made, and none has failed
}

func countRefunds(a *about) refundCount {
	c := refundCount{amounts: map[int64]*struct{ asked, due, recorded, made int }{}}
	at := func(amount int64) *struct{ asked, due, recorded, made int } {
		if c.amounts[amount] == nil {
			c.amounts[amount] = new(struct{ asked, due, recorded, made int })
		}
		return c.amounts[amount]
	}
	open := map[name]bool{}
	for _, f := range a.asked {
		if f.Kind != payments.KindRefund {
			continue
		}
		due := 0
		if f.Acknowledged && !f.Refused {
			due = 1
		}
		c.due += due
		if f.Amount == 0 {
			c.open++
			open[name{f.TenantID, f.Key}] = true
			continue
		}
		at(f.Amount).asked++
		at(f.Amount).due += due
	}
	failed := false
	for _, o := range a.rows {
		if o.Kind != payments.KindRefund {
			continue
		}
		switch o.Status {
		case payments.StatusSucceeded:
			at(o.Amount).recorded++
			c.recorded += o.Amount
			c.emptied = c.emptied || open[name{o.TenantID, o.Key}]
		case payments.StatusPending:
			at(o.Amount).recorded++
			c.pending = true
		default:
			failed = true
		}
	}
	c.emptied = c.emptied && !failed
	for _, r := range a.refunds {
		if !r.Failed {
			at(r.Amount).made++
			c.made++
			c.given += r.Amount
		}
	}
	for _, n := range c.amounts {
		c.excess += max(0, n.made-n.asked)
	}
	return c
}

// taken is how much Stripe took.
func (a *about) taken() (amount int64) {
	for _, c := range a.charges {
		amount += c.Captured
	}
	return amount
}

// taken holds what was captured, or canceled, of one payment against what was asked for and what we say of it.
func (v *Verdict) taken(customer string, a *about) {
	captures, cancels, taken := 0, 0, a.taken()
	var amount int64
	for _, o := range a.rows {
		switch {
		case o.Status == payments.StatusSucceeded && o.Kind == payments.KindCapture:
			captures, amount = captures+1, o.Amount
		case o.Status == payments.StatusSucceeded && o.Kind == payments.KindCancel:
			cancels++
		}
	}
	switch {
	case a.intent.Held && taken > 0 && !a.captureAsked(taken):
		v.find(&v.Misrecorded, "Stripe took %d that was held for %q, and no capture of that was asked for", taken, customer)
	case a.payment.Status == payments.StatusCanceled && cancels == 0 && !a.intent.Declines && !a.intent.LetGo:
		v.find(&v.Misrecorded, "the payment of %q is canceled, and no cancel of it succeeded", customer)
	case captures > 1 || captures > 0 && cancels > 0:
		v.find(&v.Misrecorded, "%d captures and %d cancels for %q succeeded", captures, cancels, customer)
	case len(a.rows) == 0:
	case captures > 0 && (taken != amount || a.payment.Captured != amount || a.payment.Status != payments.StatusSucceeded):
		v.find(&v.Misrecorded, "a capture of %d for %q succeeded; the payment is %s with %d captured, and Stripe took %d", amount, customer, a.payment.Status, a.payment.Captured, taken)
	case cancels > 0 && (taken > 0 || a.payment.Status != payments.StatusCanceled):
		v.find(&v.Misrecorded, "a cancel for %q succeeded; the payment is %s, and Stripe took %d", customer, a.payment.Status, taken)
	case a.payment.Captured != taken:
		v.find(&v.Misrecorded, "the payment of %q says %d were captured, and Stripe took %d", customer, a.payment.Captured, taken)
	}
}

// captureAsked reports whether a capture of so much was asked for; one without an amount is of all that is held.
func (a *about) captureAsked(amount int64) bool {
	for _, f := range a.asked {
		if f.Kind == payments.KindCapture && (f.Amount == amount || f.Amount == 0 && amount == a.payment.Amount) {
			return true
		}
	}
	return false
}
