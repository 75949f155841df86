package paymentstest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

// breakIt is set for the child process in which the broken implementations run: their tests fail there, as they must.
const breakIt = "ONCEPAY_CONFORMANCE_BROKEN"

// caught runs a test of this binary again with everything broken, and wants each breach to be seen by the part that is about it.
func caught(t *testing.T, test string, parts map[string]string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for breach, part := range parts {
		patterns = append(patterns, fmt.Sprintf("^%s$/^%s$/^%s$", test, breach, part))
	}
	child := exec.CommandContext(t.Context(), self, "-test.v", "-test.run", strings.Join(patterns, "|"))
	child.Env = append(os.Environ(), breakIt+"=1")
	out, err := child.CombinedOutput()
	if err == nil {
		t.Errorf("the suite passes whatever is broken")
	}
	for breach, part := range parts {
		if !strings.Contains(string(out), fmt.Sprintf("--- FAIL: %s/%s/%s ", test, breach, part)) {
			t.Errorf("%s is not seen by %s", breach, part)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

// gateways break a Gateway, each in one thing.
var gateways = map[string]struct {
	part  string
	brake func(payments.Gateway) payments.Gateway
}{
	"LeavesAnyhow": {"HeldBack", onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.MayLeave = func() error { return nil }
		return g.Submit(ctx, s)
	})},
	"SendsTwice": {"Succeeded", onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		g.Submit(ctx, s)
		return g.Submit(ctx, s)
	})},
	"HidesReplays": {"SecondCallUnderTheSameKey", onObservation(func(o *payments.Observation) { o.Replayed = false })},
	"DropsTheObject": {"SecondCallAfterADecline", onObservation(func(o *payments.Observation) {
		if o.Kind == payments.ObservedDecline {
			o.Object = nil
		}
	})},
	"DeclineIsInvalid":  {"Declined", onObservation(renames(payments.ObservedDecline, payments.ObservedInvalid))},
	"ConflictIsInvalid": {"OtherParametersUnderTheSameKey", onObservation(renames(payments.ObservedKeyConflict, payments.ObservedInvalid))},
	"KnowsNoAccounts": {"ForeignAccount", onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		a, _ := g.Account(ctx, s.Payment.TenantID)
		s.Payment.StripeAccount, s.Payment.Livemode = a.ID, a.Livemode
		return g.Submit(ctx, s)
	})},
	"ForgetsTheCustomer": {"LookByCustomer", onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.Payment.Customer = ""
		return g.Submit(ctx, s)
	})},
	"ForgetsMetadata": {"AllFields", onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		s.Payment.Metadata = nil
		return g.Submit(ctx, s)
	})},
	"FindsNothing": {"LookByWindow", onLook(func(g payments.Gateway, ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
		o := g.Look(ctx, p, progress)
		o.Found = nil
		return o
	})},
	"FindsTheNeighbour": {"LookAbsent", onLook(func(g payments.Gateway, ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
		o := g.Look(ctx, p, progress)
		o.Found = append(o.Found, payments.PaymentIntent{ID: "pi_1", Amount: p.Amount, Customer: p.Customer})
		return o
	})},
	"LooksWithoutTheTicket": {"LookEndsWithItsTicket", onLook(func(g payments.Gateway, ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
		return g.Look(ctx, p, func() error {
			if progress != nil {
				_ = progress()
			}
			return nil
		})
	})},
}

type gateway struct {
	payments.Gateway
	submit func(payments.Gateway, context.Context, payments.Submission) payments.Observation
	look   func(payments.Gateway, context.Context, payments.Payment, func() error) payments.Observation
}

func (g gateway) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if g.submit == nil {
		return g.Gateway.Submit(ctx, s)
	}
	return g.submit(g.Gateway, ctx, s)
}

func (g gateway) Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	if g.look == nil {
		return g.Gateway.Look(ctx, p, progress)
	}
	return g.look(g.Gateway, ctx, p, progress)
}

