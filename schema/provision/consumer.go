package provision

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/schema"
)

func consumerObject(c schema.Consumer) string { return "consumer " + c.Stream + "/" + c.Durable }

// consumerSettings is everything about a durable that decides who gets a message
// and when again, in the words of JetStream's API. A pause is the operator's.
var consumerSettings = []setting[jetstream.ConsumerConfig]{
	{name: "deliver_subject", fixed: true, value: func(c jetstream.ConsumerConfig) string { return strconv.Quote(c.DeliverSubject) }},
	{name: "deliver_policy", fixed: true, value: func(c jetstream.ConsumerConfig) string { return c.DeliverPolicy.String() }},
	{name: "ack_policy", fixed: true, value: func(c jetstream.ConsumerConfig) string { return c.AckPolicy.String() }},
	{name: "replay_policy", fixed: true, value: func(c jetstream.ConsumerConfig) string { return c.ReplayPolicy.String() }},
	{name: "mem_storage", fixed: true, value: func(c jetstream.ConsumerConfig) string { return yes(c.MemoryStorage) }},
	{name: "filter_subjects", value: func(c jetstream.ConsumerConfig) string { return list(filters(c)) }},
	{name: "ack_wait", value: func(c jetstream.ConsumerConfig) string { return c.AckWait.String() }},
	{name: "backoff", value: func(c jetstream.ConsumerConfig) string { return fmt.Sprint(c.BackOff) }},
	{name: "max_deliver", value: func(c jetstream.ConsumerConfig) string { return limit(int64(c.MaxDeliver)) }},
	{name: "max_ack_pending", value: func(c jetstream.ConsumerConfig) string { return limit(int64(c.MaxAckPending)) }},
	{name: "inactive_threshold", value: func(c jetstream.ConsumerConfig) string { return c.InactiveThreshold.String() }},
	{name: "headers_only", value: func(c jetstream.ConsumerConfig) string { return yes(c.HeadersOnly) }},
}

// filters is the consumer's filter, whichever of its two places it stands in.
func filters(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return c.FilterSubjects
}

// consumerConfig is base with everything that schema decides set.
func consumerConfig(s schema.Consumer, base jetstream.ConsumerConfig) (jetstream.ConsumerConfig, error) {
	c := base
	c.Name, c.Durable = s.Durable, s.Durable
	c.FilterSubject, c.FilterSubjects = "", slices.Clone(s.FilterSubjects)
	if len(s.FilterSubjects) == 1 {
		c.FilterSubject, c.FilterSubjects = s.FilterSubjects[0], nil
	}
	err := errors.Join(
		word("ack_policy", s.AckPolicy, &c.AckPolicy),
		word("deliver_policy", s.DeliverPolicy, &c.DeliverPolicy),
		word("replay_policy", s.ReplayPolicy, &c.ReplayPolicy),
	)
	c.AckWait, c.MaxDeliver, c.MaxAckPending = s.AckWait, s.MaxDeliver, s.MaxAckPending
	// A back-off's first entry would replace ack_wait; a durable that its own
	// inactivity deletes would start again at the first message.
	c.BackOff, c.InactiveThreshold = nil, time.Duration(0)
	c.DeliverSubject, c.HeadersOnly, c.MemoryStorage = "", false, false
	if err != nil {
		return c, fmt.Errorf("%s: %w", consumerObject(s), err)
	}
	return c, nil
}

// safeConsumerUpdate refuses an update that could make the durable pass messages
// over: a filter is only looked at for messages after the last one delivered.
// To take the filter away passes over nothing that it has not already.
func safeConsumerUpdate(object string, info *jetstream.ConsumerInfo, want jetstream.ConsumerConfig) error {
	if len(filters(want)) == 0 {
		return nil
	}
	if have := list(filters(info.Config)); have != list(filters(want)) && info.Delivered.Stream > 0 {
		return wouldLose(object, "filter_subjects", fmt.Sprintf("from %s to %s after deliveries up to sequence %d", have, list(filters(want)), info.Delivered.Stream),
			"let the consumer run empty, delete it, and provision again")
	}
	return nil
}
