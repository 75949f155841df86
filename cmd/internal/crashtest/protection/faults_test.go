package protection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// lostCommits cuts a connection to PostgreSQL behind the COMMITs that follow once it is armed, the first few of them: PostgreSQL has got them,
// and the answer never arrives.
type lostCommits struct {
	left, cuts atomic.Int32
}

// bindsCommit is in every chunk that runs COMMIT: pgx names a prepared statement by its text, and in a Bind message the name stands behind the
// empty name of the portal.
var bindsCommit = func() []byte {
	sum := sha256.Sum256([]byte("commit"))
	return []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
}()

func (l *lostCommits) arm() { l.left.Store(3) }

func (l *lostCommits) hook(chunk []byte) devstacktest.Action {
	if bytes.Contains(chunk, bindsCommit) && l.left.Add(-1) >= 0 {
		l.cuts.Add(1)
		return devstacktest.ForwardThenCut
	}
	return devstacktest.Forward
}

// TestCommitUnknown loses the answers to the COMMITs of a claim, and of an outcome, which PostgreSQL has got. Whoever comes next reads what is
// really stored and goes on from there: one request to Stripe for each payment, and no connection is good for errors alone afterwards.
func TestCommitUnknown(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]payments.Step{"claim": payments.StepBeforeAdmit, "outcome": payments.StepBeforeRecord} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, world.Unhurried)
			w.Sim.SetIdempotency(false) // Stripe's memory must not hide a second request
			lost := &lostCommits{}
			lost.left.Store(-1 << 20)
			var once sync.Once
			orders := w.PublishMany("order", 20)
			w.Start(world.WorkerOptions{Name: "worker", Postgres: lost.hook, Stop: func(s payments.Step, _ payments.ID) bool {
				if s == at {
					once.Do(lost.arm)
				}
				return false
			}})
			w.MustHaveSettled(orders)
			a := w.MustBeGood(0)
			if lost.cuts.Load() == 0 {
				t.Error("no COMMIT lost its answer: the case shows nothing")
			}
			if a.Summary.Posts != len(orders) || len(a.Charges) != len(orders) {
				t.Errorf("%d requests and %d charges for %d payments", a.Summary.Posts, len(a.Charges), len(orders))
			}
			if log := w.Logs.Text(); strings.Contains(log, "is aborted") || strings.Contains(log, "25P02") {
				t.Error("a connection went on in a transaction that had failed")
			}
		})
	}
}

// TestForgottenKeyTakeover ends an owner whose request is at Stripe, which charges, and lets the next one come when 25 hours have passed and Stripe has
// forgotten the key. What Stripe's records show is adopted; when they show nothing, a person decides. Never is there a second PaymentIntent.
func TestForgottenKeyTakeover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records int32
		want    payments.Status
	}{"found": {world.RecordsTrue, payments.StatusSucceeded}, "not shown": {world.RecordsEmpty, payments.StatusNeedsReview}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			stripe := w.NewFront()
			o := w.Order("order-1")
			w.Publish(o)
			owner := w.Start(world.WorkerOptions{Name: "owner", Stop: func(s payments.Step, _ payments.ID) bool { return s == payments.StepAfterSubmit }})
			w.Await("Stripe's answer", func() (bool, string) { return owner.Gate.HasStopped(o.ID()), "nobody has it" })
			owner.Kill()
			w.Clock.Advance(25 * time.Hour)
			stripe.Records.Store(c.records)
			w.Start(world.WorkerOptions{Name: "next"})
			w.Await("a look-up, and what follows from it", func() (bool, string) {
				return w.Status(o.ID()).Final() || stripe.Reads.Load() > 0 && w.AbsenceNoted(o), string(w.Status(o.ID()))
			})
			w.Clock.Advance(2 * time.Hour)
			w.Await("the end", func() (bool, string) { s := w.Status(o.ID()); return !s.HasTicket(), string(s) })
			w.Clock.Advance(30 * 24 * time.Hour)
			before := w.Sim.Summary().Requests
			w.Publish(o) // a repeat a month later
			w.Rest()
			a := w.Account()
			if s := w.Status(o.ID()); s != c.want {
				t.Errorf("the payment came to rest as %s, want %s", s, c.want)
			}
			if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 || len(a.DeadLetters) > 0 {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, dead letters %v; want one of each and none", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts, a.Reasons())
			}
			if a.Summary.Requests != before {
				t.Errorf("a repeat asked Stripe %d times", a.Summary.Requests-before)
			}
		})
	}
}

// TestRememberedError: Stripe charges, answers 500 and says so again for ever under the same key. The payment is unknown until Stripe's records,
// which cannot be read at first, settle it as charged.
func TestRememberedError(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{stripesim.FaultCommitThen500, stripesim.FaultCommitThenHang} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := world.New(t)
			stripe := w.NewFront()
			stripe.Records.Store(world.RecordsAway)
			o := w.Order("order-1")
			w.Fault(o, fault, 1)
			w.Publish(o)
			w.Start(world.WorkerOptions{Name: "healthy"})
			w.Await("the unknown outcome", func() (bool, string) { s := w.Status(o.ID()); return s == payments.StatusUnknown, string(s) })
			stripe.Records.Store(world.RecordsTrue)
			a := w.MustBeGood(0)
			if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 || w.Status(o.ID()) != payments.StatusSucceeded {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, status %s", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts, w.Status(o.ID()))
			}
		})
	}
}

// TestDetached: Stripe charged, kept nothing of its answer, and the payment method was detached before the request could be sent again. The payment is
// found by its look-up, and is not rejected for what a second request is told.
func TestDetached(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	stripe := w.NewFront()
	stripe.Records.Store(world.RecordsAway)
	o := w.Order("order-1")
	o.Method = w.PostStripe("/v1/payment_methods/pm_card_visa/attach", "customer="+o.Money.Customer)
	w.Fault(o, stripesim.FaultCommitThen503, 1)
	w.Publish(o)
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.Await("the unknown outcome", func() (bool, string) { s := w.Status(o.ID()); return s == payments.StatusUnknown, string(s) })
	if id := w.PostStripe("/v1/payment_methods/"+o.Method+"/detach", ""); id != o.Method {
		t.Fatalf("%s was detached, and not %s", id, o.Method)
	}
	stripe.Records.Store(world.RecordsTrue)
	a := w.MustBeGood(0)
	if s := w.Status(o.ID()); s != payments.StatusSucceeded || len(a.Charges) != 1 || a.Summary.PaymentIntents != 1 {
		t.Errorf("the payment is %s, with %d charges and %d PaymentIntents", s, len(a.Charges), a.Summary.PaymentIntents)
	}
}