func onSubmit(f func(payments.Gateway, context.Context, payments.Submission) payments.Observation) func(payments.Gateway) payments.Gateway {
	return func(g payments.Gateway) payments.Gateway { return gateway{Gateway: g, submit: f} }
}

func onLook(f func(payments.Gateway, context.Context, payments.Payment, func() error) payments.Observation) func(payments.Gateway) payments.Gateway {
	return func(g payments.Gateway) payments.Gateway { return gateway{Gateway: g, look: f} }
}

func onObservation(change func(*payments.Observation)) func(payments.Gateway) payments.Gateway {
	return onSubmit(func(g payments.Gateway, ctx context.Context, s payments.Submission) payments.Observation {
		o := g.Submit(ctx, s)
		change(&o)
		return o
	})
}

func renames(from, to payments.ObservationKind) func(*payments.Observation) {
	return func(o *payments.Observation) {
		if o.Kind == from {
			o.Kind = to
		}
	}
}

// TestGatewayCatches: whatever is broken in a Gateway, the part of the suite that is about it fails. That is seen in a child process.
func TestGatewayCatches(t *testing.T) {
	t.Parallel()
	if os.Getenv(breakIt) == "" {
		parts := map[string]string{}
		for breach, g := range gateways {
			parts[breach] = g.part
		}
		caught(t, t.Name(), parts)
		return
	}
	for breach, g := range gateways {
		t.Run(breach, func(t *testing.T) {
			paymentstest.Gateway(t, func(t *testing.T) paymentstest.Stripe {
				s := openSimulator(t)
				s.Gateway = g.brake(s.Gateway)
				return s
			})
		})
	}
}

