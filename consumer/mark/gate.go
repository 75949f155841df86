package mark

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// readTimeout bounds a look at the copy.
const readTimeout = 2 * time.Second

// The reasons of a gate that is closed for no verdict.
const (
	notCompared = "the database has not been compared with its mark yet"
	rewinding   = "a rewind is running"
)

// Gate says whether anything may be sent. It is closed until the database has been compared for the first time. The zero Gate is not usable.
type Gate struct {
	log    *slog.Logger
	reason atomic.Pointer[string]

	turning sync.Mutex
	closed  uint64 // how often a new connection has closed it; under turning

	mu     sync.Mutex
	copied *Copy          // nil: not known yet
	known  *payments.Mark // the newest that this process has seen
}

// NewGate returns a gate that is closed.
func NewGate(log *slog.Logger) *Gate {
	g := &Gate{log: log}
	reason := notCompared
	g.reason.Store(&reason)
	return g
}

// Held says why nothing may be sent, "" when it may.
func (g *Gate) Held() string { return *g.reason.Load() }

// Use tells where the copy is.
func (g *Gate) Use(c *Copy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.copied = c
}

// Connected compares a database that somebody has just connected to, before the connection is used. It only ever closes the gate: a database that
// could not be read, or that does not fit, is looked at again by the Keeper, which opens it.
//
// The copy is read before the database: the other way round somebody else could count between the two, and the database seem behind.
func (g *Gate) Connected(ctx context.Context, read func(context.Context) (payments.MarkState, error)) {
	known, certain := g.newest(ctx)
	if !certain && known == nil {
		return // before the first comparison, and the gate is closed
	}
	database, err := read(ctx)
	if err != nil {
		return // nothing can be done on such a connection
	}
	if database.Rewind != 0 {
		g.close(rewinding)
	} else if v := g.compare(ctx, database, known); v.Holds() {
		g.close(v.Explain())
	}
}

func (g *Gate) close(reason string) {
	g.turning.Lock()
	defer g.turning.Unlock()
	g.closed++
	g.set(reason)
}

// closes is how often a new connection has closed the gate.
func (g *Gate) closes() uint64 {
	g.turning.Lock()
	defer g.turning.Unlock()
	return g.closed
}

// open opens the gate, unless a new connection has closed it since closes was asked: then it is another database than the one that was compared.
func (g *Gate) open(closes uint64) bool {
	g.turning.Lock()
	defer g.turning.Unlock()
	if g.closed != closes {
		return false
	}
	g.set("")
	return true
}

// compare compares a database with a copy that was read before it. Where there was none, and the database has been marked, somebody may have begun
// between the two; the copy is there before the mark is.
func (g *Gate) compare(ctx context.Context, database payments.MarkState, known *payments.Mark) payments.MarkVerdict {
	v := payments.CompareMark(database, known)
	if v == payments.MarkCopyLost {
		if again, _ := g.newest(ctx); again != nil {
			v = payments.CompareMark(database, again)
		}
	}
	return v
}

// newest is the newest mark that is known. certain: the copy was read.
func (g *Gate) newest(ctx context.Context) (known *payments.Mark, certain bool) {
	g.mu.Lock()
	copied := g.copied
	g.mu.Unlock()
	var read *payments.Mark
	if copied != nil {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		var err error
		read, err = copied.Read(ctx)
		certain = err == nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !certain:
		return g.known, false
	case read == nil: // it was lost: what this process remembers says nothing of what others have done since
		return nil, true
	}
	g.known = payments.NewerMark(g.known, read)
	return g.known, true
}

// remember notes a mark that this process has made, or seen in the database.
func (g *Gate) remember(m payments.Mark) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known = payments.NewerMark(g.known, &m)
}

// set closes the gate for a reason, or opens it with none.
func (g *Gate) set(reason string) {
	before := g.reason.Swap(&reason)
	switch {
	case *before == reason:
	case reason == "":
		g.log.Info("payments are sent: the database fits its mark")
	case reason == rewinding:
		g.log.Warn("nothing is sent to Stripe while a rewind is running")
	default:
		g.log.Error("nothing is sent to Stripe: " + reason)
	}
}
