package paymentstest

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Stripe is a Gateway under test, and what the suite must know of the Stripe that it speaks to: Stripe's own test mode, or a simulator.
type Stripe struct {
	Gateway payments.Gateway
	// Namespace is the one that the Gateway was made with, RequestVersion the form of the request that new payments are bound to.
	Namespace      string
	RequestVersion int
	TenantID       string // whose payments they are
	Customer       string // a customer that exists there
	// KeyPrefix begins every idempotency key; no other run may have used it, since Stripe remembers keys for a day.
	KeyPrefix string
	// Now is Stripe's time, as near as it is known.
	Now func() time.Time
	// Post does something there past the Gateway, as others do, and returns the id of the object that is answered. Body is the form that asks
	// for the intent's PaymentIntent.
	Post func(path, form string) (id string, err error)
	Body func(i payments.Intent) (string, error)
	// FollowUps is the Gateway for captures and refunds, for the suite FollowUpGateway. It may be nil for others.
	FollowUps payments.FollowUpGateway
	// Fail makes the next POST to the path meet the fault. It may be nil where FollowUpGateway is given no faults.
	Fail func(path, fault string) error
	// Posts says how many POSTs have arrived there; nil where nobody can say.
	Posts func() int
}

// Gateway runs the conformance suite of payments.Gateway. open is called once for each part of it; what it opens is its own to close, with
// t.Cleanup.
func Gateway(t *testing.T, open func(t *testing.T) Stripe) {
	for _, part := range []struct {
		name string
		run  func(*stripeBench)
	}{
		{"Account", (*stripeBench).accounts},
		{"Succeeded", (*stripeBench).succeeded},
		{"AllFields", (*stripeBench).allFields},
		{"ManualCapture", (*stripeBench).manualCapture},
		{"Declined", (*stripeBench).declined},
		{"RequiresAction", (*stripeBench).requiresAction},
		{"AuthenticationRequired", (*stripeBench).authenticationRequired},
		{"Invalid", (*stripeBench).invalid},
		{"SecondCallUnderTheSameKey", (*stripeBench).secondCall},
		{"SecondCallAfterADecline", (*stripeBench).secondCallAfterDecline},
		{"OtherParametersUnderTheSameKey", (*stripeBench).parameterConflict},
		{"ManyCallsAtOnce", (*stripeBench).manyAtOnce},
		{"HeldBack", (*stripeBench).heldBack},
		{"EndedBeforeItBegan", (*stripeBench).endedBefore},
		{"ForeignAccount", (*stripeBench).foreignAccount},
		{"LookByCustomer", (*stripeBench).lookByCustomer},
		{"LookByWindow", (*stripeBench).lookByWindow},
		{"LookAbsent", (*stripeBench).lookAbsent},
		{"LookInEvents", (*stripeBench).lookInEvents},
		{"LookEndsWithItsTicket", (*stripeBench).lookEnds},
		{"Detached", (*stripeBench).detached},
		{"Retrieve", (*stripeBench).retrieve},
		{"Cancel", (*stripeBench).cancel},
		{"CancelTooLate", (*stripeBench).cancelTooLate},
		{"CancelHeldBack", (*stripeBench).cancelHeldBack},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			b := &stripeBench{Stripe: open(t), t: t}
			account, err := b.Gateway.Account(t.Context(), b.TenantID)
			if err != nil {
				t.Fatalf("Account: %v", err)
			}
			b.account = account
			part.run(b)
		})
	}
}

// stripeBench is one part of the suite at work.
type stripeBench struct {
	Stripe
	t       *testing.T
	account payments.Account
}

// payment is a new payment as its first owner gets it: 42.00 USD with a card that succeeds, off session.
func (b *stripeBench) payment(key string, change ...func(*payments.Intent)) payments.Payment {
	i := payments.Intent{
		TenantID: b.TenantID, IdempotencyKey: b.KeyPrefix + b.t.Name() + "/" + key, Kind: payments.KindCharge, Amount: 4200, Currency: "usd",
		Customer: b.Customer, PaymentMethod: "pm_card_visa", CaptureMethod: payments.CaptureAutomatic, OffSession: true,
	}
	for _, f := range change {
		f(&i)
	}
	return payments.Payment{
		Intent: i, ID: i.ID(), Lane: payments.LaneInteractive, Status: payments.StatusReceived, RequestVersion: b.RequestVersion,
		StripeAccount: b.account.ID, Livemode: b.account.Livemode,
	}
}

func method(name string) func(*payments.Intent) {
	return func(i *payments.Intent) { i.PaymentMethod = name }
}

