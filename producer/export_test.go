package producer

import "github.com/oncepay/oncepay/payments"

// AtomicFrom is the size from which a group is an atomic batch.
const AtomicFrom = atomicFrom

// Queued is how many calls wait in a lane's queue for the group under way.
func (p *Publisher) Queued(l payments.Lane) int { return p.laneOf(l).group.Len() }

// Inside is how many calls a lane has, queued or under way.
func (p *Publisher) Inside(l payments.Lane) int { return int(p.laneOf(l).calls.Load()) }

// Closing reports whether Close was called.
func (p *Publisher) Closing() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// Waiting is how many callers wait for room.
func (p *Publisher) Waiting() int { return p.room.queued() }
