package postgres

import (
	"context"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestRefusedBefore: a message with a dead letter was refused, also once that is discarded, and is not once it has been replayed.
func TestRefusedBefore(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	origin := func(n uint64) payments.MessageOrigin {
		return payments.MessageOrigin{Stream: "PAYMENTS_INTENTS", StreamCreated: b.clock.Now(), Sequence: n, Subject: "payments.intent.acme"}
	}
	all := []payments.MessageOrigin{origin(1), origin(2), origin(3), origin(4)}
	for n, o := range all[:3] {
		l := payments.DeadLetter{TenantID: "acme", IdempotencyKey: "r", Reason: payments.ReasonInvalid, Message: "it was too much", Origin: o, Payload: []byte("{}"), PayloadLength: 2}
		if err := b.BuryMessage(ctx, l); err != nil {
			t.Fatal(n, err)
		}
	}
	b.exec("UPDATE dead_letters SET state = 'discarded' WHERE stream_seq = 2")
	b.exec("UPDATE dead_letters SET state = 'replayed' WHERE stream_seq = 3")
	got, err := b.RefusedBefore(ctx, all)
	if err != nil || len(got) != 2 || !got[all[0]] || !got[all[1]] {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := b.RefusedBefore(ctx, nil); err != nil || len(got) != 0 {
		t.Errorf("of none: %v, %v", got, err)
	}
}
