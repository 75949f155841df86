package mark_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/payments"
)

// database is one that tells its mark, and can be exchanged.
type database struct {
	mu     sync.Mutex
	state  payments.MarkState
	err    error
	since  time.Time // of the rewind that was begun
	begun  int
	floors map[string]payments.StreamFloor
	busy   bool // somebody else has counted within the last second
}

func (d *database) Mark(context.Context) (payments.MarkState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.err
}

func (d *database) CountMark(_ context.Context, atLeast int64, floors map[string]payments.StreamFloor) (int64, time.Time, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy || d.state.Counter < atLeast {
		return 0, time.Time{}, false, d.err
	}
	d.state.Counter++
	d.state.Counted, d.state.At, d.floors = true, d.state.Now, floors
	return d.state.Counter, d.state.Now, true, d.err
}

func (d *database) BeginRewind(_ context.Context, since time.Time, op payments.Operation) (payments.Rewind, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since, d.state.Rewind = since, 9
	d.begun++
	return payments.Rewind{ID: 9, Actor: op.Actor}, true, d.err
}

func (d *database) set(change func(*database)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// kept is a gate and its keeper, of a database and a bucket.
type kept struct {
	*bucket
	db     *database
	gate   *mark.Gate
	keeper *mark.Keeper
}

var floor = payments.StreamFloor{Sequence: 42}

func newKept(t *testing.T) *kept {
	t.Helper()
	k := &kept{bucket: newBucket(t), db: &database{state: payments.MarkState{Mark: payments.Mark{SystemID: "1", Timeline: 1}, Now: time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)}}}
	k.gate, k.keeper = k.process(k.db)
	return k
}

// process is another process beside it.
func (k *kept) process(db mark.Store) (*mark.Gate, *mark.Keeper) {
	log := slog.New(slog.DiscardHandler)
	gate := mark.NewGate(log)
	return gate, mark.NewKeeper(mark.Config{Store: db, Copy: k.copy(), Gate: gate, Log: log,
		Floors: func(context.Context) (map[string]payments.StreamFloor, error) {
			return map[string]payments.StreamFloor{"S": floor}, nil
		}})
}

// look lets the keeper look once, after some work.
func (k *kept) look() {
	k.t.Helper()
	k.keeper.Worked()
	if err := k.keeper.Look(context.Background()); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) wants(held string) {
	k.t.Helper()
	if got := k.gate.Held(); (held == "") != (got == "") || !strings.Contains(got, held) {
		k.t.Errorf("held: %q, want %q", got, held)
	}
}

// TestKeeperCounts while work is done, the copy after the database, and not without work.
func TestKeeperCounts(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.wants("not been compared")
	if err := k.keeper.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.wants("")
	if n, _ := k.read(); n != 1 || k.db.state.Counter != 1 || k.db.floors["S"] != floor {
		t.Errorf("begun at %d, %+v", n, k.db)
	}
	if err := k.keeper.Look(t.Context()); err != nil || k.db.state.Counter != 1 {
		t.Errorf("counted without work: %d, %v", k.db.state.Counter, err)
	}
	k.look()
	if n, _ := k.read(); n != 2 {
		t.Errorf("after work %d", n)
	}
	// What somebody else counted is counted later, and not forgotten.
	k.db.set(func(d *database) { d.busy = true })
	k.look()
	k.db.set(func(d *database) { d.busy = false })
	if err := k.keeper.Look(t.Context()); err != nil || k.db.state.Counter != 3 {
		t.Errorf("%d, %v", k.db.state.Counter, err)
	}
}

