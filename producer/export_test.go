package producer

import "github.com/oncepay/oncepay/payments"

// AtomicFrom is the size from which a group is an atomic batch.
const AtomicFrom = atomicFrom

// Queued is how many calls wait in a lane's queue for the group under way.
func (p *Publisher) Queued(l payments.Lane) int { return p.laneOf(l).group.Len() }

// Waiting is how many callers wait for room.
func (p *Publisher) Waiting() int {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	return p.room.line.Len()
}
