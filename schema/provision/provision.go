package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/schema"
)

// racesMax is how often an object that another process creates or deletes under
// our hands is looked at again.
const racesMax = 10

// Ensure creates what is missing and updates what differs, the streams in their
// order and then the consumers. Repeating it changes nothing. While JetStream
// cannot be reached it waits until ctx ends: give ctx a deadline.
//
// It goes on after an object that it must leave as it is, and returns the errors
// of all, joined: ErrFixed for a setting that JetStream cannot change, ErrWouldLose
// for a change that could lose messages. What such an object has is untouched.
// An existing durable keeps its position.
func Ensure(ctx context.Context, js jetstream.JetStream, streams []schema.Stream, consumers []schema.Consumer) error {
	var errs []error
	for _, s := range streams {
		errs = append(errs, ensureStream(ctx, js, s))
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	for _, c := range consumers {
		errs = append(errs, ensureConsumer(ctx, js, c))
		if ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// StreamCreated is when the stream was made. A stream that was deleted and made
// again counts from sequence 1, so the pair of this time and a sequence, not the
// sequence alone, names a message. jetstream.ErrStreamNotFound is wrapped if there
// is none.
func StreamCreated(ctx context.Context, js jetstream.JetStream, name string) (time.Time, error) {
	info, err := streamInfo(ctx, js, name)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", streamObject(name), err)
	}
	return info.Created, nil
}

// Check lists what Ensure would create, change or refuse, and changes nothing.
func Check(ctx context.Context, js jetstream.JetStream, streams []schema.Stream, consumers []schema.Consumer) ([]Difference, error) {
	var out []Difference
	for _, s := range streams {
		found, err := checkStream(ctx, js, s)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for _, c := range consumers {
		found, err := checkConsumer(ctx, js, c)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func checkStream(ctx context.Context, js jetstream.JetStream, s schema.Stream) ([]Difference, error) {
	object := streamObject(s.Name)
	info, err := streamInfo(ctx, js, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return missing(object), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	want, err := streamConfig(s, info.Config)
	if err != nil {
		return nil, err
	}
	return compare(object, streamSettings, info.Config, want), nil
}

func checkConsumer(ctx context.Context, js jetstream.JetStream, c schema.Consumer) ([]Difference, error) {
	object := consumerObject(c)
	info, err := consumerInfo(ctx, js, c)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return missing(object), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object, err)
	}
	want, err := consumerConfig(c, info.Config)
	if err != nil {
		return nil, err
	}
	return compare(object, consumerSettings, info.Config, want), nil
}

func streamInfo(ctx context.Context, js jetstream.JetStream, name string) (info *jetstream.StreamInfo, err error) {
	err = patiently(ctx, streamObject(name), func(ctx context.Context) error {
		stream, err := js.Stream(ctx, name)
		if err == nil {
			info = stream.CachedInfo()
		}
		return err
	})
	return info, err
}

func consumerInfo(ctx context.Context, js jetstream.JetStream, c schema.Consumer) (info *jetstream.ConsumerInfo, err error) {
	err = patiently(ctx, consumerObject(c), func(ctx context.Context) error {
		consumer, err := js.Consumer(ctx, c.Stream, c.Durable)
		if err == nil {
			info = consumer.CachedInfo()
		}
		return err
	})
	return info, err
}

// ensureStream looks, then creates or updates; who loses a race to create looks
// again.
func ensureStream(ctx context.Context, js jetstream.JetStream, s schema.Stream) (err error) {
	object := streamObject(s.Name)
	for range racesMax {
		var info *jetstream.StreamInfo
		switch info, err = streamInfo(ctx, js, s.Name); {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			var want jetstream.StreamConfig
			if want, err = streamConfig(s, jetstream.StreamConfig{}); err != nil {
				return err
			}
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
		}
		if err = updateStream(ctx, js, s, info); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
	}
	return err
}

func updateStream(ctx context.Context, js jetstream.JetStream, s schema.Stream, info *jetstream.StreamInfo) error {
	object := streamObject(s.Name)
	want, err := streamConfig(s, info.Config)
	if err != nil {
		return err
	}
	differences := compare(object, streamSettings, info.Config, want)
	if len(differences) == 0 {
		return nil
	}
	err = errors.Join(
		fixed(streamSettings, differences, "give the setting its old value, or move to a new stream (another subject prefix)"),
		safeStreamUpdate(info, want),
	)
	if err != nil {
		return err
	}
	err = patiently(ctx, object, func(ctx context.Context) error {
		_, err := js.UpdateStream(ctx, want)
		return err
	})
	return wrap(object, "change "+names(differences), err)
}

// ensureConsumer is ensureStream for a durable.
func ensureConsumer(ctx context.Context, js jetstream.JetStream, c schema.Consumer) (err error) {
	object := consumerObject(c)
	for range racesMax {
		var info *jetstream.ConsumerInfo
		switch info, err = consumerInfo(ctx, js, c); {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			var want jetstream.ConsumerConfig
			if want, err = consumerConfig(c, jetstream.ConsumerConfig{}); err != nil {
				return err
			}
			err = patiently(ctx, object, func(ctx context.Context) error {
				_, err := js.CreateConsumer(ctx, c.Stream, want)
				return err
			})
			if errors.Is(err, jetstream.ErrConsumerExists) {
				continue
			}
			return wrap(object, "create", err)
		case err != nil:
			return fmt.Errorf("%s: %w", object, err)
		}
		if err = updateConsumer(ctx, js, c, info); !errors.Is(err, jetstream.ErrConsumerDoesNotExist) {
			return err
		}
	}
	return err
}

func updateConsumer(ctx context.Context, js jetstream.JetStream, c schema.Consumer, info *jetstream.ConsumerInfo) error {
	object := consumerObject(c)
	want, err := consumerConfig(c, info.Config)
	if err != nil {
		return err
	}
	differences := compare(object, consumerSettings, info.Config, want)
	if len(differences) == 0 {
		return nil
	}
	err = errors.Join(
		fixed(consumerSettings, differences, "delete the consumer once it has run empty, and provision again"),
		safeConsumerUpdate(object, info, want),
	)
	if err != nil {
		return err
	}
	err = patiently(ctx, object, func(ctx context.Context) error {
		_, err := js.UpdateConsumer(ctx, c.Stream, want)
		return err
	})
	return wrap(object, "change "+names(differences), err)
}

func wrap(object, what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", object, what, err)
}
