package payments

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is one payment between a store, a Stripe and a clock that are small enough to be obviously right. The real Processor works in it while
// requests and answers get lost, processes die, and days pass.
type world struct {
	rt     *rapid.T
	now    time.Time
	row    Payment
	token  byte
	calm   bool // no more faults
	stripe []PaymentIntent
	stored map[string]storedAnswer
	ended  map[string]storedAnswer // answers to cancels
	late   []lateCommit
	result StripeStatus // what a charge attempt becomes at Stripe
	trace  []string
}

type storedAnswer struct {
	at time.Time
	pi string
	as PaymentIntent // of a cancel: what it showed
}

// lateCommit is a request that Stripe goes on with long after its sender gave up; meanwhile its key is in use.
type lateCommit struct {
	at  time.Time
	key string
	pi  PaymentIntent
}

// commitLate executes what has become due, and reports whether a request under the key is still being executed.
func (w *world) commitLate(key string) (inUse bool) {
	var open []lateCommit
	for _, l := range w.late {
		if w.now.Before(l.at) {
			open, inUse = append(open, l), inUse || l.key == key
			continue
		}
		l.pi.ID = fmt.Sprint("pi_", len(w.stripe)+1)
		w.stripe = append(w.stripe, l.pi)
		w.stored[l.key] = storedAnswer{at: w.now, pi: l.pi.ID}
		w.note("%s is committed late", l.pi.ID)
	}
	w.late = open
	return inUse
}

func (w *world) choose(what string, n int) int {
	if w.calm {
		return 0
	}
	return rapid.IntRange(0, n-1).Draw(w.rt, what)
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, w.now.Sub(testNow).String()+" "+fmt.Sprintf(format, args...))
}

type worldClock struct{ *world }

func (c worldClock) Now() time.Time { return c.now }

// worldStore keeps the row as CONTRACT's store does: the token's transaction commits the send's time and the doubt.
type worldStore struct {
	Store
	*world
}

func (s worldStore) take() Claim {
	s.token++
	before := s.row
	if !s.row.InDoubt && s.row.Status != StatusPending && !s.row.Cancelling() {
		if s.row.FirstSubmitAt.IsZero() {
			s.row.FirstSubmitAt = s.now
		}
		s.row.LastSubmitAt, s.row.InDoubt = s.now, true
		s.row.StripeAccount, s.row.Livemode = testAccount.ID, testAccount.Livemode
	}
	return Claim{Payment: before, Token: Token{s.token}, LeaseUntil: s.now.Add(45 * time.Second), ClaimedAt: s.now}
}

func (s worldStore) Extend(_ context.Context, c Claim, lease time.Duration, submitting bool) (Claim, error) {
	if c.Token != (Token{s.token}) {
		return Claim{}, Errorf(CodeTicketLost, "lost")
	}
	if submitting {
		s.row.LastSubmitAt = s.now
		if s.choose("extension lost", 8) == 7 {
			return Claim{}, Errorf(CodeUnavailable, "the commit's answer is lost")
		}
	}
	c.LeaseUntil = s.now.Add(lease)
	return c, nil
}

func (s worldStore) Record(_ context.Context, r Recording) (Recorded, error) {
	if s.choose("process dies before it records", 6) == 5 {
		s.note("died with %s %s", r.Transition.Status, r.Transition.Reason)
		return Recorded{}, Errorf(CodeTicketLost, "the process is no more")
	}
	t, p := r.Transition, &s.row
	if !p.Status.CanMove(t.Status) {
		s.rt.Fatalf("%s -> %s", p.Status, t.Status)
	}
	p.Status, p.Reason, p.Failure, p.InDoubt, p.AbsentAt, p.Rounds = t.Status, t.Reason, t.Failure, t.InDoubt, t.AbsentAt, t.Rounds
	if t.Object != nil {
		p.StripePaymentIntent = t.Object.ID
	}
	if t.ClearSubmit {
		p.FirstSubmitAt, p.LastSubmitAt = time.Time{}, time.Time{}
	}
	if t.CountTry {
		p.Tries++
	}
	s.note("recorded %s %s in doubt %v", t.Status, t.Reason, t.InDoubt)
	s.now = s.now.Add(r.Delay)
	return Recorded{Payment: *p}, nil
}

func (s worldStore) Throttle(context.Context, Account) error { return nil }

type worldGateway struct{ *world }

func (g worldGateway) Account(context.Context, string) (Account, error) { return testAccount, nil }

func (g worldGateway) find(id string) *PaymentIntent {
	for i := range g.stripe {
		if g.stripe[i].ID == id {
			return &g.stripe[i]
		}
	}
	return nil
}

