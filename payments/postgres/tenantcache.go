package postgres

import (
	"context"
	"slices"
	"sync"
)

// tenantCache remembers which tenants exist: they are never deleted. That one does not exist is not remembered, so that a new tenant may send
// at once.
type tenantCache struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

func (c *tenantCache) add(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]struct{}{}
	}
	for _, id := range ids {
		c.known[id] = struct{}{}
	}
}

// unknown lists those of ids, sorted and once each, that are not known.
func (c *tenantCache) unknown(ids []string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var missing []string
	for _, id := range ids {
		if _, ok := c.known[id]; !ok {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// missingTenants returns those of ids that do not exist, asking PostgreSQL at most once.
func (s *Store) missingTenants(ctx context.Context, ids []string) (map[string]bool, error) {
	unknown := s.tenants.unknown(ids)
	if len(unknown) == 0 {
		return nil, nil
	}
	rows, err := s.pool.Query(ctx, query("known_tenants"), unknown)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		s.tenants.add(id)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	missing := map[string]bool{}
	for _, id := range s.tenants.unknown(unknown) {
		missing[id] = true
	}
	return missing, nil
}
