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
	customers := map[string]string{}
	for _, p := range r.Payments {
		customers[p.ID] = p.Customer
		of(p.Customer).payment = p
	}
	asked := map[name]FollowUp{}
	for _, f := range r.FollowUps {
		of(f.Customer).asked = append(of(f.Customer).asked, f)
		asked[name{f.TenantID, f.Key}] = f
	}
	rows := map[name]Operation{}
	for _, o := range r.Operations {
		of(customers[o.Payment]).rows = append(of(customers[o.Payment]).rows, o)
		rows[name{o.TenantID, o.Key}] = o
		if _, known := asked[name{o.TenantID, o.Key}]; !known {
			v.find(&v.Unattributed, "a %s that nobody asked for: %s %s", o.Kind, o.TenantID, o.Key)
		}
	}
	letters := map[name]bool{}
	for _, d := range r.DeadLetters {
		letters[name{d.TenantID, d.Key}] = true
	}
	for n, f := range asked {
		row, stored := rows[n]
		v.followUp(f, row, stored, letters[n], customers[row.Payment])
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

// refunds holds the refunds of one payment, by amount, against those that were asked for and those that are recorded.
func (v *Verdict) refunds(customer string, a *about) {
	type count struct{ asked, recorded, made int }
	amounts := map[int64]*count{}
	at := func(amount int64) *count {
		if amounts[amount] == nil {
			amounts[amount] = &count{}
		}
		return amounts[amount]
	}
	var given, recorded, taken int64
	pending := false
	for _, o := range a.rows {
		if o.Kind != payments.KindRefund {
			continue
		}
		at(o.Amount).asked++ // that it was asked for at all is judged elsewhere
		if o.Status == payments.StatusSucceeded || o.Status == payments.StatusPending {
			at(o.Amount).recorded++
		}
		if o.Status == payments.StatusSucceeded {
			recorded += o.Amount
		}
		pending = pending || o.Status == payments.StatusPending
	}
	for _, r := range a.refunds {
		if !r.Failed {
			at(r.Amount).made++
			given += r.Amount
		}
	}
	for _, c := range a.charges {
		taken += c.Captured
	}
	for amount, n := range amounts {
		switch {
		case n.made > n.asked && n.asked > 0:
			v.find(&v.DoubleRefunds, "%d refunds of %d were made for %q, and %d were asked for", n.made, amount, customer, n.asked)
		case n.made > n.recorded:
			v.find(&v.Unattributed, "%d refunds of %d were made for %q, and %d are known", n.made, amount, customer, n.recorded)
		case n.made < n.recorded:
			v.find(&v.Misrecorded, "%d refunds of %d for %q are recorded as made, and %d were", n.recorded, amount, customer, n.made)
		}
	}
	if given > taken {
		v.find(&v.DoubleRefunds, "%d were given back to %q, of whom %d were taken", given, customer, taken)
	}
	if len(a.rows)+len(a.refunds) > 0 && (a.payment.Refunded != recorded || !pending && recorded != given) {
		v.find(&v.Misrecorded, "the payment of %q says %d were refunded, its refunds say %d, and Stripe says %d", customer, a.payment.Refunded, recorded, given)
	}
}

// taken holds what was captured, or canceled, of one payment against what we say of it.
func (v *Verdict) taken(customer string, a *about) {
	var captured, canceled bool
	var amount, taken int64
	for _, o := range a.rows {
		done := o.Status == payments.StatusSucceeded
		captured, canceled = captured || done && o.Kind == payments.KindCapture, canceled || done && o.Kind == payments.KindCancel
		if done && o.Kind == payments.KindCapture {
			amount = o.Amount
		}
	}
	for _, c := range a.charges {
		taken += c.Captured
	}
	if len(a.rows) == 0 {
		return
	}
	switch {
	case captured && (taken != amount || a.payment.Captured != amount || a.payment.Status != payments.StatusSucceeded):
		v.find(&v.Misrecorded, "a capture of %d for %q succeeded; the payment is %s with %d captured, and Stripe took %d", amount, customer, a.payment.Status, a.payment.Captured, taken)
	case canceled && (taken > 0 || a.payment.Status != payments.StatusCanceled):
		v.find(&v.Misrecorded, "a cancel for %q succeeded; the payment is %s, and Stripe took %d", customer, a.payment.Status, taken)
	case a.payment.Captured != taken:
		v.find(&v.Misrecorded, "the payment of %q says %d were captured, and Stripe took %d", customer, a.payment.Captured, taken)
	}
}
