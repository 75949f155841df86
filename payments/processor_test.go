package payments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bench is a Processor between a store and a gateway that are functions, with a protocol of everything that was called.
type bench struct {
	Processor

	now      time.Time
	calls    []string
	recorded []Recording

	submit   func(Submission) Observation
	look     func(Payment, func() error) Observation
	retrieve func(Payment) Observation
	extend   func(Claim, bool) (Claim, error)
	onRecord func(context.Context) error
}

func newBench() *bench {
	b := &bench{now: testNow}
	b.Processor = Processor{
		Store: storeOf{b}, Gateway: gatewayOf{b}, Clock: clockOf{b}, Namespace: "oncepay", Lease: 45 * time.Second, CallTimeout: 30 * time.Second, TriesMax: 3,
		Backoff: BackoffDefault, Random: func(n int64) int64 { return n - 1 },
		OnStep:        func(s Step, _ ID) { b.note("step " + string(s)) },
		OnObservation: func(_ Payment, o Observation) { b.note("saw " + string(o.Kind)) },
	}
	return b
}

func (b *bench) note(call string) { b.calls = append(b.calls, call) }

type clockOf struct{ *bench }

func (c clockOf) Now() time.Time { return c.bench.now }

type storeOf struct{ *bench }

func (s storeOf) Extend(_ context.Context, c Claim, lease time.Duration, submitting bool) (Claim, error) {
	if submitting {
		s.note("extend submitting")
	} else {
		s.note("extend")
	}
	if lease != s.Lease {
		s.note("with a lease of its own")
	}
	if s.extend != nil {
		return s.extend(c, submitting)
	}
	c.LeaseUntil = s.now.Add(lease)
	return c, nil
}

func (s storeOf) Record(ctx context.Context, r Recording) (Recorded, error) {
	s.note("record " + string(r.Transition.Status))
	if s.onRecord != nil {
		if err := s.onRecord(ctx); err != nil {
			return Recorded{}, err
		}
	}
	s.recorded = append(s.recorded, r)
	return Recorded{Payment: Payment{ID: r.Claim.Payment.ID, Status: r.Transition.Status}, Sequence: 2}, nil
}

// Everything else of a Store is none of the Processor's business; calling it panics.
func (s storeOf) Admit(context.Context, AdmitRequest) (Admission, error) { panic("Admit") }
func (s storeOf) Take(context.Context, TakeRequest) (Taking, error)      { panic("Take") }
func (s storeOf) Throttle(context.Context, Account) error                { return nil }
func (s storeOf) BuryMessage(context.Context, DeadLetter) error          { panic("BuryMessage") }
func (s storeOf) Suspect(context.Context, DeadLetter) (int, error)       { panic("Suspect") }
func (s storeOf) Find(context.Context, string, ID) (Payment, error)      { panic("Find") }
func (s storeOf) BuryPayment(context.Context, Claim, DeadLetter, time.Duration) error {
	panic("BuryPayment")
}
func (s storeOf) Evidence(context.Context, string, ID, func(Payment) (Transition, error)) (Recorded, error) {
	panic("Evidence")
}

type gatewayOf struct{ *bench }

func (g gatewayOf) Account(context.Context, string) (Account, error) { return testAccount, nil }

// Submit asks MayLeave before anything leaves, as a Gateway must.
func (g gatewayOf) Submit(_ context.Context, s Submission) Observation {
	g.note("submit")
	if err := s.MayLeave(); err != nil {
		g.note("held back: " + err.Error())
		return Observation{Kind: ObservedHeldBack, Account: testAccount}
	}
	g.note("sent")
	return g.submit(s)
}

func (g gatewayOf) Look(_ context.Context, p Payment, progress func() error) Observation {
	g.note("look")
	return g.look(p, progress)
}

func (g gatewayOf) Retrieve(_ context.Context, p Payment) Observation {
	g.note("retrieve")
	return g.retrieve(p)
}

