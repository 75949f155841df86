package ingress

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// fakeClock stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newFakeClock() *fakeClock { return &fakeClock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fakeStore keeps everything in memory by the rules of the ports. before, when set, is asked at the start of every call; an error is the answer.
type fakeStore struct {
	clock payments.Clock

	mu       sync.Mutex
	tenants  []string
	secrets  map[string]payments.APIKey
	rows     map[payments.BatchRef]payments.Payment // batches too
	batches  map[payments.BatchRef]payments.Batch
	timeline map[payments.BatchRef][]payments.Entry
	calls    map[string]int
	before   func(ctx context.Context, verb string) error
	admitted []payments.AdmitRequest

	followUps map[payments.BatchRef][]payments.ID // of each charge, in their order
	refunds   map[payments.BatchRef]string        // what Stripe calls them
	asked     []payments.FollowUpRequest
}

var errAway = payments.Errorf(payments.CodeUnavailable, "away")

func newFakeStore(clock payments.Clock) *fakeStore {
	return &fakeStore{
		clock: clock, tenants: []string{"acme", "globex"}, calls: map[string]int{}, secrets: map[string]payments.APIKey{},
		rows: map[payments.BatchRef]payments.Payment{}, batches: map[payments.BatchRef]payments.Batch{}, timeline: map[payments.BatchRef][]payments.Entry{},
		followUps: map[payments.BatchRef][]payments.ID{}, refunds: map[payments.BatchRef]string{},
	}
}

// begin notes a call; the lock is held from here on unless it returns an error.
func (s *fakeStore) begin(ctx context.Context, verb string) error {
	s.mu.Lock()
	s.calls[verb]++
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(ctx, verb); err != nil {
			return err
		}
	}
	s.mu.Lock()
	return nil
}

func (s *fakeStore) setBefore(f func(ctx context.Context, verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *fakeStore) count(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[verb]
}

func (s *fakeStore) stored() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rows)
}

func (s *fakeStore) addKey(secret, tenant string, scopes ...payments.Scope) payments.APIKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := payments.APIKey{ID: "key_" + secret, TenantID: tenant, Prefix: secret[:4], Scopes: scopes}
	s.secrets[secret] = k
	return k
}

func (s *fakeStore) revoke(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.secrets[secret]
	k.RevokedAt = s.clock.Now()
	s.secrets[secret] = k
}

func (s *fakeStore) APIKeyBySecret(ctx context.Context, secret string) (payments.APIKey, error) {
	if err := s.begin(ctx, "key"); err != nil {
		return payments.APIKey{}, err
	}
	defer s.mu.Unlock()
	k, there := s.secrets[secret]
	if !there || !k.Good(s.clock.Now()) {
		return payments.APIKey{}, payments.Errorf(payments.CodeNotFound, "no such key")
	}
	return k, nil
}

func (s *fakeStore) Admit(ctx context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	if err := s.begin(ctx, "admit"); err != nil {
		return payments.Admission{}, err
	}
	defer s.mu.Unlock()
	s.admitted = append(s.admitted, r)
	if row, there := s.rows[ref(r.Intent)]; there {
		if differs := payments.Differs(r.Intent, row.Intent); len(differs) > 0 {
			return payments.Admission{Verdict: payments.VerdictConflict, Payment: row, Differs: differs}, nil
		}
		return payments.Admission{Verdict: payments.VerdictExists, Payment: row}, nil
	}
	switch {
	case r.Refused != nil:
		return payments.Admission{Verdict: payments.VerdictRefused}, nil
	case !slices.Contains(s.tenants, r.Intent.TenantID):
		return payments.Admission{Verdict: payments.VerdictTenantUnknown}, nil
	case r.ExistingOnly:
		return payments.Admission{Verdict: payments.VerdictAbsent}, nil
	}
	return payments.Admission{Verdict: payments.VerdictStored, Payment: s.insertLocked(r.Intent, r.Lane, payments.StatusReceived, "")}, nil
}

func ref(i payments.Intent) payments.BatchRef {
	return payments.BatchRef{TenantID: i.TenantID, ID: i.ID()}
}

func (s *fakeStore) insertLocked(i payments.Intent, l payments.Lane, status payments.Status, batchID string) payments.Payment {
	now := s.clock.Now()
	p := payments.Payment{Intent: i, ID: i.ID(), Lane: l, Status: status, BatchID: batchID, CreatedAt: now, UpdatedAt: now, NextAttemptAt: now}
	s.rows[ref(i)] = p
	return p
}

// set changes a payment as a worker would.
func (s *fakeStore) set(tenant, key string, status payments.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := payments.BatchRef{TenantID: tenant, ID: payments.NewID(tenant, key)}
	p := s.rows[at]
	p.Status, p.Sequence, p.UpdatedAt, p.NextAttemptAt = status, p.Sequence+1, s.clock.Now(), time.Time{}
	if status.Final() {
		p.FinalizedAt = p.UpdatedAt
	}
	s.rows[at] = p
	s.timeline[at] = append(s.timeline[at], payments.Entry{Sequence: p.Sequence, At: p.UpdatedAt, Type: "oncepay.payment." + string(status), Status: status})
}

