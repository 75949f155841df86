package stripesim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Ledger is what really happened: the answer of GET /_sim/ledger.
type Ledger struct {
	Requests []Request `json:"requests"` // in order of arrival
	Charges  []Charge  `json:"charges"`  // money moved or authorised, never declines
	Refunds  []Refund  `json:"refunds"`
}

// Request is one HTTP attempt as it reached the server.
type Request struct {
	Seq            uint64    `json:"seq"` // from 1, in order of arrival
	RequestID      string    `json:"request_id"`
	Method         string    `json:"method"`
	Path           string    `json:"path"` // without the query
	Account        string    `json:"account"`
	IdempotencyKey string    `json:"idempotency_key"`
	BodySHA256     string    `json:"body_sha256"`    // hex, of the raw body
	Fault          string    `json:"fault"`          // the one that was applied, or empty
	Status         int       `json:"status"`         // that went out; 0 if in flight, reset, or held back by commit_then_hang
	Repeat         bool      `json:"repeat"`         // a POST under a key that an earlier POST carried
	Executed       bool      `json:"executed"`       // a POST that got as far as executing
	Replayed       bool      `json:"replayed"`       // answered from the key store
	PaymentIntent  string    `json:"payment_intent"` // that it touched
	At             time.Time `json:"at"`             // simulator's clock
}

// Charge is money moved or authorised. Amount is in minor units as Stripe
// counts them. An authorisation that was cancelled or expired stays listed.
type Charge struct {
	ID             string            `json:"id"`
	PaymentIntent  string            `json:"payment_intent"`
	Account        string            `json:"account"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Customer       string            `json:"customer"`
	Captured       bool              `json:"captured"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"` // by refunds that have not failed
	Metadata       map[string]string `json:"metadata"`
	IdempotencyKey string            `json:"idempotency_key"`
	At             time.Time         `json:"at"`
}

// Refund is money given back, or on its way. One that failed stays listed.
type Refund struct {
	ID             string            `json:"id"`
	PaymentIntent  string            `json:"payment_intent"`
	Charge         string            `json:"charge"`
	Account        string            `json:"account"`
	Amount         int64             `json:"amount"`
	Currency       string            `json:"currency"`
	Status         string            `json:"status"` // as it stands now
	Reason         string            `json:"reason"`
	Metadata       map[string]string `json:"metadata"`
	IdempotencyKey string            `json:"idempotency_key"`
	At             time.Time         `json:"at"` // of its making
}

// Summary counts the ledger: the answer of GET /_sim/summary. A payment is a
// pair of metadata oncepay_namespace and oncepay_payment; of refunds, so is a
// request for one.
type Summary struct {
	Requests       int            `json:"requests"`
	Posts          int            `json:"posts"`
	Repeats        int            `json:"repeats"` // POSTs under a key seen before
	Executed       int            `json:"executed"`
	Replayed       int            `json:"replayed"`
	PaymentIntents int            `json:"payment_intents"`
	Charges        int            `json:"charges"`
	Refunds        int            `json:"refunds"`
	DoubleCharges  int            `json:"double_charges"` // payments with more than one charge
	DoubleCharged  []string       `json:"double_charged"` // their oncepay_payment
	Unattributed   int            `json:"unattributed"`   // charges without oncepay_payment
	DoubleRefunds  int            `json:"double_refunds"` // requests for a refund that made more than one, whatever became of them
	DoubleRefunded []string       `json:"double_refunded"`
	StrayRefunds   int            `json:"unattributed_refunds"` // refunds without oncepay_payment
	FaultsInjected int            `json:"faults_injected"`
	Faults         map[string]int `json:"faults"` // injected, by kind (slow without its time)
	Hung           int            `json:"hung"`   // calls that commit_then_hang holds now
}

// requestLog is every attempt, with its counts kept as it goes.
type requestLog struct {
	mu       sync.Mutex
	list     []*Request
	seen     map[string]struct{} // account and key of every keyed POST
	counts   Summary
	seq      uint64
	arrived  gauge
	executed gauge
}

// arrive numbers the attempt and adds it; settle takes what it returns.
func (l *requestLog) arrive(r *Request, ids idMaker) *Request {
	l.mu.Lock()
	l.seq++
	r.Seq = l.seq
	r.RequestID = ids.request(r.Seq)
	l.count(r)
	stored := *r
	l.list = append(l.list, &stored)
	n := len(l.list)
	l.mu.Unlock()
	l.arrived.set(n)
	return &stored
}