// Cancel finds the PaymentIntent canceled already.
func (g gatewayOf) Cancel(_ context.Context, s Submission) Observation {
	g.note("cancel")
	if err := s.MayLeave(); err != nil {
		g.note("held back: " + err.Error())
		return Observation{Kind: ObservedHeldBack, Account: testAccount}
	}
	g.note("canceled")
	pi := charged()
	pi.ID, pi.Status, pi.AmountReceived = s.Payment.StripePaymentIntent, StripeCanceled, 0
	return Observation{Kind: ObservedObject, Account: testAccount, Object: pi}
}

func testClaim(status Status, inDoubt bool) Claim {
	i := goodIntent()
	c := Claim{
		Payment: Payment{Intent: i, ID: i.ID(), Status: status, InDoubt: inDoubt, StripeAccount: testAccount.ID, Livemode: true},
		Token:   Token{1}, Lane: LaneInteractive, LeaseUntil: testNow.Add(45 * time.Second), ClaimedAt: testNow,
	}
	if inDoubt {
		c.Payment.FirstSubmitAt, c.Payment.LastSubmitAt = testNow.Add(-time.Minute), testNow.Add(-time.Minute)
	}
	return c
}

func charged() *PaymentIntent {
	return &PaymentIntent{ID: "pi_1", Status: StripeSucceeded, Amount: 9900, AmountReceived: 9900, Currency: "usd", Customer: "cus_1", Livemode: true}
}

func succeeded(Submission) Observation {
	return Observation{Kind: ObservedAnswer, Account: testAccount, Object: charged()}
}

// lateClaim is a claim whose lease does not outlast another page of a listing.
func lateClaim(s Status, inDoubt bool) Claim {
	c := testClaim(s, inDoubt)
	c.LeaseUntil = testNow.Add(29 * time.Second)
	return c
}

func emptyRecords(_ Payment, progress func() error) Observation {
	if err := progress(); err != nil {
		return Observation{Kind: ObservedNoRecords, Account: testAccount}
	}
	return Observation{Kind: ObservedRecords, Account: testAccount}
}