// stores break a Store or its Outbox, each in one thing.
var stores = map[string]struct {
	part  string
	brake func(*paymentstest.Database)
}{
	"EverybodyOwns": {"AdmitClaimsOnceAmongMany", onStore(func(s payments.Store) payments.Store {
		return admits{s, func(r payments.AdmitRequest, a payments.Admission) payments.Admission {
			if a.Verdict == payments.VerdictExists {
				a.Verdict, a.Claim = payments.VerdictClaimed, payments.Claim{Payment: a.Payment, Token: r.Token}
			}
			return a
		}}
	})},
	"ConflictIsARepeat": {"AdmitConflict", onStore(func(s payments.Store) payments.Store {
		return admits{s, func(_ payments.AdmitRequest, a payments.Admission) payments.Admission {
			if a.Verdict == payments.VerdictConflict {
				a.Verdict = payments.VerdictExists
			}
			return a
		}}
	})},
	"IgnoresTheToken": {"RecordWithAStaleToken", onStore(func(s payments.Store) payments.Store { return recordsAnyhow{s} })},
	"RecordsTwice":    {"RecordAgain", onStore(func(s payments.Store) payments.Store { return recordsAnyhow{s} })},
	"CountsNoCrash": {"TakeoverCountsAbandoned", onStore(func(s payments.Store) payments.Store {
		return takes{s, func(c payments.Claim) payments.Claim { c.Abandoned = 0; return c }}
	})},
	"ForgetsTheDoubt": {"TakeoverCountsAbandoned", onStore(func(s payments.Store) payments.Store {
		return takes{s, func(c payments.Claim) payments.Claim { c.Payment.InDoubt = false; return c }}
	})},
	"ServesOneTenantFirst": {"TakeTenantsInTurn", onStore(func(s payments.Store) payments.Store { return &takesUnfairly{Store: s} })},
	"TearsUpNothing":       {"EvidenceTearsUpTheTicket", onStore(func(s payments.Store) payments.Store { return ignoresEvidence{s} })},
	"CountsNoStarts":       {"Suspect", onStore(func(s payments.Store) payments.Store { return countsNoStarts{s} })},
	"ShowsOtherTenants":    {"Find", onStore(func(s payments.Store) payments.Store { return showsOthers{s} })},
	"HandsOutTwice":        {"Outbox", func(d *paymentstest.Database) { d.Outbox = holdsNothing{d.Outbox} }},
	"HandsOutIntentsTwice": {"AnnouncedOutbox", func(d *paymentstest.Database) {
		intents := d.Intents
		d.Intents = func(lane payments.Lane) payments.Outbox { return holdsNothing{intents(lane)} }
	}},
	"MixesTheLanes": {"Announce", func(d *paymentstest.Database) {
		intents := d.Intents
		d.Intents = func(payments.Lane) payments.Outbox { return intents(payments.LaneBulk) }
	}},
	"BatchConflictIsARepeat": {"BatchConflict", onBatches(func(b payments.Batches) payments.Batches {
		return admitsBatches{b, func(_ payments.BatchRequest, a *payments.BatchAdmission) {
			if a.Verdict == payments.VerdictConflict {
				a.Verdict = payments.VerdictExists
			}
		}}
	})},
	"NamesNoPlaces": {"BatchMeetsItsChildren", onBatches(func(b payments.Batches) payments.Batches {
		return admitsBatches{b, func(_ payments.BatchRequest, a *payments.BatchAdmission) {
			for i, name := range a.Differs {
				a.Differs[i] = name[strings.IndexByte(name, '.')+1:]
			}
		}}
	})},
	"StoresAgain": {"BatchStores", onBatches(func(b payments.Batches) payments.Batches {
		return admitsBatches{b, func(_ payments.BatchRequest, a *payments.BatchAdmission) {
			if a.Verdict == payments.VerdictExists {
				a.Verdict = payments.VerdictStored
			}
		}}
	})},
	"MixesTheChildren": {"BatchStores", onBatches(func(b payments.Batches) payments.Batches {
		return admitsBatches{b, func(_ payments.BatchRequest, a *payments.BatchAdmission) { slices.Reverse(a.Children) }}
	})},
	"InsertsWhatIsRefused": {"BatchRefused", onBatches(func(b payments.Batches) payments.Batches { return insertsRefused{b} })},
	"InsertsWhatIsAbsent":  {"BatchExistingOnly", onBatches(func(b payments.Batches) payments.Batches { return insertsAbsent{b} })},
	"KeepsTheSuspect":      {"BatchClearsTheSuspect", onBatches(func(b payments.Batches) payments.Batches { return keepsSuspects{b} })},
	"TellsTooEarly":        {"BatchCompletes", func(d *paymentstest.Database) { d.Batches = &tellsEarly{d.Batches, d.Store} }},
	"ForgetsToTell":        {"BatchCompletesOnceAmongMany", onBatches(func(b payments.Batches) payments.Batches { return tellsNothing{b} })},
	"ListsBackwards":       {"BatchesAreListed", func(d *paymentstest.Database) { d.Reader = backwards{d.Reader} }},
	"GivesBackTooMuch": {"RefundsAmongMany", onFollowUps(func(s *followUps) {
		s.admitted = func(a *payments.FollowUpAdmission) {
			if a.Verdict == payments.VerdictAmountExceeds {
				a.Verdict = payments.VerdictStored
			}
		}
	})},
	"FollowUpConflictIsARepeat": {"FollowUpConflict", onFollowUps(func(s *followUps) {
		s.admitted = func(a *payments.FollowUpAdmission) {
			if a.Verdict == payments.VerdictConflict {
				a.Verdict = payments.VerdictExists
			}
		}
	})},
	"StoresTheKeyTwice": {"FollowUpOnceAmongMany", onFollowUps(func(s *followUps) {
		s.admitted = func(a *payments.FollowUpAdmission) {
			if a.Verdict == payments.VerdictExists {
				a.Verdict = payments.VerdictStored
			}
		}
	})},
	"ForgetsTheCharge": {"CaptureRecords", onFollowUps(func(s *followUps) { s.recording = func(r *payments.Recording) { r.Transition.Target = nil } })},
	"ForgetsTheRefund": {"RefundRecords", onFollowUps(func(s *followUps) { s.recording = func(r *payments.Recording) { r.Transition.Refund = nil } })},
	"KnowsNoOrder":     {"FollowUpsRunInTurn", onFollowUps(func(s *followUps) { s.state = func(a *payments.FollowUpState) { a.Ahead = false } })},
	"ForgetsTheTicket": {"AdmitStores", func(d *paymentstest.Database) {
		d.Violations = func() []string { return []string{"a payment without its ticket"} }
	}},
}

