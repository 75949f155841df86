package paymentstest

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// find reads a tenant's own payment, as it was sent in, and nobody else's.
func (b *storeBench) find() {
	i := b.intent("k", everyField(b.Now()))
	b.admit(payments.AdmitRequest{Intent: i, Lane: payments.LaneBulk}, payments.VerdictStored)
	p := b.stored(payments.Payment{Intent: i, ID: i.ID()})
	sameIntent(b, p.Intent, i)
	if p.ID != i.ID() || p.Lane != payments.LaneBulk || p.Status != payments.StatusReceived {
		b.t.Errorf("found: %+v", p)
	}
	for name, id := range map[string]struct {
		tenant string
		id     payments.ID
	}{
		"another tenant's": {b.Tenants[1], i.ID()},
		"nobody's":         {"conformance-nobody", i.ID()},
		"another key":      {b.Tenants[0], payments.NewID(b.Tenants[0], "other")},
	} {
		if p, err := b.Store.Find(b.ctx, id.tenant, id.id); payments.ErrorCode(err) != payments.CodeNotFound {
			b.t.Errorf("%s: %+v, %v; want %s", name, p, err, payments.CodeNotFound)
		}
	}
}

// outbox: messages are handed out oldest first and to one at a time; one that is not known to be sent comes again, until it is.
func (b *storeBench) outbox() {
	for n := range 3 {
		c := b.claim(numbered("k", n))
		b.record(c, charged(c.Payment), 0)
	}
	b.handsOut()
}

// handsOut empties an outbox of three messages.
func (b *storeBench) handsOut() {
	pending := func(limit int) []payments.OutboxItem {
		b.t.Helper()
		items, err := b.Outbox.Pending(b.ctx, limit, time.Minute)
		if err != nil {
			b.t.Fatalf("Pending: %v", err)
		}
		return items
	}
	first, rest := pending(2), pending(10)
	if len(first) != 2 || len(rest) != 1 || first[0].ID >= first[1].ID || first[1].ID >= rest[0].ID {
		b.t.Fatalf("handed out: %+v, then %+v", first, rest)
	}
	if again := pending(10); len(again) != 0 {
		b.t.Errorf("handed out while another has them: %+v", again)
	}
	if err := b.Outbox.Sent(b.ctx, []int64{first[0].ID, rest[0].ID}); err != nil {
		b.t.Fatalf("Sent: %v", err)
	}
	b.Advance(time.Minute)
	again := pending(10)
	if len(again) != 1 || again[0].ID != first[1].ID || again[0].EventID != first[1].EventID || string(again[0].Body) != string(first[1].Body) {
		b.t.Errorf("after the hold: %+v, want the one that was not sent", again)
	}
	for range 2 { // sent twice is sent
		if err := b.Outbox.Sent(b.ctx, []int64{first[1].ID}); err != nil {
			b.t.Errorf("Sent: %v", err)
		}
	}
	b.Advance(time.Hour)
	if left := pending(10); len(left) != 0 {
		b.t.Errorf("left: %+v", left)
	}
}

// endMidway: a call that is ended on its way has happened or has not; nothing else. To repeat it with the same token settles which.
func (b *storeBench) endMidway() {
	for n := range 24 {
		r := b.claiming(b.intent(numbered("k", n)))
		late := time.Duration(n) * 100 * time.Microsecond
		if a, err := ended(b.ctx, late, func(ctx context.Context) (payments.Admission, error) { return b.Store.Admit(ctx, r) }); err == nil && a.Verdict != payments.VerdictClaimed || err != nil && !payments.Retryable(err) {
			b.t.Fatalf("Admit ended with %s, %v", a.Verdict, err)
		}
		c := b.admit(r, payments.VerdictClaimed).Claim
		recording := b.recording(c, waits(payments.ReasonLocked), time.Hour)
		if done, err := ended(b.ctx, late, func(ctx context.Context) (payments.Recorded, error) { return b.Store.Record(ctx, recording) }); err == nil && done.Sequence != 1 || err != nil && !payments.Retryable(err) {
			b.t.Fatalf("Record ended with %+v, %v", done, err)
		}
		if done, err := b.Store.Record(b.ctx, recording); err != nil || done.Sequence != 1 || done.Payment.Tries != 1 {
			b.t.Fatalf("Record again: %+v, %v", done, err)
		}
		b.told(payments.StatusWaiting)
	}
}

// ended makes a call whose context ends after so long.
func ended[V any](ctx context.Context, after time.Duration, call func(context.Context) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	return call(ctx)
}
