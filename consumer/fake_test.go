package consumer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

var testAccount = payments.Account{ID: "acct_1"}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// fakeStore keeps payments and tickets in memory by the rules of the port. before, when set, is asked at the start of every call; an error is
// the call's answer, and nothing is done.
type fakeStore struct {
	mu       sync.Mutex
	rows     map[payments.ID]*fakeRow
	letters  map[string]payments.DeadLetter // by sequence and stream
	buried   []payments.DeadLetter          // of payments
	starts   map[string]int
	calls    []string
	recorded int
	tokens   int

	batches map[payments.BatchRef]*fakeBatch
	told    []payments.BatchRef

	bucket     *bucket // of the one account; nil: unlimited
	rich       string  // a tenant with an unlimited account of its own
	before     func(verb string, id payments.ID) error
	startCount func() int // when set, the answer of Suspect
}

// bucket is a rate budget that holds 50 ms of its rate.
type bucket struct {
	rate, tokens float64
	at           time.Time
	given        int
}

// take gives up to n tokens, or says when there will be one.
func (b *bucket) take(n int) (got int, wait time.Duration) {
	if b == nil {
		return n, 0
	}
	now := time.Now()
	if b.at.IsZero() {
		b.at = now
	}
	b.tokens = min(max(1, b.rate/20), b.tokens+b.rate*now.Sub(b.at).Seconds())
	b.at = now
	got = min(n, int(b.tokens+1e-9))
	b.tokens -= float64(got)
	b.given += got
	if got < n {
		wait = max(5*time.Millisecond, time.Duration((1-b.tokens)/b.rate*float64(time.Second)))
	}
	return got, wait
}

type fakeRow struct {
	payment   payments.Payment
	ticket    bool
	token     payments.Token
	due       time.Time
	abandoned int
	recorded  int
}

var errAway = payments.Errorf(payments.CodeUnavailable, "away")

func newFakeStore() *fakeStore {
	return &fakeStore{batches: map[payments.BatchRef]*fakeBatch{}, rows: map[payments.ID]*fakeRow{}, letters: map[string]payments.DeadLetter{}, starts: map[string]int{}}
}

// begin notes a call; the lock is held from here on unless it returns an error.
func (s *fakeStore) begin(verb string, id payments.ID) error {
	s.mu.Lock()
	s.calls = append(s.calls, verb)
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(verb, id); err != nil {
			return err
		}
	}
	s.mu.Lock()
	return nil
}

func (s *fakeStore) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == verb {
			n++
		}
	}
	return n
}

func (s *fakeStore) setBefore(f func(string, payments.ID) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func originKey(o payments.MessageOrigin) string {
	return fmt.Sprint(o.Stream, o.StreamCreated.UnixNano(), o.Sequence)
}

func (s *fakeStore) Admit(_ context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	id := r.Intent.ID()
	if err := s.begin("admit", id); err != nil {
		return payments.Admission{}, err
	}
	defer s.mu.Unlock()
	if r.Suspect != nil {
		if k := originKey(*r.Suspect); s.letters[k].State == payments.DeadLetterSuspect {
			delete(s.letters, k)
		}
	}
	if row := s.rows[id]; row != nil {
		if differs := row.payment.Amount != r.Intent.Amount; differs {
			return payments.Admission{Verdict: payments.VerdictConflict, Payment: row.shown(), Differs: []string{"amount"}}, nil
		}
		return payments.Admission{Verdict: payments.VerdictExists, Payment: row.shown()}, nil
	}
	switch {
	case r.Refused != nil:
		return payments.Admission{Verdict: payments.VerdictRefused}, nil
	case r.ExistingOnly:
		return payments.Admission{Verdict: payments.VerdictAbsent}, nil
	case r.Intent.TenantID == "nobody":
		return payments.Admission{Verdict: payments.VerdictTenantUnknown}, nil
	}
	row := s.insertLocked(r.Intent, r.Lane)
	if !r.Claim {
		return payments.Admission{Verdict: payments.VerdictStored, Payment: row.shown()}, nil
	}
	if got, wait := s.bucketOf(r.Intent.TenantID).take(1); got == 0 {
		return payments.Admission{Verdict: payments.VerdictStored, Payment: row.shown(), Wait: wait}, nil
	}
	row.token, row.due = r.Token, time.Now().Add(r.Lease)
	return payments.Admission{Verdict: payments.VerdictClaimed, Payment: row.shown(), Claim: row.claim(r.Lease)}, nil
}

func (s *fakeStore) insertLocked(i payments.Intent, l payments.Lane) *fakeRow {
	row := &fakeRow{payment: payments.Payment{Intent: i, ID: i.ID(), Lane: l, Status: payments.StatusReceived}, ticket: true, due: time.Now()}
	s.rows[i.ID()] = row
	return row
}

// insert adds a payment with a due ticket that has been abandoned so often.
func (s *fakeStore) insert(i payments.Intent, l payments.Lane, abandoned int) payments.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.insertLocked(i, l).abandoned = abandoned
	return i.ID()
}

