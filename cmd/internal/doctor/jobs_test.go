package doctor

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// replayAndRewind has the process replay a dead letter, and then rewind, in the role of the process. The message that is replayed has
// its currency corrected.
func (w *world) replayAndRewind(js jetstream.JetStream) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	defer cancel()
	store, err := postgres.Open(ctx, w.values["ONCEPAY_DATABASE_URL"], postgres.Options{PoolSize: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Close(context.WithoutCancel(ctx))
	body := `{"idempotency_key":"slip","amount":500,"currency":"usdd","payment_method":"pm_card_visa"}`
	if _, err := js.Publish(ctx, w.values["ONCEPAY_SUBJECT_PREFIX"]+".intent.acme", []byte(body)); err != nil {
		w.t.Fatal(err)
	}
	w.awaitAcked(js, 4)
	key, op := "slip", payments.Operation{Actor: "test", Reason: "rights"}
	replay, err := store.CreateReplay(ctx, payments.NewReplay{Operation: op, Filter: payments.LetterFilter{IdempotencyKey: key}, Set: map[string]string{"currency": "usd"}})
	if err != nil {
		w.t.Fatal(err)
	}
	ended := func(what string, done func() (bool, error)) {
		w.t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			ok, err := done()
			if err != nil {
				w.t.Fatalf("%s: %v", what, err)
			}
			if ok {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				w.t.Fatalf("%s does not end", what)
			}
		}
	}
	ended("the replay", func() (bool, error) {
		r, err := store.Replay(ctx, replay.ID)
		return r.State == payments.ReplayCompleted, err
	})
	if p, err := store.Find(ctx, "acme", payments.NewID("acme", key)); err != nil || p.Status != payments.StatusSucceeded {
		w.t.Errorf("replayed: %s, %v", p.Status, err)
	}
	rewind, began, err := store.BeginRewind(ctx, time.Now().Add(-time.Hour), op)
	if err != nil || !began {
		w.t.Fatalf("%t, %v", began, err)
	}
	ended("the rewind", func() (bool, error) {
		r, err := store.Rewind(ctx, rewind.ID)
		if r.State == payments.RewindFailed || r.Detail != "" {
			w.t.Errorf("the rewind at %s: %s", r.Progress.Step, r.Detail)
		}
		return r.State != payments.RewindRunning, err
	})
	if r, err := store.Rewind(ctx, rewind.ID); err != nil || r.State != payments.RewindCompleted || r.Progress.Objects != 2 || r.Progress.Messages != 3 { // the one with a card number is erased
		w.t.Errorf("%+v, %v", r, err)
	}
}
