package operators

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// way is how somebody asks: on one of the lanes, or over HTTP, whose copy is published on the interactive one.
type way string

var ways = []way{"interactive", "bulk", "http"}

// What becomes of a charge between a backup and its restore.
const (
	isRefunded = "refunded"
	isCaptured = "captured" // a part of what was held
	isReleased = "released" // what was held is canceled
	isUnsent   = "unsent"   // canceled before anything was sent for it
)

// past is one charge, what was asked of it, and how each was asked.
type past struct {
	what         string
	order        world.Order
	charge       way
	ask          way
	backedUp     bool             // the backup knows the charge
	early, later []world.FollowUp // early have ended when the database is restored; later were asked for in the last moment
	second       world.FollowUp   // between the two; none where its key is empty
}

// restored is a world whose database was lost with all that was asked of its payments since.
type restored struct {
	*world.World
	door   *world.Caller
	addr   string
	worker *world.Worker
	pasts  []*past
}

// unsentYet sends nothing for charges that are canceled before, until that is over.
type unsentYet struct {
	payments.Gateway
	payments.FollowUpGateway
	over *atomic.Bool
}

func (g unsentYet) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if strings.HasPrefix(s.Payment.IdempotencyKey, isUnsent) && !g.over.Load() {
		return payments.Observation{Kind: payments.ObservedForeignAccount}
	}
	return g.Gateway.Submit(ctx, s)
}

// TestFollowUpsOfARestoredDatabase: charges are made before and after a backup, and captured, canceled and refunded after it, each asked for on either lane or
// over HTTP, so that they come back in every order. Then the backup is put in place and rewound, and everybody asks for everything again. Each refund is made
// once, no charge is sent that was canceled before it was, and all amounts are what they were.
func TestFollowUpsOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]bool{"asked again afterwards": false, "asked again while it is held": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world.TakeTurn(t)
			w := world.New(t)
			over := &atomic.Bool{}
			r := &restored{World: w, door: w.NewCaller(), addr: w.SpawnDoor("ingress", "relay").Address()}
			r.worker = w.Start(world.WorkerOptions{Name: "worker", Marked: true, Gateway: func(g payments.Gateway) payments.Gateway {
				return unsentYet{g, g.(payments.FollowUpGateway), over}
			}})
			r.drawUp()
			r.make(true)
			r.rests(true)
			marked(r.worker)
			server, since := serverOf(w), w.Clock.Now()
			backup := server.backUp()
			connected(w)
			r.make(false)
			r.rests(false)
			r.followUp()
			over.Store(true)
			server.restore(backup)
			w.Await("the hold", func() (bool, string) { return r.worker.Mark.Held() != "", "not held" })
			connected(w)
			charges := len(w.Sim.Ledger().Charges)
			if meanwhile {
				r.askAgain(false)
			}
			rewindSince(w, since)
			r.settles()
			r.askAgain(true)
			r.judge(charges)
		})
	}
}

// drawUp draws up every case: whether the backup knows the charge, how it was asked for, and how what comes after it was.
func (r *restored) drawUp() {
	for _, what := range []string{isRefunded, isCaptured, isReleased, isUnsent} {
		for _, backedUp := range []bool{true, false} {
			for _, charge := range ways {
				for n, ask := range ways {
					o := r.Order(fmt.Sprintf("%s-%s-%s-%t", what, charge, ask, backedUp))
					o.Held, o.Lane = what == isCaptured || what == isReleased, payments.LaneInteractive
					if charge == "bulk" {
						o.Lane = payments.LaneBulk
					}
					p := &past{what: what, order: o, charge: charge, ask: ask, backedUp: backedUp}
					follow := func(kind payments.Kind, name string, amount int64, by way) world.FollowUp {
						f := r.FollowUp(kind, o, name+"-"+o.Key, amount)
						if by == "bulk" {
							f.Lane = payments.LaneBulk
						}
						return f
					}
					rest := follow(payments.KindRefund, "rest", 0, ways[(n+1)%len(ways)])
					switch what {
					case isRefunded:
						p.early, p.second, p.later = []world.FollowUp{follow(payments.KindRefund, "part", 1000, ask)}, follow(payments.KindRefund, "more", 1500, ways[(n+2)%len(ways)]), []world.FollowUp{rest}
					case isCaptured:
						p.early, p.later = []world.FollowUp{follow(payments.KindCapture, "capture", 3000, ask)}, []world.FollowUp{rest}
					default:
						p.early = []world.FollowUp{follow(payments.KindCancel, "cancel", 0, ask)}
					}
					r.pasts = append(r.pasts, p)
				}
			}
		}
	}
}

