package mark_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

// bucket is a bucket of the test's own.
type bucket struct {
	t    *testing.T
	js   jetstream.JetStream
	name string
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	nc, err := nats.Connect(devstacktest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	b := &bucket{t, js, schema.Subjects{Prefix: devstacktest.Prefix(t)}.BucketMark()}
	b.make()
	t.Cleanup(b.lose)
	return b
}

func (b *bucket) make() {
	b.t.Helper()
	if err := provision.EnsureBucket(context.Background(), b.js, b.name, 1); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bucket) lose() {
	if err := b.js.DeleteStream(context.Background(), schema.StreamOfBucket(b.name)); err != nil {
		b.t.Error(err)
	}
}

func (b *bucket) copy() *mark.Copy { return mark.NewCopy(b.js, b.name) }

// read is the copy's counter and acceptances; -1 if there is none.
func (b *bucket) read() (counter, accepted int64) {
	b.t.Helper()
	m, err := b.copy().Read(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	if m == nil {
		return -1, 0
	}
	return m.Counter, m.Accepted
}

func TestCopyNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	if n, _ := b.read(); n != -1 {
		t.Fatalf("a new bucket has %d", n)
	}
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	m := payments.Mark{SystemID: "1", Timeline: 2, Counter: 7, At: at}
	if got, err := b.copy().Put(t.Context(), m); err != nil || *got != m {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := b.copy().Read(t.Context()); err != nil || *got != m {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, other := range map[string]payments.Mark{
		"behind": {SystemID: "1", Timeline: 2, Counter: 6}, "as far": m, "another timeline": {SystemID: "1", Timeline: 3, Counter: 8},
		"another system": {SystemID: "2", Timeline: 2, Counter: 8},
	} {
		if got, err := b.copy().Put(t.Context(), other); err != nil || *got != m {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// An acceptance is further than all, whatever it accepts, and counts for those who remember more.
	first, err := b.copy().Accept(t.Context(), payments.Mark{SystemID: "2", Timeline: 1, Counter: 3, At: at})
	if err != nil || *first != (payments.Mark{SystemID: "2", Timeline: 1, Counter: 8, At: at, Accepted: first.Accepted}) || first.Accepted == 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	if got, err := b.copy().Put(t.Context(), payments.Mark{SystemID: "2", Timeline: 1, Counter: 99, At: at}); err != nil || *got != *first {
		t.Errorf("what was counted before the acceptance is written over it: %+v, %v", got, err)
	}
	second, err := b.copy().Accept(t.Context(), payments.Mark{SystemID: "2", Timeline: 1, Counter: 50, At: at})
	if err != nil || second.Counter != 51 || second.Accepted <= first.Accepted {
		t.Fatalf("%+v, %v", second, err)
	}
	b.lose()
	if n, _ := b.read(); n != -1 {
		t.Errorf("a lost bucket has %d", n)
	}
	if _, err := b.copy().Put(t.Context(), m); err == nil {
		t.Error("a lost bucket takes a mark")
	}
	b.make()
	m.At = at.Add(time.Second)
	third, err := b.copy().Accept(t.Context(), m)
	if err != nil || third.Counter != 8 || third.Accepted <= second.Accepted {
		t.Errorf("%+v, %v", third, err)
	}
}

// TestAcceptanceByWhoeverHasLostTheRight: between reading the copy and writing it somebody else has accepted, and the database goes by that.
func TestAcceptanceByWhoeverHasLostTheRight(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	m := payments.Mark{SystemID: "1", Timeline: 1, Counter: 7, At: time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)}
	var other *payments.Mark
	lost := errors.New("somebody else has it")
	got, err := b.copy().AcceptWhile(t.Context(), m, func() (err error) {
		if other != nil {
			return lost
		}
		other, err = b.copy().Accept(t.Context(), m)
		return err
	})
	if got != nil || !errors.Is(err, lost) {
		t.Errorf("%+v, %v", got, err)
	}
	if n, accepted := b.read(); other == nil || n != other.Counter || accepted != other.Accepted {
		t.Errorf("the copy is at %d, %d; want %+v", n, accepted, other)
	}
}

// TestCopyThatWentBack: a bucket that was restored from a backup is brought up again by whoever remembers the newer acceptance.
func TestCopyThatWentBack(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	if _, err := b.copy().Put(t.Context(), payments.Mark{SystemID: "1", Timeline: 2, Counter: 70, Accepted: 5}); err != nil {
		t.Fatal(err)
	}
	m := payments.Mark{SystemID: "2", Timeline: 1, Counter: 8, Accepted: 6}
	if got, err := b.copy().Put(t.Context(), m); err != nil || *got != m {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, accepted := b.read(); n != 8 || accepted != 6 {
		t.Errorf("the copy is at %d, %d", n, accepted)
	}
}

// TestCopyOfMany: of many who write at once none overwrites one that has come further.
func TestCopyOfMany(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	const writers = 8
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			if _, err := b.copy().Put(context.Background(), payments.Mark{SystemID: "1", Timeline: 1, Counter: int64(n + 1)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, _ := b.read(); n != writers {
		t.Errorf("the copy is at %d", n)
	}
}

// TestCopyOfSomebodyElse: what is no mark is an error, not a mark at zero.
func TestCopyOfSomebodyElse(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	for _, text := range []string{"", "hello", "{}", `{"counter":7}`} {
		if _, err := b.js.Publish(t.Context(), "$KV."+b.name+"."+schema.KeyMark, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if m, err := b.copy().Read(t.Context()); err == nil || m != nil || !strings.Contains(err.Error(), b.name) {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}
