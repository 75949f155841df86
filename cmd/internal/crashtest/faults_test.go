package crashtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
			w := newWorldOf(t, unhurried)
			w.sim.SetIdempotency(false) // Stripe's memory must not hide a second request
			lost := &lostCommits{}
			lost.left.Store(-1 << 20)
			var once sync.Once
			orders := w.publishMany("order", 20)
			w.start(workerOptions{name: "worker", postgres: lost.hook, stop: func(s payments.Step, _ payments.ID) bool {
				if s == at {
					once.Do(lost.arm)
				}
				return false
			}})
			w.mustHaveSettled(orders)
			a := w.mustBeGood(0)
			if lost.cuts.Load() == 0 {
				t.Error("no COMMIT lost its answer: the case shows nothing")
			}
			if a.Summary.Posts != len(orders) || len(a.Charges) != len(orders) {
				t.Errorf("%d requests and %d charges for %d payments", a.Summary.Posts, len(a.Charges), len(orders))
			}
			if log := w.logs.text(); strings.Contains(log, "is aborted") || strings.Contains(log, "25P02") {
				t.Error("a connection went on in a transaction that had failed")
			}
		})
	}
}

// deaf never comes back from submitting one payment until it is mended, and sends nothing. It listens to no context.
type deaf struct {
	payments.Gateway
	id     payments.ID
	mended atomic.Bool
	freed  <-chan struct{}
}

func (g *deaf) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if s.Payment.ID == g.id && !g.mended.Load() {
		<-g.freed
		return payments.Observation{Kind: payments.ObservedNotSent, Detail: "held up"}
	}
	return g.Gateway.Submit(ctx, s)
}

// TestHangingHandler: a payment's handler hangs past AckWait and past its lease, each time anew. No attempt is used up in silence: the sixth in a row
// leaves a dead letter, everybody beside it settles, and once the handler is mended the payment is charged, once. (A look-up that timed out on a busy
// machine is recorded, and from then on they are counted anew; so it hangs until the letter is there, and not just six times.)
func TestHangingHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	victim := w.order("victim")
	bystanders := w.publishMany("bystander", 20)
	freed := make(chan struct{})
	var once sync.Once
	free := func() { once.Do(func() { close(freed) }) }
	t.Cleanup(free)
	w.publish(victim)
	hanging := &deaf{id: victim.id(), freed: freed}
	w.start(workerOptions{name: "worker", gateway: func(g payments.Gateway) payments.Gateway {
		hanging.Gateway = g
		return hanging
	}})
	w.mustHaveSettled(bystanders)
	w.await("the dead letter", func() (bool, string) { return len(w.letters()) > 0, string(w.status(victim.id())) })
	hanging.mended.Store(true)
	w.mustHaveSettled([]order{victim})
	free() // the late ones come back, and change nothing
	a := w.mustBeGood(1)
	if l := a.Letters[0]; l.Reason != payments.ReasonWorkerKilled || l.IdempotencyKey != victim.Key {
		t.Errorf("the dead letter is %+v", l)
	}
	if len(a.Charges) != len(bystanders)+1 {
		t.Errorf("%d charges, want %d", len(a.Charges), len(bystanders)+1)
	}
}

// TestMessageKillsProcesses ends real processes with SIGKILL, each time that one begins with a message, until the server has delivered it so
// often that it is a dead letter, with its bytes. Between two processes nobody is up who could hear of it.
func TestMessageKillsProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	killer := w.order("killer")
	w.publish(killer)
	deaths := 0
	for range payments.SuspectFrom + payments.SuspectStartsMax + 2 {
		p := w.spawn(script{Step: payments.StepBeforeAdmit, IDs: []string{killer.id().String()}, Kill: true})
		buried := false
		w.await("the end of a process, or the dead letter", func() (bool, string) {
			select {
			case <-p.exited:
				return true, ""
			default:
				buried = len(w.letters()) > 0
				return buried, "neither"
			}
		})
		if buried {
			break
		}
		if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("a process ended otherwise than by SIGKILL: %v", p.err)
		}
		deaths++
	}
	if want := payments.SuspectFrom - 1 + payments.SuspectStartsMax; deaths != want {
		t.Errorf("%d processes ended, want %d", deaths, want)
	}
	a := w.mustBeGood(1)
	full, err := w.store.DeadLetter(t.Context(), a.Letters[0].ID)
	if err != nil || full.Reason != payments.ReasonWorkerKilled || !bytes.Equal(full.Payload, killer.body(t)) {
		t.Errorf("the dead letter is %+v, %v", full, err)
	}
}

