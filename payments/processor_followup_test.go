package payments

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// till is a charge at Stripe with one follow-up of it, and the store that has both. Whatever goes wrong is drawn by fault.
type till struct {
	Store   // what a Processor does not call panics
	Gateway // so, too

	now    time.Time
	charge Payment
	row    Payment
	named  string // what Stripe calls its refund
	ahead  bool

	pi       PaymentIntent
	refunds  []Refund
	keys     map[string]keyed
	posts    int
	executed int // how often money moved for it

	fault func(what string) string
	moved int // how often the charge had moved when the end was recorded: so often is that refused
	says  []string
}

// keyed is what Stripe keeps under a key for a day.
type keyed struct {
	at     time.Time
	answer Observation
}

var errKilled = errors.New("killed")

func newTill(kind Kind, s Status) *till {
	w := &till{now: testNow, charge: chargeIn(s), keys: map[string]keyed{}, fault: func(string) string { return "" }}
	w.charge.StripeAccount, w.charge.Livemode = testAccount.ID, true
	w.pi = PaymentIntent{ID: "pi_1", Amount: 1000, Currency: "usd", Customer: "cus_1", Livemode: true, Status: StripeRequiresCapture}
	if s == StatusSucceeded {
		w.pi.Status, w.pi.AmountReceived = StripeSucceeded, 1000
	}
	amount := map[Kind]int64{KindCapture: 700, KindRefund: 300}[kind]
	w.row = Payment{
		Intent: Intent{TenantID: "acme", IdempotencyKey: "again-1", Kind: kind, PaymentID: w.charge.ID.String(), Amount: amount, Currency: "usd"}.Normalized(),
		ID:     NewID("acme", "again-1"), Status: StatusReceived, StripeAccount: testAccount.ID, Livemode: true, StripePaymentIntent: "pi_1",
	}
	return w
}

func (w *till) Now() time.Time { return w.now }

func (w *till) processor() *Processor {
	return &Processor{
		Store: w, FollowUps: followUpsOf{w}, Gateway: w, FollowUpGateway: w, Clock: w, Namespace: "oncepay", Lease: 45 * time.Second, CallTimeout: 30 * time.Second,
		TriesMax: 3, Backoff: BackoffDefault, Random: func(int64) int64 { return 0 },
		OnStep: func(s Step, _ ID) {
			w.says = append(w.says, string(s))
			if w.fault(string(s)) == "killed" {
				panic(errKilled)
			}
		},
	}
}

// work is one owner's: its claim, as Take commits it, and Settle, which may be the end of its process.
func (w *till) work() (s Settlement) {
	c := Claim{Payment: w.row, Token: Token{1}, LeaseUntil: w.now.Add(45 * time.Second), ClaimedAt: w.now}
	if !w.row.InDoubt && w.row.Status != StatusPending {
		if w.row.FirstSubmitAt.IsZero() {
			w.row.FirstSubmitAt = w.now
		}
		w.row.InDoubt, w.row.LastSubmitAt = true, w.now
	}
	defer func() {
		if v := recover(); v != nil && v != any(errKilled) {
			panic(v)
		}
	}()
	return w.processor().Settle(context.Background(), context.Background(), c)
}

func (w *till) Extend(_ context.Context, c Claim, lease time.Duration, submitting bool) (Claim, error) {
	if c.LeaseUntil = w.now.Add(lease); submitting {
		w.row.LastSubmitAt = w.now
	}
	return c, nil
}

func (w *till) Throttle(context.Context, Account) error { return nil }

// followUpsOf is the till as the store of follow-ups.
type followUpsOf struct{ *till }

func (w followUpsOf) AdmitFollowUp(context.Context, FollowUpRequest) (FollowUpAdmission, error) {
	panic("AdmitFollowUp")
}

func (w followUpsOf) FollowUpState(context.Context, Payment) (FollowUpState, error) {
	return FollowUpState{Target: w.charge, StripeRefund: w.named, Ahead: w.ahead}, nil
}

func (w followUpsOf) CancelOpen(context.Context, Payment) (OpenCancel, error) { panic("CancelOpen") }

func (w followUpsOf) WakeKeptBack(context.Context) (int, error) { panic("WakeKeptBack") }

