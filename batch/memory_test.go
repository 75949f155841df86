package batch

import (
	"io"
	"runtime"
	"strconv"
	"testing"
)

// generated is a file of so many rows that stands nowhere.
type generated struct {
	header string
	row    func(buf []byte, i int) []byte
	rows   int

	i    int
	rest []byte
	buf  []byte
	// every, when set, is called after each 100,000 rows.
	every func()
}

func (g *generated) Read(p []byte) (int, error) {
	if len(g.rest) == 0 {
		if g.i == g.rows {
			return 0, io.EOF
		}
		g.buf = g.buf[:0]
		if g.i == 0 {
			g.buf = append(g.buf, g.header...)
		}
		for n := 0; n < 500 && g.i < g.rows; n++ {
			g.buf = g.row(g.buf, g.i)
			if g.i++; g.every != nil && g.i%100_000 == 0 {
				g.every()
			}
		}
		g.rest = g.buf
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// heapMax is how much of the heap a check of millions of rows may use: 32 bytes for each 100 rows, twice while that list grows, and a few buffers.
const heapMax = 4 << 20

// TestMemoryIsFlat: two million rows need no more memory than their hashes.
func TestMemoryIsFlat(t *testing.T) {
	rows := 2_000_000
	if raceEnabled {
		rows = 200_000 // ten times slower there
	}
	files := map[Format]generated{
		CSV: {header: "amount_decimal,currency,customer,payment_method,description,metadata.order\n", row: func(b []byte, i int) []byte {
			b = append(strconv.AppendInt(b, int64(1+i%500), 10), ".05,usd,cus_"...)
			b = append(strconv.AppendInt(b, int64(i), 10), `,pm_card_visa,"Invoice, `...)
			return append(strconv.AppendInt(b, int64(i), 10), "\",order-1\n"...)
		}},
		JSONLines: {row: func(b []byte, i int) []byte {
			b = append(b, `{"currency":"usd","payment_method":"pm_card_visa","customer":"cus_`...)
			b = append(strconv.AppendInt(b, int64(i), 10), `","metadata":{"order":"order-1"},"amount":`...)
			return append(strconv.AppendInt(b, int64(100+i%50000), 10), "}\n"...)
		}},
	}
	for format, file := range files {
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var most uint64
		file.rows = rows
		file.every = func() {
			var now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		plan, err := Check(t.Context(), func() (io.Reader, error) { return &file, nil }, FileOptions{Run: "run", Format: format})
		if err != nil || plan.Rows != int64(rows) || plan.Batches() != rows/ChunkRows {
			t.Fatalf("%s: %v", format, err)
		}
		if used := int64(most) - int64(before.HeapAlloc); used > heapMax || most == 0 {
			t.Errorf("%s: %d bytes of heap in use", format, used)
		} else {
			t.Logf("%s: %d KiB of heap in use", format, used>>10)
		}
	}
}