// count is about what an attempt is on arrival. Call with mu held.
func (l *requestLog) count(r *Request) {
	l.counts.Requests++
	if r.Method != "POST" {
		return
	}
	l.counts.Posts++
	if r.IdempotencyKey == "" {
		return
	}
	id := r.Account + "\x00" + r.IdempotencyKey
	if _, r.Repeat = l.seen[id]; r.Repeat {
		l.counts.Repeats++
	} else {
		l.seen[id] = struct{}{}
	}
}

// settle writes down what became of the attempt, before its answer leaves.
func (l *requestLog) settle(stored *Request, r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*stored = r
	l.outcome(&r)
}

// outcome is about what became of an attempt. Call with mu held.
func (l *requestLog) outcome(r *Request) {
	if r.Executed {
		l.counts.Executed++
		l.executed.set(l.counts.Executed)
	}
	if r.Replayed {
		l.counts.Replayed++
	}
	if r.Fault != "" {
		if l.counts.Faults == nil {
			l.counts.Faults = map[string]int{}
		}
		l.counts.Faults[faultKind(r.Fault)]++
		l.counts.FaultsInjected++
	}
}

// Ledger returns a copy of the ledger, in order of arrival and of commit.
func (s *Server) Ledger() Ledger {
	s.book.time() // what is due settles first
	var l Ledger
	s.log.mu.Lock()
	l.Requests = make([]Request, len(s.log.list))
	for i, r := range s.log.list {
		l.Requests[i] = *r
	}
	s.log.mu.Unlock()
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	l.Charges = append([]Charge{}, s.book.charges...)
	for i := range l.Charges {
		l.Charges[i].Metadata = copied(l.Charges[i].Metadata)
	}
	l.Refunds = append([]Refund{}, s.book.refunds...)
	for i := range l.Refunds {
		l.Refunds[i].Metadata = copied(l.Refunds[i].Metadata)
	}
	return l
}

func copied(metadata map[string]string) map[string]string {
	m := map[string]string{}
	maps.Copy(m, metadata)
	return m
}

// Summary returns the counts of the ledger.
func (s *Server) Summary() Summary {
	s.book.time()
	s.log.mu.Lock()
	sum := s.log.counts
	sum.Faults = map[string]int{}
	maps.Copy(sum.Faults, s.log.counts.Faults)
	s.log.mu.Unlock()
	sum.Hung = s.hung.get()
	b := &s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	sum.PaymentIntents, sum.Charges, sum.Unattributed = b.intents, len(b.charges), b.strays
	sum.DoubleCharges = len(b.doubled)
	sum.DoubleCharged = append([]string{}, b.doubled...)
	slices.Sort(sum.DoubleCharged)
	sum.Refunds, sum.StrayRefunds, sum.DoubleRefunds = len(b.refunds), b.strayRefunds, len(b.refundedTwice)
	sum.DoubleRefunded = append([]string{}, b.refundedTwice...)
	slices.Sort(sum.DoubleRefunded)
	return sum
}

// WaitRequests waits until at least n attempts have reached the server since
// its ledger began. The error is the context's.
func (s *Server) WaitRequests(ctx context.Context, n int) error { return s.log.arrived.wait(ctx, n) }

// WaitExecuted waits until at least n POSTs have been executed since the
// ledger began; they are in the ledger then, whatever their answers do.
func (s *Server) WaitExecuted(ctx context.Context, n int) error { return s.log.executed.wait(ctx, n) }

// WaitHung waits until commit_then_hang holds at least n calls at once.
func (s *Server) WaitHung(ctx context.Context, n int) error { return s.hung.wait(ctx, n) }

// gauge is a number that can be waited for.
type gauge struct {
	mu      sync.Mutex
	n       int
	waiters map[chan struct{}]int
}

func (g *gauge) set(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > g.n { // late callers bring older counts
		g.change(n)
	}
}

func (g *gauge) add(d int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.change(g.n + d)
}

func (g *gauge) change(n int) {
	g.n = n
	for ch, want := range g.waiters {
		if n >= want {
			close(ch)
			delete(g.waiters, ch)
		}
	}
}

func (g *gauge) get() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

func (g *gauge) wait(ctx context.Context, n int) error {
	g.mu.Lock()
	if g.n >= n {
		g.mu.Unlock()
		return nil
	}
	if g.waiters == nil {
		g.waiters = map[chan struct{}]int{}
	}
	ch := make(chan struct{})
	g.waiters[ch] = n
	g.mu.Unlock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		g.mu.Lock()
		delete(g.waiters, ch)
		g.mu.Unlock()
		return ctx.Err()
	}
}