func (r *fakeRow) shown() payments.Payment {
	p := r.payment
	p.Owned = !r.token.IsZero()
	if r.ticket && !p.Owned {
		p.NextAttemptAt = r.due
	}
	return p
}

func (r *fakeRow) claim(lease time.Duration) payments.Claim {
	return payments.Claim{
		Payment: r.payment, Token: r.token, Lane: r.payment.Lane, LeaseUntil: time.Now().Add(lease), ClaimedAt: time.Now(), Abandoned: r.abandoned,
	}
}

func (s *fakeStore) Take(_ context.Context, r payments.TakeRequest) (payments.Taking, error) {
	verb := "take"
	if r.Alone {
		verb = "take alone"
	}
	if err := s.begin(verb, payments.ID{}); err != nil {
		return payments.Taking{}, err
	}
	defer s.mu.Unlock()
	var claims []payments.Claim
	var wait time.Duration
	alone := 0
	for _, row := range s.dueLocked(r.Lane) {
		if row.mustBeAlone() {
			alone++
		}
		if row.mustBeAlone() != r.Alone || len(claims) == r.Limit || r.Alone && len(claims) > 0 {
			continue
		}
		got, none := s.bucketOf(row.payment.TenantID).take(1)
		if wait = max(wait, none); got == 0 {
			continue
		}
		if !row.token.IsZero() {
			row.abandoned++
		}
		s.tokens++
		if r.Alone {
			alone--
		}
		row.token, row.due = payments.Token{0xFF, byte(s.tokens >> 8), byte(s.tokens)}, time.Now().Add(r.Lease)
		claims = append(claims, row.claim(r.Lease))
	}
	return payments.Taking{Claims: claims, Wait: wait, Alone: alone > 0}, nil
}

// owned is how many tokens are given out.
func (s *fakeStore) owned() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.rows {
		if row.ticket && !row.token.IsZero() {
			n++
		}
	}
	return n
}

func (r *fakeRow) mustBeAlone() bool {
	next := r.abandoned
	if !r.token.IsZero() {
		next++
	}
	return next >= payments.AbandonedAlone
}

func (s *fakeStore) bucketOf(tenant string) *bucket {
	if tenant == s.rich {
		return nil
	}
	return s.bucket
}

// dueLocked lists the lane's due tickets, tenants in turn.
func (s *fakeStore) dueLocked(l payments.Lane) []*fakeRow {
	now := time.Now()
	tenants := map[string][]*fakeRow{}
	for _, row := range s.rows {
		if row.ticket && row.payment.Lane == l && !row.due.After(now) {
			tenants[row.payment.TenantID] = append(tenants[row.payment.TenantID], row)
		}
	}
	var due []*fakeRow
	names := slices.Sorted(maps.Keys(tenants))
	for _, list := range tenants {
		slices.SortFunc(list, func(a, b *fakeRow) int { return a.due.Compare(b.due) })
	}
	for round := 0; len(due) < s.ticketsIn(tenants); round++ {
		for _, name := range names {
			if list := tenants[name]; round < len(list) {
				due = append(due, list[round])
			}
		}
	}
	return due
}

func (*fakeStore) ticketsIn(tenants map[string][]*fakeRow) (n int) {
	for _, list := range tenants {
		n += len(list)
	}
	return n
}

func (s *fakeStore) Throttle(context.Context, payments.Account) error { return nil }

func (s *fakeStore) heldLocked(c payments.Claim) (*fakeRow, error) {
	row := s.rows[c.Payment.ID]
	if row == nil || !row.ticket || row.token != c.Token {
		return nil, payments.Errorf(payments.CodeTicketLost, "somebody else has it")
	}
	return row, nil
}

func (s *fakeStore) Extend(_ context.Context, c payments.Claim, lease time.Duration, _ bool) (payments.Claim, error) {
	if err := s.begin("extend", c.Payment.ID); err != nil {
		return c, err
	}
	defer s.mu.Unlock()
	row, err := s.heldLocked(c)
	if err != nil {
		return c, err
	}
	row.due, row.abandoned = time.Now().Add(lease), c.Abandoned
	c.LeaseUntil = row.due
	return c, nil
}