func (w followUpsOf) RecordFollowUp(_ context.Context, r Recording) (Recorded, error) {
	t := r.Transition
	if t.Target != nil {
		if w.moved > 0 {
			w.moved--
			return Recorded{}, targetMoved(w.charge)
		}
		to, err := t.Target(w.charge)
		if err != nil {
			return Recorded{}, err
		}
		w.charge.AmountRefunded += to.Refunded
		if w.charge.Status, w.charge.Reason = to.Status, to.Reason; to.Object != nil {
			w.charge.AmountCaptured = to.Object.AmountReceived
		}
	}
	if !w.row.Status.CanMove(t.Status) {
		return Recorded{}, Errorf(CodeInternal, "from %s to %s", w.row.Status, t.Status)
	}
	p := &w.row
	p.Status, p.Reason, p.Failure, p.InDoubt, p.AbsentAt, p.Rounds = t.Status, t.Reason, t.Failure, t.InDoubt, t.AbsentAt, t.Rounds
	if t.ClearSubmit {
		p.FirstSubmitAt, p.LastSubmitAt = time.Time{}, time.Time{}
	}
	if t.CountTry {
		p.Tries++
	}
	if t.Refund != nil {
		w.named = t.Refund.ID
	}
	return Recorded{Payment: *p, Sequence: 1}, nil
}

// post is a POST under a key: execute is what Stripe does, once for each key in a day.
func (w *till) post(s Submission, execute func() Observation) Observation {
	if err := s.MayLeave(); err != nil {
		return Observation{Kind: ObservedHeldBack, Account: testAccount}
	}
	w.posts++
	lost := Observation{Kind: ObservedUnclear, Account: testAccount}
	what := w.fault("post")
	switch what {
	case "not sent":
		return Observation{Kind: ObservedNotSent, Account: testAccount}
	case "rate":
		return Observation{Kind: ObservedRateLimited, Account: testAccount}
	case "lost before":
		return lost
	}
	stored, there := w.keys[s.StripeKey]
	if there && w.now.Before(stored.at.Add(24*time.Hour)) {
		stored.answer.Replayed = true
	} else {
		stored = keyed{w.now, execute()}
		if stored.answer.Kind != ObservedInvalid && what != "not stored" {
			w.keys[s.StripeKey] = stored
		}
	}
	if what == "lost after" || what == "not stored" {
		return lost
	}
	return stored.answer
}

func (w *till) Capture(_ context.Context, s Submission) Observation {
	return w.post(s, func() Observation {
		if w.pi.Status != StripeRequiresCapture {
			return Observation{Kind: ObservedInvalid, Account: testAccount, Failure: &Failure{Code: "payment_intent_unexpected_state"}}
		}
		w.executed++
		w.pi.Status, w.pi.AmountReceived = StripeSucceeded, s.Payment.Amount
		pi := w.pi
		return Observation{Kind: ObservedAnswer, Account: testAccount, Object: &pi}
	})
}

func (w *till) Cancel(_ context.Context, s Submission) Observation {
	return w.post(s, func() Observation {
		if w.pi.Status != StripeSucceeded {
			w.executed++
			w.pi.Status = StripeCanceled
		}
		pi := w.pi
		return Observation{Kind: ObservedObject, Account: testAccount, Object: &pi}
	})
}

func (w *till) Refund(_ context.Context, s Submission) Observation {
	return w.post(s, func() Observation {
		w.executed++
		r := *refundOf(s.Payment, RefundSucceeded)
		if r.ID += string(rune('0' + len(w.refunds))); w.fault("refund") == "pending" {
			r.Status = RefundPending
		}
		w.refunds = append(w.refunds, r)
		return Observation{Kind: ObservedRefund, Account: testAccount, Refund: &r}
	})
}

func (w *till) Retrieve(context.Context, Payment) Observation {
	if w.fault("read") != "" {
		return Observation{Kind: ObservedNoRecords, Account: testAccount}
	}
	pi := w.pi
	return Observation{Kind: ObservedObject, Account: testAccount, Object: &pi}
}

func (w *till) LookRefunds(_ context.Context, _ Payment, progress func() error) Observation {
	if progress() != nil || w.fault("read") != "" {
		return Observation{Kind: ObservedNoRecords, Account: testAccount}
	}
	return Observation{Kind: ObservedRecords, Account: testAccount, Refunds: slices.Clone(w.refunds)}
}

func (w *till) RetrieveRefund(_ context.Context, _ Payment, id string) Observation {
	if w.fault("read") != "" {
		return Observation{Kind: ObservedNoRecords, Account: testAccount}
	}
	for i := range w.refunds {
		if w.refunds[i].ID == id {
			w.refunds[i].Status = RefundSucceeded
			r := w.refunds[i]
			return Observation{Kind: ObservedRefund, Account: testAccount, Refund: &r}
		}
	}
	return Observation{Kind: ObservedRefund, Account: testAccount}
}

