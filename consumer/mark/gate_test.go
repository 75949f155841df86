package mark

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// database is one that is exchanged for another while it is read.
type database struct {
	state payments.MarkState
	after func() // called once the state is known, before it arrives
}

func (d *database) Mark(context.Context) (payments.MarkState, error) {
	state := d.state
	if d.after != nil {
		d.after()
	}
	return state, nil
}

func (d *database) CountMark(context.Context, int64, map[string]payments.StreamFloor) (int64, time.Time, bool, error) {
	return 0, time.Time{}, false, nil
}

func (d *database) BeginRewind(context.Context, time.Time, payments.Operation) (payments.Rewind, bool, error) {
	return payments.Rewind{}, false, nil
}

// TestALookThatIsOvertakenOpensNothing: the process is stopped between reading the mark and acting on it, and the database is restored meanwhile. A new
// connection closes the gate; the look that was stopped knows only the database that is gone.
func TestALookThatIsOvertakenOpensNothing(t *testing.T) {
	t.Parallel()
	fits := payments.MarkState{Mark: payments.Mark{SystemID: "1", Timeline: 1, Counter: 5}, Counted: true}
	older := fits
	older.Counter = 3
	rewound := fits
	rewound.Rewind = 1
	for name, restored := range map[string]payments.MarkState{"an older database": older, "one that is being rewound": rewound} {
		gate, d := NewGate(slog.New(slog.DiscardHandler)), &database{state: fits}
		k := NewKeeper(Config{Store: d, Gate: gate, Log: slog.New(slog.DiscardHandler)})
		gate.remember(fits.Mark)
		look := func(what string, held bool) {
			if err := k.Look(t.Context()); err != nil || (gate.Held() != "") != held {
				t.Errorf("%s, %s: held %q, %v", name, what, gate.Held(), err)
			}
		}
		look("before", false)
		connect := func() {
			gate.Connected(t.Context(), func(context.Context) (payments.MarkState, error) { return restored, nil })
		}
		d.after = connect
		look("overtaken", true)
		d.state, d.after = restored, nil
		look("after it", true)
		d.state = fits
		look("put right", false)
	}
}
