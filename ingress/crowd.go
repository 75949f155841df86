package ingress

import "sync"

// crowd counts the shares of each API key's requests, from their coming until their answers are written, so that no caller takes all places, however
// many of its requests hang, nor all memory, however many of its answers it does not read.
type crowd struct {
	most int

	mu    sync.Mutex
	byKey map[string]int // shares of the keys that have any
}

func newCrowd(most int) *crowd { return &crowd{most: most, byKey: map[string]int{}} }

// enter counts a request of so many shares in, if there is room; leave counts it out.
func (c *crowd) enter(keyID string, shares int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.byKey[keyID]
	if n+shares > c.most {
		return false
	}
	c.byKey[keyID] = n + shares
	return true
}

func (c *crowd) leave(keyID string, shares int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.byKey[keyID]; n > shares {
		c.byKey[keyID] = n - shares
	} else {
		delete(c.byKey, keyID)
	}
}
