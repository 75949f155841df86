package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

// account is the Stripe account of all tests.
var account = payments.Account{ID: "acct_1", Livemode: true}

// bench is a Store on a database of its own; when the test ends no ticket may be missing or left over.
type bench struct {
	*Store
	t     testing.TB
	dsn   string
	clock *testClock
	sent  *outboxLog
}

// testClock is a clock that the test moves.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock {
	return &testClock{now: time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)}
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// outboxLog keeps what Committed was told.
type outboxLog struct {
	mu    sync.Mutex
	items []payments.OutboxItem
}

func (l *outboxLog) add(items []payments.OutboxItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, items...)
}

func (l *outboxLog) all() []payments.OutboxItem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]payments.OutboxItem(nil), l.items...)
}

// open gives the test a Store with the tenants acme and globex, on a clock that the test moves.
func open(t testing.TB, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, dsn: devstacktest.Database(t, migrations.Up), clock: newTestClock(), sent: &outboxLog{}}
	opts := Options{Clock: b.clock, Committed: b.sent.add, PoolSize: 8}
	for _, f := range change {
		f(&opts)
	}
	b.Store = b.another(opts)
	for _, tenant := range []string{"acme", "globex"} {
		if _, err := b.CreateTenant(context.Background(), Tenant{ID: tenant}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { b.check() })
	return b
}

// another opens one more Store on the same database.
func (b *bench) another(opts Options) *Store {
	b.t.Helper()
	return b.via(b.dsn, opts)
}

func (b *bench) via(dsn string, opts Options) *Store {
	b.t.Helper()
	s, err := Open(context.Background(), dsn, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			b.t.Errorf("Close: %v", err)
		}
	})
	return s
}

// until asks the database, or a queue, for what nothing signals, and fails the test when it does not come in time.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("not within 2 minutes: %s", what)
		}
	}
}

// explain is the plan that the connection keeps for the named statement, whatever its parameters.
func explain(t testing.TB, conn *pgx.Conn, name string) []string {
	t.Helper()
	ctx := context.Background()
	d, err := conn.Prepare(ctx, name, query(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	nulls := strings.TrimSuffix(strings.Repeat("NULL,", len(d.ParamOIDs)), ",")
	rows, err := conn.Query(ctx, "EXPLAIN EXECUTE "+name+"("+nulls+")", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return plan
}

// check is the ticket query of I2.
func (b *bench) check() {
	b.t.Helper()
	list, err := b.TicketViolations(context.Background())
	if err != nil {
		b.t.Errorf("TicketViolations: %v", err)
	}
	for _, v := range list {
		b.t.Errorf("ticket violation: %+v", v)
	}
}

func intent(tenant, key string, amount int64) payments.Intent {
	return payments.Intent{
		TenantID: tenant, IdempotencyKey: key, Kind: payments.KindCharge, Amount: amount, Currency: "usd", Customer: "cus_1",
		PaymentMethod: "pm_card_visa", CaptureMethod: payments.CaptureAutomatic, OffSession: true,
	}
}

// claiming is a request that wants the ticket.
func (b *bench) claiming(i payments.Intent) payments.AdmitRequest {
	return payments.AdmitRequest{Intent: i, Lane: payments.LaneInteractive, Claim: true, Token: b.newToken(), Lease: time.Minute, Account: account}
}

func (b *bench) admit(r payments.AdmitRequest) payments.Admission {
	b.t.Helper()
	a, err := b.Admit(context.Background(), r)
	if err != nil {
		b.t.Fatalf("Admit: %v", err)
	}
	return a
}

// claim admits a new payment and returns the claim on it.
func (b *bench) claim(key string) payments.Claim {
	b.t.Helper()
	a := b.admit(b.claiming(intent("acme", key, 9900)))
	if a.Verdict != payments.VerdictClaimed {
		b.t.Fatalf("Admit of %s: %s, want claimed", key, a.Verdict)
	}
	return a.Claim
}

// claims makes n claims, k0 to kn-1.
func (b *bench) claims(n int) []payments.Claim {
	list := make([]payments.Claim, n)
	for i := range list {
		list[i] = b.claim("k" + strconv.Itoa(i))
	}
	return list
}

func (b *bench) record(c payments.Claim, t payments.Transition, delay time.Duration) payments.Recorded {
	b.t.Helper()
	done, err := b.Record(context.Background(), payments.Recording{Claim: c, Transition: t, Delay: delay, At: b.clock.Now()})
	if err != nil {
		b.t.Fatalf("Record %s: %v", t.Status, err)
	}
	return done
}

func (b *bench) take(r payments.TakeRequest) []payments.Claim {
	b.t.Helper()
	if r.Lane == 0 {
		r.Lane = payments.LaneInteractive
	}
	if r.Lease == 0 {
		r.Lease = time.Minute
	}
	r.Account = account
	list, err := b.Take(context.Background(), r)
	if err != nil {
		b.t.Fatalf("Take: %v", err)
	}
	return list.Claims
}

func (b *bench) find(c payments.Claim) payments.Payment {
	b.t.Helper()
	p, err := b.Find(context.Background(), c.Payment.TenantID, c.Payment.ID)
	if err != nil {
		b.t.Fatalf("Find: %v", err)
	}
	return p
}

// succeeded is Stripe's word that the payment was charged.
func succeeded(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{
		ID: "pi_" + p.ID.Hex()[:24], Status: payments.StripeSucceeded, Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency,
		Customer: p.Customer, LatestCharge: "ch_" + p.ID.Hex()[:24], Livemode: true,
	}}
}

func waiting(reason string) payments.Transition {
	return payments.Transition{Status: payments.StatusWaiting, Reason: reason, CountTry: true, Rounds: 1}
}

func unknown(reason string) payments.Transition {
	return payments.Transition{Status: payments.StatusUnknown, Reason: reason, InDoubt: true, Rounds: 1}
}