func (s *fakeStore) Record(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	if ctx.Err() != nil {
		return payments.Recorded{}, errAway // as a store that nobody waits for
	}
	if err := s.begin("record", r.Claim.Payment.ID); err != nil {
		return payments.Recorded{}, err
	}
	defer s.mu.Unlock()
	row, err := s.heldLocked(r.Claim)
	if err != nil {
		return payments.Recorded{}, err
	}
	row.payment.Status, row.payment.Reason = r.Transition.Status, r.Transition.Reason
	row.ticket, row.token, row.due = r.Transition.Status.HasTicket(), payments.Token{}, time.Now().Add(r.Delay)
	row.recorded++
	s.recorded++
	return payments.Recorded{Payment: row.payment, Sequence: int64(row.recorded)}, nil
}

func (s *fakeStore) Evidence(context.Context, string, payments.ID, func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error) {
	return payments.Recorded{}, errors.New("a worker brings no evidence")
}

func (s *fakeStore) BuryPayment(_ context.Context, c payments.Claim, letter payments.DeadLetter, _ time.Duration) error {
	if err := s.begin("bury payment", c.Payment.ID); err != nil {
		return err
	}
	defer s.mu.Unlock()
	row, err := s.heldLocked(c)
	if err != nil {
		return err
	}
	row.payment.Status, row.ticket = payments.StatusStalled, false
	s.buried = append(s.buried, letter)
	return nil
}

func (s *fakeStore) BuryMessage(_ context.Context, letter payments.DeadLetter) error {
	if err := s.begin("bury message", payments.ID{}); err != nil {
		return err
	}
	defer s.mu.Unlock()
	letter.State = payments.DeadLetterOpen
	s.letters[originKey(letter.Origin)] = letter
	return nil
}

func (s *fakeStore) Suspect(_ context.Context, letter payments.DeadLetter) (int, error) {
	if err := s.begin("suspect", payments.ID{}); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	k := originKey(letter.Origin)
	s.letters[k] = letter
	s.starts[k]++
	if s.startCount != nil {
		return s.startCount(), nil
	}
	return s.starts[k], nil
}

func (s *fakeStore) Find(_ context.Context, _ string, id payments.ID) (payments.Payment, error) {
	if err := s.begin("find", id); err != nil {
		return payments.Payment{}, err
	}
	defer s.mu.Unlock()
	row := s.rows[id]
	if row == nil {
		return payments.Payment{}, payments.Errorf(payments.CodeNotFound, "no such payment")
	}
	return row.shown(), nil
}

// open lists the dead letters of messages.
func (s *fakeStore) open() []payments.DeadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []payments.DeadLetter
	for _, l := range s.letters {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b payments.DeadLetter) int { return int(a.Origin.Sequence) - int(b.Origin.Sequence) })
	return list
}

func (s *fakeStore) status(id payments.ID) payments.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.rows[id]; row != nil {
		return row.payment.Status
	}
	return ""
}

func (s *fakeStore) outcomes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded
}

// fakeGateway charges everything; submit, when set, is called first. It counts the calls under each Stripe key.
type fakeGateway struct {
	mu      sync.Mutex
	keys    map[string]int
	inside  int
	mostAt  int
	submit  func(ctx context.Context, p payments.Payment)
	observe func(p payments.Payment) payments.Observation
	look    func(ctx context.Context, p payments.Payment) payments.Observation
}

func (*fakeGateway) Account(context.Context, string) (payments.Account, error) {
	return testAccount, nil
}

func (g *fakeGateway) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if err := s.MayLeave(); err != nil {
		return payments.Observation{Kind: payments.ObservedHeldBack, Account: testAccount}
	}
	g.mu.Lock()
	if g.keys == nil {
		g.keys = map[string]int{}
	}
	g.keys[s.StripeKey]++
	g.inside++
	g.mostAt = max(g.mostAt, g.inside)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.inside--
		g.mu.Unlock()
	}()
	if g.submit != nil {
		g.submit(ctx, s.Payment)
	}
	if g.observe != nil {
		return g.observe(s.Payment)
	}
	p := s.Payment
	return payments.Observation{Kind: payments.ObservedAnswer, Account: testAccount, Object: &payments.PaymentIntent{
		ID: "pi_" + p.ID.Hex(), Status: payments.StripeSucceeded, Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency, Customer: p.Customer,
	}}
}