// TestSettleFollowUps: each kind to its end where nothing goes wrong.
func TestSettleFollowUps(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind]struct {
		from, charge       Status
		captured, refunded int64
		steps              []string
	}{
		KindCapture: {StatusRequiresCapture, StatusSucceeded, 700, 0, []string{"before_submit", "after_submit", "before_record", "after_record"}},
		KindCancel:  {StatusRequiresCapture, StatusCanceled, 0, 0, []string{"before_cancel", "after_cancel", "before_record", "after_record"}},
		KindRefund:  {StatusSucceeded, StatusSucceeded, 1000, 300, []string{"before_submit", "after_submit", "before_record", "after_record"}},
	} {
		w := newTill(kind, want.from)
		s := w.work()
		if s.Err != nil || s.Recorded.Payment.Status != StatusSucceeded || w.charge.Status != want.charge || w.charge.AmountCaptured != want.captured ||
			w.charge.AmountRefunded != want.refunded || w.executed != 1 || w.posts != 1 || !slices.Equal(w.says, want.steps) {
			t.Errorf("%s: %+v; charge %s, captured %d, refunded %d; executed %d, %d POSTs, %v", kind, s, w.charge.Status, w.charge.AmountCaptured, w.charge.AmountRefunded, w.executed, w.posts, w.says)
		}
		if kind == KindRefund && w.named != "re_10" {
			t.Errorf("the refund is called %q", w.named)
		}
	}
}

// TestCancelOfWhatWasNeverSent asks nobody; and once somebody has its charge, it waits.
func TestCancelOfWhatWasNeverSent(t *testing.T) {
	t.Parallel()
	w := newTill(KindCancel, StatusReceived)
	w.charge.StripePaymentIntent, w.row.StripePaymentIntent = "", ""
	w.moved = 1 // somebody takes the charge right before the end is recorded
	s := w.work()
	if s.Err != nil || w.row.Status != StatusWaiting || w.row.Reason != ReasonPaymentOpen || w.row.InDoubt || w.charge.Status != StatusReceived {
		t.Errorf("%+v, charge %s", w.row, w.charge.Status)
	}
	w.charge.Owned, w.charge.InDoubt = true, true
	if s = w.work(); w.row.Status != StatusWaiting || w.charge.Status != StatusReceived {
		t.Errorf("%+v %+v", s, w.row)
	}
	w.charge.Owned, w.charge.InDoubt = false, false
	if s = w.work(); s.Err != nil || w.row.Status != StatusSucceeded || w.charge.Status != StatusCanceled || w.charge.Reason != ReasonCanceledOnRequest || w.posts != 0 {
		t.Errorf("%+v, charge %s %s, %d POSTs", w.row, w.charge.Status, w.charge.Reason, w.posts)
	}
}

// TestCancelWhileHeld: while nobody knows whether the database has forgotten a send, no charge is called unsent.
func TestCancelWhileHeld(t *testing.T) {
	t.Parallel()
	w := newTill(KindCancel, StatusReceived)
	w.charge.StripePaymentIntent, w.row.StripePaymentIntent = "", ""
	p, held := w.processor(), "a rewind"
	p.Held = func() string { return held }
	for _, want := range []Status{StatusWaiting, StatusSucceeded} {
		s := p.Settle(t.Context(), t.Context(), Claim{Payment: w.row, Token: Token{1}, LeaseUntil: testNow.Add(45 * time.Second), ClaimedAt: testNow})
		if s.Err != nil || w.row.Status != want || held != "" && (w.row.Reason != ReasonHeldBack || w.charge.Status != StatusReceived) {
			t.Errorf("held %q: %+v %+v, charge %s", held, s, w.row, w.charge.Status)
		}
		held = ""
	}
}

// TestCancelThatWasAcceptedFirst: its charge is sent before it is worked on, and has a PaymentIntent by then.
func TestCancelThatWasAcceptedFirst(t *testing.T) {
	t.Parallel()
	w := newTill(KindCancel, StatusRequiresCapture)
	w.row.StripePaymentIntent, w.row.StripeAccount, w.row.Livemode = "", "", false
	if s := w.work(); s.Err != nil || w.row.Status != StatusSucceeded || w.charge.Status != StatusCanceled {
		t.Errorf("%+v, %+v, charge %s", s, w.row, w.charge.Status)
	}
}

// TestChargeThatMoves: what was done at Stripe is not forgotten when the charge does not allow its change yet.
func TestChargeThatMoves(t *testing.T) {
	t.Parallel()
	w := newTill(KindCapture, StatusRequiresCapture)
	w.moved = 1
	w.work()
	if w.row.Status != StatusUnknown || !w.row.InDoubt || w.row.Reason != ReasonPaymentOpen || w.row.FirstSubmitAt.IsZero() {
		t.Fatalf("%+v", w.row)
	}
	w.work()
	if w.row.Status != StatusSucceeded || w.charge.Status != StatusSucceeded || w.posts != 1 {
		t.Errorf("%+v, charge %s, %d POSTs", w.row, w.charge.Status, w.posts)
	}
}

