package world

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/consumer/rewind"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema/provision"
)

// observer tells the mark of a worker's work.
func (v *Worker) observer() consumer.Observer {
	return consumer.Observer{
		Message: func(payments.Lane, string) { v.Worked() },
		Settled: func(payments.Lane, payments.Settlement, time.Duration) { v.Worked() },
		Taken:   func(payments.Lane, int) { v.Worked() },
		Breaker: func(_ payments.Account, open bool) { v.Tripped.Store(open) },
	}
}

// Worked tells the worker's mark that there is something new to be marked.
func (v *Worker) Worked() {
	if v.keeper != nil {
		v.keeper.Worked()
	}
}

// looking counts how often the keeper has read the database, whole.
type looking struct {
	*postgres.Store
	v *Worker
}

// Mark reads the mark and counts.
func (l looking) Mark(ctx context.Context) (payments.MarkState, error) {
	state, err := l.Store.Mark(ctx)
	if err == nil {
		l.v.Looks.Add(1)
	}
	return state, err
}

// keep keeps the worker's mark and runs rewinds until ctx ends. A runner that dies is followed by another one.
func (w *World) keep(ctx context.Context, running *sync.WaitGroup, v *Worker, store *postgres.Store, js jetstream.JetStream, gateway rewind.Stripe, onStep func(payments.RewindStep) bool) {
	w.Helper()
	if err := provision.EnsureBucket(ctx, js, w.Subjects.BucketMark(), 1); err != nil {
		w.Fatal(err)
	}
	log := w.Logs.Logger("mark")
	v.keeper = mark.NewKeeper(mark.Config{
		Store: looking{store, v}, Copy: mark.NewCopy(js, w.Subjects.BucketMark()), Gate: v.Mark, Floors: app.StreamFloors(js, w.Subjects), Every: 100 * time.Millisecond, Log: log,
	})
	running.Go(func() { _ = v.keeper.Run(ctx) })
	running.Go(func() {
		for ctx.Err() == nil {
			living, die := context.WithCancel(ctx)
			runner, err := app.NewRewinds(store, gateway, js, w.Subjects, rewind.Config{
				Clock: w.Clock, Settle: w.Times.Lease + 300*time.Millisecond, TriesMax: 20, Every: 50 * time.Millisecond, Pause: 100 * time.Millisecond,
				Hold: time.Second, Log: log, OnStep: func(s payments.RewindStep) {
					if onStep != nil && onStep(s) {
						die()
					}
				},
			})
			if err != nil {
				w.Error(err)
			} else {
				_ = runner.Run(living)
			}
			die()
		}
	})
}