// make has the charges made that the backup knows, or the others.
func (r *restored) make(backedUp bool) {
	r.Helper()
	for _, p := range r.pasts {
		if p.backedUp == backedUp {
			r.pay(p)
		}
	}
	for _, p := range r.pasts {
		want := map[string]payments.Status{isRefunded: payments.StatusSucceeded, isCaptured: payments.StatusRequiresCapture, isReleased: payments.StatusRequiresCapture, isUnsent: payments.StatusWaiting}[p.what]
		if p.backedUp == backedUp {
			r.Await(string(want)+" of "+p.order.Key, func() (bool, string) { s := r.Status(p.order.ID()); return s == want, string(s) })
		}
	}
}

// rests sees to it that nobody has an unsent charge, or takes one, while the database is copied and until somebody makes it due.
func (r *restored) rests(backedUp bool) {
	r.Helper()
	r.Await("unsent charges that rest", func() (bool, string) {
		left := 0
		r.SQL(func(ctx context.Context, conn *pgx.Conn) error {
			for _, p := range r.pasts {
				if id := p.order.ID(); p.what == isUnsent && p.backedUp == backedUp {
					done, err := conn.Exec(ctx, "UPDATE queue SET due_at = $3 WHERE tenant_id = $1 AND payment_id = $2 AND token IS NULL", world.Tenant, id[:], r.Clock.Now().Add(time.Hour))
					if err != nil {
						return err
					}
					left += 1 - int(done.RowsAffected())
				}
			}
			return nil
		})
		return left == 0, fmt.Sprint(left, " are worked on")
	})
}

func (r *restored) at() string { return r.addr }

// pay asks for a charge, as it was asked for.
func (r *restored) pay(p *past) {
	r.Helper()
	if p.charge != "http" {
		r.Publish(p.order)
		return
	}
	r.door.Insist(world.Parcel{Path: "/v1/payments", Key: p.order.Key, Body: p.order.Body(r), Orders: []world.Order{p.order}}, "", r.at)
}

// ask asks for what comes after a charge.
func (r *restored) ask(by way, f world.FollowUp, must bool) {
	r.Helper()
	if by != "http" {
		r.PublishFollowUps(f)
		return
	}
	if status, _ := r.door.AskFollowUp(f, r.at); must && status != http.StatusAccepted {
		r.Errorf("%s was answered %d", f.Key, status)
	}
}

// everything asks for whatever was asked of a charge.
func (p *past) everything(ask func(by way, f world.FollowUp)) {
	n := 0
	for i, by := range ways {
		if by == p.ask {
			n = i
		}
	}
	for _, f := range p.early {
		ask(p.ask, f)
	}
	if p.second.Key != "" {
		ask(ways[(n+2)%len(ways)], p.second)
	}
	for _, f := range p.later {
		ask(ways[(n+1)%len(ways)], f)
	}
}

// followUp asks for captures, cancels and refunds, one after another, and returns while the last of them are at any step.
func (r *restored) followUp() {
	r.Helper()
	step := func(chosen func(p *past, f world.FollowUp) bool) {
		for _, p := range r.pasts {
			p.everything(func(by way, f world.FollowUp) {
				if chosen(p, f) {
					r.ask(by, f, true)
				}
			})
		}
	}
	early := func(p *past, f world.FollowUp) bool { return f.Key == p.early[0].Key }
	second := func(p *past, f world.FollowUp) bool { return f.Key == p.second.Key }
	step(early)
	r.Rest()
	step(second)
	r.Rest()
	for _, p := range r.pasts {
		if now := r.FollowUpNow(p.early[0]); now.Status != payments.StatusSucceeded || p.what == isUnsent && r.Status(p.order.ID()) != payments.StatusCanceled {
			r.Fatalf("before the restore %s is %s for %q, and its payment %s", p.early[0].Key, now.Status, now.Payment.Reason, r.Status(p.order.ID()))
		}
	}
	marked(r.worker)
	step(func(p *past, f world.FollowUp) bool { return !early(p, f) && !second(p, f) })
}

