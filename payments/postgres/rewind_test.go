package postgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

var ada = payments.Operation{Actor: "ada", Reason: "restored"}

func (b *bench) mark() payments.MarkState {
	b.t.Helper()
	state, err := b.Mark(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return state
}

// rewinding begins a rewind and holds it.
func (b *bench) beginRewind(since time.Time) payments.Rewind {
	b.t.Helper()
	if _, began, err := b.BeginRewind(context.Background(), since, ada); err != nil || !began {
		b.t.Fatalf("BeginRewind: %t, %v", began, err)
	}
	r, held, err := b.HoldRewind(context.Background(), time.Minute)
	if err != nil || !held {
		b.t.Fatalf("HoldRewind: %t, %v", held, err)
	}
	return r
}

// actions are what the audit has of an action, the newest first, by result.
func (b *bench) actions(action string) (results []string) {
	b.t.Helper()
	list, _, err := b.Audit(context.Background(), payments.AuditFilter{Action: action}, 10, "")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range list {
		if e.Actor != ada.Actor || e.Reason != ada.Reason {
			b.t.Errorf("%+v", e)
		}
		results = append(results, string(e.Result))
	}
	return results
}

// TestMarkCounts once a second however many come, never a database that has fallen behind, and keeps the streams' floors.
func TestMarkCounts(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	first := b.mark()
	if first.Counted || first.Counter != 0 || first.SystemID == "" || first.Timeline < 1 || first.Rewind != 0 || !first.Now.Equal(b.clock.Now()) {
		t.Fatalf("%+v", first)
	}
	floors := map[string]payments.StreamFloor{"S": {Created: b.clock.Now(), Sequence: 42}}
	if _, _, counted, err := b.CountMark(ctx, 1, floors); err != nil || counted {
		t.Errorf("a database that has forgotten its mark is counted: %t, %v", counted, err)
	}
	for second := range 3 {
		var wg sync.WaitGroup
		var did atomic.Int64
		for range 6 {
			wg.Go(func() {
				if n, at, counted, err := b.CountMark(ctx, int64(second), floors); err != nil {
					t.Error(err)
				} else if counted {
					if did.Add(1); n != int64(second+1) || !at.Equal(b.clock.Now()) {
						t.Errorf("%d at %s", n, at)
					}
				}
			})
		}
		if wg.Wait(); did.Load() != 1 {
			t.Errorf("second %d: counted %d times", second, did.Load())
		}
		b.clock.Advance(time.Second)
	}
	got := b.mark()
	if !got.Counted || got.Counter != 3 || got.SystemID != first.SystemID || got.Floors["S"].Sequence != 42 || !got.Floors["S"].Created.Equal(floors["S"].Created) {
		t.Errorf("%+v", got)
	}
	if _, _, counted, err := b.CountMark(ctx, 4, nil); err != nil || counted {
		t.Errorf("a database that is behind is counted: %t, %v", counted, err)
	}
	if err := b.AcceptMark(ctx, 9, ada, []byte(`{"found":"behind"}`)); err != nil || b.mark().Counter != 9 {
		t.Errorf("%+v, %v", b.mark(), err)
	}
	if got := b.actions("doctor --accept-mark"); !slices.Equal(got, []string{`{"found":"behind"}`}) {
		t.Errorf("audit: %q", got)
	}
	b.beginRewind(b.clock.Now())
	if err := b.AcceptMark(ctx, 20, ada, nil); payments.ErrorCode(err) != payments.CodeInvalid || b.mark().Counter != 9 || b.mark().Rewind == 0 {
		t.Errorf("%+v, %v", b.mark(), err)
	}
}

// TestOneRewind runs at a time, is one process's at a time, goes back as far as the mark, and ends once.
func TestOneRewind(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	at := b.clock.Now()
	if _, _, counted, err := b.CountMark(ctx, 0, nil); err != nil || !counted {
		t.Fatal(counted, err)
	}
	b.clock.Advance(time.Hour)
	if _, _, err := b.BeginRewind(ctx, b.clock.Now().Add(time.Second), ada); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("%v", err)
	}
	r := b.beginRewind(b.clock.Now())
	if !r.Since.Equal(at) || r.State != payments.RewindRunning || r.Progress.Step != payments.RewindSettle || r.Actor != ada.Actor || r.Reason != ada.Reason {
		t.Errorf("%+v", r)
	}
	if again, began, err := b.BeginRewind(ctx, at.Add(-time.Hour), ada); err != nil || began || again.ID != r.ID {
		t.Errorf("%+v, %t, %v", again, began, err)
	}
	if _, held, err := b.HoldRewind(ctx, time.Minute); err != nil || held {
		t.Errorf("held twice: %t, %v", held, err)
	}
	moved := r
	moved.Progress.Step, moved.Detail = payments.RewindStripe, "Stripe is away"
	moved, err := b.GoOn(ctx, moved, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(2 * time.Minute)
	other, held, err := b.HoldRewind(ctx, time.Minute)
	if err != nil || !held || other.Progress.Step != payments.RewindStripe || other.Detail != "Stripe is away" {
		t.Fatalf("%+v, %t, %v", other, held, err)
	}
	for name, former := range map[string]payments.Rewind{"the first hold": r, "the second": moved} {
		if _, err := b.GoOn(ctx, former, time.Minute); !payments.TicketLost(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.FinishRewind(ctx, former, payments.RewindCompleted, 99); !payments.TicketLost(err) || b.mark().Counter != 1 {
			t.Errorf("%s: %v, %+v", name, err, b.mark())
		}
	}
	done, err := b.FinishRewind(ctx, other, payments.RewindCompleted, 50)
	if err != nil || done.State != payments.RewindCompleted || done.FinishedAt.IsZero() || b.mark().Counter != 50 || b.mark().Rewind != 0 {
		t.Errorf("%+v, %v, %+v", done, err, b.mark())
	}
	if _, err := b.FinishRewind(ctx, done, payments.RewindFailed, 0); !payments.TicketLost(err) {
		t.Errorf("ended twice: %v", err)
	}
	failed := b.beginRewind(at)
	if _, err := b.FinishRewind(ctx, failed, payments.RewindFailed, 99); err != nil || b.mark().Counter != 50 {
		t.Errorf("one that failed accepts nothing: %v, %+v", err, b.mark())
	}
	if got := b.actions("rewind"); len(got) != 4 || !strings.Contains(got[0], `"failed"`) || !strings.Contains(got[2], `"completed"`) {
		t.Errorf("audit: %q", got)
	}
	if _, err := b.Rewind(ctx, 99); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// all runs a step over rows to its end.
func (b *bench) all(r payments.Rewind, step func(context.Context, payments.Rewind, time.Duration, AccountOf) (payments.Rewind, bool, error)) payments.Rewind {
	b.t.Helper()
	r.Progress.Tenant, r.Progress.ID = "", ""
	for done := false; !done; {
		var err error
		if r, done, err = step(context.Background(), r, time.Minute, func(string) payments.Account { return account }); err != nil {
			b.t.Fatal(err)
		}
	}
	return r
}

// object is what Stripe has of a payment.
func object(tenant string, id payments.ID) payments.StripeObject {
	return payments.StripeObject{TenantID: tenant, PaymentID: id, Account: account,
		Intent: payments.PaymentIntent{ID: "pi_" + id.Hex()[:24], Status: payments.StripeSucceeded, Amount: 9900, AmountReceived: 9900, Currency: "usd", Livemode: true}}
}

// TestWhatARewindDoubts: whatever is to be worked on is in doubt, also what somebody owns, who records nothing any more; what has ended stays, and so does the
// status of what was given up and is unknown to Stripe. Doing it again changes nothing.
func TestWhatARewindDoubts(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	owned, done := b.claim("owned"), b.claim("done")
	b.record(done, succeeded(done.Payment), 0)
	again := b.claim("again")
	b.record(again, waiting(payments.ReasonNotSent), time.Hour)
	doubtful := b.claim("doubtful")
	b.record(doubtful, unknown("timeout"), time.Hour)
	given, known := b.claim("given-up"), b.claim("given-up-and-charged")
	for _, c := range []payments.Claim{given, known} {
		b.record(c, payments.Transition{Status: payments.StatusNeedsReview, Reason: payments.ReasonAbsent}, 0)
	}
	b.clock.Advance(time.Minute)
	since := b.clock.Now().Add(-time.Hour)
	r := b.beginRewind(since)
	var err error
	if r, _, err = b.StoreObjects(ctx, r, time.Minute, []payments.StripeObject{object("acme", known.Payment.ID), object("nobody", payments.NewID("nobody", "k"))}); err != nil {
		t.Fatal(err)
	}
	if r.Progress.Objects != 2 || !slices.Equal(r.Progress.Unknown, []string{"nobody"}) {
		t.Errorf("%+v", r.Progress)
	}
	for round := range 2 { // the second as after a crash, when what was given up is counted once more
		r = b.all(r, b.DoubtTickets)
		r = b.all(r, b.DoubtOthers)
		if r.Progress.Doubted != 5+round {
			t.Errorf("round %d: %d are in doubt", round, r.Progress.Doubted)
		}
	}
	for name, c := range map[string]payments.Claim{"owned": owned, "waiting": again, "in doubt before": doubtful, "given up, and charged": known} {
		p := b.find(c)
		if p.Status != payments.StatusUnknown || !p.InDoubt || p.Reason != payments.ReasonRewound || p.FirstSubmitAt.After(since) || p.LastSubmitAt.Before(r.CreatedAt) || p.StripeAccount != account.ID {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := b.find(done); p.Status != payments.StatusSucceeded || p.InDoubt {
		t.Errorf("done: %+v", p)
	}
	if p := b.find(given); p.Status != payments.StatusNeedsReview || !p.InDoubt { // it stays with its person, and nobody sends it unlooked
		t.Errorf("given up: %+v", p)
	}
	if _, err := b.Record(ctx, payments.Recording{Claim: owned, Transition: succeeded(owned.Payment), At: b.clock.Now()}); !payments.TicketLost(err) {
		t.Errorf("the former owner: %v", err)
	}
	for _, c := range b.take(payments.TakeRequest{Limit: 10}) {
		if !c.Payment.InDoubt {
			t.Errorf("taken, and not in doubt: %+v", c.Payment)
		}
	}
}

// TestWhatStripeKnowsBeginsInDoubt: a payment of which Stripe has a record is never handed out to be sent, however it comes.
func TestWhatStripeKnowsBeginsInDoubt(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := t.Context()
	r := b.beginRewind(b.clock.Now())
	later := intent("acme", "later", 9900)
	r, _, err := b.StoreObjects(ctx, r, time.Minute, []payments.StripeObject{object("acme", later.ID())})
	if err != nil {
		t.Fatal(err)
	}
	a := b.admit(b.claiming(later))
	if a.Verdict != payments.VerdictStored {
		t.Fatalf("admitted as %s", a.Verdict)
	}
	if err := b.AwaitAdmissions(ctx); err != nil {
		t.Fatal(err)
	}
	r = b.all(r, b.DoubtFound)
	taken := b.take(payments.TakeRequest{Limit: 10})
	if len(taken) != 1 || !taken[0].Payment.InDoubt || taken[0].Payment.Status != payments.StatusUnknown || taken[0].Payment.StripeAccount != account.ID || r.Progress.Doubted != 1 {
		t.Errorf("%+v, %+v", taken, r.Progress)
	}
	if a := b.admit(b.claiming(intent("acme", "other", 9900))); a.Verdict != payments.VerdictClaimed {
		t.Errorf("what Stripe does not know is %s", a.Verdict)
	}
}

// TestRestoredPayments are stored once, in doubt from the earlier of their message's time and the rewind's; another request under a key is told.
func TestRestoredPayments(t *testing.T) {
	t.Parallel()
	b := open(t)
	there := b.claim("there")
	b.record(there, succeeded(there.Payment), 0)
	b.clock.Advance(time.Hour)
	since := b.clock.Now().Add(-time.Minute)
	r := b.beginRewind(since)
	old := since.Add(-20 * time.Minute)
	list := []payments.ForgottenPayment{
		{Intent: intent("acme", "gone", 9900), Lane: payments.LaneBulk, StoredAt: old}, {Intent: intent("acme", "gone", 1), Lane: payments.LaneBulk, StoredAt: since},
		{Intent: intent("acme", "there", 9900), Lane: payments.LaneInteractive, StoredAt: since}, {Intent: intent("nobody", "k", 1), Lane: payments.LaneInteractive, StoredAt: since},
	}
	for round := range 2 {
		next, done, err := b.RestorePayments(t.Context(), r, time.Minute, list, func(string) payments.Account { return account })
		if err != nil {
			t.Fatal(err)
		}
		r = next
		if done.Stored != 1-round || !slices.Equal(done.Conflicts[1], []string{"amount"}) || len(done.Conflicts) != 1 || len(done.Unknown) != 1 || done.Unknown[3] != "nobody" {
			t.Errorf("round %d: %+v", round, done)
		}
	}
	gone := list[0].Intent
	p, err := b.Find(t.Context(), "acme", gone.ID())
	if err != nil || p.Status != payments.StatusUnknown || !p.InDoubt || p.Lane != payments.LaneBulk || p.Amount != 9900 || p.FirstSubmitAt.After(old) || r.Progress.Restored != 1 {
		t.Errorf("%+v, %v, %+v", p, err, r.Progress)
	}
	if p := b.find(there); p.Status != payments.StatusSucceeded {
		t.Errorf("%+v", p)
	}
}
