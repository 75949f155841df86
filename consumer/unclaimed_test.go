package consumer

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
)

func claimOf(tenant, key string) payments.Claim {
	return payments.Claim{Payment: payments.Payment{Intent: payments.Intent{TenantID: tenant}, ID: payments.NewID(tenant, key)}}
}

// The counts agree with a plain model of them, and who waits is told.
func TestUnclaimedProperty(t *testing.T) {
	t.Parallel()
	type ticket struct {
		tenant string
		pulled bool
		serial int
	}
	rapid.Check(t, func(t *rapid.T) {
		u := newUnclaimed()
		model := map[payments.ID]ticket{}
		serial := 0
		names := rapid.SampledFrom([]string{"acme", "globex", "initech"})
		keys := rapid.IntRange(0, 9)
		low := map[string]int{} // who asked to be told
		count := func(tenant string) (n int) {
			for _, m := range model {
				if m.tenant == tenant {
					n++
				}
			}
			return n
		}
		pulled := func() (n int) {
			for _, m := range model {
				if m.pulled {
					n++
				}
			}
			return n
		}
		// after checks the signals that a removal owes.
		after := func(before int) {
			if pulled() < before {
				select {
				case <-u.fewer:
				default:
					t.Fatal("the lane was not told that fewer wait")
				}
			}
			for tenant, l := range low {
				if count(tenant) <= l {
					select {
					case <-u.scout:
					default:
						t.Fatalf("the scout was not told of %s", tenant)
					}
					clear(low) // one signal stands for all
					return
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				tenant, k, p := names.Draw(t, "tenant"), key(keys.Draw(t, "key")), rapid.Bool().Draw(t, "pulled")
				id := payments.NewID(tenant, k)
				if _, there := model[id]; !there {
					serial++
					model[id] = ticket{tenant, p, serial}
				}
				u.add(tenant, id, p)
			},
			"taken": func(t *rapid.T) {
				tenant, k := names.Draw(t, "tenant"), key(keys.Draw(t, "key"))
				before := pulled()
				delete(model, payments.NewID(tenant, k))
				u.taken([]payments.Claim{claimOf(tenant, k), claimOf("hooli", "unheard of")})
				after(before)
			},
			"cleared": func(t *rapid.T) {
				mark := rapid.IntRange(0, serial).Draw(t, "mark")
				before := pulled()
				for id, m := range model {
					if m.serial <= mark {
						delete(model, id)
					}
				}
				u.cleared(uint64(mark))
				after(before)
			},
			"forget": func(t *rapid.T) {
				tenant := names.Draw(t, "tenant")
				before := pulled()
				for id, m := range model {
					if m.tenant == tenant {
						delete(model, id)
					}
				}
				u.forget(tenant)
				after(before)
			},
			"notify": func(t *rapid.T) {
				tenant, l := names.Draw(t, "tenant"), rapid.IntRange(0, 3).Draw(t, "low")
				low[tenant] = l
				u.notify(tenant, l)
				after(pulled())
			},
			"": func(t *rapid.T) {
				if u.pulledNow() != pulled() || u.all() != len(model) || u.mark() != uint64(serial) {
					t.Fatalf("%d of %d, want %d of %d", u.pulledNow(), u.all(), pulled(), len(model))
				}
				for _, tenant := range []string{"acme", "globex", "initech"} {
					if u.of(tenant) != count(tenant) {
						t.Fatalf("%s: %d, want %d", tenant, u.of(tenant), count(tenant))
					}
				}
				select { // leftovers of signals that stood for several
				case <-u.fewer:
				default:
				}
			},
		})
	})
}

// A tenant is doubted only when its newest ticket has not changed since it was last looked at.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	u := newUnclaimed()
	one, two := payments.NewID("acme", "1"), payments.NewID("acme", "2")
	u.add("acme", one, true)
	if d := u.doubtful(5); len(d) != 0 {
		t.Errorf("at once: %v", d)
	}
	u.add("acme", two, true)
	if d := u.doubtful(5); len(d) != 0 {
		t.Errorf("with a newer one: %v", d)
	}
	if d := u.doubtful(5); len(d) != 1 || d["acme"] != two {
		t.Errorf("%v", d)
	}
	if d := u.doubtful(0); len(d) != 0 {
		t.Errorf("more than asked for: %v", d)
	}
}
