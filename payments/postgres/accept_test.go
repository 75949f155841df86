package postgres

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// prepared is the request as a flush gets it.
func (b *bench) prepared(r payments.AdmitRequest) *admission {
	b.t.Helper()
	a, refused, err := prepare(r)
	if err != nil || refused {
		b.t.Fatal(refused, err)
	}
	return a
}

// TestAcceptMeetsARow: a flush that takes all its keys for new and is wrong stores what is new, reads what is not, and has the next flushes expect it.
func TestAcceptMeetsARow(t *testing.T) {
	t.Parallel()
	if all := statements(); strings.Contains(all[acceptNew], "CONFLICT DO") || !strings.Contains(all["accept"], acceptConflict) {
		t.Fatal("accept_new is not accept without its ON CONFLICT")
	}
	b := open(t)
	ctx := context.Background()
	if _, err := b.Admit(ctx, announced("old", payments.LaneInteractive)); err != nil || b.meetsUntil.Load() != 0 {
		t.Fatal(err, b.meetsUntil.Load())
	}
	for n := range 2 { // the first is refused as a whole, the second expects it
		fresh := "new-" + strconv.Itoa(n)
		other := announced("old", payments.LaneInteractive)
		other.Intent.Amount++
		batch := []*admission{
			b.prepared(announced(fresh, payments.LaneInteractive)), b.prepared(announced("old", payments.LaneInteractive)), b.prepared(other),
		}
		results, err := b.flushAdmit(ctx, batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []payments.Verdict{payments.VerdictStored, payments.VerdictExists, payments.VerdictConflict} {
			if got := results[i].Value.Verdict; got != want || results[i].Err != nil {
				t.Errorf("flush %d, request %d: %s, want %s (%v)", n, i, got, want, results[i].Err)
			}
		}
		if rows := b.rows("payments"); rows != n+2 || b.rows("queue") != rows || b.unpublished() != rows || len(b.sent.all()) != rows {
			t.Errorf("flush %d: %d payments, %d tickets, %d in the outbox, %d handed on", n, rows, b.rows("queue"), b.unpublished(), len(b.sent.all()))
		}
		if until := b.meetsUntil.Load(); until <= b.wall().UnixNano() {
			t.Errorf("flush %d: the next one expects nothing", n)
		}
	}
}

// TestAcceptersMeet: flushes of the same new keys at the same moment, each of which takes them for new, all end without an error, and each key is
// stored and announced once.
func TestAcceptersMeet(t *testing.T) {
	t.Parallel()
	const rounds, writers, keys = 40, 4, 20
	b := open(t)
	for n := range rounds {
		stored := make([]int, writers)
		start := make(chan struct{})
		var all sync.WaitGroup
		for w := range writers {
			batch := make([]*admission, keys)
			for i := range batch {
				batch[i] = b.prepared(announced(strconv.Itoa(n)+"-"+strconv.Itoa(i), payments.LaneInteractive))
			}
			all.Go(func() {
				<-start
				b.meetsUntil.Store(0)
				results, err := b.flushAdmit(context.Background(), batch)
				if err != nil {
					t.Errorf("round %d: %v", n, err)
				}
				for _, r := range results {
					if r.Value.Verdict == payments.VerdictStored {
						stored[w]++
					} else if r.Err != nil || r.Value.Verdict != payments.VerdictExists {
						t.Errorf("round %d: %s, %v", n, r.Value.Verdict, r.Err)
					}
				}
			})
		}
		close(start)
		all.Wait()
		sum := 0
		for _, n := range stored {
			sum += n
		}
		if want := (n + 1) * keys; sum != keys || b.rows("payments") != want || b.rows("queue") != want || b.unpublished() != want || len(b.sent.all()) != want {
			t.Fatalf("round %d: %d stored of %d keys; %d in the outbox, %d handed on", n, sum, keys, b.unpublished(), len(b.sent.all()))
		}
	}
}
