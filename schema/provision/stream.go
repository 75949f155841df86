package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/schema"
)

func streamObject(name string) string { return "stream " + name }

// streamSettings is everything about a stream that decides whether messages are
// kept, in the words of JetStream's API. Placement, mirrors, sources, compression
// and descriptions are the operator's and are left as they are.
var streamSettings = []setting[jetstream.StreamConfig]{
	{name: "subjects", value: func(c jetstream.StreamConfig) string { return list(c.Subjects) }},
	{name: "retention", fixed: true, value: func(c jetstream.StreamConfig) string { return c.Retention.String() }},
	{name: "storage", fixed: true, value: func(c jetstream.StreamConfig) string { return c.Storage.String() }},
	{name: "persist_mode", fixed: true, value: func(c jetstream.StreamConfig) string { return c.PersistMode.String() }},
	{name: "allow_msg_ttl", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.AllowMsgTTL) }},
	{name: "allow_msg_counter", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.AllowMsgCounter) }},
	{name: "deny_delete", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.DenyDelete) }},
	{name: "deny_purge", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.DenyPurge) }},
	{name: "sealed", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.Sealed) }},
	{name: "allow_msg_schedules", fixed: true, value: func(c jetstream.StreamConfig) string { return yes(c.AllowMsgSchedules) }},
	{name: "discard", value: func(c jetstream.StreamConfig) string { return c.Discard.String() }},
	{name: "discard_new_per_subject", value: func(c jetstream.StreamConfig) string { return yes(c.DiscardNewPerSubject) }},
	{name: "num_replicas", value: func(c jetstream.StreamConfig) string { return strconv.Itoa(c.Replicas) }},
	{name: "max_bytes", value: func(c jetstream.StreamConfig) string { return limit(c.MaxBytes) }},
	{name: "max_msgs", value: func(c jetstream.StreamConfig) string { return limit(c.MaxMsgs) }},
	{name: "max_msgs_per_subject", value: func(c jetstream.StreamConfig) string { return limit(c.MaxMsgsPerSubject) }},
	{name: "max_msg_size", value: func(c jetstream.StreamConfig) string { return limit(int64(c.MaxMsgSize)) }},
	{name: "max_age", value: func(c jetstream.StreamConfig) string { return c.MaxAge.String() }},
	{name: "duplicate_window", value: func(c jetstream.StreamConfig) string { return c.Duplicates.String() }},
	{name: "no_ack", value: func(c jetstream.StreamConfig) string { return yes(c.NoAck) }},
	{name: "allow_rollup_hdrs", value: func(c jetstream.StreamConfig) string { return yes(c.AllowRollup) }},
	{name: "allow_atomic", value: func(c jetstream.StreamConfig) string { return yes(c.AllowAtomicPublish) }},
	{name: "allow_direct", value: func(c jetstream.StreamConfig) string { return yes(c.AllowDirect) }},
}

func yes(b bool) string { return strconv.FormatBool(b) }

func list(subjects []string) string {
	return "[" + strings.Join(slices.Sorted(slices.Values(subjects)), " ") + "]"
}

// limit is a bound as text; JetStream takes 0 and -1 alike for none.
func limit(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

// streamConfig is base with everything that schema decides set.
func streamConfig(s schema.Stream, base jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	c := base
	c.Name, c.Subjects = s.Name, slices.Clone(s.Subjects)
	err := errors.Join(
		word("retention", s.Retention, &c.Retention),
		word("discard", s.Discard, &c.Discard),
		word("storage", s.Storage, &c.Storage),
	)
	c.Replicas = max(s.Replicas, 1)
	c.MaxBytes, c.MaxMsgs, c.MaxMsgSize, c.MaxAge = s.MaxBytes, s.MaxMsgs, s.MaxMsgSize, s.MaxAge
	c.Duplicates = s.DuplicateWindow
	c.AllowAtomicPublish, c.AllowDirect = s.AllowAtomicPublish, s.AllowDirect
	// What the sender of a message could make it vanish with, and what would let
	// an acknowledged one be lost, is off without a choice.
	c.MaxMsgsPerSubject, c.DiscardNewPerSubject = -1, false
	c.AllowMsgTTL, c.AllowRollup, c.NoAck, c.AllowMsgSchedules, c.AllowMsgCounter = false, false, false, false, false
	c.PersistMode = jetstream.DefaultPersistMode
	// Erasing a refused card number and trimming need these.
	c.DenyDelete, c.DenyPurge, c.Sealed = false, false, false
	if err != nil {
		return c, fmt.Errorf("%s: %w", streamObject(s.Name), err)
	}
	return c, nil
}

// word reads one of JetStream's enumerations from its own word for it.
func word(name, value string, into json.Unmarshaler) error {
	text, err := json.Marshal(value)
	if err == nil {
		err = into.UnmarshalJSON(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is not a word of JetStream's: %w", name, value, err)
	}
	return nil
}

// safeStreamUpdate refuses an update that could drop what the stream holds.
func safeStreamUpdate(info *jetstream.StreamInfo, want jetstream.StreamConfig) error {
	object, have, state := streamObject(want.Name), info.Config, info.State
	var errs []error
	refuse := func(name, change, remedy string) { errs = append(errs, wouldLose(object, name, change, remedy)) }
	// One tenth is left for what arrives between the look and the change.
	if want.MaxBytes > 0 && (have.MaxBytes <= 0 || want.MaxBytes < have.MaxBytes) && state.Bytes > uint64(want.MaxBytes)/10*9 {
		refuse("max_bytes", fmt.Sprintf("from %s to %s while %d bytes are stored", limit(have.MaxBytes), limit(want.MaxBytes), state.Bytes),
			"choose at least a tenth more than is stored, or trim the stream first")
	}
	if want.MaxMsgs > 0 && (have.MaxMsgs <= 0 || want.MaxMsgs < have.MaxMsgs) && state.Msgs > uint64(want.MaxMsgs)/10*9 {
		refuse("max_msgs", fmt.Sprintf("from %s to %s while %d messages are stored", limit(have.MaxMsgs), limit(want.MaxMsgs), state.Msgs),
			"choose a tenth more than is stored, or trim the stream first")
	}
	if want.MaxAge > 0 && (have.MaxAge <= 0 || want.MaxAge < have.MaxAge) && state.Msgs > 0 && state.FirstTime.Add(want.MaxAge).Before(info.TimeStamp) {
		refuse("max_age", fmt.Sprintf("from %v to %v while the oldest message is of %s", have.MaxAge, want.MaxAge, state.FirstTime.UTC().Format("2006-01-02T15:04:05Z")),
			"wait until it is younger, or trim the stream first")
	}
	if want.Replicas < have.Replicas {
		refuse("num_replicas", fmt.Sprintf("from %d to %d", have.Replicas, want.Replicas),
			"set the replicas to what the stream has, or lower them by hand with `nats stream edit`")
	}
	return errors.Join(errs...)
}
