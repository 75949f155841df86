package dev

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/batch"
)

// batchInFlight is how many batches are sent at once: the command's default.
const batchInFlight = 8

// batch has a CSV file accepted as `batch run` does, both passes over the file included, and returns the payments a second.
func (h *httpBench) batch(ctx context.Context, round int) (float64, error) {
	dir, err := os.MkdirTemp("", "oncepay-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "payments.csv")
	if err := writeCSV(path, round, h.o.intents); err != nil {
		return 0, err
	}
	door, err := batch.NewClient(batch.ClientOptions{URL: "http://" + h.product, APIKey: h.secret, Connections: batchInFlight})
	if err != nil {
		return 0, err
	}
	defer door.Close()
	source, end := fileSource(path)
	defer end()
	started := time.Now()
	plan, err := batch.Check(ctx, source, batch.FileOptions{Run: "run-" + strconv.Itoa(round), Format: batch.CSV})
	if err != nil {
		return 0, err
	}
	sent, err := batch.Publish(ctx, plan, door, batch.PublishOptions{
		Concurrency: batchInFlight, Patience: batch.Patience{Now: time.Now, Random: rand.Int64N, Wait: batch.Pause, GiveUp: time.Minute},
	})
	if err != nil {
		return 0, err
	}
	took := time.Since(started).Seconds()
	if int(sent.Rows) != h.o.intents {
		return 0, fmt.Errorf("batch run: %d of %d payments were accepted", sent.Rows, h.o.intents)
	}
	t := turn{rate: float64(h.o.intents) / took, published: took}
	return t.rate, h.drain(ctx, &t)
}

func writeCSV(path string, round, rows int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "amount,currency,customer,payment_method,metadata.order")
	for i := range rows {
		fmt.Fprintf(w, "%d,usd,cus_%d,pm_card_visa,%d-%d\n", 1000+i%9000, i%1000, round, i)
	}
	return firstOf(w.Flush(), f.Close())
}

// fileSource opens the file anew for each pass; end closes what is open.
func fileSource(path string) (source batch.Source, end func()) {
	var open []*os.File
	source = func() (io.Reader, error) {
		f, err := os.Open(path)
		if err == nil {
			open = append(open, f)
		}
		return f, err
	}
	return source, func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
}
