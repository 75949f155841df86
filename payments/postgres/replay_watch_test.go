package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestTwoWatchOneReplay: of two dead letters of one payment, whose results two processes find at the same time, one has succeeded: whoever comes second
// waits for the first, and then sees what came of it.
func TestTwoWatchOneReplay(t *testing.T) {
	t.Parallel()
	b := open(t)
	paid := b.claim("paid")
	b.record(paid, succeeded(paid.Payment), 0)
	b.message("dl_1", "paid", "{}", payments.ReasonInvalid, 1)
	b.message("dl_2", "paid", "{}", payments.ReasonInvalid, 2)
	replay := b.newReplay(payments.NewReplay{})
	issue := func(letter string) {
		b.exec(`UPDATE replay_items SET issued_at = $2, payment_id = $3, tenant_id = 'acme' WHERE letter_id = $1`, letter, b.clock.Now(), paid.Payment.ID[:])
		b.exec(`UPDATE dead_letters SET state = 'replayed' WHERE id = $1`, letter)
	}
	issue("dl_1")
	statement := func(name string) string { return strings.ReplaceAll(query(name), "$1", "NULL") }
	b.besides(func() { // the first has found its result and not committed it
		issue("dl_2")
		if n, err := b.WatchReplays(context.Background()); err != nil || n != 1 {
			t.Errorf("the second finished %d, %v", n, err)
		}
	}, statement("lock_watching"), statement("watch_replays"))
	items := b.items(replay.ID)
	if items["dl_1"].Result != payments.ReplaySucceeded || items["dl_2"].Result != payments.ReplayAlreadySettled {
		t.Errorf("%s and %s; want that one has succeeded, and the other was settled by it", items["dl_1"].Result, items["dl_2"].Result)
	}
}
