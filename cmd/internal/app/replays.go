package app

import (
	"github.com/oncepay/oncepay/consumer/deadletter"
	"github.com/oncepay/oncepay/schema"
)

// buildReplays makes the part that runs operators' replays. Every process with a worker has one.
func (v *service) buildReplays(subjects schema.Subjects) (err error) {
	v.replays, err = deadletter.New(deadletter.Config{Store: v.store, FollowUps: v.store, Batches: v.store, Replays: v.store, Clock: SystemClock{}, Subjects: subjects, Log: v.log})
	return err
}