// inDoubt is the payment as an owner gets it after one that sent it now and recorded nothing.
func (b *stripeBench) inDoubt(p payments.Payment) payments.Payment {
	p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = true, b.Now(), b.Now()
	return p
}

func (b *stripeBench) submission(p payments.Payment) payments.Submission {
	return payments.Submission{
		Payment: p, StripeKey: payments.StripeKey(b.Namespace, p.Kind, p.TenantID, p.IdempotencyKey), MayLeave: func() error { return nil },
	}
}

// posts is how many POSTs have arrived, or 0 where nobody can say.
func (b *stripeBench) posts() int {
	if b.Posts == nil {
		return 0
	}
	return b.Posts()
}

// leaves wants as many POSTs to have left since.
func (b *stripeBench) leaves(before, want int) {
	b.t.Helper()
	if got := b.posts() - before; b.Posts != nil && got != want {
		b.t.Errorf("%d requests left, want %d", got, want)
	}
}

// submit sends the payment once; the answer must be of the kind, and name a PaymentIntent if it is about one.
func (b *stripeBench) submit(p payments.Payment, kind payments.ObservationKind) payments.Observation {
	b.t.Helper()
	asked, before := 0, b.posts()
	s := b.submission(p)
	s.MayLeave = func() error { asked++; return nil }
	o := b.Gateway.Submit(b.t.Context(), s)
	b.is(o, kind)
	if o.Object == nil && (kind == payments.ObservedAnswer || kind == payments.ObservedDecline) {
		b.t.Fatalf("the %s names no PaymentIntent", kind)
	}
	b.leaves(before, 1)
	if asked != 1 {
		b.t.Errorf("MayLeave was asked %d times, want once", asked)
	}
	return o
}

// settles sends the payment as its first owner, and wants the status that Decide gives it then.
func (b *stripeBench) settles(p payments.Payment, kind payments.ObservationKind, status payments.Status) payments.Observation {
	b.t.Helper()
	o := b.submit(p, kind)
	t, err := payments.Decide(p, o, b.Now(), payments.Policy{TriesMax: 20})
	if err != nil || t.Status != status {
		b.t.Errorf("decided %s (%s), %v; want %s", t.Status, t.Reason, err, status)
	}
	if o.Replayed {
		b.t.Error("the first answer under a key says that it is a repeated one")
	}
	return o
}

// is checks what every observation must have.
func (b *stripeBench) is(o payments.Observation, kind payments.ObservationKind) {
	b.t.Helper()
	if o.Kind != kind {
		b.t.Fatalf("observed %s (%d, %s, %+v), want %s", o.Kind, o.HTTPStatus, o.Detail, o.Failure, kind)
	}
	if o.Account != b.account {
		b.t.Errorf("the account %+v was asked, want %+v", o.Account, b.account)
	}
}

// asked wants the object to be the one that the payment asked for.
func (b *stripeBench) asked(p payments.Payment, pi *payments.PaymentIntent, status payments.StripeStatus) {
	b.t.Helper()
	switch {
	case pi == nil:
		b.t.Fatal("no PaymentIntent was observed")
	case pi.ID == "" || pi.Status != status || pi.Amount != p.Amount || pi.Currency != p.Currency || pi.Customer != p.Customer || pi.Livemode != b.account.Livemode:
		b.t.Errorf("the PaymentIntent is %+v, want one in status %s for the payment %+v", pi, status, p.Intent)
	}
}

// look lists Stripe's records of the payment, which must be complete.
func (b *stripeBench) look(p payments.Payment) []payments.PaymentIntent {
	b.t.Helper()
	before := b.posts()
	o := b.Gateway.Look(b.t.Context(), p, nil)
	b.is(o, payments.ObservedRecords)
	b.leaves(before, 0)
	return o.Found
}

// finds wants exactly the PaymentIntent with the id among Stripe's records of the payment; "" wants none.
func (b *stripeBench) finds(p payments.Payment, id string) payments.PaymentIntent {
	b.t.Helper()
	found := b.look(p)
	if id == "" && len(found) == 0 {
		return payments.PaymentIntent{}
	}
	if len(found) != 1 || found[0].ID != id {
		b.t.Fatalf("Stripe's records show %+v, want the PaymentIntent %q alone", found, id)
	}
	return found[0]
}

// canceled is a context that has ended.
func (b *stripeBench) canceled() context.Context {
	ctx, cancel := context.WithCancel(b.t.Context())
	cancel()
	return ctx
}
