package provision

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/schema"
)

// bucketConfig is a key-value bucket whose reads are answered by the stream's
// leader alone: a stale answer would say that a database is where it was. Its
// values are never dropped, whatever their age.
func bucketConfig(bucket string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: schema.StreamOfBucket(bucket), Subjects: []string{"$KV." + bucket + ".>"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, Replicas: max(replicas, 1),
		MaxMsgsPerSubject: 1, MaxMsgs: schema.Unlimited, MaxBytes: schema.Unlimited, MaxMsgSize: schema.Unlimited, Duplicates: schema.DuplicateWindow,
		AllowRollup: true, DenyDelete: true, AllowDirect: false,
	}
}

// EnsureBucket makes a key-value bucket if there is none, and brings its replicas
// to what the settings say. What is in it stays.
func EnsureBucket(ctx context.Context, js jetstream.JetStream, bucket string, replicas int) error {
	want := bucketConfig(bucket, replicas)
	object := "bucket " + bucket
	for range racesMax {
		info, err := streamInfo(ctx, js, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			err = patiently(ctx, object, func(ctx context.Context) error {
				_, err := js.CreateStream(ctx, want)
				return err
			})
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				continue
			}
			return wrap(object, "create", err)
		case err != nil:
			return fmt.Errorf("%s: %w", object, err)
		case info.Config.Replicas == want.Replicas && !info.Config.AllowDirect:
			return nil
		}
		changed := info.Config
		changed.Replicas, changed.AllowDirect = want.Replicas, false
		err = patiently(ctx, object, func(ctx context.Context) error {
			_, err := js.UpdateStream(ctx, changed)
			return err
		})
		return wrap(object, "change", err)
	}
	return fmt.Errorf("%s: others make and delete it at the same time", object)
}
