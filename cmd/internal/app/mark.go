package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/consumer/rewind"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// rewindSlack is how much longer than a lease a rewind waits before it reads anything: processes notice it within a second or two.
const rewindSlack = 3 * time.Second

// buildMark makes the parts that notice a restored database, and that rewind it. Every process with a worker has them.
func (v *service) buildMark(subjects schema.Subjects) (err error) {
	copied := mark.NewCopy(v.js, subjects.BucketMark())
	v.keeper = mark.NewKeeper(mark.Config{Store: v.store, Copy: copied, Gate: v.gate, Floors: StreamFloors(v.js, subjects), Log: v.log})
	v.metrics.Gauge("held", "1 while nothing is sent to Stripe from this process: a restored database, or a rewind.", func() (float64, bool) {
		if v.gate.Held() != "" {
			return 1, true
		}
		return 0, true
	})
	v.rewinds, err = NewRewinds(v.store, v.accounts, v.js, subjects, rewind.Config{
		Clock: SystemClock{}, Settle: v.settings.Lease + rewindSlack, TriesMax: v.settings.MaxTries, Log: v.log,
	})
	return err
}

// NewRewinds returns the runner of rewinds on the given parts; of c those that are not given here count.
func NewRewinds(store *postgres.Store, gateway rewind.Stripe, js jetstream.JetStream, subjects schema.Subjects, c rewind.Config) (*rewind.Runner, error) {
	copied := mark.NewCopy(js, subjects.BucketMark())
	c.Store, c.Stripe, c.JetStream, c.Subjects = store, gateway, js, subjects
	c.Tenants = func(ctx context.Context) ([]string, error) {
		all, err := store.Tenants(ctx)
		var own []string
		for _, t := range all {
			if t.OwnWay() {
				own = append(own, t.ID)
			}
		}
		return own, err
	}
	c.Accept = func(ctx context.Context, m payments.Mark, still func() error) (int64, error) {
		accepted, err := copied.AcceptWhile(ctx, m, still)
		if err != nil {
			return 0, err
		}
		return accepted.Counter, nil
	}
	return rewind.New(c)
}

// OpenMark connects to the copy of the database's mark, and makes its bucket where that is gone. closing ends the connection.
func OpenMark(ctx context.Context, s Settings, name string) (copied *mark.Copy, closing func(), err error) {
	nc, js, err := ConnectNATSOnce(s, name)
	if err != nil {
		return nil, nil, err
	}
	subjects, settings := s.Streams()
	ctx, cancel := context.WithTimeout(ctx, provisionTimeout)
	defer cancel()
	if err := provision.EnsureBucket(ctx, js, subjects.BucketMark(), settings.Replicas); err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("NATS: %w", err)
	}
	return mark.NewCopy(js, subjects.BucketMark()), nc.Close, nil
}

// StreamFloors tells up to which message of each stream everything was acked, and so is in the database.
func StreamFloors(js jetstream.JetStream, subjects schema.Subjects) func(context.Context) (map[string]payments.StreamFloor, error) {
	return func(ctx context.Context) (map[string]payments.StreamFloor, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		floors := map[string]payments.StreamFloor{}
		for stream, durable := range map[string]string{subjects.StreamIntents(): schema.ConsumerIntent, subjects.StreamBulk(): schema.ConsumerBulk} {
			s, err := js.Stream(ctx, stream)
			if err != nil {
				return nil, err
			}
			c, err := s.Consumer(ctx, durable)
			if err != nil {
				return nil, err
			}
			floors[stream] = payments.StreamFloor{Created: s.CachedInfo().Created, Sequence: c.CachedInfo().AckFloor.Stream}
		}
		return floors, nil
	}
}

// notHeld is the check of readiness: a process that is held serves, and sends nothing.
func (v *service) notHeld(context.Context) error {
	if reason := v.gate.Held(); reason != "" {
		return errors.New(reason)
	}
	return nil
}
