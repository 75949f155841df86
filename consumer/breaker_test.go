package consumer

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// watched are breakers whose events are written down.
type watched struct {
	*breakers
	t    *testing.T
	told []string
	n    int
}

const testLease = 45 * time.Second

var testBackoff = payments.Backoff{First: 500 * time.Millisecond, Max: 5 * time.Minute}

func watch(t *testing.T, tries int, backoff payments.Backoff) *watched {
	v := &watched{t: t}
	v.breakers = newBreakers(tries, backoff, testLease, systemClock{}, func(int64) int64 { return 0 }, breakerEvents{
		opened: func(a payments.Account, _ payments.Observation, pause time.Duration) {
			v.told = append(v.told, fmt.Sprint(a.ID, " opened ", pause))
		},
		failed: func(a payments.Account, _ payments.Observation, pause time.Duration) {
			v.told = append(v.told, fmt.Sprint(a.ID, " failed ", pause))
		},
		closed: func(a payments.Account, after time.Duration) {
			v.told = append(v.told, fmt.Sprint(a.ID, " closed ", after))
		},
	})
	return v
}

// see shows n answers of a kind, each to another payment.
func (v *watched) see(kind payments.ObservationKind, n int) {
	for range n {
		v.n++
		v.seeFor(fmt.Sprint("payment ", v.n), kind)
	}
}

func (v *watched) seeFor(key string, kind payments.ObservationKind) {
	v.observed(payments.Payment{ID: payments.NewID("acme", key)}, payments.Observation{
		Kind: kind, Account: testAccount, Trouble: kind == payments.ObservedNoRecords,
	})
}

// probe sends a probe that is answered so.
func (v *watched) probe(kind payments.ObservationKind) {
	v.t.Helper()
	p, ok := v.enter(testAccount)
	if !ok || p == nil {
		v.t.Fatalf("no leave to probe: %v", v.told)
	}
	if _, second := v.enter(testAccount); second {
		v.t.Fatal("a second probe beside the first")
	}
	v.n++
	key := fmt.Sprint("probe ", v.n)
	p.with(payments.NewID("acme", key))
	v.seeFor("somebody else's", payments.ObservedUnclear)
	v.seeFor("somebody else's", payments.ObservedAnswer)
	if !v.holds(testAccount) {
		v.t.Fatal("an answer to somebody else ended the probe")
	}
	v.seeFor(key, kind)
	p.end()
}

func (v *watched) mustHaveTold(lines ...string) {
	v.t.Helper()
	if !slices.Equal(v.told, lines) {
		v.t.Fatalf("told %q, want %q", v.told, lines)
	}
}

func (v *watched) mustHold(want bool) {
	v.t.Helper()
	_, entered := v.enter(testAccount)
	if v.holds(testAccount) != want || (len(v.held()) > 0) != want || entered == want {
		v.t.Fatalf("holds %v, held %v, entered %v, want held back: %v; told %v", v.holds(testAccount), v.held(), entered, want, v.told)
	}
}

