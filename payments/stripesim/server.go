package stripesim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is the simulator: an http.Handler for /v1 and /_sim. Serve it over
// HTTP/1.1; over HTTP/2, where connections are shared, the faults that reset
// or cut a connection end the stream instead.
type Server struct {
	opts   Options
	keys   atomic.Pointer[map[string]*Key]
	ids    idMaker
	book   book
	log    requestLog
	faults *faultQueue
	hung   gauge
	limits atomic.Pointer[Limits]
	idemp  atomic.Bool

	closing  chan struct{}
	gate     sync.Mutex // closed against new requests
	closed   bool
	inside   sync.WaitGroup
	closeErr error
}

// New returns a simulator, rebuilt from Options.Path if that file exists. It
// fails on impossible options and on a ledger file that it cannot read in full
// (a torn last line excepted), cannot write, or that another process has open.
// Close it when no server serves it any more.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: opts, ids: idMaker{salt: opts.Seed}, faults: newFaultQueue(opts.Seed), closing: make(chan struct{})}
	s.useKeys(opts.Keys)
	s.log.seen = map[string]struct{}{}
	s.limits.Store(&Limits{LatencyMS: int(opts.Latency / time.Millisecond)})
	s.idemp.Store(true)
	s.book = book{settle: opts.DebitSettle, clock: opts.Clock, accounts: map[string]*account{}, perPay: map[string]int{}, perRefund: map[string]int{}}
	if opts.Path != "" {
		s.book.journal, err = openJournal(opts.Path, opts.Seed, opts.Sync, opts.Logger, s.load)
		if err != nil {
			return nil, err
		}
		s.loaded()
	}
	s.book.ids = s.ids
	return s, nil
}

// load takes one record of the ledger file in.
func (s *Server) load(rec *record) error {
	switch {
	case rec.Header != nil:
		if rec.Header.Version != journalVersion {
			return fmt.Errorf("version %d is not understood", rec.Header.Version)
		}
		s.ids.salt = rec.Header.Salt
		return nil
	case rec.Offset != nil:
		s.book.offset = time.Duration(*rec.Offset)
		return nil
	}
	a := s.book.account(rec.Account)
	at := time.Unix(0, rec.At).UTC()
	if rec.Changed {
		if rec.Intent == nil {
			return errors.New("a changed PaymentIntent is missing")
		}
		s.book.apply(a, rec.Intent, rec.Charge, causeOf(rec.Request), at)
	}
	if rec.Refund != nil {
		if err := s.book.applyRefund(a, rec.Refund, causeOf(rec.Request), at); err != nil {
			return err
		}
	}
	a.save(rec.Saved)
	if r := rec.Request; r != nil {
		if r.Seq == 0 {
			return errors.New("a request has no number")
		}
		s.log.list = append(s.log.list, r)
		if rec.Stored != nil {
			return s.restoreKey(a, rec, at)
		}
	}
	return nil
}

func (s *Server) restoreKey(a *account, rec *record, at time.Time) error {
	e := &keyEntry{seq: rec.Request.Seq, at: at, answer: &answer{err: rec.Stored.Error, intent: rec.Intent, refund: rec.Refund, saved: rec.Saved}}
	if copy(e.print[:], rec.Stored.Print) != len(e.print) {
		return errors.New("a stored key has no fingerprint")
	}
	if e.answer.err != nil {
		e.answer.err.Status, e.answer.err.showIntent = rec.Stored.Status, rec.Stored.Shows
	} else if rec.Intent == nil && rec.Saved == nil && rec.Refund == nil {
		return errors.New("a stored answer has no object")
	}
	a.keys.restore(rec.Request.IdempotencyKey, e)
	return nil
}

// loaded counts the requests, which the file has in order of their end.
func (s *Server) loaded() {
	l := &s.log
	sort.Slice(l.list, func(i, j int) bool { return l.list[i].Seq < l.list[j].Seq })
	for _, r := range l.list {
		l.count(r)
		l.outcome(r)
		l.seq = r.Seq
	}
	l.arrived.set(len(l.list))
}

// ServeHTTP answers one request of Stripe's API, or of the simulator's control.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // the documented way to drop the connection
	}
	defer s.inside.Done()
	if strings.HasPrefix(r.URL.Path, "/_sim/") {
		s.control(w, r)
		return
	}
	s.api(w, r)
}

func (s *Server) enter() bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.closed {
		return false
	}
	s.inside.Add(1)
	return true
}

// Close frees hung and waiting calls without an answer, waits for all others
// to finish (Options.OnCommit included), and closes the ledger file. Later requests find their connection
// closed. Closing again returns the first result.
func (s *Server) Close() error {
	s.gate.Lock()
	first := !s.closed
	s.closed = true
	if first {
		close(s.closing)
	}
	s.gate.Unlock()
	s.inside.Wait()
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	if first {
		s.closeErr = s.book.journal.close()
	}
	return s.closeErr
}

// AddFault adds a rule at the end of the queue. The error says what is wrong
// with the rule.
func (s *Server) AddFault(r Rule) error { return s.faults.add(r) }

// ClearFaults drops all rules and lets hung calls have their answers.
func (s *Server) ClearFaults() { s.faults.clear() }

// SetKeys replaces the accepted keys, as when one is rolled; none means any
// test key. Requests under way keep theirs. The error says what is wrong.
func (s *Server) SetKeys(keys []Key) error {
	if err := checkKeys(keys); err != nil {
		return err
	}
	s.useKeys(keys)
	return nil
}

func (s *Server) useKeys(keys []Key) {
	m := make(map[string]*Key, len(keys))
	for _, k := range keys {
		m[k.Secret] = &k
	}
	s.keys.Store(&m)
}

// SetLimits replaces the limits; buckets start full.
func (s *Server) SetLimits(l Limits) error {
	if err := l.check(); err != nil {
		return err
	}
	s.limits.Store(&l)
	return nil
}

// SetIdempotency switches the key store on or off. Off, every valid POST is
// executed, and keys are only counted; stored answers are kept for later.
func (s *Server) SetIdempotency(on bool) { s.idemp.Store(on) }

// Now is the simulator's time.
func (s *Server) Now() time.Time { return s.book.time() }

// AdvanceClock moves the simulator's clock forward, for good: keys expire,
// bank debits settle, uncaptured authorisations lapse. It fails on a step
// backwards or over a year, and if the ledger file cannot be written.
func (s *Server) AdvanceClock(d time.Duration) error {
	if d < 0 || d > maxAdvance {
		return fmt.Errorf("stripesim: the clock can advance by 0 to %v, not %v", maxAdvance, d)
	}
	b := &s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	offset := b.offset + d
	ns := int64(offset)
	if offset < b.offset {
		return errors.New("stripesim: the clock cannot advance any further")
	}
	if err := b.journal.append(&record{Offset: &ns}); err != nil {
		return fmt.Errorf("stripesim: the clock stays: %w", err)
	}
	b.offset = offset
	b.tick(b.now())
	return nil
}

// pause waits d, or until Close. A client that goes away does not end it.
func (s *Server) pause(d time.Duration) bool {
	return sleep(context.Background(), s.closing, d)
}
