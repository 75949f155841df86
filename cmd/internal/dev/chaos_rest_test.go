package dev

import (
	"testing"
	"time"
)

// A run that works off its backlog may take as long as it takes; one that stands still, or goes round in circles, does not.
func TestHeadway(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	h := newHeadway(now, time.Minute)
	for left := int64(100); left > 90; left-- {
		if now = now.Add(50 * time.Second); h.note(left, now) {
			t.Fatalf("stuck although only %d are left", left)
		}
	}
	for i := range 6 {
		now = now.Add(10 * time.Second)
		if stuck := h.note(91+int64(i%3), now); stuck {
			t.Fatalf("stuck after %d0 s", i+1)
		}
	}
	if !h.note(91, now.Add(time.Second)) {
		t.Error("not stuck after more than a minute without less")
	}
}
