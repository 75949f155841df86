package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

// TestRandomWays takes a few payments through random verbs by owners of whom some overslept, and holds every step against a model: who owns
// what, how many entries there are, and that a lost token writes nothing. The ticket query must be empty after every step.
func TestRandomWays(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 2} { // two at once, and a few more when time has passed
		t.Run(fmt.Sprint("rate ", rate), func(t *testing.T) {
			t.Parallel()
			randomWays(t, paced(t, rate))
		})
	}
}

func randomWays(t *testing.T, b *bench) {
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		w := &walk{bench: b, rt: rt, owner: map[payments.ID]payments.Token{}, entries: map[payments.ID]int64{}, prefix: fmt.Sprintf("run%d-", run)}
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			w.step()
			list, err := b.TicketViolations(context.Background())
			if err != nil || len(list) > 0 {
				rt.Fatalf("ticket query: %+v, %v", list, err)
			}
		}
		w.settle()
	})
}

type walk struct {
	*bench
	rt      *rapid.T
	prefix  string
	claims  []payments.Claim               // all that were ever given out
	owner   map[payments.ID]payments.Token // whose token must stand in the ticket
	entries map[payments.ID]int64          // the timeline's length
}

func (w *walk) step() {
	ctx := context.Background()
	switch rapid.SampledFrom([]string{"admit", "admit", "take", "record", "record", "extend", "evidence", "bury", "sleep"}).Draw(w.rt, "verb") {
	case "admit":
		key := w.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(w.rt, "key")
		r := w.claiming(intent("acme", key, 100))
		r.Claim = rapid.Bool().Draw(w.rt, "claim")
		a, err := w.Admit(ctx, r)
		_, there := w.entries[r.Intent.ID()]
		switch {
		case err != nil:
			w.rt.Fatal(err)
		case there != (a.Verdict == payments.VerdictExists):
			w.rt.Fatalf("%s, and the row was there: %v", a.Verdict, there)
		case a.Verdict == payments.VerdictClaimed:
			w.given(a.Claim)
			w.entries[a.Payment.ID] = 0
		case !there:
			w.entries[a.Payment.ID] = 0
		}
	case "take":
		got, err := w.Take(ctx, payments.TakeRequest{Lane: 1, Limit: 2, Lease: time.Minute, Account: account})
		if err != nil {
			w.rt.Fatal(err)
		}
		for _, c := range got.Claims {
			if _, mine := w.entries[c.Payment.ID]; mine {
				w.given(c)
			}
		}
	case "sleep":
		w.clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Minute}).Draw(w.rt, "for"))
	default:
		if len(w.claims) > 0 {
			w.act(rapid.SampledFrom(w.claims).Draw(w.rt, "claim of"))
		}
	}
}

func (w *walk) given(c payments.Claim) {
	w.claims = append(w.claims, c)
	w.owner[c.Payment.ID] = c.Token
}

// act does something under a claim that may be lost by now.
func (w *walk) act(c payments.Claim) {
	ctx := context.Background()
	id := c.Payment.ID
	owns := w.owner[id] == c.Token
	before := w.find(c)
	transitions := []payments.Transition{
		succeeded(c.Payment), waiting("locked"), unknown("no_answer"), {Status: payments.StatusNeedsReview, Reason: "several", InDoubt: true},
		{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Object: succeeded(c.Payment).Object},
	}
	t := rapid.SampledFrom(transitions).Draw(w.rt, "transition")
	var err error
	told := int64(0)
	releases := true
	switch rapid.SampledFrom([]string{"record", "record", "extend", "bury", "evidence"}).Draw(w.rt, "act") {
	case "record":
		var done payments.Recorded
		done, err = w.Record(ctx, payments.Recording{Claim: c, Transition: t, At: w.clock.Now()})
		if owns && err == nil && done.Sequence > 0 {
			told = 1
		}
		if !owns && err == nil {
			// The last one who wrote is told what is stored.
			w.unchanged(before, c)
			return
		}
	case "extend":
		_, err = w.Extend(ctx, c, time.Minute, rapid.Bool().Draw(w.rt, "submitting"))
		releases = false
	case "bury":
		err = w.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonHandlerPanic}, 0)
		if !owns && err == nil {
			w.unchanged(before, c)
			return
		}
		if owns && err == nil {
			told = w.find(c).Sequence - before.Sequence
		}
	case "evidence":
		var done payments.Recorded
		done, err = w.Evidence(ctx, "acme", id, func(payments.Payment) (payments.Transition, error) { return t, nil })
		if err == nil && done.Sequence > 0 {
			told = 1
		}
		if err == nil && before.Status.HasTicket() {
			owns = true // whoever had it has lost it
		} else if err == nil {
			w.entries[id] += told
			w.same(c)
			return
		}
	}
	switch {
	case payments.ErrorCode(err) == payments.CodeInternal: // not in the state machine
		w.unchanged(before, c)
	case !owns:
		if !payments.TicketLost(err) {
			w.rt.Fatalf("without the ticket: %v", err)
		}
		w.unchanged(before, c)
	case err != nil:
		w.rt.Fatal(err)
	default:
		w.entries[id] += told
		if releases {
			w.owner[id] = payments.Token{}
		}
		w.same(c)
	}
}

func (w *walk) unchanged(before payments.Payment, c payments.Claim) {
	after := w.find(c)
	if after.Status != before.Status || after.Sequence != before.Sequence || after.InDoubt != before.InDoubt || !after.LastSubmitAt.Equal(before.LastSubmitAt) ||
		after.Owned != before.Owned || !after.NextAttemptAt.Equal(before.NextAttemptAt) {
		w.rt.Fatalf("it was changed:\n%+v\n%+v", before, after)
	}
}

// same compares a payment with the model.
func (w *walk) same(c payments.Claim) {
	id := c.Payment.ID
	p := w.find(c)
	entries, err := w.Timeline(context.Background(), "acme", id)
	if err != nil {
		w.rt.Fatal(err)
	}
	for i, e := range entries {
		if e.Sequence != int64(i) || i > 0 && e.At.Before(entries[i-1].At) {
			w.rt.Fatalf("the timeline has a gap or runs backwards: %+v", entries)
		}
	}
	if p.Sequence != w.entries[id] || len(entries) != int(w.entries[id])+1 {
		w.rt.Fatalf("%d entries, sequence %d, want %d", len(entries)-1, p.Sequence, w.entries[id])
	}
	if p.Owned != (w.owner[id] != payments.Token{}) && p.Status.HasTicket() {
		w.rt.Fatalf("owned: %v", p.Owned)
	}
	if p.Status.Final() == p.FinalizedAt.IsZero() || p.AmountCaptured > p.Amount {
		w.rt.Fatalf("stored: %+v", p)
	}
}

// settle ends what is open, so that the next run's takes meet none of it.
func (w *walk) settle() {
	for id := range w.entries {
		p, err := w.Find(context.Background(), "acme", id)
		if err != nil {
			w.rt.Fatal(err)
		}
		if p.Status.HasTicket() {
			w.evidence(payments.Claim{Payment: p}, succeeded(p))
		}
	}
}