// TestGateCloses for whatever the database cannot show, and opens once somebody has said that it is right, in every process.
func TestGateCloses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*kept)
		says  string
	}{
		"restored":       {func(k *kept) { k.db.set(func(d *database) { d.state.Counter = 1 }) }, "behind its mark"},
		"empty":          {func(k *kept) { k.db.set(func(d *database) { d.state.Counter, d.state.Counted = 0, false }) }, "behind its mark"},
		"other system":   {func(k *kept) { k.db.set(func(d *database) { d.state.SystemID = "2" }) }, "another PostgreSQL cluster"},
		"older timeline": {func(k *kept) { k.db.set(func(d *database) { d.state.Timeline = 0 }) }, "behind its mark"},
		"copy lost":      {func(k *kept) { k.lose(); k.make() }, "the copy of the database's mark is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKept(t)
			for range 3 {
				k.look()
			}
			other, keeper := k.process(k.db)
			if err := keeper.Look(t.Context()); err != nil || other.Held() != "" {
				t.Fatalf("%q, %v", other.Held(), err)
			}
			c.spoil(k)
			// The connection that a process makes first shows it, before anybody uses it.
			other.Connected(t.Context(), k.db.Mark)
			if !strings.Contains(other.Held(), c.says) {
				t.Errorf("a new connection: %q", other.Held())
			}
			before := k.db.state.Counter
			k.look()
			k.wants(c.says)
			if k.db.state.Counter != before || k.db.begun != 0 {
				t.Errorf("the database was counted, or rewound: %+v", k.db)
			}
			m, err := k.copy().Accept(t.Context(), k.db.state.Mark)
			if err != nil {
				t.Fatal(err)
			}
			k.look()
			k.wants("behind its mark") // the copy is first, and the database not yet
			k.db.set(func(d *database) { d.state.Counter, d.state.Counted = m.Counter, true })
			k.look()
			k.wants("")
			if err := keeper.Look(t.Context()); err != nil || other.Held() != "" {
				t.Errorf("the other process: %q, %v", other.Held(), err)
			}
			if n, accepted := k.read(); n != m.Counter+1 || accepted != m.Accepted {
				t.Errorf("counted on at %d, %d", n, accepted)
			}
		})
	}
}

// TestCopyLostAfterAcceptances: whoever remembers a copy that had been accepted more often than the new one goes on counting all the same. A copy
// that stays behind would not show the next restore.
func TestCopyLostAfterAcceptances(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	accept := func() {
		k.db.set(func(d *database) { d.state.Now = d.state.Now.Add(time.Second); d.state.At = d.state.Now })
		m, err := k.copy().Accept(t.Context(), k.db.state.Mark)
		if err != nil {
			t.Fatal(err)
		}
		k.db.set(func(d *database) { d.state.Counter = m.Counter })
		k.look()
		k.wants("")
	}
	accept()
	accept()
	k.lose()
	k.make()
	k.look()
	k.wants("the copy of the database's mark is gone")
	accept()
	k.look()
	if n, _ := k.read(); n != k.db.state.Counter {
		t.Errorf("the copy is at %d, the database at %d", n, k.db.state.Counter)
	}
	k.db.set(func(d *database) { d.state.Counter-- })
	k.look()
	k.wants("behind its mark")
}

// TestGateWithoutAnswers: what cannot be read leaves the gate as it is, and closed at first.
func TestGateWithoutAnswers(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	away := errors.New("away")
	k.db.set(func(d *database) { d.err = away })
	if err := k.keeper.Look(t.Context()); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
	k.gate.Connected(t.Context(), k.db.Mark)
	k.wants("not been compared")
	k.db.set(func(d *database) { d.err = nil })
	k.look()
	k.wants("")
	k.db.set(func(d *database) { d.err = away })
	if err := k.keeper.Look(t.Context()); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
	k.wants("")
	// A process that remembers the mark sees a restore even while NATS is away.
	k.db.set(func(d *database) { d.err, d.state.Counter = nil, 0 })
	k.gate.Use(mark.NewCopy(brokenJetStream{k.js}, k.name))
	k.gate.Connected(t.Context(), k.db.Mark)
	k.wants("behind its mark")
}

// TestOthersCountWhileNATSIsAway: a process that does nothing itself remembers how far the others have come, although none of them can copy it, and sees a
// restore.
func TestOthersCountWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	idle, keeper := k.process(k.db)
	if err := keeper.Look(t.Context()); err != nil || idle.Held() != "" {
		t.Fatalf("%q, %v", idle.Held(), err)
	}
	idle.Use(mark.NewCopy(brokenJetStream{k.js}, k.name))
	k.db.set(func(d *database) { d.state.Counter = 200 })
	if err := keeper.Look(t.Context()); err != nil || idle.Held() != "" {
		t.Fatalf("%q, %v", idle.Held(), err)
	}
	k.db.set(func(d *database) { d.state.Counter = 150 })
	idle.Connected(t.Context(), k.db.Mark)
	if got := idle.Held(); !strings.Contains(got, "behind its mark") {
		t.Errorf("a new connection: %q", got)
	}
	if err := keeper.Look(t.Context()); err != nil || !strings.Contains(idle.Held(), "behind its mark") {
		t.Errorf("the next look: %q, %v", idle.Held(), err)
	}
}

