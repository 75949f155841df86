package scenario

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// steady times: on a busy machine, too, no call times out by itself and no lease ends.
var steady = world.Times{Lease: 8 * time.Second, Call: 4 * time.Second, AckWait: 2 * time.Second, Backoff: world.Short.Backoff, Hold: world.Short.Hold}

// errorCase is one answer of Stripe: what stands after the one delivery that met it, and what the payment comes to once the cause is gone.
type errorCase struct {
	fault     string // of every submission, until it is cleared
	method    string // "": one that pays
	onSession bool
	before    func(*world.World, world.Order) // what came to Stripe before us
	denied    bool                            // the key may not create PaymentIntents, until it may
	forgotten bool                            // it ends only when Stripe has forgotten the key and shows nothing, twice

	first, last chapter
	posts       int // at the end, of our charge; 0: at least two
	charges     int
}

var paid = chapter{status: payments.StatusSucceeded}

// passing is an answer after which the payment goes on, and is charged once.
func passing(fault string, status payments.Status, reason string) errorCase {
	return errorCase{fault: fault, first: chapter{status: status, reason: reason}, last: paid, posts: 2, charges: 1}
}

// final is an answer that is the outcome.
func final(method string, status payments.Status, reason string) errorCase {
	end := chapter{status: status, reason: reason}
	return errorCase{method: method, first: end, last: end, posts: 1}
}

// errorCases are the codes that docs/FAILURE_POLICY.md tells apart.
func errorCases() map[string]errorCase {
	const declined = "pm_card_visa_chargeDeclined"
	cases := map[string]errorCase{
		"409 key in use":   passing(stripesim.FaultInUse409, payments.StatusUnknown, payments.ReasonKeyInUse),
		"429 lock timeout": passing(stripesim.FaultLockTimeout429, payments.StatusWaiting, payments.ReasonLocked),
		"429 rate":         passing(stripesim.FaultRateLimit429, payments.StatusWaiting, payments.ReasonRateLimited),
		"401":              passing(stripesim.FaultUnauthorized401, payments.StatusWaiting, payments.ReasonAuthentication),

		"402 declined":                final(declined, payments.StatusFailed, "card_declined"),
		"402 authentication required": final("pm_card_authenticationRequired", payments.StatusRequiresAction, "authentication_required"),
		"400 invalid":                 final("pm_nobody", payments.StatusRejected, payments.ReasonInvalidRequest),
	}
	denied := passing("", payments.StatusWaiting, payments.ReasonAuthentication)
	denied.denied = true
	cases["403"] = denied
	canceling := final(declined, payments.StatusFailed, "card_declined")
	canceling.onSession, canceling.first = true, chapter{status: payments.StatusWaiting, reason: payments.ReasonCancelling}
	cases["402 declined on session"] = canceling

	conflict := chapter{status: payments.StatusUnknown, reason: payments.ReasonKeyConflict}
	cases["400 idempotency error, ours"] = errorCase{before: sentOtherwise, first: conflict, last: paid, posts: 1, charges: 1}
	cases["400 idempotency error, another's"] = errorCase{
		before: sentByOthers, forgotten: true, first: conflict, last: chapter{status: payments.StatusNeedsReview, reason: payments.ReasonAbsent},
	}
	return cases
}

// sentOtherwise puts the order's own charge to Stripe before us, under our key and with other bytes, as an installation of the same namespace may have done.
func sentOtherwise(w *world.World, o world.Order) {
	w.Helper()
	i := payments.Intent{
		TenantID: o.TenantID, IdempotencyKey: o.Key, Amount: o.Money.Amount, Currency: o.Money.Currency, Customer: o.Money.Customer,
		PaymentMethod: o.Method, OffSession: true, Description: "as it was once sent", Metadata: o.Metadata,
	}.Normalized()
	form, err := stripe.Body(stripe.RequestVersion, world.Namespace, i)
	if err != nil {
		w.Fatal(err)
	}
	postFirst(w, o, form)
}

// sentByOthers uses our key for something that has nothing to do with the order.
func sentByOthers(w *world.World, o world.Order) {
	w.Helper()
	postFirst(w, o, "amount=100&currency=usd")
}

// TestErrorsOneDeliveryEach meets every code once: what is stored and told after that one delivery is what docs/FAILURE_POLICY.md says, and
// when its cause is gone the payment ends as it should. All its requests have one key and the same bytes.
func TestErrorsOneDeliveryEach(t *testing.T) {
	t.Parallel()
	for name, c := range errorCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, steady)
			o := w.Order("order-1")
			if c.method != "" {
				o.Method = c.method
			}
			o.Declines = c.charges == 0
			c.arrange(w, o)
			ask(w, o, !c.onSession)
			earlier := len(w.Sim.Ledger().Requests)
			first := w.Start(world.WorkerOptions{Name: "first", Stop: func(s payments.Step, _ payments.ID) bool { return s == payments.StepBeforeTake }})
			w.Await("the first delivery's end", func() (bool, string) {
				return first.Gate.HasSeen(payments.StepAfterRecord, o.ID()) > 0, string(w.Status(o.ID()))
			})
			first.Kill()
			p := mustStand(w, o, c.first)
			if p.InDoubt != (c.first.status == payments.StatusUnknown) || (p.StripePaymentIntent != "") != (c.posts == 1 && c.charges == 0 && c.method != "pm_nobody") {
				t.Errorf("in doubt: %v, PaymentIntent %q", p.InDoubt, p.StripePaymentIntent)
			}
			if sent := sentFor(w, o, earlier); len(sent) != 1 {
				t.Errorf("one delivery sent %d requests", len(sent))
			}
			c.mend(w)
			var flight sync.RWMutex
			w.Start(world.WorkerOptions{Name: "healthy", Gateway: func(g payments.Gateway) payments.Gateway { return inFlight{g, &flight} }})
			if c.forgotten {
				forget(w, o, earlier, &flight)
			}
			w.Rest()
			c.judge(t, w, o, earlier)
		})
	}
}

