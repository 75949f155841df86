package consumer

import (
	"maps"
	"sync"
	"time"
)

const (
	// seldomEvery is how often the same thing is told.
	seldomEvery = time.Minute
	// seldomMax bounds how many things are remembered. What is more than that is not told: so many lines a minute tell it all.
	seldomMax = 1000
)

// seldom lets what happens to message after message be told once a minute.
type seldom struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// now reports whether it is time to tell.
func (s *seldom) now(what string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, told := s.last[what]; told && now.Sub(last).Abs() < seldomEvery {
		return false
	}
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	if len(s.last) >= seldomMax {
		maps.DeleteFunc(s.last, func(_ string, last time.Time) bool { return now.Sub(last).Abs() >= seldomEvery })
		if len(s.last) >= seldomMax {
			return false
		}
	}
	s.last[what] = now
	return true
}