func (g worldGateway) Submit(_ context.Context, s Submission) Observation {
	o := Observation{Account: testAccount}
	if s.MayLeave() != nil {
		o.Kind = ObservedHeldBack
		return o
	}
	refusals := []ObservationKind{"", ObservedNotSent, ObservedRateLimited, ObservedLocked, ObservedUnauthorized, ObservedInUse, ObservedUnclear, ObservedForeignAccount}
	if kind := refusals[g.choose("refused before execution", len(refusals))]; kind != "" {
		g.note("submit: %s", kind)
		o.Kind = kind
		return o
	}
	if s.Payment.Expired(g.now) {
		g.rt.Fatalf("sent after expires_at")
	}
	if g.commitLate(s.StripeKey) {
		o.Kind = ObservedInUse
		return o
	}
	was, ok := g.stored[s.StripeKey]
	if ok && g.now.Sub(was.at) >= 24*time.Hour {
		g.rt.Fatalf("sent under a key that Stripe has executed and forgotten")
	}
	o.Replayed = ok && g.now.Sub(was.at) < 24*time.Hour
	id := was.pi
	lost := g.choose("answer", 5) // 0 arrives, 1 arrives, 2 is lost, 3 is lost and was not stored for replays, 4 is lost and committed late
	if !o.Replayed {
		id = fmt.Sprint("pi_", len(g.stripe)+1)
		pi := PaymentIntent{ID: id, Status: g.result, Amount: s.Payment.Amount, Currency: s.Payment.Currency, Customer: s.Payment.Customer, Livemode: true}
		if pi.Status == StripeRequiresPaymentMethod {
			pi.LastError = declined
		}
		if lost == 4 {
			at := g.now.Add([]time.Duration{time.Minute, 50 * time.Minute, 5 * time.Hour}[g.choose("commits", 3)])
			g.late = append(g.late, lateCommit{at, s.StripeKey, pi})
			o.Kind = ObservedUnclear
			return o
		}
		g.stripe = append(g.stripe, pi)
		if lost != 3 {
			g.stored[s.StripeKey] = storedAnswer{at: g.now, pi: id}
		}
	}
	g.note("submit: executed as %s, replayed %v, answer %d", id, o.Replayed, lost)
	pi := *g.find(id)
	switch {
	case lost >= 2:
		o.Kind = ObservedUnclear
	case pi.LastError != nil:
		o.Kind, o.Object, o.Failure = ObservedDecline, &pi, pi.LastError
	default:
		o.Kind, o.Object = ObservedAnswer, &pi
	}
	return o
}

func (g worldGateway) Look(_ context.Context, _ Payment, progress func() error) Observation {
	o := Observation{Kind: ObservedNoRecords, Account: testAccount}
	g.commitLate("")
	if progress() == nil && g.choose("listing fails", 3) != 2 {
		o.Kind, o.Found = ObservedRecords, append([]PaymentIntent(nil), g.stripe...)
	}
	g.note("look: %s with %d", o.Kind, len(o.Found))
	return o
}

func (g worldGateway) Retrieve(_ context.Context, p Payment) Observation {
	failures := []ObservationKind{ObservedObject, ObservedNoRecords, ObservedRateLimited, ObservedForeignAccount, ObservedUnclear, ObservedNotSent}
	o := Observation{Kind: failures[g.choose("retrieve", len(failures))], Account: testAccount}
	if o.Kind == ObservedObject {
		pi := *g.find(p.StripePaymentIntent)
		o.Object = &pi
	}
	return o
}

// confirm is what a customer does who is still on the page. A bank debit takes its time.
func (w *world) confirm(pi *PaymentIntent) {
	pi.Status, pi.LastError = []StripeStatus{StripeSucceeded, StripeProcessing}[w.choose("confirmed as", 2)], nil
	w.note("its customer has confirmed %s, which is %s", pi.ID, pi.Status)
}

// Cancel cancels what did not succeed meanwhile, and the answer may be lost. The answer is stored, also one that refuses.
func (g worldGateway) Cancel(_ context.Context, s Submission) Observation {
	o := Observation{Kind: ObservedObject, Account: testAccount}
	if s.MayLeave() != nil {
		o.Kind = ObservedHeldBack
		return o
	}
	if want := StripeKey("oncepay", KindCancel, s.Payment.TenantID, s.Payment.IdempotencyKey); s.StripeKey != want {
		g.rt.Fatalf("canceled under the key %s", s.StripeKey)
	}
	refusals := []ObservationKind{"", ObservedNotSent, ObservedRateLimited, ObservedUnauthorized, ObservedInvalid, ObservedUnclear, ObservedForeignAccount}
	if kind := refusals[g.choose("cancel refused before execution", len(refusals))]; kind != "" {
		g.note("cancel: %s", kind)
		o.Kind = kind
		return o
	}
	pi := g.find(s.Payment.StripePaymentIntent)
	was, again := g.ended[s.StripeKey]
	if o.Replayed = again && g.now.Sub(was.at) < 24*time.Hour; o.Replayed {
		g.note("cancel: replayed as %s", was.as.Status)
		o.Object = &was.as
		return o
	}
	if !g.calm && pi.Status == StripeRequiresPaymentMethod && g.choose("confirms with another card at that moment", 3) == 2 {
		g.confirm(pi)
	}
	g.note("cancel: was %s", pi.Status)
	if !pi.Status.movesMoney() {
		pi.Status = StripeCanceled
	}
	g.ended[s.StripeKey] = storedAnswer{at: g.now, as: *pi}
	if g.choose("the answer to a cancel is lost", 3) == 2 {
		o.Kind = ObservedUnclear
		return o
	}
	answer := *pi
	o.Object = &answer
	return o
}