// arrange lets Stripe answer so.
func (c errorCase) arrange(w *world.World, o world.Order) {
	w.Helper()
	if c.fault != "" {
		w.Fault(o, c.fault, 0)
	}
	if c.before != nil {
		c.before(w, o)
	}
	if c.denied {
		if err := w.Sim.SetKeys([]stripesim.Key{{Secret: world.StripeKey, Deny: []string{"POST /v1/payment_intents"}}}); err != nil {
			w.Fatal(err)
		}
	}
}

func (c errorCase) mend(w *world.World) {
	w.Helper()
	w.Sim.ClearFaults()
	if c.denied {
		if err := w.Sim.SetKeys([]stripesim.Key{{Secret: world.StripeKey}}); err != nil {
			w.Fatal(err)
		}
	}
}

// inFlight is a Gateway whose calls hold a lock: one that is under way while time jumps would have travelled for a day, to a Stripe that has forgotten
// its key.
type inFlight struct {
	payments.Gateway
	lock *sync.RWMutex
}

func (g inFlight) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	g.lock.RLock()
	defer g.lock.RUnlock()
	return g.Gateway.Submit(ctx, s)
}

// forget waits until the same request was sent again, lets Stripe forget the key, and lets the hour between two listings pass.
func forget(w *world.World, o world.Order, earlier int, flight *sync.RWMutex) {
	w.Helper()
	w.Await("a second request", func() (bool, string) { return len(sentFor(w, o, earlier)) > 1, string(w.Status(o.ID())) })
	flight.Lock()
	w.Clock.Advance(25 * time.Hour)
	flight.Unlock()
	w.Await("the first complete listing", func() (bool, string) { return w.AbsenceNoted(o), string(w.Status(o.ID())) })
	w.Clock.Advance(2 * time.Hour)
	w.Await("the end", func() (bool, string) { s := w.Status(o.ID()); return !s.HasTicket(), string(s) })
}

// judge holds the run at rest against what the case comes to.
func (c errorCase) judge(t *testing.T, w *world.World, o world.Order, earlier int) {
	t.Helper()
	story := story(w, o)
	if end := story[len(story)-1]; end != c.last {
		t.Errorf("it came to %v, want %v; all: %v", end, c.last, story)
	}
	a := w.Account()
	findings := a.Wrong()
	if c.before != nil { // others' bytes under our key are what the case is about
		findings = oracle.Judge(a.Run).Findings
	}
	for _, finding := range findings {
		t.Error(finding)
	}
	if len(a.Charges) != c.charges || a.Summary.PaymentIntents > 1 || len(a.DeadLetters) > 0 || len(a.Violations) > 0 {
		t.Errorf("%d charges, %d PaymentIntents, dead letters %v, violations %v", len(a.Charges), a.Summary.PaymentIntents, a.Reasons(), a.Violations)
	}
	sent := sentFor(w, o, earlier)
	if c.posts > 0 && len(sent) != c.posts || c.posts == 0 && len(sent) < 2 {
		t.Errorf("%d requests, want %d", len(sent), c.posts)
	}
	for _, r := range sent {
		if r.BodySHA256 != sent[0].BodySHA256 {
			t.Errorf("request %d has other bytes than request %d", r.Seq, sent[0].Seq)
		}
	}
}

// StripeKey is the key of the order's charge at Stripe.
func stripeKey(o world.Order) string {
	return payments.StripeKey(world.Namespace, payments.KindCharge, o.TenantID, o.Key)
}

// sentFor are the submissions of the order's charge behind the first so many requests of the run. One under another key is an error.
func sentFor(w *world.World, o world.Order, earlier int) (sent []stripesim.Request) {
	w.Helper()
	for _, r := range w.Sim.Ledger().Requests[earlier:] {
		if r.Method != http.MethodPost || r.Path != "/v1/payment_intents" {
			continue
		}
		if r.IdempotencyKey != stripeKey(o) {
			w.Errorf("request %d went out under the key %q", r.Seq, r.IdempotencyKey)
		}
		sent = append(sent, r)
	}
	return sent
}

// ask publishes an order that says whether its customer is away.
func ask(w *world.World, o world.Order, offSession bool) {
	w.Helper()
	data, err := schema.EncodeIntent(schema.Intent{
		IdempotencyKey: schema.Some(o.Key), Amount: schema.Some(o.Money.Amount), Currency: schema.Some(o.Money.Currency), Customer: schema.Some(o.Money.Customer),
		PaymentMethod: schema.Some(o.Method), OffSession: schema.Some(offSession), Metadata: o.Metadata,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Expect(o)
	w.Send(w.Subject(o), data, nil)
	w.Acknowledged(o.ID())
}
