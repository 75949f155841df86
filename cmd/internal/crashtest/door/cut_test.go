package door

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// commitBind is what stands in the message by which a transaction is committed: the name of the prepared statement, which is made of its text.
var commitBind = func() []byte {
	sum := sha256.Sum256([]byte("commit"))
	return []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
}()

// TestDoorDiesAtCommit: of an API that accepts a payment or a batch, PostgreSQL gets the commit, or does not, and then nothing is heard of that
// process any more. Its client repeats the request at another one, and is told rightly whether it had been accepted.
func TestDoorDiesAtCommit(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]devstacktest.Action{"committed": devstacktest.ForwardThenCut, "not committed": devstacktest.Cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, world.OutageTimes)
			watchCompletions(w)
			healthy := w.SpawnDoor().Address()
			c := w.NewCaller()
			parcels := []world.Parcel{w.Single("order-1"), w.BatchOf("batch-1", 40), w.Single("order-2"), w.BatchOf("batch-2", 1)}
			var doors sync.WaitGroup
			for _, p := range parcels {
				doors.Go(func() {
					dieAtCommit(c, p, action)
					got := c.Insist(p, "", func() string { return healthy })
					if committed := action == devstacktest.ForwardThenCut; got.Replayed != committed {
						t.Errorf("%s: a repeat: %t, and it was committed: %t", p.Key, got.Replayed, committed)
					}
				})
			}
			doors.Wait()
			mustPay(w, 0, parcels...)
			mustHaveWitnessed(w, 2)
		})
	}
}

// dieAtCommit sends the request to a door of its own that dies with the request's commit.
func dieAtCommit(c *world.Caller, p world.Parcel, action devstacktest.Action) {
	c.Helper()
	proxy := devstacktest.NewProxy(c, c.DSN)
	addr, end := c.OpenDoor(devstacktest.Via(c, c.DSN, proxy.Addr()), 2*time.Second)
	defer end()
	var dead atomic.Bool
	proxy.OnClientData(func(chunk []byte) devstacktest.Action {
		switch {
		case dead.Load():
			return devstacktest.Cut // of a dead process nothing comes any more
		case bytes.Contains(chunk, commitBind) && dead.CompareAndSwap(false, true):
			return action
		}
		return devstacktest.Forward
	})
	c.ExpectParcel(p)
	for !dead.Load() && !c.Failed() { // a machine that is busy may well be answered 503 before it comes to that
		if got, err := c.Send(context.Background(), addr, p, ""); err == nil && got.Status != http.StatusServiceUnavailable {
			c.Errorf("%s: %d", p.Key, got.Status)
		}
	}
}

// TestDoorOnBrokenConnections: the API's connections to PostgreSQL break all the time, before or after what was sent has arrived, while clients
// post payments and batches. Each is there once, and what was not to be had is 503 and can be repeated.
func TestDoorOnBrokenConnections(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.NewOf(t, world.OutageTimes)
	watchCompletions(w)
	w.Spawn(world.Script{}, "ONCEPAY_ROLES=worker,relay")
	seed := world.SeedOf(t)
	proxy := devstacktest.NewProxy(t, w.DSN)
	addr, end := w.OpenDoor(devstacktest.Via(t, w.DSN, proxy.Addr()), 2*time.Second)
	t.Cleanup(end)
	breaks := world.NewFlakiness(seed, 25)
	proxy.OnClientData(breaks.Hook)
	c := w.NewCaller()
	var parcels []world.Parcel
	for i := range 400 / world.Scale {
		if i%4 == 3 {
			parcels = append(parcels, w.BatchOf(fmt.Sprint("batch-", i), 1+i%9))
		} else {
			parcels = append(parcels, w.Single(fmt.Sprint("order-", i)))
		}
	}
	var clients sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for _, n := range random.Perm(len(parcels)) {
				if !t.Failed() {
					c.Insist(parcels[n], "", func() string { return addr })
				}
			}
		})
	}
	clients.Wait()
	t.Logf("%d connections to PostgreSQL were cut", breaks.Cuts())
	if breaks.Cuts() < 20 {
		t.Errorf("only %d connections were cut: the case shows little", breaks.Cuts())
	}
	mustPay(w, 0, parcels...)
	batches := 0
	for _, p := range parcels {
		if p.Batch() {
			batches++
		}
	}
	mustHaveWitnessed(w, batches)
}
