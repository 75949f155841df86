package rewind

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// lostStore has a rewind that is somebody else's by now.
type lostStore struct {
	Store
	finished bool
}

func (*lostStore) Mark(context.Context) (payments.MarkState, error) { return payments.MarkState{}, nil }

func (*lostStore) GoOn(_ context.Context, r payments.Rewind, _ time.Duration) (payments.Rewind, error) {
	return r, payments.Errorf(payments.CodeTicketLost, "somebody else runs the rewind")
}

func (s *lostStore) FinishRewind(_ context.Context, r payments.Rewind, _ payments.RewindState, _ int64) (payments.Rewind, error) {
	s.finished = true
	return r, nil
}

// TestNothingIsAcceptedForSomebodyElse: whoever slept, and whose rewind is another's, neither writes the copy of the mark nor ends the rewind.
func TestNothingIsAcceptedForSomebodyElse(t *testing.T) {
	t.Parallel()
	store, written := &lostStore{}, false
	r := Runner{Config: Config{Store: store, Accept: func(_ context.Context, _ payments.Mark, still func() error) (int64, error) {
		if err := still(); err != nil {
			return 0, err
		}
		written = true
		return 1, nil
	}}}
	if _, err := r.accept(t.Context(), payments.Rewind{ID: 1}); !payments.TicketLost(err) || written || store.finished {
		t.Errorf("written %t, finished %t, %v", written, store.finished, err)
	}
}