func (s *fakeStore) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	if err := s.begin(ctx, "batch"); err != nil {
		return payments.BatchAdmission{}, err
	}
	defer s.mu.Unlock()
	at := payments.BatchRef{TenantID: r.TenantID, ID: r.ID()}
	if row, there := s.rows[at]; there {
		batch, isBatch := s.batches[at]
		if !isBatch {
			return payments.BatchAdmission{Verdict: payments.VerdictConflict, Differs: payments.Differs(r.Intent(), row.Intent)}, nil
		}
		children := s.childrenLocked(batch)
		stored := make([]payments.Intent, len(children))
		for i, c := range children {
			stored[i] = c.Intent
		}
		if differs := r.Differs(batch.Parent, stored); len(differs) > 0 {
			return payments.BatchAdmission{Verdict: payments.VerdictConflict, Differs: differs}, nil
		}
		return payments.BatchAdmission{Verdict: payments.VerdictExists, Batch: batch, Children: children}, nil
	}
	switch {
	case r.Refused != nil:
		return payments.BatchAdmission{Verdict: payments.VerdictRefused}, nil
	case !slices.Contains(s.tenants, r.TenantID):
		return payments.BatchAdmission{Verdict: payments.VerdictTenantUnknown}, nil
	case r.ExistingOnly:
		return payments.BatchAdmission{Verdict: payments.VerdictAbsent}, nil
	}
	batch := payments.Batch{TenantID: r.TenantID, IdempotencyKey: r.IdempotencyKey, Parent: r.Parent, Count: len(r.Payments), CreatedAt: s.clock.Now()}
	s.batches[at] = batch
	s.insertLocked(r.Intent(), payments.LaneBulk, payments.StatusSucceeded, "")
	for _, child := range r.Children() {
		s.insertLocked(child, payments.LaneBulk, payments.StatusReceived, r.ID().Format(payments.KindBatch))
	}
	return payments.BatchAdmission{Verdict: payments.VerdictStored, Batch: batch, Children: s.childrenLocked(batch)}, nil
}

func (s *fakeStore) childrenLocked(b payments.Batch) (list []payments.Payment) {
	for i := range b.Count {
		key, err := payments.ChildKey(b.IdempotencyKey, i)
		if err != nil {
			panic(err)
		}
		list = append(list, s.rows[payments.BatchRef{TenantID: b.TenantID, ID: payments.NewID(b.TenantID, key)}])
	}
	return list
}

func (s *fakeStore) CompleteBatches(context.Context, []payments.BatchRef) (int, error) { return 0, nil }

func (s *fakeStore) OpenBatches(context.Context, payments.BatchRef, int) ([]payments.BatchRef, error) {
	return nil, nil
}

func (s *fakeStore) Find(ctx context.Context, tenantID string, id payments.ID) (payments.Payment, error) {
	if err := s.begin(ctx, "find"); err != nil {
		return payments.Payment{}, err
	}
	defer s.mu.Unlock()
	p, there := s.rows[payments.BatchRef{TenantID: tenantID, ID: id}]
	if !there {
		return payments.Payment{}, payments.Errorf(payments.CodeNotFound, "no such payment")
	}
	return p, nil
}

func (s *fakeStore) FindMany(ctx context.Context, tenants []string, ids []payments.ID) (list []payments.Payment, err error) {
	if err := s.begin(ctx, "find_many"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for i := range ids {
		if p, there := s.rows[payments.BatchRef{TenantID: tenants[i], ID: ids[i]}]; there {
			list = append(list, p)
		}
	}
	return list, nil
}

func (s *fakeStore) List(ctx context.Context, r payments.ListRequest) (page []payments.Payment, next string, err error) {
	if err := s.begin(ctx, "list"); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	skip, err := strconv.Atoi(cmp.Or(r.Cursor, "0"))
	if err != nil {
		return nil, "", &payments.Error{Code: payments.CodeInvalid, Field: "cursor", Message: "must be the next_cursor of an earlier page"}
	}
	for _, p := range s.rows {
		if p.TenantID == r.TenantID && p.Kind == payments.KindCharge && (r.Status == "" || p.Status == r.Status) && (r.Customer == "" || p.Customer == r.Customer) &&
			(r.IdempotencyKey == "" || p.IdempotencyKey == r.IdempotencyKey) {
			page = append(page, p)
		}
	}
	slices.SortFunc(page, func(a, b payments.Payment) int { return cmp.Compare(a.IdempotencyKey, b.IdempotencyKey) })
	page = page[min(skip, len(page)):]
	if len(page) > r.Limit {
		page, next = page[:r.Limit], strconv.Itoa(skip+r.Limit)
	}
	return page, next, nil
}

func (s *fakeStore) Timeline(ctx context.Context, tenantID string, id payments.ID) ([]payments.Entry, error) {
	if err := s.begin(ctx, "timeline"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.timeline[payments.BatchRef{TenantID: tenantID, ID: id}], nil
}

func (s *fakeStore) Batch(ctx context.Context, tenantID string, id payments.ID) (payments.BatchState, error) {
	if err := s.begin(ctx, "show_batch"); err != nil {
		return payments.BatchState{}, err
	}
	defer s.mu.Unlock()
	b, there := s.batches[payments.BatchRef{TenantID: tenantID, ID: id}]
	if !there {
		return payments.BatchState{}, payments.Errorf(payments.CodeNotFound, "no such batch")
	}
	return s.stateLocked(b), nil
}

func (s *fakeStore) stateLocked(b payments.Batch) payments.BatchState {
	state := payments.BatchState{Batch: b}
	for _, p := range s.childrenLocked(b) {
		state.Totals = append(state.Totals, payments.StatusTotal{Status: p.Status, Currency: p.Currency, Count: 1, Amount: p.Amount})
	}
	return state
}

func (s *fakeStore) Batches(ctx context.Context, r payments.BatchListRequest) (page []payments.BatchState, next string, err error) {
	if err := s.begin(ctx, "list_batches"); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if b.TenantID == r.TenantID && (r.Parent == "" || b.Parent == r.Parent) {
			page = append(page, s.stateLocked(b))
		}
	}
	slices.SortFunc(page, func(a, b payments.BatchState) int { return cmp.Compare(a.IdempotencyKey, b.IdempotencyKey) })
	return page, "", nil
}
