package stripesim

import (
	"container/heap"
	"errors"
	"strings"
	"time"
)

// refundSlot is a refund's place in the lists, with its current state.
type refundSlot struct {
	current *refund
	of      *slot
	at      int // index in account.refundOrder
	ledger  int // index in book.refunds
}

// place finds what a request locks: a PaymentIntent, by its own id, its charge's or a refund's. Call with mu held.
func (a *account) place(id string) (*slot, *refundSlot) {
	switch {
	case strings.HasPrefix(id, "re_"):
		if r := a.refunds[id]; r != nil {
			return r.of, r
		}
		return nil, nil
	case strings.HasPrefix(id, "ch_"):
		if s := a.byCharge[id]; s != nil && s.current.Charge == id {
			return s, nil
		}
		return nil, nil
	}
	return a.intents[id], nil
}

// refundCreated is created for refunds. Call with mu held.
func (a *account) refundCreated(now time.Time) int64 {
	s := now.Unix()
	if n := len(a.refundOrder); n > 0 {
		return max(s, a.refundOrder[n-1].current.Created)
	}
	return s
}

var errNoTarget = errors.New("a refund is of no PaymentIntent that is there")

// applyRefund makes a refund's new state the current one: live after it was written, or at start from the file. Call with mu held.
func (b *book) applyRefund(a *account, r *refund, c cause, at time.Time) error {
	s, place := a.intents[r.Intent], a.refunds[r.ID]
	if s == nil || s.ledger == 0 {
		return errNoTarget
	}
	isNew := place == nil
	if isNew {
		place = &refundSlot{of: s, at: len(a.refundOrder), ledger: len(b.refunds)}
		a.refunds[r.ID] = place
		a.refundOrder = append(a.refundOrder, place)
		s.refunds = append(s.refunds, place)
		b.addRefund(a, r, at)
	}
	more := r.given() - place.current.given()
	place.current = r
	s.refunded += more
	a.balance[r.Currency] -= more
	b.charges[s.ledger-1].AmountRefunded = s.refunded
	b.refunds[place.ledger].Status, b.refunds[place.ledger].Metadata = r.Status, r.Metadata
	if r.Due != 0 {
		heap.Push(&b.due, dueItem{at: r.Due, account: a, slot: s, refund: place})
	}
	b.addRefundEvents(a, isNew, s, r, c, at)
	return nil
}

// addRefund puts a new refund into the ledger.
func (b *book) addRefund(a *account, r *refund, at time.Time) {
	b.refunds = append(b.refunds, Refund{
		ID: r.ID, PaymentIntent: r.Intent, Charge: r.Charge, Account: a.id, Amount: r.Amount, Currency: r.Currency, Status: r.Status, Reason: r.Reason,
		Metadata: r.Metadata, IdempotencyKey: r.Key, At: at,
	})
	followUp := r.Metadata["oncepay_payment"]
	if followUp == "" {
		b.strayRefunds++
		return
	}
	id := r.Metadata["oncepay_namespace"] + "\x00" + followUp
	b.perRefund[id]++
	if b.perRefund[id] == 2 {
		b.refundedTwice = append(b.refundedTwice, followUp)
	}
}

// addRefundEvents notes what a change of a refund is announced as. Call with mu held.
func (b *book) addRefundEvents(a *account, isNew bool, s *slot, r *refund, c cause, at time.Time) {
	kinds := []string{eventRefundUpdated, eventChargeRefundUpdated}
	if isNew {
		kinds = []string{eventRefundCreated, eventChargeRefunded}
	}
	for _, kind := range kinds {
		e := b.addEvent(a, kind, s.current, c, at)
		e.refund, e.refunded = r, s.refunded
	}
}

// findRefund returns a refund's current state.
func (b *book) findRefund(a *account, id string) *refund {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick(b.now())
	if r := a.refunds[id]; r != nil {
		return r.current
	}
	return nil
}

// findCharge returns the PaymentIntent whose latest charge it is, and how much of it was given back.
func (b *book) findCharge(a *account, id string) (*intent, int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick(b.now())
	if s := a.byCharge[id]; s != nil && s.current.Charge == id {
		return s.current, s.refunded
	}
	return nil, 0
}

// listRefunds returns a page, newest first; of names a PaymentIntent or a charge, "" for all. ok is false if a cursor names nothing.
func (b *book) listRefunds(a *account, of string, p page) (items []*refund, more, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tick(b.now())
	all := a.refundOrder
	if of != "" {
		s, _ := a.place(of)
		if s == nil {
			return nil, false, true
		}
		all = s.refunds
	}
	cursor := -1
	if id := p.after + p.before; id != "" {
		r := a.refunds[id]
		if r == nil {
			return nil, false, false
		}
		cursor = r.at
	}
	lo, hi, more := p.cut(len(all), cursor, func(i int) int64 { return all[i].current.Created }, func(i int) int { return all[i].at })
	for i := hi - 1; i >= lo; i-- {
		items = append(items, all[i].current)
	}
	return items, more, true
}
