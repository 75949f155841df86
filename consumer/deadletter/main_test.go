package deadletter

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

var (
	account = payments.Account{ID: "acct_1"}
	ann     = payments.Operation{Actor: "ann@ops", Reason: "mended"}
)

// ward is a database with dead letters, on a clock that the test moves.
type ward struct {
	*postgres.Store
	t   testing.TB
	mu  sync.Mutex
	at  time.Time
	seq uint64
	db  *pgxpool.Pool
}

func (w *ward) Exec(sql string) (any, error) { return w.db.Exec(context.Background(), sql) }

func (w *ward) QueryRow(sql string, into any) error {
	return w.db.QueryRow(context.Background(), sql).Scan(into)
}

func (w *ward) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *ward) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func newWard(t testing.TB) *ward {
	t.Helper()
	w := &ward{t: t, at: time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)}
	var err error
	dsn := devstacktest.Database(t, migrations.Up)
	if w.db, err = pgxpool.New(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.db.Close)
	w.Store, err = postgres.Open(t.Context(), dsn, postgres.Options{PoolSize: 8, Clock: w})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if list, err := w.TicketViolations(ctx); err != nil || len(list) > 0 {
			t.Errorf("tickets: %+v, %v", list, err)
		}
		if err := w.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	w.tenant("acme")
	return w
}

func (w *ward) tenant(id string) {
	w.t.Helper()
	if _, err := w.CreateTenant(context.Background(), postgres.Tenant{ID: id}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) runner(change ...func(*Config)) *Runner {
	w.t.Helper()
	c := Config{Store: w.Store, FollowUps: w.Store, Batches: w.Store, Replays: w.Store, Clock: w}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// once runs one round of a runner.
func (w *ward) once(r *Runner) (open bool) {
	w.t.Helper()
	open, err := r.RunOnce(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return open
}

// stall makes a payment that is given up without a send that could have charged, and returns its letter's id.
func (w *ward) stall(key string) (letter string, id payments.ID) {
	w.t.Helper()
	c := w.claim(key)
	w.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted})
	return w.letterOf(c.Payment.ID).ID, c.Payment.ID
}

func (w *ward) claim(key string) payments.Claim {
	w.t.Helper()
	a, err := w.Admit(context.Background(), payments.AdmitRequest{
		Intent: payments.Intent{TenantID: "acme", IdempotencyKey: key, Kind: payments.KindCharge, Amount: 9900, Currency: "usd", PaymentMethod: "pm_card_visa",
			CaptureMethod: payments.CaptureAutomatic, OffSession: true},
		Lane: payments.LaneBulk, Claim: true, Token: token(), Lease: time.Minute, Account: account,
	})
	if err != nil || a.Verdict != payments.VerdictClaimed {
		w.t.Fatalf("%s: %+v, %v", key, a, err)
	}
	return a.Claim
}

var tokens struct {
	sync.Mutex
	n byte
	m byte
}

func token() (t payments.Token) {
	tokens.Lock()
	defer tokens.Unlock()
	if tokens.n++; tokens.n == 0 {
		tokens.m++
	}
	t[0], t[1], t[2] = 1, tokens.m, tokens.n
	return t
}

func (w *ward) record(c payments.Claim, t payments.Transition) {
	w.t.Helper()
	if _, err := w.Record(context.Background(), payments.Recording{Claim: c, Transition: t, Delay: time.Hour, At: w.Now()}); err != nil {
		w.t.Fatal(err)
	}
}

// letterOf is the letter of a payment that was given up.
func (w *ward) letterOf(id payments.ID) payments.DeadLetter {
	w.t.Helper()
	list, _, err := w.DeadLetters(context.Background(), postgres.DeadLettersRequest{LetterFilter: payments.LetterFilter{PaymentID: &id}})
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d letters of %s, %v", len(list), id, err)
	}
	return list[0]
}

func (w *ward) letter(id string) payments.DeadLetter {
	w.t.Helper()
	d, err := w.DeadLetter(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// bury makes the dead letter of a message.
func (w *ward) bury(id, tenant, key string, reason payments.Reason, payload string, headers ...string) {
	w.t.Helper()
	w.seq++
	d := payments.DeadLetter{ID: id, TenantID: tenant, IdempotencyKey: key, Reason: reason, Message: "as it was", Payload: []byte(payload),
		Origin: payments.MessageOrigin{Stream: "PAYMENTS_BULK", StreamCreated: w.at, Sequence: w.seq, Subject: "payments.bulk." + tenant}}
	if len(headers) > 0 {
		d.Headers = []byte("NATS/1.0\r\n" + headers[0] + "\r\n\r\n")
	}
	if err := w.BuryMessage(context.Background(), d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) replay(n payments.NewReplay) payments.Replay {
	w.t.Helper()
	n.Operation = ann
	r, err := w.CreateReplay(context.Background(), n)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *ward) state(id string) payments.Replay {
	w.t.Helper()
	r, err := w.Replay(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *ward) item(replay, letter string) payments.ReplayItem {
	w.t.Helper()
	list, _, err := w.ReplayItems(context.Background(), replay, "", 1000, "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range list {
		if i.LetterID == letter {
			return i
		}
	}
	w.t.Fatalf("no item %s in %s", letter, replay)
	return payments.ReplayItem{}
}

// work takes what is due and ends it, as a worker does.
func (w *ward) work(t func(payments.Payment) payments.Transition) (n int) {
	w.t.Helper()
	for {
		taken, err := w.Take(context.Background(), payments.TakeRequest{Lane: payments.LaneBulk, Limit: 500, Lease: time.Minute, Account: account})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(taken.Claims) == 0 {
			return n
		}
		for _, c := range taken.Claims {
			w.record(c, t(c.Payment))
		}
		n += len(taken.Claims)
	}
}

func succeed(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{ID: "pi_" + p.ID.Hex()[:24], Status: payments.StripeSucceeded,
		Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency}}
}

func stallAgain(payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, ClearSubmit: true, DeadLetter: payments.ReasonAttemptsExhausted}
}

// crash ends the runner at a step of a letter, as if its process had ended there.
func (w *ward) crash(at Step, letter string) {
	w.t.Helper()
	ended := make(chan bool)
	go func() {
		crashed := true
		defer func() { ended <- crashed }()
		r := w.runner(func(c *Config) {
			c.OnStep = func(s Step, id string) {
				if s == at && id == letter {
					runtime.Goexit()
				}
			}
		})
		_, _ = r.RunOnce(context.Background())
		crashed = false
	}()
	if !<-ended {
		w.t.Fatalf("%s was never reached", at)
	}
}

func message(key string, amount int) string {
	return fmt.Sprintf(`{"idempotency_key":%q,"amount":%d,"currency":"usd","payment_method":"pm_card_visa"}`, key, amount)
}