// TestWhatWasSeenGivesWayToAnAcceptance: a process that has seen more than anybody could copy, while NATS was away, opens once somebody has accepted a restored
// database that stands lower than what it remembers.
func TestWhatWasSeenGivesWayToAnAcceptance(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	idle, keeper := k.process(k.db)
	if err := keeper.Look(t.Context()); err != nil || idle.Held() != "" {
		t.Fatalf("%q, %v", idle.Held(), err)
	}
	copied := mark.NewCopy(k.js, k.name)
	idle.Use(mark.NewCopy(brokenJetStream{k.js}, k.name))
	k.db.set(func(d *database) { d.state.Counter = 500 })
	if err := keeper.Look(t.Context()); err != nil || idle.Held() != "" {
		t.Fatalf("%q, %v", idle.Held(), err)
	}
	k.db.set(func(d *database) { d.state.Counter = 300 })
	state, err := k.db.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := copied.Accept(t.Context(), state.Mark)
	if err != nil || accepted.Counter >= 500 {
		t.Fatalf("%+v, %v", accepted, err)
	}
	k.db.set(func(d *database) { d.state.Counter = accepted.Counter })
	if err := keeper.Look(t.Context()); err != nil || !strings.Contains(idle.Held(), "behind its mark") {
		t.Errorf("while it cannot hear of it: %q, %v", idle.Held(), err)
	}
	idle.Use(copied)
	if err := keeper.Look(t.Context()); err != nil || idle.Held() != "" {
		t.Errorf("once it has heard of it: %q, %v", idle.Held(), err)
	}
	idle.Use(mark.NewCopy(brokenJetStream{k.js}, k.name))
	k.db.set(func(d *database) { d.state.Counter = accepted.Counter - 1 })
	if err := keeper.Look(t.Context()); err != nil || idle.Held() == "" {
		t.Errorf("restored once more: %q, %v", idle.Held(), err)
	}
}

// brokenJetStream answers for no bucket.
type brokenJetStream struct{ jetstream.JetStream }

func (brokenJetStream) KeyValue(context.Context, string) (jetstream.KeyValue, error) {
	return nil, nats.ErrTimeout
}

// TestPromotionAndRewind: a new timeline is rewound from before the older of both marks, by itself and once; a rewind holds until it is over.
func TestPromotionAndRewind(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	at := k.db.state.At
	k.db.set(func(d *database) { d.state.Timeline = 2 })
	k.look()
	if k.db.begun != 1 || !k.db.since.Equal(at.Add(-payments.RewindMargin)) {
		t.Errorf("%d rewinds since %s", k.db.begun, k.db.since)
	}
	k.look()
	k.wants("a rewind is running")
	k.gate.Connected(t.Context(), k.db.Mark)
	k.wants("a rewind is running")
	if k.db.begun != 1 {
		t.Errorf("%d rewinds", k.db.begun)
	}
	m, err := k.copy().Accept(t.Context(), k.db.state.Mark)
	if err != nil {
		t.Fatal(err)
	}
	k.db.set(func(d *database) { d.state.Rewind, d.state.Counter = 0, m.Counter })
	k.look()
	k.wants("")
	// One that cannot be begun holds all the same.
	k.db.set(func(d *database) { d.state.Timeline = 3 })
	k.gate.Connected(t.Context(), k.db.Mark)
	k.wants("a new timeline")
}

// TestPromotionByAClockThatIsBehind: marks that the old primary has dated ahead of the new one's time keep no rewind from beginning.
func TestPromotionByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	k.db.set(func(d *database) { d.state.Timeline, d.state.Now = 2, d.state.Now.Add(-time.Hour) })
	k.look()
	if k.db.begun != 1 || !k.db.since.Equal(k.db.state.Now.Add(-payments.RewindMargin)) {
		t.Errorf("%d rewinds since %s, now is %s", k.db.begun, k.db.since, k.db.state.Now)
	}
}

// TestKeeperLooksOnceMore when it is told to stop: what was done on the way to the end is marked.
func TestKeeperLooksOnceMore(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	k.look()
	counter, _ := k.read()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	k.keeper.Worked()
	if err := k.keeper.Run(ctx); err != nil {
		t.Fatal(err)
	}
	// What could not be copied on the first look is copied on the last.
	if n, _ := k.read(); n <= counter || n != k.db.state.Counter {
		t.Errorf("the copy is at %d, the database at %d, before %d", n, k.db.state.Counter, counter)
	}
}
