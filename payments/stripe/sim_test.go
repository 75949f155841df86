package stripe

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// sim is the simulator behind a gateway that New made.
type sim struct {
	*stripesim.Server
	*Gateway
}

func newSim(t *testing.T, opts stripesim.Options, change ...func(*Options)) sim {
	t.Helper()
	server, err := stripesim.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.ClearFaults()
		web.CloseClientConnections()
		web.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	o := options(web.URL)
	for _, f := range change {
		f(&o)
	}
	g, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return sim{server, g}
}

// payment returns a payment that is pinned to the simulator's account and has been sent now.
func (s sim) payment(change ...func(*payments.Payment)) payments.Payment {
	return testPayment(append([]func(*payments.Payment){func(p *payments.Payment) {
		p.StripeAccount, p.FirstSubmitAt, p.LastSubmitAt = s.account.ID, s.Now(), s.Now()
	}}, change...)...)
}

func (s sim) submits(t *testing.T, p payments.Payment, kind payments.ObservationKind) payments.Observation {
	t.Helper()
	before := s.Summary().Posts
	o := submit(t, s.Gateway, p)
	if o.Kind != kind || s.Summary().Posts != before+1 {
		t.Fatalf("observed %s (%s) after %d POSTs, want %s", o.Kind, o.Detail, s.Summary().Posts-before, kind)
	}
	return o
}

func (s sim) finds(t *testing.T, p payments.Payment, n int) []payments.PaymentIntent {
	t.Helper()
	o := s.Look(t.Context(), p, nil)
	if noSecrets(t, o); o.Kind != payments.ObservedRecords || len(o.Found) != n {
		t.Fatalf("the look-up shows %s (%s), %d found, want %d", o.Kind, o.Detail, len(o.Found), n)
	}
	return o.Found
}

func method(m string) func(*payments.Payment) {
	return func(p *payments.Payment) { p.PaymentMethod = m }
}

func TestSimulatorOutcomes(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	cases := map[string]struct {
		change func(*payments.Payment)
		kind   payments.ObservationKind
		status payments.Status // by Decide
	}{
		"card":           {method("pm_card_visa"), payments.ObservedAnswer, payments.StatusSucceeded},
		"manual":         {func(p *payments.Payment) { p.CaptureMethod = payments.CaptureManual }, payments.ObservedAnswer, payments.StatusRequiresCapture},
		"bank debit":     {method("pm_usBankAccount_success"), payments.ObservedAnswer, payments.StatusPending},
		"declined":       {method("pm_card_visa_chargeDeclined"), payments.ObservedDecline, payments.StatusFailed},
		"no funds":       {method("pm_card_visa_chargeDeclinedInsufficientFunds"), payments.ObservedDecline, payments.StatusFailed},
		"authentication": {method("pm_card_authenticationRequired"), payments.ObservedDecline, payments.StatusRequiresAction},
		"on session":     {func(p *payments.Payment) { p.OffSession = false }, payments.ObservedAnswer, payments.StatusSucceeded},
		"return URL":     {func(p *payments.Payment) { p.OffSession, p.ReturnURL = false, "https://shop.example/b" }, payments.ObservedAnswer, payments.StatusSucceeded},
		"action":         {func(p *payments.Payment) { p.OffSession, p.PaymentMethod = false, "pm_card_authenticationRequired" }, payments.ObservedAnswer, payments.StatusRequiresAction},
		"no customer":    {func(p *payments.Payment) { p.Customer = "" }, payments.ObservedAnswer, payments.StatusSucceeded},
		"unknown method": {method("pm_nobody"), payments.ObservedInvalid, payments.StatusRejected},
		"too small":      {func(p *payments.Payment) { p.Amount = 1 }, payments.ObservedInvalid, payments.StatusRejected},
		"metadata":       {func(p *payments.Payment) { p.Metadata = manyMetadata() }, payments.ObservedAnswer, payments.StatusSucceeded},
		"all that we say": {func(p *payments.Payment) {
			p.Description, p.ReceiptEmail, p.StatementDescriptorSuffix = "d & e", "a@example.com", "SHIRT"
		}, payments.ObservedAnswer, payments.StatusSucceeded},
	}
	for name, c := range cases {
		p := s.payment(c.change, func(p *payments.Payment) { p.IdempotencyKey = "outcome " + name })
		o := s.submits(t, p, c.kind)
		first := p
		first.FirstSubmitAt, first.LastSubmitAt = time.Time{}, time.Time{}
		decided, err := payments.Decide(first, o, s.Now(), payments.Policy{TriesMax: 20})
		if err != nil || decided.Status != c.status {
			t.Errorf("%s: %s is decided as %s (%s), %v, want %s", name, o.Kind, decided.Status, decided.Reason, err, c.status)
		}
		if o.Replayed || o.RequestID == "" {
			t.Errorf("%s: %+v", name, o)
		}
		again := s.submits(t, p, c.kind)
		if o.Object == nil {
			continue
		}
		if !again.Replayed || again.Object.ID != o.Object.ID {
			t.Errorf("%s: the repeat shows %+v", name, again.Object)
		}
		found := s.finds(t, p, 1)
		if found[0].ID != o.Object.ID || found[0].Status != o.Object.Status || found[0].Amount != p.Amount {
			t.Errorf("%s: the look-up shows %+v, the submit %+v", name, found[0], o.Object)
		}
		p.StripePaymentIntent = o.Object.ID
		if got := s.Retrieve(t.Context(), p); got.Kind != payments.ObservedObject || got.Object == nil || got.Object.ID != o.Object.ID {
			t.Errorf("%s: retrieved %+v", name, got)
		}
	}
	if sum := s.Summary(); sum.DoubleCharges != 0 || sum.Unattributed != 0 {
		t.Errorf("%d double charges, %d unattributed", sum.DoubleCharges, sum.Unattributed)
	}
}

func TestSimulatorFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		kind  payments.ObservationKind
		found int // PaymentIntents after the fault
		again payments.ObservationKind
	}{
		stripesim.FaultResetBefore:      {payments.ObservedUnclear, 0, payments.ObservedAnswer},
		stripesim.FaultCommitThenReset:  {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultCommitThenHang:   {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultCommitThen500:    {payments.ObservedUnclear, 1, payments.ObservedUnclear}, // the 500 is what Stripe remembers
		stripesim.FaultCommitThen503:    {payments.ObservedUnclear, 1, ""},                       // asked again it would charge again
		stripesim.FaultTruncateBody:     {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultHTML502:          {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultGarbage200:       {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultSlow + ":20":     {payments.ObservedAnswer, 1, payments.ObservedAnswer},
		stripesim.FaultSlow + ":60000":  {payments.ObservedUnclear, 1, payments.ObservedAnswer},
		stripesim.FaultInUse409:         {payments.ObservedInUse, 0, payments.ObservedAnswer},
		stripesim.FaultRateLimit429:     {payments.ObservedRateLimited, 0, payments.ObservedAnswer},
		stripesim.FaultLockTimeout429:   {payments.ObservedLocked, 0, payments.ObservedAnswer},
		stripesim.FaultUnauthorized401:  {payments.ObservedUnauthorized, 0, payments.ObservedAnswer},
		stripesim.FaultShouldRetryTrue:  {payments.ObservedAnswer, 1, payments.ObservedAnswer},
		stripesim.FaultShouldRetryFalse: {payments.ObservedAnswer, 1, payments.ObservedAnswer},
	}
	for fault, c := range cases {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, stripesim.Options{}, func(o *Options) { o.Timeout = 3 * time.Second })
			if err := s.AddFault(stripesim.Rule{Match: stripesim.Match{Path: createPath}, Fault: fault, Times: 1}); err != nil {
				t.Fatal(err)
			}
			p := s.payment()
			s.submits(t, p, c.kind)
			s.finds(t, p, c.found)
			if c.again != "" {
				s.submits(t, p, c.again)
				s.finds(t, p, 1)
			}
			if sum := s.Summary(); sum.DoubleCharges != 0 || sum.FaultsInjected != 1 {
				t.Errorf("%d double charges, %d faults", sum.DoubleCharges, sum.FaultsInjected)
			}
		})
	}
}

// What breaks a submit breaks a look-up too: then it proves nothing.
func TestSimulatorFaultsOnReading(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		stripesim.FaultResetBefore, stripesim.FaultCommitThenReset, stripesim.FaultCommitThenHang, stripesim.FaultCommitThen500,
		stripesim.FaultCommitThen503, stripesim.FaultTruncateBody, stripesim.FaultHTML502, stripesim.FaultGarbage200, stripesim.FaultRateLimit429,
		stripesim.FaultUnauthorized401,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, stripesim.Options{}, func(o *Options) { o.Timeout = 3 * time.Second })
			p := s.payment()
			o := s.submits(t, p, payments.ObservedAnswer)
			p.StripePaymentIntent = o.Object.ID
			if err := s.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET"}, Fault: fault}); err != nil {
				t.Fatal(err)
			}
			if o := s.Look(t.Context(), p, nil); o.Kind != payments.ObservedNoRecords {
				t.Errorf("the look-up shows %s", o.Kind)
			}
			if o := s.Retrieve(t.Context(), p); o.Kind != payments.ObservedNoRecords {
				t.Errorf("retrieving shows %s", o.Kind)
			}
		})
	}
}