func (g *fakeGateway) Look(ctx context.Context, p payments.Payment, _ func() error) payments.Observation {
	if g.look != nil {
		return g.look(ctx, p)
	}
	return payments.Observation{Kind: payments.ObservedNoRecords, Account: testAccount}
}

func (g *fakeGateway) Retrieve(context.Context, payments.Payment) payments.Observation {
	return payments.Observation{Kind: payments.ObservedUnclear, Account: testAccount}
}

func (g *fakeGateway) Cancel(context.Context, payments.Submission) payments.Observation {
	return payments.Observation{Kind: payments.ObservedUnclear, Account: testAccount}
}

// atOnce is the most calls that were under way together so far.
func (g *fakeGateway) atOnce() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mostAt
}

// calls are the requests that left, in all and under the busiest key.
func (g *fakeGateway) calls() (all, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.keys {
		all, most = all+n, max(most, n)
	}
	return all, most
}

// fakeMsg is a delivered message; it counts its acks.
type fakeMsg struct {
	jetstream.Msg // no other word is ever said

	subject    string
	header     nats.Header
	data       []byte
	sequence   uint64
	deliveries uint64
	at         time.Time
	onAck      func()

	mu    sync.Mutex
	acked int
}

func (m *fakeMsg) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Stream: m.sequence}, NumDelivered: m.deliveries, Timestamp: m.at}, nil
}
func (m *fakeMsg) Subject() string      { return m.subject }
func (m *fakeMsg) Headers() nats.Header { return m.header }
func (m *fakeMsg) Data() []byte         { return m.data }
func (m *fakeMsg) Ack() error {
	if m.onAck != nil {
		m.onAck()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked++
	return nil
}

func (m *fakeMsg) acks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.acked
}

// jetStreamUnused stands where a test of one message never asks a server.
type jetStreamUnused struct{ jetstream.JetStream }

// rig is a worker between fakes.
type rig struct {
	*Worker
	t       *testing.T
	store   *fakeStore
	gateway *fakeGateway
	from    *origin

	mu    sync.Mutex
	steps []payments.Step
	fates []string
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, store: newFakeStore(), gateway: &fakeGateway{}}
	c := Config{
		JetStream: jetStreamUnused{}, Store: r.store, Batches: r.store, Clock: systemClock{}, Concurrency: 16, Lease: 10 * time.Second,
		PollInterval: 20 * time.Millisecond,
		OnStep: func(s payments.Step, _ payments.ID) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.steps = append(r.steps, s)
		},
		Observer: Observer{Message: func(_ payments.Lane, fate string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.fates = append(r.fates, fate)
		}},
	}
	var tokens atomic.Uint32
	c.NewToken = func() (token payments.Token) {
		binary.BigEndian.PutUint32(token[1:], tokens.Add(1))
		return token
	}
	c.Processor = &payments.Processor{
		Store: r.store, Gateway: r.gateway, Clock: systemClock{}, Namespace: "oncepay", Lease: c.Lease, CallTimeout: time.Second, TriesMax: 3,
		Backoff: payments.Backoff{First: time.Millisecond, Max: 10 * time.Millisecond, SoonMax: time.Millisecond}, OnStep: c.OnStep,
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	if r.Worker, err = New(c); err != nil {
		t.Fatal(err)
	}
	r.from = &origin{name: "S", created: time.Unix(100, 0), confirm: func() error { return nil }, pull: newFlow(r.Clock, newUnclaimed(), 1).begin(1<<20, false, &rest{})}
	return r
}

func (r *rig) sawFate(fate string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.fates, fate)
}

func testIntent(key string) payments.Intent {
	return payments.Intent{
		TenantID: "acme", IdempotencyKey: key, Amount: 9900, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_card_visa", OffSession: true,
	}.Normalized()
}

func intentJSON(key string) []byte {
	return []byte(`{"idempotency_key":"` + key + `","amount":9900,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`)
}

func newMsg(key string, deliveries uint64) *fakeMsg {
	return &fakeMsg{subject: "payments.intent.acme", data: intentJSON(key), sequence: 7, deliveries: deliveries, at: time.Unix(200, 0)}
}

// takes is a call to Stripe that takes so long: in a synctest bubble of its time, beside a real server, whose timers are real, of real time.
func takes(d time.Duration) func(context.Context, payments.Payment) {
	return func(context.Context, payments.Payment) { time.Sleep(d) }
}

// standstill is how long tests wait for anything: what takes longer has come to a stand, on the slowest machine too.
const standstill = 2 * time.Minute

// waitFor polls a condition for which there is no signal.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(standstill)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", standstill, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

var testSubjects = schema.Subjects{}
