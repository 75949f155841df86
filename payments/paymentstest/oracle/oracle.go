// Package oracle judges a run: were the payments that producers asked for charged once each, and is every one of them accounted for?
//
// It is a model of its own, made from what producers say they published and what Stripe says it charged. It does not look at ids, keys or
// metadata of ours to match the two, since those are what a fault of ours would get wrong: a charge is matched by its customer, amount and
// currency. Every intent of a judged run must therefore have a customer of its own.
package oracle

import (
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// Money is what a charge moves and whose it is.
type Money struct {
	Amount   int64
	Currency string
	Customer string
}

// Intent is one payment as its producers know it.
type Intent struct {
	TenantID string
	Key      string
	// Money is what may be charged. Where producers published different requests under one key, Also has the others: any one of them may be
	// the one that is charged, and the rest must be visible conflicts.
	Money Money
	Also  []Money
	// Declines: Stripe refuses the payment method, so nothing may be charged.
	Declines bool
	// Held: its money is held, and only a capture takes it.
	Held bool
	// LetGo: it may end canceled without a cancel that was asked for: by a person's word, or because its customer gave up.
	LetGo bool
	// Refused: the message can never become a payment (it is malformed, or for a tenant that does not exist) and must be a dead letter.
	Refused bool
	// Acknowledged: at least one PubAck or 2xx came for it.
	Acknowledged bool
}

// Charge is one movement of money in Stripe's ledger.
type Charge struct {
	ID string
	Money
	Held     bool  // authorised, and nothing of it was taken
	Captured int64 // how much was taken; only where follow-ups are judged
}

// Payment is what the store says of one key.
type Payment struct {
	ID       string
	TenantID string
	Key      string
	Status   payments.Status
	Money
	// How much was taken and given back, as recorded; only where follow-ups are judged.
	Captured, Refunded int64
}

// DeadLetter is one dead letter, as far as it can be filed.
type DeadLetter struct {
	TenantID string
	Key      string
	Reason   payments.Reason
}

// Event is one outcome event as it was found in its stream.
type Event struct {
	ID       string
	Payment  string // or the id of a capture, cancel or refund
	Sequence int64
	Status   payments.Status
}

// Run is all that is known of a run when it has come to rest.
type Run struct {
	Intents     []Intent
	Charges     []Charge
	Payments    []Payment
	DeadLetters []DeadLetter
	// What was asked for about payments that are there, what the store says of it, and what Stripe gave back.
	FollowUps  []FollowUp
	Operations []Operation
	Refunds    []Refund
	// Events may be nil when the run's events are not judged.
	Events []Event
}

// Verdict counts what went wrong. A run is good when Good is true; Findings say what was found, one line each, the first 50.
type Verdict struct {
	DoubleCharges  int // charges beyond the first of an intent
	DoubleRefunds  int // amounts of which more refunds were made than asked for, and payments of which more was given back than taken
	Unattributed   int // charges that no intent asked for, and refunds that nobody asked for or knows of
	Lost           int // acknowledged, and in no payment and no dead letter; or a refund that was acknowledged and not made
	Unsettled      int // payments that somebody must still act on
	Misrecorded    int // charged and recorded otherwise, or recorded as charged and not charged
	Silent         int // conflicts and refused messages without a dead letter
	SecondOutcomes int // payments with two different outcome events, or with a gap in their sequence
	Findings       []string
}

// Good reports whether nothing is wrong.
func (v Verdict) Good() bool {
	return v.DoubleCharges+v.DoubleRefunds+v.Unattributed+v.Lost+v.Unsettled+v.Misrecorded+v.Silent+v.SecondOutcomes == 0
}

const findingsMax = 50

func (v *Verdict) find(count *int, format string, args ...any) {
	*count++
	switch {
	case len(v.Findings) < findingsMax:
		v.Findings = append(v.Findings, fmt.Sprintf(format, args...))
	case len(v.Findings) == findingsMax:
		v.Findings = append(v.Findings, "and more")
	}
}

type name struct{ tenant, key string }

// Judge compares the three accounts of a run: the producers', Stripe's and ours.
func Judge(r Run) Verdict {
	var v Verdict
	charged, taken := v.attribute(r)
	rows := map[name]Payment{}
	for _, p := range r.Payments {
		rows[name{p.TenantID, p.Key}] = p
	}
	letters := map[name][]payments.Reason{}
	for _, d := range r.DeadLetters {
		letters[name{d.TenantID, d.Key}] = append(letters[name{d.TenantID, d.Key}], d.Reason)
	}
	for _, i := range r.Intents {
		n := name{i.TenantID, i.Key}
		row, stored := rows[n]
		v.account(i, row, stored, letters[n], charged[i.Money.Customer], taken[i.Money.Customer])
		delete(rows, n)
	}
	for n := range rows {
		v.find(&v.Unattributed, "a payment that nobody asked for: %s %s", n.tenant, n.key)
	}
	v.judgeFollowUps(r)
	v.judgeEvents(r)
	return v
}

// attribute gives each charge to the intent whose customer it names, and counts those that no intent asked for.
// taken are those of which money was taken.
func (v *Verdict) attribute(r Run) (charged, taken map[string]int) {
	asked := map[string]Intent{}
	for _, i := range r.Intents {
		if _, twice := asked[i.Money.Customer]; twice && i.Money.Customer != "" {
			v.find(&v.Unattributed, "two intents of the run share the customer %s: the run cannot be judged", i.Money.Customer)
		}
		asked[i.Money.Customer] = i
	}
	charged, taken = map[string]int{}, map[string]int{}
	for _, c := range r.Charges {
		i, known := asked[c.Customer]
		switch {
		case !known || c.Money != i.Money && !slices.Contains(i.Also, c.Money):
			v.find(&v.Unattributed, "charge %s of %d %s for %q was asked for by nobody", c.ID, c.Amount, c.Currency, c.Customer)
		case charged[c.Customer] > 0:
			v.find(&v.DoubleCharges, "charge %s: %s %s was charged before", c.ID, i.TenantID, i.Key)
			fallthrough
		default:
			charged[c.Customer]++
			if !c.Held {
				taken[c.Customer]++
			}
		}
	}
	return charged, taken
}

// account holds one intent against its row, its dead letters and its charges.
func (v *Verdict) account(i Intent, row Payment, stored bool, letters []payments.Reason, charges, taken int) {
	id := i.TenantID + " " + i.Key
	if i.Acknowledged && !stored && len(letters) == 0 {
		v.find(&v.Lost, "%s was acknowledged and is in no payment and no dead letter", id)
	}
	if (i.Refused || len(i.Also) > 0) && i.Acknowledged && len(letters) == 0 {
		v.find(&v.Silent, "%s must have a dead letter and has none", id)
	}
	if charges > 0 && (i.Declines || i.Refused) {
		v.find(&v.Misrecorded, "%s was charged and must not have been", id)
	}
	switch {
	case stored && i.Refused:
		v.find(&v.Misrecorded, "%s was stored and must not have been", id)
	case !stored && charges > 0:
		v.find(&v.Misrecorded, "%s was charged and has no payment", id)
	case !stored:
	case row.Status.HasTicket() && row.Status != payments.StatusPending:
		v.find(&v.Unsettled, "%s is still %s", id, row.Status)
	case row.Status == payments.StatusSucceeded && taken == 0:
		v.find(&v.Misrecorded, "%s is recorded as succeeded and was not charged", id)
	case row.Status == payments.StatusRequiresCapture && charges == 0:
		v.find(&v.Misrecorded, "%s is recorded as held, and Stripe holds nothing for it", id)
	case row.Status == payments.StatusCanceled && taken == 0: // what was held for it is let go; whether that was asked for is judged with the follow-ups
	case row.Status != payments.StatusSucceeded && row.Status != payments.StatusRequiresCapture && charges > 0:
		v.find(&v.Misrecorded, "%s was charged and is recorded as %s", id, row.Status)
	case !i.Declines && !row.Status.Final() && row.Status != payments.StatusRequiresCapture && row.Status != payments.StatusPending:
		v.find(&v.Unsettled, "%s came to rest as %s", id, row.Status)
	}
	if stored && row.Money != i.Money && !slices.Contains(i.Also, row.Money) {
		v.find(&v.Misrecorded, "%s is stored with another amount, currency or customer than was asked for", id)
	}
}

// judgeEvents wants one outcome a payment, and its transitions numbered without a gap, in whatever order they arrive. The same event twice is the same event: delivery is at
// least once.
func (v *Verdict) judgeEvents(r Run) {
	if r.Events == nil {
		return
	}
	ids := map[string]map[int64]string{}
	finals := map[string]int{}
	for _, e := range r.Events {
		if ids[e.Payment] == nil {
			ids[e.Payment] = map[int64]string{}
		}
		earlier, seen := ids[e.Payment][e.Sequence]
		if seen && earlier == e.ID {
			continue
		}
		if seen {
			v.find(&v.SecondOutcomes, "%s has two events numbered %d: %s and %s", e.Payment, e.Sequence, earlier, e.ID)
		}
		ids[e.Payment][e.Sequence] = e.ID
		if e.Status.Final() {
			finals[e.Payment]++
		}
	}
	told := func(id string, status payments.Status) {
		seen := ids[id]
		if finals[id] > 1 {
			v.find(&v.SecondOutcomes, "%s has %d outcome events", id, finals[id])
		}
		if status.Final() && finals[id] == 0 {
			v.find(&v.SecondOutcomes, "%s is %s and no event says so", id, status)
		}
		for n := int64(1); n <= int64(len(seen)); n++ {
			if seen[n] == "" {
				v.find(&v.SecondOutcomes, "%s has %d events and none is numbered %d", id, len(seen), n)
				break
			}
		}
	}
	for _, p := range r.Payments {
		told(p.ID, p.Status)
	}
	for _, o := range r.Operations {
		told(o.ID, o.Status)
	}
}