// askAgain has everybody ask for everything once more, last things first; but not for all that is left, while nobody knows how much that is.
func (r *restored) askAgain(known bool) {
	r.Helper()
	for i := len(r.pasts) - 1; i >= 0; i-- {
		p := r.pasts[i]
		p.everything(func(by way, f world.FollowUp) {
			if known || f.Amount > 0 || f.Kind == payments.KindCancel {
				r.ask(by, f, false)
			}
		})
		r.pay(p)
	}
}

// settles waits until nothing is left to be done but what may have been canceled and must be proven absent first, and for that.
func (r *restored) settles() {
	r.Helper()
	unsent := map[payments.ID]bool{}
	for _, p := range r.pasts {
		if p.what == isUnsent {
			unsent[p.order.ID()] = true
		}
	}
	r.Await("all others", func() (bool, string) {
		for _, p := range r.pasts {
			if s := r.Status(p.order.ID()); p.what != isUnsent && s.HasTicket() {
				return false, p.order.Key + " is " + string(s)
			}
			open := ""
			p.everything(func(_ way, f world.FollowUp) {
				if now := r.FollowUpNow(f); p.what != isUnsent && now.Status.HasTicket() {
					open = f.Key + " is " + string(now.Status) + " for " + now.Payment.Reason
				}
			})
			if open != "" {
				return false, open
			}
		}
		return true, ""
	})
	absent := func() (bool, string) {
		for id := range unsent {
			if p, err := r.Store.Find(context.Background(), world.Tenant, id); err != nil || p.Status.HasTicket() && p.AbsentAt.IsZero() {
				return false, fmt.Sprintf("%s is %s %s, %v", p.IdempotencyKey, p.Status, p.Reason, err)
			}
		}
		return true, ""
	}
	r.Clock.Advance(25 * time.Hour)
	r.Await("a first look that finds nothing", absent)
	r.Clock.Advance(2 * time.Hour)
	r.Await("what was never sent", func() (bool, string) {
		for id := range unsent {
			if p, err := r.Store.Find(context.Background(), world.Tenant, id); err != nil || p.Status.HasTicket() {
				return false, fmt.Sprintf("%s is %s %s since %s, absent at %s, due at %s, now %s, %v", p.IdempotencyKey, p.Status, p.Reason, p.LastSubmitAt, p.AbsentAt, p.NextAttemptAt, r.Clock.Now(), err)
			}
		}
		return true, ""
	})
	r.Rest()
}

// judge wants all to be as it was, and at Stripe nothing twice.
func (r *restored) judge(charges int) {
	r.Helper()
	r.Rest()
	a := r.Account()
	a.Events = nil // their sequences are used again
	for _, finding := range a.Wrong() {
		r.Error(finding)
	}
	refunds := 0
	for _, p := range r.pasts {
		row := a.Rows[p.order.ID()]
		want := map[string]payments.Payment{
			isRefunded: {Status: payments.StatusSucceeded, AmountCaptured: 4200, AmountRefunded: 4200}, isCaptured: {Status: payments.StatusSucceeded, AmountCaptured: 3000, AmountRefunded: 3000},
			isReleased: {Status: payments.StatusCanceled}, isUnsent: {Status: payments.StatusCanceled},
		}[p.what]
		if row.Status != want.Status || row.AmountCaptured != want.AmountCaptured || row.AmountRefunded != want.AmountRefunded {
			r.Errorf("%s is %s for %q, %d captured and %d refunded", p.order.Key, row.Status, row.Reason, row.AmountCaptured, row.AmountRefunded)
		}
		p.everything(func(_ way, f world.FollowUp) {
			if f.Kind == payments.KindRefund {
				refunds++
			}
			if now := a.FollowUpRows[f.ID()]; now.Status != payments.StatusSucceeded {
				r.Errorf("%s is %q for %q", f.Key, now.Status, now.Payment.Reason)
			}
		})
	}
	if n := len(a.Ledger.Charges); n != charges || len(a.Ledger.Refunds) != refunds {
		r.Errorf("Stripe has %d charges and %d refunds, want %d and %d", n, len(a.Ledger.Refunds), charges, refunds)
	}
	for _, l := range a.Letters {
		if l.State == payments.DeadLetterOpen {
			r.Errorf("a dead letter of %s: %s", l.IdempotencyKey, l.Message)
		}
	}
}