// TestForgottenRefund: the database was restored, the key is forgotten at Stripe, and the refund that is there is found before it is made again.
func TestForgottenRefund(t *testing.T) {
	t.Parallel()
	w := newTill(KindRefund, StatusSucceeded)
	w.work()
	again := newTill(KindRefund, StatusSucceeded)
	again.refunds = w.refunds
	if s := again.work(); s.Err != nil || again.row.Status != StatusSucceeded || again.posts != 0 || again.charge.AmountRefunded != 300 {
		t.Errorf("%+v: %d POSTs, refunded %d", again.row, again.posts, again.charge.AmountRefunded)
	}
}

func TestNothingOfFollowUpsLeavesTooLate(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		for name, change := range map[string]func(*Processor, *Claim){
			"held":  func(p *Processor, _ *Claim) { p.Held = func() string { return "a rewind" } },
			"lease": func(p *Processor, _ *Claim) { p.Clock = clockOf{&bench{now: testNow.Add(16 * time.Second)}} },
		} {
			from := StatusRequiresCapture
			if kind == KindRefund {
				from = StatusSucceeded
			}
			w := newTill(kind, from)
			p := w.processor()
			c := Claim{Payment: w.row, Token: Token{1}, LeaseUntil: testNow.Add(45 * time.Second), ClaimedAt: testNow}
			change(p, &c)
			if kind == KindRefund && name == "lease" {
				continue // it is extended before the send that follows a look
			}
			s := p.Settle(context.Background(), context.Background(), c)
			if s.Err != nil || w.posts != 0 || w.row.Status != StatusWaiting || w.row.Reason != ReasonHeldBack {
				t.Errorf("%s, %s: %d POSTs, %+v %+v", kind, name, w.posts, s, w.row)
			}
		}
	}
	if s := (&Processor{Clock: newTill(KindRefund, StatusSucceeded)}).Settle(context.Background(), context.Background(), Claim{Payment: newTill(KindRefund, StatusSucceeded).row}); ErrorCode(s.Err) != CodeInternal {
		t.Errorf("without a store of follow-ups: %+v", s)
	}
}

// TestWhateverFailsAFollowUpIsDoneOnce: owners die, answers are lost, Stripe forgets keys, records cannot be read; then all goes well, to the end.
func TestWhateverFailsAFollowUpIsDoneOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(followUpKinds).Draw(rt, "kind")
		from := StatusRequiresCapture
		if kind == KindRefund {
			from = StatusSucceeded
		}
		w := newTill(kind, from)
		w.fault = func(what string) string {
			choices := map[string][]string{
				"post": {"", "not sent", "rate", "lost before", "lost after", "not stored"}, "read": {"", "", "no"}, "refund": {"", "pending"},
			}[what]
			if choices == nil {
				choices = []string{"", "", "", "", "", "killed"}
			}
			return rapid.SampledFrom(choices).Draw(rt, what)
		}
		check := func() {
			if w.executed > 1 || w.charge.AmountRefunded > 300 {
				rt.Fatalf("done %d times, refunded %d: %+v", w.executed, w.charge.AmountRefunded, w.row)
			}
		}
		for range rapid.IntRange(0, 12).Draw(rt, "owners") {
			if !w.row.Status.HasTicket() {
				break
			}
			if s := w.work(); s.Err != nil {
				rt.Fatalf("%v: %+v", s.Err, w.row)
			}
			check()
			w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 60, 3600, 30 * 3600}).Draw(rt, "seconds")) * time.Second)
			w.ahead = rapid.Bool().Draw(rt, "ahead")
		}
		w.ahead, w.fault = false, func(string) string { return "" }
		for n := 0; w.row.Status.HasTicket(); n++ {
			if s := w.work(); s.Err != nil || n > 500 {
				rt.Fatalf("%v, comes to no end: %+v", s.Err, w.row)
			}
			check()
			w.now = w.now.Add(time.Hour)
		}
		done := w.executed == 1
		switch w.row.Status {
		case StatusSucceeded:
			if !done || kind == KindRefund && w.charge.AmountRefunded != 300 || kind == KindCapture && w.charge.AmountCaptured != 700 {
				rt.Fatalf("succeeded, and was done %d times: %+v", w.executed, w.charge)
			}
		case StatusStalled:
			if done {
				rt.Fatalf("stalled, and was done: %+v", w.row)
			}
		case StatusNeedsReview:
			if done || w.row.Reason != ReasonAbsent || kind != KindRefund {
				rt.Fatalf("a person is asked: %+v, done %v", w.row, done)
			}
		default:
			rt.Fatalf("ended as %s, done %v: %+v", w.row.Status, done, w.row)
		}
	})
}
