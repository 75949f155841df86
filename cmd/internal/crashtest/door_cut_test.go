package crashtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/ingress"
	"github.com/oncepay/oncepay/payments/postgres"
)

// openDoor serves the API in this process, as a serving process does, on the database at dsn. It ends with the returned function.
func (w *world) openDoor(dsn string, flush time.Duration) (addr string, end func()) {
	w.Helper()
	log := w.logs.logger("door")
	store, err := postgres.Open(context.Background(), dsn, postgres.Options{PoolSize: 4, Namespace: namespace, Logger: log, Hold: w.times.hold, FlushTimeout: flush})
	if err != nil {
		w.Fatal(err)
	}
	api, err := ingress.New(ingress.Config{
		Store: store, Batches: store, Reader: store, Keys: store, Unpublished: store.Unpublished, UnpublishedMax: 100_000, Clock: app.SystemClock{}, Log: log,
	})
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = ingress.Server(api.Handler())
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = api.Run(ctx) })
	return server.Listener.Addr().String(), func() {
		cancel()
		server.Close()
		waiting.Wait()
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = store.Close(closing) // one that is cut off cannot flush
	}
}

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
			w := newWorldOf(t, outageTimes)
			w.watchCompletions()
			healthy := w.spawnDoor().address()
			c := w.newCaller()
			parcels := []parcel{w.single("order-1"), w.batchOf("batch-1", 40), w.single("order-2"), w.batchOf("batch-2", 1)}
			var doors sync.WaitGroup
			for _, p := range parcels {
				doors.Go(func() {
					c.dieAtCommit(p, action)
					got := c.insist(p, "", func() string { return healthy })
					if committed := action == devstacktest.ForwardThenCut; got.replayed != committed {
						t.Errorf("%s: a repeat: %t, and it was committed: %t", p.key, got.replayed, committed)
					}
				})
			}
			doors.Wait()
			w.mustPay(0, parcels...)
			w.mustHaveWitnessed(2)
		})
	}
}

// dieAtCommit sends the request to a door of its own that dies with the request's commit.
func (c *caller) dieAtCommit(p parcel, action devstacktest.Action) {
	c.Helper()
	proxy := devstacktest.NewProxy(c, c.dsn)
	addr, end := c.openDoor(devstacktest.Via(c, c.dsn, proxy.Addr()), 2*time.Second)
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
	c.expectParcel(p)
	for !dead.Load() && !c.Failed() { // a machine that is busy may well be answered 503 before it comes to that
		if got, err := c.send(context.Background(), addr, p, ""); err == nil && got.status != http.StatusServiceUnavailable {
			c.Errorf("%s: %d", p.key, got.status)
		}
	}
}

// TestDoorOnBrokenConnections: the API's connections to PostgreSQL break all the time, before or after what was sent has arrived, while clients
// post payments and batches. Each is there once, and what was not to be had is 503 and can be repeated.
func TestDoorOnBrokenConnections(t *testing.T) {
	t.Parallel()
	takeTurn(t)
	w := newWorldOf(t, outageTimes)
	w.watchCompletions()
	w.spawn(script{}, "ONCEPAY_ROLES=worker,relay")
	seed := seedOf(t)
	proxy := devstacktest.NewProxy(t, w.dsn)
	addr, end := w.openDoor(devstacktest.Via(t, w.dsn, proxy.Addr()), 2*time.Second)
	t.Cleanup(end)
	breaks := newFlakiness(seed, 25)
	proxy.OnClientData(breaks.hook)
	c := w.newCaller()
	var parcels []parcel
	for i := range 400 / scale {
		if i%4 == 3 {
			parcels = append(parcels, w.batchOf(fmt.Sprint("batch-", i), 1+i%9))
		} else {
			parcels = append(parcels, w.single(fmt.Sprint("order-", i)))
		}
	}
	var clients sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		clients.Go(func() {
			for _, n := range random.Perm(len(parcels)) {
				if !t.Failed() {
					c.insist(parcels[n], "", func() string { return addr })
				}
			}
		})
	}
	clients.Wait()
	breaks.mu.Lock()
	t.Logf("%d connections to PostgreSQL were cut", breaks.cuts)
	if breaks.cuts < 20 {
		t.Errorf("only %d connections were cut: the case shows little", breaks.cuts)
	}
	breaks.mu.Unlock()
	w.mustPay(0, parcels...)
	batches := 0
	for _, p := range parcels {
		if p.batch() {
			batches++
		}
	}
	w.mustHaveWitnessed(batches)
}