func wantCalls(t *testing.T, b *bench, want ...string) {
	t.Helper()
	if !slices.Equal(b.calls, want) {
		t.Errorf("called\n  %s\nwant\n  %s", strings.Join(b.calls, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestSettleSends(t *testing.T) {
	t.Parallel()
	b := newBench()
	c := testClaim(StatusReceived, false)
	var sent Submission
	b.submit = func(s Submission) Observation { sent = s; return succeeded(s) }
	got := b.Settle(t.Context(), t.Context(), c)
	if got.Err != nil || got.Lost || got.Recorded.Payment.Status != StatusSucceeded || got.Recorded.Sequence != 2 {
		t.Errorf("got %+v", got)
	}
	wantCalls(t, b, "step before_submit", "submit", "sent", "step after_submit", "saw answer", "step before_record", "record succeeded", "step after_record")
	if sent.StripeKey != "da65c6349f7ecaa55ce334eccdd23abd08d37e383f2e3e78370ffe652515c5c6" || sent.Payment.ID != c.Payment.ID {
		t.Errorf("sent under the key %s for %s", sent.StripeKey, sent.Payment.ID)
	}
	r := b.recorded[0]
	if r.Claim.Token != c.Token || !r.At.Equal(testNow) || r.Transition.Object.ID != "pi_1" || r.Delay != 0 {
		t.Errorf("recorded %+v", r)
	}
}

func TestSettleRecordsWhenItIsDueAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o      Observation
		status Status
		delay  time.Duration
	}{
		"no answer":    {Observation{Kind: ObservedUnclear}, StatusUnknown, 500 * time.Millisecond},
		"rate limited": {Observation{Kind: ObservedRateLimited, RetryAfter: 7 * time.Second}, StatusWaiting, 7 * time.Second},
		"wrong key":    {Observation{Kind: ObservedUnauthorized}, StatusWaiting, 500 * time.Millisecond},
	} {
		b := newBench()
		b.submit = func(Submission) Observation { return c.o }
		b.Settle(t.Context(), t.Context(), testClaim(StatusWaiting, false))
		if len(b.recorded) != 1 || b.recorded[0].Transition.Status != c.status || b.recorded[0].Delay != c.delay {
			t.Errorf("%s: recorded %+v", name, b.recorded)
		}
	}
}

func TestSettleLooksAndAdopts(t *testing.T) {
	t.Parallel()
	for _, status := range []Status{StatusReceived, StatusWaiting, StatusUnknown} { // a takeover and a payment in doubt are the same
		b := newBench()
		b.look = func(p Payment, progress func() error) Observation {
			for range 5 { // pages; before the third and the fifth, the lease of 45 s does not outlast a call of 30 s any more
				if err := progress(); err != nil {
					t.Errorf("progress: %v", err)
				}
				b.now = b.now.Add(10 * time.Second)
			}
			return Observation{Kind: ObservedRecords, Account: testAccount, Found: []PaymentIntent{*charged()}}
		}
		got := b.Settle(t.Context(), t.Context(), testClaim(status, true))
		if got.Err != nil || got.Recorded.Payment.Status != StatusSucceeded {
			t.Errorf("%s: %+v", status, got)
		}
		wantCalls(t, b, "look", "extend", "extend", "saw records", "step before_record", "record succeeded", "step after_record")
	}
}

func TestSettleLooksAndSendsAgainUnderTheSameKey(t *testing.T) {
	t.Parallel()
	b := newBench()
	c := testClaim(StatusUnknown, true)
	b.look = func(p Payment, progress func() error) Observation {
		b.now = b.now.Add(40 * time.Second) // a slow listing: only the extension makes room for the send
		return emptyRecords(p, progress)
	}
	var key string
	b.submit = func(s Submission) Observation { key = s.StripeKey; o := succeeded(s); o.Replayed = true; return o }
	b.extend = func(c Claim, submitting bool) (Claim, error) {
		if submitting {
			c.LeaseUntil = b.now.Add(b.Lease)
		}
		return c, nil
	}
	got := b.Settle(t.Context(), t.Context(), c)
	if got.Err != nil || got.Recorded.Payment.Status != StatusSucceeded || key != StripeKey("oncepay", KindCharge, "acme", "order-1") {
		t.Errorf("got %+v, key %s", got, key)
	}
	wantCalls(t, b, "look", "extend", "saw records", "extend submitting", "step before_submit", "submit", "sent", "step after_submit", "saw answer",
		"step before_record", "record succeeded", "step after_record")
	if until := b.recorded[0].Claim.LeaseUntil; !until.Equal(testNow.Add(85 * time.Second)) {
		t.Errorf("the claim that was recorded is not the extended one: %v", until)
	}
}

// The earlier send is still open when the later one is answered anew: one more look, no end.
func TestSettleDoesNotTrustASecondExecution(t *testing.T) {
	t.Parallel()
	for kind, o := range map[string]Observation{
		"answer":  {Kind: ObservedAnswer, Account: testAccount, Object: charged()},
		"decline": {Kind: ObservedDecline, Account: testAccount, Failure: declined},
		"refusal": {Kind: ObservedInvalid, Account: testAccount},
	} {
		b := newBench()
		b.look = emptyRecords
		b.submit = func(Submission) Observation { return o }
		b.Settle(t.Context(), t.Context(), testClaim(StatusUnknown, true))
		if len(b.recorded) != 1 || b.recorded[0].Transition.Status != StatusUnknown || !b.recorded[0].Transition.InDoubt {
			t.Errorf("%s: recorded %+v", kind, b.recorded)
		}
	}
}

func TestSettleStopsWhenTheTicketIsLost(t *testing.T) {
	t.Parallel()
	lost := Errorf(CodeTicketLost, "somebody else has the ticket")
	away := Errorf(CodeUnavailable, "the store is away")
	for name, c := range map[string]struct {
		err        error
		submitting bool // fails the extension before the send, not the one before a page
		lost       bool
		recorded   int
	}{
		"lost while looking":         {lost, false, true, 0},
		"lost before the send":       {lost, true, true, 0},
		"store away before the send": {away, true, false, 0},
		"store away while looking":   {away, false, false, 1}, // the listing ends without a result, which is recorded
	} {
		b := newBench()
		b.look = emptyRecords
		b.submit = func(Submission) Observation { t.Errorf("%s: sent", name); return Observation{Kind: ObservedUnclear} }
		b.extend = func(claim Claim, submitting bool) (Claim, error) {
			if submitting == c.submitting {
				return Claim{}, c.err
			}
			return claim, nil
		}
		got := b.Settle(t.Context(), t.Context(), lateClaim(StatusUnknown, true))
		if got.Lost != c.lost || len(b.recorded) != c.recorded || (c.recorded == 0) != (got.Err != nil) {
			t.Errorf("%s: %+v, recorded %+v", name, got, b.recorded)
		}
		if c.recorded == 1 && (b.recorded[0].Transition.Status != StatusUnknown || !b.recorded[0].Transition.InDoubt || b.recorded[0].Claim.Token != (Token{1})) {
			t.Errorf("%s: recorded %+v", name, b.recorded)
		}
	}
}

// A gateway that goes on although progress failed must not make us act on what is no longer ours.
func TestSettleBelievesTheTicketNotTheListing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.extend = func(Claim, bool) (Claim, error) { return Claim{}, Errorf(CodeTicketLost, "lost") }
	b.look = func(_ Payment, progress func() error) Observation {
		_ = progress()
		return Observation{Kind: ObservedRecords, Account: testAccount, Found: []PaymentIntent{*charged()}}
	}
	if got := b.Settle(t.Context(), t.Context(), lateClaim(StatusUnknown, true)); !got.Lost || len(b.recorded) != 0 {
		t.Errorf("got %+v, recorded %+v", got, b.recorded)
	}
}

// The last check before the write: the process may have slept between the token and here.
func TestNothingLeavesTooLate(t *testing.T) {
	t.Parallel()
	window := ResendWindow
	for name, c := range map[string]struct {
		change func(*Claim)
		now    time.Time
		leaves bool
	}{
		"in time":                      {func(*Claim) {}, testNow, true},
		"last moment of the lease":     {func(*Claim) {}, testNow.Add(15 * time.Second), true},
		"lease ends during the call":   {func(*Claim) {}, testNow.Add(15*time.Second + 1), false},
		"lease over":                   {func(*Claim) {}, testNow.Add(time.Hour), false},
		"expired":                      {func(c *Claim) { c.Payment.ExpiresAt = testNow.Add(time.Second) }, testNow.Add(time.Second), false},
		"not yet expired":              {func(c *Claim) { c.Payment.ExpiresAt = testNow.Add(time.Second) }, testNow, true},
		"claimed long ago, lease long": {func(c *Claim) { c.LeaseUntil = testNow.Add(72 * time.Hour) }, testNow.Add(window), false},
		"window's last moment":         {func(c *Claim) { c.LeaseUntil = testNow.Add(72 * time.Hour) }, testNow.Add(window - 1), true},
		"sent long ago, not executed":  {func(c *Claim) { c.Payment.FirstSubmitAt = testNow.Add(-48 * time.Hour) }, testNow, true},
	} {
		b := newBench()
		b.submit = succeeded
		claim := testClaim(StatusWaiting, false)
		c.change(&claim)
		b.OnStep = func(s Step, _ ID) {
			if s == StepBeforeSubmit { // the process sleeps here
				b.now = c.now
			}
		}
		b.Settle(t.Context(), t.Context(), claim)
		if left := slices.Contains(b.calls, "sent"); left != c.leaves {
			t.Errorf("%s: left %v\n  %s", name, left, strings.Join(b.calls, "\n  "))
		}
		if !c.leaves && (len(b.recorded) != 1 || b.recorded[0].Transition.Status != StatusWaiting || b.recorded[0].Transition.CountTry || !b.recorded[0].Transition.Status.HasTicket()) {
			t.Errorf("%s: recorded %+v", name, b.recorded)
		}
	}
}

// TestNothingLeavesWhileHeld: the hold begins between the token and the send.
func TestNothingLeavesWhileHeld(t *testing.T) {
	t.Parallel()
	for _, inDoubt := range []bool{false, true} {
		b := newBench()
		b.submit, b.look = succeeded, emptyRecords
		held := false
		b.Held = func() string {
			if held {
				return "held"
			}
			return ""
		}
		b.OnStep = func(s Step, _ ID) { held = held || s == StepBeforeSubmit }
		status := StatusReceived
		if inDoubt {
			status = StatusUnknown
		}
		claim := testClaim(status, inDoubt)
		b.Settle(t.Context(), t.Context(), claim)
		if slices.Contains(b.calls, "sent") {
			t.Errorf("in doubt %v: it left\n  %s", inDoubt, strings.Join(b.calls, "\n  "))
		}
		if len(b.recorded) != 1 || b.recorded[0].Transition.CountTry || !b.recorded[0].Transition.Status.HasTicket() {
			t.Errorf("in doubt %v: recorded %+v", inDoubt, b.recorded)
		}
	}
}

// A database that was restored may not know that the customer of a declined payment was faster: a cancel would release what is held since.
func TestNoCancelLeavesWhileHeld(t *testing.T) {
	t.Parallel()
	b := newBench()
	held := false
	b.Held = func() string {
		if held {
			return "held"
		}
		return ""
	}
	b.OnStep = func(s Step, _ ID) { held = held || s == StepBeforeCancel }
	claim := testClaim(StatusWaiting, false)
	claim.Payment.Reason, claim.Payment.StripePaymentIntent, claim.Payment.Failure = ReasonCancelling, "pi_1", declined
	b.Settle(t.Context(), t.Context(), claim)
	if slices.Contains(b.calls, "canceled") || !slices.Contains(b.calls, "cancel") {
		t.Errorf("it was called\n  %s", strings.Join(b.calls, "\n  "))
	}
	if len(b.recorded) != 1 || b.recorded[0].Transition.Reason != ReasonCancelling || b.recorded[0].Transition.CountTry {
		t.Errorf("recorded %+v", b.recorded)
	}
	held, b.OnStep = false, nil
	b.Settle(t.Context(), t.Context(), claim)
	if len(b.recorded) != 2 || b.recorded[1].Transition.Status != StatusFailed {
		t.Errorf("let go, it recorded %+v", b.recorded)
	}
}

func TestTheWindowOfAResendBeginsWithTheFirstSend(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.look = emptyRecords
	b.submit = succeeded
	c := testClaim(StatusUnknown, true)
	c.Payment.FirstSubmitAt = testNow.Add(-ResendWindow).Add(time.Minute)
	b.OnStep = func(s Step, _ ID) {
		if s == StepBeforeSubmit {
			b.now = b.now.Add(time.Minute)
			b.Lease = time.Hour
		}
	}
	b.extend = func(c Claim, _ bool) (Claim, error) { c.LeaseUntil = b.now.Add(time.Hour); return c, nil }
	b.Settle(t.Context(), t.Context(), c)
	if slices.Contains(b.calls, "sent") || len(b.recorded) != 1 || b.recorded[0].Transition.Status != StatusUnknown || !b.recorded[0].Transition.InDoubt || b.recorded[0].Transition.ClearSubmit {
		t.Errorf("called %v, recorded %+v", b.calls, b.recorded)
	}
}

func TestSettleWithoutAskingStripe(t *testing.T) {
	t.Parallel()
	b := newBench()
	c := testClaim(StatusReceived, false)
	c.Payment.ExpiresAt = testNow
	if got := b.Settle(t.Context(), t.Context(), c); got.Err != nil || got.Recorded.Payment.Status != StatusExpired {
		t.Errorf("expired: %+v", got)
	}
	wantCalls(t, b, "step before_record", "record expired", "step after_record")

	for _, s := range Statuses() {
		if s.HasTicket() {
			continue
		}
		b := newBench()
		if got := b.Settle(t.Context(), t.Context(), testClaim(s, false)); ErrorCode(got.Err) != CodeInternal || got.Lost {
			t.Errorf("a ticket for a payment that is %s: %+v", s, got)
		}
		wantCalls(t, b)
	}
}

func TestSettleRetrievesWhatIsPending(t *testing.T) {
	t.Parallel()
	for want, o := range map[Status]Observation{
		StatusSucceeded:   {Kind: ObservedObject, Account: testAccount, Object: charged()},
		StatusPending:     {Kind: ObservedNoRecords, Account: testAccount},
		StatusNeedsReview: {Kind: ObservedObject, Account: testAccount},
	} {
		b := newBench()
		b.retrieve = func(Payment) Observation { return o }
		c := testClaim(StatusPending, false)
		c.Payment.StripePaymentIntent, c.Payment.Reason = "pi_1", ReasonProcessing
		if got := b.Settle(t.Context(), t.Context(), c); got.Err != nil || got.Recorded.Payment.Status != want {
			t.Errorf("%s: %+v", want, got)
		}
		wantCalls(t, b, "retrieve", "saw "+string(o.Kind), "step before_record", "record "+string(want), "step after_record")
	}
}

func TestSettleRefusesWhatHasNoMeaning(t *testing.T) {
	t.Parallel()
	for _, o := range []Observation{{Kind: "nonsense"}, {Kind: ObservedRecords, Account: testAccount}} { // a listing is no answer to a submit
		b := newBench()
		b.look = emptyRecords
		b.submit = func(Submission) Observation { return o }
		if got := b.Settle(t.Context(), t.Context(), testClaim(StatusUnknown, true)); ErrorCode(got.Err) != CodeInternal || len(b.recorded) != 0 {
			t.Errorf("%s: %+v", o.Kind, got)
		}
	}
}

// While PostgreSQL is away, what Stripe has answered is held and recorded when it is back, without asking Stripe again.
func TestRecordingOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.submit = succeeded
		start := time.Now()
		b.onRecord = func(context.Context) error {
			if time.Since(start) < 20*time.Second {
				return Errorf(CodeUnavailable, "the store is away: %w", errors.New("connection refused"))
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the worker is stopping: calls to Stripe end, recording does not
		got := b.Settle(ctx, t.Context(), testClaim(StatusReceived, false))
		attempts := len(slices.DeleteFunc(slices.Clone(b.calls), func(s string) bool { return s != "record succeeded" }))
		sent := len(slices.DeleteFunc(slices.Clone(b.calls), func(s string) bool { return s != "sent" }))
		if got.Err != nil || got.Recorded.Payment.Status != StatusSucceeded || sent != 1 || attempts < 10 || attempts > 13 {
			t.Errorf("%+v after %d attempts and %d sends", got, attempts, sent)
		}
		if since := time.Since(start); since < 20*time.Second || since > 23*time.Second {
			t.Errorf("recorded after %v", since)
		}
	})
}

func TestRecordingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench()
		b.submit = succeeded
		b.onRecord = func(context.Context) error { return Errorf(CodeUnavailable, "the store is away") }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		got := b.Settle(t.Context(), ctx, testClaim(StatusReceived, false))
		if ErrorCode(got.Err) != CodeUnavailable || got.Lost || len(b.recorded) != 0 || time.Since(start) != 10*time.Second {
			t.Errorf("%+v after %v", got, time.Since(start))
		}
		if slices.Contains(b.calls, "step after_record") {
			t.Error("a step was passed that did not happen")
		}
	})
}

func TestRecordingIsNotRepeatedInVain(t *testing.T) {
	t.Parallel()
	for code, lost := range map[Code]bool{CodeTicketLost: true, CodeInternal: false} {
		b := newBench()
		b.submit = succeeded
		b.onRecord = func(context.Context) error { return Errorf(code, "no") }
		got := b.Settle(t.Context(), t.Context(), testClaim(StatusReceived, false))
		if got.Lost != lost || ErrorCode(got.Err) != code {
			t.Errorf("%s: %+v", code, got)
		}
		if n := len(slices.DeleteFunc(slices.Clone(b.calls), func(s string) bool { return s != "record succeeded" })); n != 1 {
			t.Errorf("%s: recorded %d times", code, n)
		}
	}
}

func TestSettleWorksWithoutObservers(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.submit = succeeded
	b.OnStep, b.OnObservation, b.Random = nil, nil, nil
	if got := b.Settle(t.Context(), t.Context(), testClaim(StatusReceived, false)); got.Err != nil || len(b.recorded) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestStepsAreInOrder(t *testing.T) {
	t.Parallel()
	want := "before_admit after_admit before_take after_take before_submit after_submit before_cancel after_cancel before_record after_record before_ack after_ack"
	var got []string
	for _, s := range Steps() {
		got = append(got, string(s))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%v: the crash matrix knows them as %s", got, want)
	}
}