// What opens a breaker, and what does not.
func TestBreakerOpens(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		show  func(v *watched)
		opens bool
	}{
		{"four in a row", func(v *watched) { v.see(payments.ObservedUnclear, 4) }, false},
		{"five in a row", func(v *watched) { v.see(payments.ObservedUnclear, 5) }, true},
		{"five in a row, a minute apart", func(v *watched) {
			for range 5 {
				v.see(payments.ObservedNotSent, 1)
				time.Sleep(time.Minute)
			}
		}, true},
		{"one refusal", func(v *watched) { v.see(payments.ObservedUnauthorized, 1) }, true},
		{"one refusal among good answers", func(v *watched) {
			v.see(payments.ObservedAnswer, 100)
			v.see(payments.ObservedUnauthorized, 1)
		}, true},
		{"half of ten", func(v *watched) {
			for range 5 {
				v.see(payments.ObservedDecline, 1)
				v.see(payments.ObservedUnclear, 1)
			}
		}, true},
		{"half of ten, the last of them good", func(v *watched) {
			for range 5 {
				v.see(payments.ObservedUnclear, 1)
				v.see(payments.ObservedDecline, 1)
			}
			if len(v.told) != 1 || len(v.ready(payments.LaneBulk, 4)) != 0 {
				v.t.Errorf("told %v", v.told)
			}
		}, true},
		{"half of eight", func(v *watched) {
			for range 4 {
				v.see(payments.ObservedDecline, 1)
				v.see(payments.ObservedUnclear, 1)
			}
		}, false},
		{"half of ten, over a minute", func(v *watched) {
			for range 5 {
				v.see(payments.ObservedDecline, 1)
				v.see(payments.ObservedUnclear, 1)
				time.Sleep(12 * time.Second)
			}
		}, false},
		{"a third of hundreds", func(v *watched) {
			for range 100 {
				v.see(payments.ObservedAnswer, 2)
				v.see(payments.ObservedUnclear, 1)
			}
		}, false},
		{"limits, locks and refused cards", func(v *watched) {
			for range 20 {
				v.see(payments.ObservedRateLimited, 1)
				v.see(payments.ObservedLocked, 1)
				v.see(payments.ObservedInvalid, 1)
			}
		}, false},
		{"one payment's own bad luck", func(v *watched) {
			for range 50 {
				v.seeFor("unlucky", payments.ObservedUnclear)
				time.Sleep(100 * time.Millisecond)
			}
		}, false},
		{"one payment that is looked up and hangs, in turn", func(v *watched) {
			for range 50 {
				v.seeFor("unlucky", payments.ObservedRecords)
				v.seeFor("unlucky", payments.ObservedUnclear)
			}
		}, false},
		{"no connection, although for one payment", func(v *watched) {
			for range 5 {
				v.seeFor("unlucky", payments.ObservedNotSent)
			}
		}, true},
		{"a listing that failed for a hundred payments", func(v *watched) { v.see(payments.ObservedNoRecords, 100) }, false},
		{"five listings", func(v *watched) {
			for range 5 {
				v.see(payments.ObservedNoRecords, 100)
				time.Sleep(2 * time.Second)
			}
		}, true},
		{"what says nothing", func(v *watched) {
			v.see(payments.ObservedHeldBack, 20)
			v.see(payments.ObservedAccountUnknown, 20)
			v.see(payments.ObservedForeignAccount, 20)
		}, false},
		{"calls that a stopping process has ended", func(v *watched) {
			v.stop()
			v.see(payments.ObservedUnclear, 100)
		}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := watch(t, 20, testBackoff)
				c.show(v)
				if v.holds(testAccount) != c.opens || len(v.told) > 1 {
					t.Errorf("held back: %v; told %v", v.holds(testAccount), v.told)
				}
				if v.holds(payments.Account{ID: testAccount.ID, Livemode: true}) || v.holds(payments.Account{ID: "acct_2"}) {
					t.Error("another account, or the other mode, is held back")
				}
			})
		})
	}
}

// One probe at a time decides; the pause grows from a second to a minute, and begins anew once the account has worked for a while.
func TestBreakerProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := watch(t, 20, testBackoff)
		v.see(payments.ObservedNotSent, 500) // all that was on its way
		v.see(payments.ObservedAnswer, 500)
		want := []string{"acct_1 opened 1s"}
		v.mustHaveTold(want...)
		pause := time.Second
		for range 9 {
			time.Sleep(pause - 1)
			v.mustHold(true)
			time.Sleep(1)
			v.probe(payments.ObservedUnclear)
			pause = min(2*pause, time.Minute)
			want = append(want, fmt.Sprint("acct_1 failed ", pause))
		}
		v.mustHaveTold(want...)
		time.Sleep(pause)
		v.probe(payments.ObservedUnauthorized)
		time.Sleep(pause)
		v.probe(payments.ObservedDecline)
		if last := v.told[len(v.told)-1]; last != "acct_1 closed 6m3s" {
			t.Errorf("told %v", v.told)
		}
		v.mustHold(false)

		v.told = nil
		time.Sleep(time.Minute)
		v.see(payments.ObservedUnauthorized, 1) // soon after
		time.Sleep(time.Minute)
		v.probe(payments.ObservedAnswer)
		time.Sleep(time.Hour)
		v.see(payments.ObservedUnclear, 5)
		v.mustHaveTold("acct_1 opened 1m0s", "acct_1 closed 1m0s", "acct_1 opened 1s")
	})
}

