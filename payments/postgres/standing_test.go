package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestStanding: whatever happens to payments, and in whatever order, as long as a claim's token stands in its ticket the row is what the owner
// takes it for, since Record does not read it again.
func TestStanding(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 50} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			b := open(t, func(o *Options) { o.Rate = rate })
			ctx := context.Background()
			for _, tenant := range []Tenant{{ID: "connected", StripeAccount: "acct_2"}, {ID: "later", StripeAccount: "acct_3"}} {
				if _, err := b.CreateTenant(ctx, tenant); err != nil {
					t.Fatal(err)
				}
			}
			second, third := payments.Account{ID: "acct_2", Livemode: true}, payments.Account{ID: "acct_3", Livemode: true}
			if err := b.PinTenantAccount(ctx, "connected", second); err != nil {
				t.Fatal(err)
			}
			w := standingWorld{bench: b, random: rand.New(rand.NewPCG(7, uint64(rate)))}
			for n := range 900 {
				if n == 450 {
					if err := b.PinTenantAccount(ctx, "later", third); err != nil {
						t.Fatal(err)
					}
				}
				w.step(n)
				w.check(n)
			}
			if w.stood < 900 || w.unpinned == 0 || w.doubtful == 0 {
				t.Errorf("%d claims stood, %d without an account, %d in doubt: too few to tell anything", w.stood, w.unpinned, w.doubtful)
			}
		})
	}
}

type standingWorld struct {
	*bench
	random                    *rand.Rand
	claims                    []payments.Claim
	stood, unpinned, doubtful int
}

func (w *standingWorld) claim() (payments.Claim, int) {
	if len(w.claims) == 0 {
		return payments.Claim{}, -1
	}
	i := w.random.IntN(len(w.claims))
	return w.claims[i], i
}

func (w *standingWorld) step(n int) {
	w.t.Helper()
	ctx := context.Background()
	c, at := w.claim()
	var err error
	switch kind := w.random.IntN(10); {
	case kind == 0:
		tenant := []string{"acme", "connected", "later"}[w.random.IntN(3)]
		r := w.claiming(intent(tenant, "k"+strconv.Itoa(n), 100))
		r.Account = map[string]payments.Account{"acme": account, "connected": {ID: "acct_2", Livemode: true}}[tenant]
		r.Claim = r.Account.ID != "" && w.random.IntN(3) > 0
		if a := w.admit(r); a.Verdict == payments.VerdictClaimed {
			w.claims = append(w.claims, a.Claim)
		}
	case kind <= 2:
		w.claims = append(w.claims, w.take(payments.TakeRequest{Limit: 1 + w.random.IntN(3), Lease: time.Duration(1+w.random.IntN(60)) * time.Second})...)
	case kind == 3:
		w.clock.Advance(time.Duration(w.random.IntN(40)-5) * time.Second) // it goes back, too
	case at < 0:
	case kind == 4:
		submitting := c.Payment.InDoubt || c.Payment.Status == payments.StatusUnknown
		var next payments.Claim
		if next, err = w.Extend(ctx, c, 30*time.Second, submitting && w.random.IntN(2) > 0); err == nil {
			w.claims[at] = next
		}
	case kind == 5:
		_, err = w.Evidence(ctx, c.Payment.TenantID, c.Payment.ID, func(p payments.Payment) (payments.Transition, error) {
			if w.random.IntN(3) == 0 || p.StripeAccount == "" {
				return succeeded(p), nil
			}
			return unknown(payments.ReasonConfirming), nil
		})
		if payments.ErrorCode(err) == payments.CodeInternal { // a move that the state machine does not have
			err = nil
		}
	case kind == 6 && w.random.IntN(4) == 0:
		err = w.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonHandlerPanic}, time.Second)
	default:
		moves := []payments.Transition{
			waiting(payments.ReasonRateLimited), unknown(payments.ReasonNoAnswer), unknown(payments.ReasonNoAnswer),
			{Status: payments.StatusWaiting, Reason: payments.ReasonNotSent, ClearSubmit: c.Payment.FirstSubmitAt.IsZero(), Rounds: c.Payment.Rounds + 1},
			{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Object: succeeded(c.Payment).Object},
		}
		m := moves[w.random.IntN(len(moves))]
		if c.Payment.StripeAccount == "" {
			m = moves[3] // nothing may be sent for it
		} else if m.InDoubt = m.InDoubt || c.Payment.InDoubt; m.InDoubt && m.Status == payments.StatusWaiting {
			m.Status = payments.StatusUnknown
		}
		_, err = w.Record(ctx, payments.Recording{Claim: c, Transition: m, Delay: time.Duration(w.random.IntN(10)) * time.Second, At: w.clock.Now()})
		if payments.ErrorCode(err) == payments.CodeInternal {
			err = nil
		}
	}
	if err != nil && !payments.TicketLost(err) {
		w.t.Fatal(err)
	}
}

// check holds all claims against their rows, and forgets those that have ended.
func (w *standingWorld) check(n int) {
	w.t.Helper()
	keys := make([]key, len(w.claims))
	for i, c := range w.claims {
		keys[i] = claimKey(&c)
	}
	tenants, ids := keyArrays(keys)
	list, err := w.pool.Query(context.Background(), query("read_by_id"), tenants, ids)
	if err != nil {
		w.t.Fatal(err)
	}
	defer list.Close()
	var found []row
	if err := collect(&found)(list); err != nil {
		w.t.Fatal(err)
	}
	rows := map[key]row{}
	for _, r := range found {
		rows[r.key()] = r
	}
	var on []payments.Claim
	for _, c := range w.claims {
		r := rows[claimKey(&c)]
		if !r.holds(c.Token) {
			continue
		}
		on = append(on, c)
		want, got := r.payment, standing(&c)
		want.Owned, got.Owned = false, false
		if !reflect.DeepEqual(want, got) {
			w.t.Fatalf("step %d: the row and what its owner takes it for:\n%+v\n%+v", n, want, got)
		}
		if w.stood++; got.StripeAccount == "" {
			w.unpinned++
			if got.InDoubt || !got.FirstSubmitAt.IsZero() {
				w.t.Fatalf("step %d: a send is in doubt that no account is known for: %+v", n, got)
			}
		} else if c.Payment.InDoubt {
			w.doubtful++
		}
	}
	w.claims = on
}