func TestSimulatorLookReadsAllPages(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	p := s.payment(func(p *payments.Payment) { p.Customer = "" })
	first := s.submits(t, p, payments.ObservedAnswer)
	var wg sync.WaitGroup
	for i := range 250 {
		wg.Go(func() {
			other := s.payment(func(p *payments.Payment) { p.IdempotencyKey, p.Customer = fmt.Sprintf("other-%d", i), "" })
			if o := s.Submit(context.Background(), submission(other)); o.Kind != payments.ObservedAnswer {
				t.Errorf("%s: %s", o.Kind, o.Detail)
			}
		})
	}
	wg.Wait()
	pages := 0
	o := s.Look(t.Context(), p, func() error { pages++; return nil })
	if o.Kind != payments.ObservedRecords || len(o.Found) != 1 || o.Found[0].ID != first.Object.ID || pages != 3 {
		t.Fatalf("%s (%s), found %v on %d pages", o.Kind, o.Detail, o.Found, pages)
	}
	absent := s.payment(func(p *payments.Payment) { p.IdempotencyKey, p.Customer = "never-sent", "" })
	s.finds(t, absent, 0)
}

// Many submit the same payment at once: one is executed, and nobody is told anything else.
func TestSimulatorConcurrentSubmits(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{Latency: 20 * time.Millisecond})
	p := s.payment()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch o := s.Submit(context.Background(), submission(p)); o.Kind {
			case payments.ObservedAnswer, payments.ObservedInUse:
			default:
				t.Errorf("%s: %s", o.Kind, o.Detail)
			}
		})
	}
	wg.Wait()
	if sum := s.Summary(); sum.Charges != 1 || sum.Posts != 20 {
		t.Errorf("%d charges after %d POSTs", sum.Charges, sum.Posts)
	}
}

func TestSimulatorKeyConflict(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	s.submits(t, s.payment(), payments.ObservedAnswer)
	s.submits(t, s.payment(func(p *payments.Payment) { p.Amount++ }), payments.ObservedKeyConflict)
}

func TestSimulatorOddClientKeys(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	keys := map[string]bool{}
	for _, key := range []string{"k", " k", "k ", "K", strings.Repeat("a", 255), "a::0", "a::1"} {
		p := s.payment(func(p *payments.Payment) { p.IdempotencyKey = key })
		s.submits(t, p, payments.ObservedAnswer)
		s.submits(t, p, payments.ObservedAnswer)
	}
	for _, r := range s.Ledger().Requests {
		if r.Method == "POST" {
			if !isStripeKey(r.IdempotencyKey) {
				t.Errorf("Stripe saw the key %q", r.IdempotencyKey)
			}
			keys[r.IdempotencyKey] = true
		}
	}
	if len(keys) != 7 || s.Summary().Charges != 7 {
		t.Errorf("%d keys, %d charges", len(keys), s.Summary().Charges)
	}
}