// A probe that shows nothing, since there was no ticket or the process had none of its answers, is followed by another.
func TestProbeWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := watch(t, 20, testBackoff)
		v.see(payments.ObservedUnauthorized, 1)
		if list := v.ready(payments.LaneBulk, 4); len(list) != 0 {
			t.Fatalf("ready at once: %v", list)
		}
		time.Sleep(time.Second)
		for range 3 {
			if list := v.ready(payments.LaneBulk, 4); !slices.Equal(list, []payments.Account{testAccount}) {
				t.Fatalf("ready: %v", list)
			}
			p, ok := v.enter(testAccount)
			if !ok || len(v.ready(payments.LaneBulk, 4)) != 0 {
				t.Fatal("nobody may probe, or two may")
			}
			p.with(payments.NewID("acme", "held"))
			v.seeFor("held", payments.ObservedHeldBack)
			p.end()
		}
		p, _ := v.enter(testAccount)
		other, _ := v.enter(testAccount)
		p.end()
		other.end() // nil
		v.probe(payments.ObservedAnswer)
		p.end() // late, and of no effect
		v.mustHold(false)
	})
}

// A probe whose handler hangs is followed by another after a lease; an answer to one that has ended says nothing.
func TestProbeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := watch(t, 20, testBackoff)
		v.see(payments.ObservedUnclear, 5)
		time.Sleep(time.Second)
		hanging, ok := v.enter(testAccount)
		hanging.with(payments.NewID("acme", "hangs"))
		time.Sleep(testLease)
		if _, early := v.enter(testAccount); !ok || early || len(v.ready(payments.LaneInteractive, 9)) > 0 {
			t.Fatal("a second probe while the first may still be answered")
		}
		time.Sleep(time.Millisecond)
		if ready := v.ready(payments.LaneInteractive, 9); len(ready) != 1 {
			t.Fatalf("ready: %v", ready)
		}
		next, ok := v.enter(testAccount)
		if !ok {
			t.Fatal("a probe that hangs is the last one")
		}
		next.with(payments.NewID("acme", "next"))
		hanging.end()
		v.seeFor("hangs", payments.ObservedAnswer)
		if !v.holds(testAccount) {
			t.Fatal("the answer to a probe that was given up closed the breaker")
		}
		v.seeFor("next", payments.ObservedAnswer)
		v.mustHold(false)
	})
}

// Where all that is due are look-ups, each can last longer than a lease and is followed by another: the first that is answered well closes the breaker.
func TestProbesThatAreSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := watch(t, 20, testBackoff)
		v.see(payments.ObservedUnclear, 5)
		time.Sleep(time.Second)
		for i := range 3 {
			p, ok := v.enter(testAccount)
			if !ok {
				t.Fatal("no leave to probe")
			}
			p.with(payments.NewID("acme", fmt.Sprint("slow ", i)))
			defer p.end()
			time.Sleep(testLease + time.Millisecond)
		}
		v.seeFor("slow 1", payments.ObservedNoRecords)
		if !v.holds(testAccount) || len(v.told) != 1 {
			t.Fatalf("a probe that another has followed failed, and that counted: %v", v.told)
		}
		v.seeFor("slow 0", payments.ObservedRecords)
		v.mustHold(false)
	})
}

// With hundreds of accounts each has its turn.
func TestReadyTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := watch(t, 20, testBackoff)
		for i := range 10 {
			v.observed(payments.Payment{}, payments.Observation{Kind: payments.ObservedUnauthorized, Account: payments.Account{ID: fmt.Sprint("acct_", i)}})
		}
		time.Sleep(time.Second)
		seen := map[payments.Account]bool{}
		for range 3 {
			for _, a := range v.ready(payments.LaneInteractive, 4) {
				seen[a] = true
			}
			time.Sleep(time.Millisecond)
		}
		if len(seen) != 10 {
			t.Errorf("asked about %v", seen)
		}
	})
}

// The pauses follow the back-off where that is short, and no payment spends its last try before the breaker opens.
func TestBreakerSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tries       int
		max         time.Duration
		row         int
		first, most time.Duration
	}{
		{20, 5 * time.Minute, 5, time.Second, time.Minute},
		{3, 2 * time.Second, 2, 500*time.Millisecond + 1, 2 * time.Second},
		{1, 150 * time.Millisecond, 1, 37500*time.Microsecond + 1, 150 * time.Millisecond},
		{20, 0, 5, time.Second, time.Minute},
	} {
		b := newBreakers(c.tries, payments.Backoff{Max: c.max}, testLease, systemClock{}, nil, breakerEvents{})
		if b.row != c.row || b.first != c.first || b.most != c.most {
			t.Errorf("%+v: %d, %v, %v", c, b.row, b.first, b.most)
		}
	}
}