// settleOften lets owners come and go until nobody has to act any more, and reports whether that came to pass.
func (w *world) settleOften(p *Processor, times int) bool {
	for range times {
		if !w.row.Status.HasTicket() {
			return true
		}
		c := worldStore{world: w}.take()
		w.note("taken as %s, in doubt %v", c.Payment.Status, c.Payment.InDoubt)
		p.Settle(context.Background(), context.Background(), c)
		jumps := []time.Duration{time.Minute, 0, time.Second, time.Hour, 11 * time.Hour, 30 * time.Hour}
		w.now = w.now.Add(jumps[w.choose("time passes", len(jumps))])
		for i := range w.stripe { // a bank debit settles some day
			if w.stripe[i].Status == StripeProcessing && (w.calm || w.choose("settles", 5) == 4) {
				w.stripe[i].Status = StripeSucceeded
				if w.choose("bounces", 2) == 1 {
					w.stripe[i].Status, w.stripe[i].LastError = StripeRequiresPaymentMethod, declined
				}
			}
			if !w.calm && !w.row.OffSession && w.stripe[i].Status == StripeRequiresPaymentMethod && w.choose("confirms with another card", 5) == 4 {
				w.confirm(&w.stripe[i])
			}
		}
	}
	return !w.row.Status.HasTicket()
}

func TestWhateverFailsACustomerIsChargedOnce(t *testing.T) {
	t.Parallel()
	for range 30 { // rare faults must meet: a hundred worlds are not enough
		rapid.Check(t, chargeInAWorldOfFaults)
	}
}

func chargeInAWorldOfFaults(rt *rapid.T) {
	i := goodIntent()
	i.ExpiresAt = time.Time{}
	if hours := rapid.IntRange(0, 40).Draw(rt, "expires in hours, 0 never"); hours > 0 {
		i.ExpiresAt = testNow.Add(time.Duration(hours) * time.Hour)
	}
	i.OffSession = rapid.Bool().Draw(rt, "off session")
	w := &world{
		rt: rt, now: testNow, stored: map[string]storedAnswer{}, ended: map[string]storedAnswer{}, row: Payment{Intent: i, ID: i.ID(), Status: StatusReceived},
		result: rapid.SampledFrom([]StripeStatus{StripeSucceeded, StripeProcessing, StripeRequiresPaymentMethod, StripeRequiresCapture}).Draw(rt, "becomes"),
	}
	p := &Processor{
		Store: worldStore{world: w}, Gateway: worldGateway{w}, Clock: worldClock{w}, Namespace: "oncepay", Lease: 45 * time.Second, CallTimeout: 30 * time.Second,
		TriesMax: 5, Backoff: BackoffDefault, Random: func(n int64) int64 { return n - 1 },
	}
	w.settleOften(p, 40)
	w.calm = true
	ended := w.settleOften(p, 3000)
	w.now = w.now.Add(24 * time.Hour)
	w.commitLate("")

	fail := func(what string) {
		for _, line := range w.trace {
			rt.Log(line)
		}
		rt.Fatalf("%s: %s %q, at Stripe %+v", what, w.row.Status, w.row.Reason, w.stripe)
	}
	moved := 0
	for _, pi := range w.stripe {
		if pi.Status.movesMoney() {
			moved++
		}
	}
	charged := map[Status]bool{StatusSucceeded: true, StatusRequiresCapture: true}
	// Stripe refused the cancel: a person has it, and its customer may still confirm it.
	open := w.row.Status == StatusNeedsReview && w.row.Reason == ReasonCancelRefused && !w.row.OffSession
	switch {
	case !ended:
		fail("it is stuck")
	case moved > 1:
		fail("charged twice")
	case charged[w.row.Status] != (moved == 1) && !open:
		fail("the status does not tell whether money moved")
	case w.row.Status == StatusFailed && len(w.stripe) == 0:
		fail("declined by nobody")
	case w.row.Status == StatusFailed && !w.row.OffSession && w.stripe[0].Status != StripeCanceled:
		fail("declined, and its customer can still confirm it")
	case w.row.Status == StatusFailed && w.row.Failure != declined:
		fail("why it was declined is lost")
	}
}
