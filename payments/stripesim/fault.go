package stripesim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The faults, as rules and the Oncepay-Sim-Fault header name them; slow is
// written with its milliseconds, as slow:250. The package comment says of each
// whether the request was executed and its answer stored.
const (
	FaultResetBefore      = "reset_before"
	FaultCommitThenHang   = "commit_then_hang"
	FaultCommitThenReset  = "commit_then_reset"
	FaultCommitThen500    = "commit_then_500"
	FaultCommitThen503    = "commit_then_503"
	FaultTruncateBody     = "truncate_body"
	FaultHTML502          = "html_502"
	FaultGarbage200       = "garbage_200"
	FaultSlow             = "slow"
	FaultInUse409         = "in_use_409"
	FaultRateLimit429     = "rate_limit_429"
	FaultLockTimeout429   = "lock_timeout_429"
	FaultUnauthorized401  = "unauthorized_401"
	FaultShouldRetryTrue  = "should_retry_true"
	FaultShouldRetryFalse = "should_retry_false"
)

var faultNames = map[string]bool{
	FaultResetBefore: true, FaultCommitThenHang: true, FaultCommitThenReset: true, FaultCommitThen500: true,
	FaultCommitThen503: true, FaultTruncateBody: true, FaultHTML502: true, FaultGarbage200: true, FaultInUse409: true,
	FaultRateLimit429: true, FaultLockTimeout429: true, FaultUnauthorized401: true, FaultShouldRetryTrue: true,
	FaultShouldRetryFalse: true,
}

// Rule injects a fault into the requests that it matches.
type Rule struct {
	Match Match   `json:"match"`
	Fault string  `json:"fault"`
	Times int     `json:"times,omitempty"` // requests to hit; 0 is until ClearFaults
	Rate  float64 `json:"rate,omitempty"`  // chance to hit each match, 0 < rate <= 1; 0 is always
}

// Match says which requests a rule is about. The zero value matches every POST
// under /v1.
type Match struct {
	Method   string            `json:"method,omitempty"`   // POST if empty
	Path     string            `json:"path,omitempty"`     // exact; any if empty
	Metadata map[string]string `json:"metadata,omitempty"` // all of these in the request's own form
	Nth      int               `json:"nth,omitempty"`      // begin with the nth match, counted from 1
}

// fault is a parsed fault; the zero value is none.
type fault struct {
	kind  string
	delay time.Duration // of slow
}

// name is the fault as it was written.
func (f fault) name() string {
	if f.kind == FaultSlow {
		return f.kind + ":" + strconv.FormatInt(f.delay.Milliseconds(), 10)
	}
	return f.kind
}

func faultKind(name string) string {
	kind, _, _ := strings.Cut(name, ":")
	return kind
}

var errFault = errors.New("unknown fault: must be slow:MILLISECONDS or one of " + strings.Join(slices.Sorted(maps.Keys(faultNames)), ", "))

func parseFault(name string) (fault, error) {
	if faultNames[name] {
		return fault{kind: name}, nil
	}
	if ms, ok := strings.CutPrefix(name, FaultSlow+":"); ok {
		n, err := strconv.Atoi(ms)
		if err != nil || n < 0 || time.Duration(n)*time.Millisecond > maxLatency {
			return fault{}, fmt.Errorf("fault slow wants milliseconds from 0 to %d, as slow:250", maxLatency.Milliseconds())
		}
		return fault{kind: FaultSlow, delay: time.Duration(n) * time.Millisecond}, nil
	}
	return fault{}, errFault
}

// sent is the status that goes out when the true answer's is status.
func (f fault) sent(status int) int {
	switch f.kind {
	case FaultCommitThenHang, FaultCommitThenReset:
		return 0
	case FaultHTML502:
		return 502
	case FaultGarbage200:
		return 200
	}
	return status
}

// late says whether the fault has its place after the execution.
func (f fault) late() bool {
	switch f.kind {
	case "", FaultResetBefore, FaultUnauthorized401, FaultRateLimit429, FaultInUse409, FaultLockTimeout429:
		return false
	}
	return true
}

// faultQueue is the rules, in the order they were added.
type faultQueue struct {
	size     atomic.Int32                  // of rules; spares requests the lock when there are none
	released atomic.Pointer[chan struct{}] // closed and replaced when hung calls are freed
	mu       sync.Mutex
	rules    []*liveRule
	random   *rand.Rand
}

type liveRule struct {
	Rule
	fault   fault
	matched int
	hit     int
}

func newFaultQueue(seed uint64) *faultQueue {
	q := &faultQueue{random: rand.New(rand.NewPCG(seed, saltRequest))}
	released := make(chan struct{})
	q.released.Store(&released)
	return q
}

func (r Rule) check() (fault, error) {
	switch {
	case r.Times < 0:
		return fault{}, fmt.Errorf("times is %d: use 1 or more, or leave it out", r.Times)
	case !(r.Rate >= 0 && r.Rate <= 1):
		return fault{}, fmt.Errorf("rate is %v: use more than 0 and at most 1, or leave it out", r.Rate)
	case r.Match.Nth < 0:
		return fault{}, fmt.Errorf("match.nth is %d: it counts from 1", r.Match.Nth)
	case r.Match.Path != "" && !strings.HasPrefix(r.Match.Path, "/v1/"):
		return fault{}, errors.New("match.path must begin with /v1/")
	}
	return parseFault(r.Fault)
}

func (q *faultQueue) add(r Rule) error {
	f, err := r.check()
	if err != nil {
		return err
	}
	if r.Match.Method == "" {
		r.Match.Method = "POST"
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rules = append(q.rules, &liveRule{Rule: r, fault: f})
	q.size.Store(int32(len(q.rules)))
	return nil
}

// clear drops all rules and frees the calls that hang.
func (q *faultQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rules = nil
	q.size.Store(0)
	released := make(chan struct{})
	close(*q.released.Swap(&released))
}

// hold returns the channel that frees calls that arrive now.
func (q *faultQueue) hold() <-chan struct{} { return *q.released.Load() }

// choose returns the fault of the first rule that hits. Every rule counts
// every match; a rule is spent by a hit.
func (q *faultQueue) choose(method, path string, pairs []pair) fault {
	if q.size.Load() == 0 {
		return fault{}
	}
	metadata := formMetadata(pairs)
	q.mu.Lock()
	defer q.mu.Unlock()
	var chosen fault
	for _, r := range q.rules {
		if !r.Match.matches(method, path, metadata) {
			continue
		}
		r.matched++
		if chosen.kind != "" || r.matched < r.Match.Nth || (r.Times > 0 && r.hit >= r.Times) {
			continue
		}
		if r.Rate > 0 && q.random.Float64() >= r.Rate {
			continue
		}
		r.hit++
		chosen = r.fault
	}
	return chosen
}

func (m Match) matches(method, path string, metadata map[string]string) bool {
	if !strings.EqualFold(m.Method, method) || (m.Path != "" && m.Path != path) {
		return false
	}
	for k, v := range m.Metadata {
		if got, ok := metadata[k]; !ok || got != v {
			return false
		}
	}
	return true
}