// TestForgottenKeyTakeover ends an owner whose request is at Stripe, which charges, and lets the next one come when 25 hours have passed and Stripe has
// forgotten the key. What Stripe's records show is adopted; when they show nothing, a person decides. Never is there a second PaymentIntent.
func TestForgottenKeyTakeover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records int32
		want    payments.Status
	}{"found": {recordsTrue, payments.StatusSucceeded}, "not shown": {recordsEmpty, payments.StatusNeedsReview}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			stripe := w.newFront()
			o := w.order("order-1")
			w.publish(o)
			owner := w.start(workerOptions{name: "owner", stop: func(s payments.Step, _ payments.ID) bool { return s == payments.StepAfterSubmit }})
			w.await("Stripe's answer", func() (bool, string) { return owner.gate.hasStopped(o.id()), "nobody has it" })
			owner.kill()
			w.clock.advance(25 * time.Hour)
			stripe.records.Store(c.records)
			w.start(workerOptions{name: "next"})
			w.await("a look-up, and what follows from it", func() (bool, string) {
				return w.status(o.id()).Final() || stripe.reads.Load() > 0 && w.absenceNoted(o), string(w.status(o.id()))
			})
			w.clock.advance(2 * time.Hour)
			w.await("the end", func() (bool, string) { s := w.status(o.id()); return !s.HasTicket(), string(s) })
			w.clock.advance(30 * 24 * time.Hour)
			before := w.sim.Summary().Requests
			w.publish(o) // a repeat a month later
			w.rest()
			a := w.account()
			if s := w.status(o.id()); s != c.want {
				t.Errorf("the payment came to rest as %s, want %s", s, c.want)
			}
			if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 || len(a.DeadLetters) > 0 {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, dead letters %v; want one of each and none", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts, a.reasons())
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
			w := newWorld(t)
			stripe := w.newFront()
			stripe.records.Store(recordsAway)
			o := w.order("order-1")
			w.fault(o, fault, 1)
			w.publish(o)
			w.start(workerOptions{name: "healthy"})
			w.await("the unknown outcome", func() (bool, string) { s := w.status(o.id()); return s == payments.StatusUnknown, string(s) })
			stripe.records.Store(recordsTrue)
			a := w.mustBeGood(0)
			if a.Summary.PaymentIntents != 1 || a.Summary.Posts != 1 || len(a.Charges) != 1 || w.status(o.id()) != payments.StatusSucceeded {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, status %s", a.Summary.PaymentIntents, len(a.Charges), a.Summary.Posts, w.status(o.id()))
			}
		})
	}
}

// TestDetached: Stripe charged, kept nothing of its answer, and the payment method was detached before the request could be sent again. The payment is
// found by its look-up, and is not rejected for what a second request is told.
func TestDetached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stripe := w.newFront()
	stripe.records.Store(recordsAway)
	o := w.order("order-1")
	o.method = w.postStripe("/v1/payment_methods/pm_card_visa/attach", "customer="+o.Money.Customer)
	w.fault(o, stripesim.FaultCommitThen503, 1)
	w.publish(o)
	w.start(workerOptions{name: "healthy"})
	w.await("the unknown outcome", func() (bool, string) { s := w.status(o.id()); return s == payments.StatusUnknown, string(s) })
	if id := w.postStripe("/v1/payment_methods/"+o.method+"/detach", ""); id != o.method {
		t.Fatalf("%s was detached, and not %s", id, o.method)
	}
	stripe.records.Store(recordsTrue)
	a := w.mustBeGood(0)
	if s := w.status(o.id()); s != payments.StatusSucceeded || len(a.Charges) != 1 || a.Summary.PaymentIntents != 1 {
		t.Errorf("the payment is %s, with %d charges and %d PaymentIntents", s, len(a.Charges), a.Summary.PaymentIntents)
	}
}

// postStripe asks the simulator as somebody else beside us, and returns the id of the answer.
func (w *world) postStripe(path, form string) (id string) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.simURL+path, strings.NewReader(form))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+stripeKey)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %v", path, response.Status, err)
	}
	return answer.ID
}