func onStore(f func(payments.Store) payments.Store) func(*paymentstest.Database) {
	return func(d *paymentstest.Database) {
		another := d.Another
		d.Store, d.Another = f(d.Store), func() payments.Store { return f(another()) }
	}
}

func onBatches(f func(payments.Batches) payments.Batches) func(*paymentstest.Database) {
	return func(d *paymentstest.Database) { d.Batches = f(d.Batches) }
}

func onFollowUps(change func(*followUps)) func(*paymentstest.Database) {
	return func(d *paymentstest.Database) {
		s := &followUps{
			FollowUpStore: d.FollowUps, admitted: func(*payments.FollowUpAdmission) {}, recording: func(*payments.Recording) {}, state: func(*payments.FollowUpState) {},
		}
		change(s)
		d.FollowUps = s
	}
}

// followUps change what goes in and comes out.
type followUps struct {
	paymentstest.FollowUpStore
	admitted  func(*payments.FollowUpAdmission)
	recording func(*payments.Recording)
	state     func(*payments.FollowUpState)
}

func (s *followUps) AdmitFollowUp(ctx context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error) {
	a, err := s.FollowUpStore.AdmitFollowUp(ctx, r)
	s.admitted(&a)
	return a, err
}

func (s *followUps) RecordFollowUp(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	s.recording(&r)
	return s.FollowUpStore.RecordFollowUp(ctx, r)
}

func (s *followUps) FollowUpState(ctx context.Context, p payments.Payment) (payments.FollowUpState, error) {
	state, err := s.FollowUpStore.FollowUpState(ctx, p)
	s.state(&state)
	return state, err
}

type admitsBatches struct {
	payments.Batches
	change func(payments.BatchRequest, *payments.BatchAdmission)
}

func (b admitsBatches) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	a, err := b.Batches.AdmitBatch(ctx, r)
	b.change(r, &a)
	return a, err
}

type insertsRefused struct{ payments.Batches }

func (b insertsRefused) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	a, err := b.Batches.AdmitBatch(ctx, r)
	if r.Refused != nil && a.Verdict == payments.VerdictRefused && len(r.Payments) <= payments.BatchSizeMax {
		r.Refused = nil
		_, err = b.Batches.AdmitBatch(ctx, r)
	}
	return a, err
}

type insertsAbsent struct{ payments.Batches }

func (b insertsAbsent) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	a, err := b.Batches.AdmitBatch(ctx, r)
	if a.Verdict == payments.VerdictAbsent {
		r.ExistingOnly = false
		_, err = b.Batches.AdmitBatch(ctx, r)
	}
	return a, err
}

type keepsSuspects struct{ payments.Batches }

func (b keepsSuspects) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	r.Suspect = nil
	return b.Batches.AdmitBatch(ctx, r)
}

// tellsEarly says that it told of whatever batch is there and was not told of.
type tellsEarly struct {
	payments.Batches
	store payments.Store
}

func (b *tellsEarly) CompleteBatches(ctx context.Context, refs []payments.BatchRef) (int, error) {
	told, err := b.Batches.CompleteBatches(ctx, refs)
	for _, r := range refs {
		if p, found := b.store.Find(ctx, r.TenantID, r.ID); found == nil && p.Sequence == 0 {
			told++
		}
	}
	return told, err
}

type tellsNothing struct{ payments.Batches }

