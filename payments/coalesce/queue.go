package coalesce

// slot is one item on its way: queued, then in a flush, then answered. Its waiter owns it and puts it
// back into the pool; done has room for one signal, so that answering never blocks.
type slot[Q, R any] struct {
	item   Q
	weight int
	res    Result[R]
	done   chan struct{}

	queued     bool // guarded by Group.mu; once false, the flush has the slot
	prev, next *slot[Q, R]
}

func (s *slot[Q, R]) answer(res Result[R]) {
	s.res = res
	s.done <- struct{}{}
}

// queue is a list of slots in order of arrival that lets one leave from the middle at once, so that
// waiters who leave cost nothing while a flush hangs.
type queue[Q, R any] struct {
	head, tail *slot[Q, R]
	len        int
}

func (l *queue[Q, R]) push(s *slot[Q, R]) {
	s.prev, s.next, s.queued = l.tail, nil, true
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.next = s
	}
	l.tail = s
	l.len++
}

func (l *queue[Q, R]) remove(s *slot[Q, R]) {
	if s.prev == nil {
		l.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next, s.queued = nil, nil, false
	l.len--
}

// take removes the longest run from the head that fits both limits, at least one slot if there is any.
func (l *queue[Q, R]) take(maxItems, maxWeight int) (batch []*slot[Q, R], weight int) {
	if l.len == 0 {
		return nil, 0
	}
	batch = make([]*slot[Q, R], 0, min(l.len, maxItems))
	for s := l.head; s != nil && len(batch) < maxItems; s = l.head {
		if maxWeight > 0 && len(batch) > 0 && s.weight > maxWeight-weight {
			break
		}
		l.remove(s)
		batch = append(batch, s)
		weight += s.weight
	}
	return batch, weight
}
