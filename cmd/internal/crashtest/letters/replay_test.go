package letters

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
)

// TestReplayedMessageIsChargedOnce: a message that ended every worker is replayed at once when that is mended, by two operators at the same time: it is
// charged once, under its producer's key, and no stream's window for duplicates swallows it. What has its outcome is not sent again.
func TestReplayedMessageIsChargedOnce(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	killer := w.Order("killer")
	w.Publish(killer)
	w.KillUntilBuried(killer, payments.StepBeforeAdmit)
	w.Start(world.WorkerOptions{Name: "mended"})
	if got := w.ReplayAll(2); got[payments.ReplaySucceeded] != 1 || len(got) != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.MustBeGood(1)
	if len(a.Charges) != 1 || w.Status(killer.ID()) != payments.StatusSucceeded {
		t.Errorf("%d charges; the order is %s", len(a.Charges), w.Status(killer.ID()))
	}
	if l := w.Letters(); len(l) != 1 || l[0].State != payments.DeadLetterReplayed || l[0].Replays != 1 {
		t.Errorf("dead letters: %+v", l)
	}
}

// TestReplayedADayLater: Stripe charged, and every worker ended before it could record that. A replay after Stripe has forgotten the key finds the
// charge and makes no second one; a replay of a payment that has its outcome asks Stripe nothing.
func TestReplayedADayLater(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	killer := w.Order("killer")
	w.Publish(killer)
	w.KillUntilBuried(killer, payments.StepBeforeRecord)
	if s := w.Status(killer.ID()); s != payments.StatusUnknown {
		t.Fatalf("it is %s, want unknown", s)
	}
	w.Clock.Advance(25 * time.Hour)
	w.Start(world.WorkerOptions{Name: "mended"})
	if got := w.ReplayAll(1); got[payments.ReplaySucceeded]+got[payments.ReplayAlreadySettled] != 1 {
		t.Errorf("results: %v", got)
	}
	a := w.MustBeGood(1)
	if len(a.Charges) != 1 || w.Status(killer.ID()) != payments.StatusSucceeded {
		t.Errorf("%d charges; the order is %s", len(a.Charges), w.Status(killer.ID()))
	}
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error { // as if its letter had been left open
		_, err := conn.Exec(ctx, "UPDATE dead_letters SET state = 'open'")
		return err
	})
	before := len(w.Sim.Ledger().Requests)
	if got := w.ReplayAll(1); got[payments.ReplayAlreadySettled] != 1 {
		t.Errorf("results of the settled one: %v", got)
	}
	if n := len(w.Sim.Ledger().Requests) - before; n != 0 {
		t.Errorf("%d requests to Stripe for a payment that has its outcome", n)
	}
}