func (tellsNothing) CompleteBatches(context.Context, []payments.BatchRef) (int, error) { return 0, nil }

type backwards struct{ payments.Reader }

func (b backwards) Batches(ctx context.Context, r payments.BatchListRequest) ([]payments.BatchState, string, error) {
	page, next, err := b.Reader.Batches(ctx, r)
	slices.Reverse(page)
	return page, next, err
}

type admits struct {
	payments.Store
	change func(payments.AdmitRequest, payments.Admission) payments.Admission
}

func (s admits) Admit(ctx context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	a, err := s.Store.Admit(ctx, r)
	return s.change(r, a), err
}

type takes struct {
	payments.Store
	change func(payments.Claim) payments.Claim
}

func (s takes) Take(ctx context.Context, r payments.TakeRequest) (payments.Taking, error) {
	taking, err := s.Store.Take(ctx, r)
	for i, c := range taking.Claims {
		taking.Claims[i] = s.change(c)
	}
	return taking, err
}

// takesUnfairly gives out all of one tenant's before another's.
type takesUnfairly struct {
	payments.Store
	mu   sync.Mutex
	held []payments.Claim
}

func (s *takesUnfairly) Take(ctx context.Context, r payments.TakeRequest) (payments.Taking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := r.Limit
	r.Limit = 1000
	taking, err := s.Store.Take(ctx, r)
	s.held = append(s.held, taking.Claims...)
	slices.SortStableFunc(s.held, func(a, b payments.Claim) int { return strings.Compare(a.Payment.TenantID, b.Payment.TenantID) })
	n := min(limit, len(s.held))
	taking.Claims, s.held = slices.Clone(s.held[:n]), s.held[n:]
	return taking, err
}

// recordsAnyhow writes without the ticket.
type recordsAnyhow struct{ payments.Store }

func (s recordsAnyhow) Record(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	return s.Evidence(ctx, r.Claim.Payment.TenantID, r.Claim.Payment.ID, func(payments.Payment) (payments.Transition, error) { return r.Transition, nil })
}

type ignoresEvidence struct{ payments.Store }

func (s ignoresEvidence) Evidence(ctx context.Context, tenantID string, id payments.ID, decide func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error) {
	p, err := s.Find(ctx, tenantID, id)
	if err != nil {
		return payments.Recorded{}, err
	}
	t, err := decide(p)
	p.Status = t.Status
	return payments.Recorded{Payment: p, Sequence: 1}, err
}

type countsNoStarts struct{ payments.Store }

func (s countsNoStarts) Suspect(ctx context.Context, d payments.DeadLetter) (int, error) {
	_, err := s.Store.Suspect(ctx, d)
	return 1, err
}

type showsOthers struct{ payments.Store }

func (s showsOthers) Find(ctx context.Context, tenantID string, id payments.ID) (payments.Payment, error) {
	for _, tenant := range append([]string{tenantID}, conformanceTenants[:]...) {
		if p, err := s.Store.Find(ctx, tenant, id); err == nil {
			return p, nil
		}
	}
	return s.Store.Find(ctx, tenantID, id)
}

type holdsNothing struct{ payments.Outbox }

func (o holdsNothing) Pending(ctx context.Context, limit int, _ time.Duration) ([]payments.OutboxItem, error) {
	return o.Outbox.Pending(ctx, limit, 0)
}

// TestStoreCatches does the same for Stores.
func TestStoreCatches(t *testing.T) {
	t.Parallel()
	if os.Getenv(breakIt) == "" {
		parts := map[string]string{}
		for breach, s := range stores {
			parts[breach] = s.part
		}
		caught(t, t.Name(), parts)
		return
	}
	for breach, s := range stores {
		t.Run(breach, func(t *testing.T) {
			paymentstest.Store(t, func(t *testing.T) paymentstest.Database {
				d := openDatabase(t)
				s.brake(&d)
				return d
			})
		})
	}
}
