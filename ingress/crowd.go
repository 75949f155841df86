package ingress

import "sync"

// crowd counts the requests in flight of each API key, so that no caller, however many of its requests hang, takes all places.
type crowd struct {
	most int

	mu    sync.Mutex
	byKey map[string]int // keys that have requests in flight
}

func newCrowd(most int) *crowd { return &crowd{most: most, byKey: map[string]int{}} }

// enter counts a request in, if there is room; leave counts it out.
func (c *crowd) enter(keyID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byKey[keyID]
	if n >= c.most {
		return false
	}
	c.byKey[keyID] = n + 1
	return true
}

func (c *crowd) leave(keyID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.byKey[keyID]; n > 1 {
		c.byKey[keyID] = n - 1
	} else {
		delete(c.byKey, keyID)
	}
}
