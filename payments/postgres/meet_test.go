package postgres

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// TestWritersMeet: flushes of the same new keys at the same moment, as of copies that several workers were given, all end without an error, and
// each key has one owner. A flush that failed would be done again row by row, and what failed then would wait for its message to come back.
func TestWritersMeet(t *testing.T) {
	t.Parallel()
	const rounds, writers, keys = 150, 4, 20
	for _, rate := range []float64{0, 1e6} {
		b := open(t, func(o *Options) { o.Rate = rate })
		for n := range rounds {
			batches := make([][]*admission, writers)
			for w := range batches {
				for i := range keys {
					a, _, err := prepare(b.claiming(intent("acme", strconv.Itoa(n)+"-"+strconv.Itoa(i), 1)))
					if err != nil {
						t.Fatal(err)
					}
					batches[w] = append(batches[w], a)
				}
			}
			owners := make([]int, writers)
			start := make(chan struct{})
			var all sync.WaitGroup
			for w, batch := range batches {
				all.Go(func() {
					<-start
					results, err := b.flushAdmit(context.Background(), batch)
					if err != nil {
						t.Errorf("rate %v, round %d: %v", rate, n, err)
					}
					for _, r := range results {
						if r.Value.Verdict == payments.VerdictClaimed {
							owners[w]++
						} else if r.Err != nil || r.Value.Verdict != payments.VerdictExists {
							t.Errorf("rate %v, round %d: %s, %v", rate, n, r.Value.Verdict, r.Err)
						}
					}
				})
			}
			close(start)
			all.Wait()
			sum := 0
			for _, n := range owners {
				sum += n
			}
			if sum != keys {
				t.Fatalf("rate %v, round %d: %d owners of %d keys", rate, n, sum, keys)
			}
		}
	}
}
