package consumer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is published, delivered, purged and scouted between two listings: of every message that is ahead and that the scout has not had, the
// horizon knows where it may be. Only what came when as many of its tenant's messages went, between the same two listings, may be overlooked.
func TestHorizonProperty(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		f := newFakeAhead()
		var h horizon
		h.reset(f.created)
		had := map[uint64]bool{}
		listed, overlooked := uint64(0), map[uint64]bool{}
		counted := map[string]uint64{}
		names := []string{"a", "b", "c", "d"}
		name := rapid.SampledFrom(names)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					f.publish(name.Draw(t, "tenant"), nil)
				}
			},
			"deliver": func(t *rapid.T) {
				f.deliver(uint64(rapid.IntRange(int(f.delivered), int(f.sequence)).Draw(t, "to")))
			},
			"purge": func(t *rapid.T) {
				if len(f.messages) == 0 {
					return
				}
				m := f.messages[rapid.IntRange(0, len(f.messages)-1).Draw(t, "which")]
				f.remove(m.sequence)
			},
			"scout": func(t *rapid.T) {
				tenant := h.tenants[name.Draw(t, "tenant")]
				if tenant == nil || tenant.empty() {
					return
				}
				m, _ := f.next(ctx, tenant.tenant, tenant.low)
				if m == nil {
					tenant.nothing()
					return
				}
				had[m.Sequence] = true
				tenant.pass(m.Sequence)
			},
			"sweep": func(t *rapid.T) {
				if tenant := h.tenants[name.Draw(t, "tenant")]; tenant != nil && !tenant.swept {
					last, _ := f.last(ctx, tenant.tenant)
					tenant.high, tenant.swept = last, true
				}
			},
			"list": func(t *rapid.T) {
				before, _ := f.position(ctx)
				if rapid.Bool().Draw(t, "while listing") {
					f.publish(name.Draw(t, "tenant"), nil)
				}
				counts, _ := f.tenants(ctx)
				if rapid.Bool().Draw(t, "after listing") {
					f.publish(name.Draw(t, "tenant"), nil)
				}
				after, _ := f.position(ctx)
				for _, m := range f.messages {
					if m.sequence > listed && counts[m.tenant] == counted[m.tenant] {
						overlooked[m.sequence] = true
					}
				}
				listed, counted = before.last, counts
				h.list(before, after, counts)
				for _, tenant := range h.tenants {
					if open := slices.Contains(h.open, tenant); !open && !tenant.empty() || len(h.open) > len(h.tenants) {
						t.Fatalf("%+v is not open", tenant)
					}
				}
			},
			"": func(t *rapid.T) {
				for _, m := range f.messages {
					if had[m.sequence] || m.sequence <= f.delivered || m.sequence > listed || overlooked[m.sequence] {
						continue
					}
					tenant := h.tenants[m.tenant]
					if tenant == nil || m.sequence < tenant.low || m.sequence > tenant.high {
						t.Fatalf("message %d of %s is ahead of %d and overlooked: %+v", m.sequence, m.tenant, f.delivered, tenant)
					}
				}
			},
		})
	})
}

// A hundred thousand tenants cost memory as tenants do, and nothing at all once their messages are delivered.
func TestHorizonOfManyTenants(t *testing.T) {
	t.Parallel()
	var h horizon
	h.reset(time.Unix(0, 0))
	counts := map[string]uint64{}
	for i := range 100_000 {
		counts[fmt.Sprintf("tenant-%d", i)] = 3
	}
	at := position{last: 300_000, delivered: 300_000}
	h.list(at, at, counts)
	if len(h.open) != 100_000 {
		t.Errorf("the first listing knows of none: %d", len(h.open))
	}
	h.list(at, at, counts)
	if len(h.open) != 0 {
		t.Errorf("%d are open, and nothing is ahead", len(h.open))
	}
	counts["tenant-7"]++
	next := position{last: 300_001, delivered: 300_000}
	h.list(next, next, counts)
	if len(h.open) != 1 || h.open[0].low != 300_001 || h.open[0].high != 300_001 || !h.open[0].swept {
		t.Errorf("%d open", len(h.open))
	}
	clear(counts)
	h.list(next, next, counts)
	if len(h.tenants) != 0 || len(h.open) != 0 {
		t.Errorf("%d tenants are remembered after a purge", len(h.tenants))
	}
}
