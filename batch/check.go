package batch

import (
	"context"
	"errors"
	"io"
)

// Plan is what a file asks for, as Check found it.
type Plan struct {
	Run    string // the run's key
	Format Format
	Rows   int64
	Sums   map[string]Sum // by currency

	source Source
	chunks chunkSums // of each chunk's request
}

// Batches is how many requests the file becomes.
func (p *Plan) Batches() int { return p.chunks.n }

// FileOptions say what a file is.
type FileOptions struct {
	Run    string // the run's key; CheckKey must have passed it
	Format Format
	// Read, when set, is told how many bytes of the file were read so far, from the goroutine that calls Check.
	Read func(bytes int64)
}

// Check reads all of a file and sends nothing. The error is a *FaultsError when the file must be changed; else the reader's or the context's.
// It keeps 32 bytes a chunk.
func Check(ctx context.Context, source Source, o FileOptions) (*Plan, error) {
	in, err := source()
	if err != nil {
		return nil, err
	}
	c, err := newChunks(o.Run, o.Format, &countingReader{in: in, told: o.Read})
	if err != nil {
		return nil, err
	}
	plan := &Plan{Run: o.Run, Format: o.Format, Sums: map[string]Sum{}, source: source}
	var body []byte
	for {
		next, err := c.next(ctx, body[:0])
		if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
			break
		}
		if err != nil {
			return nil, err
		}
		plan.chunks.add(next.sum)
		body = next.body
	}
	if len(c.found.list) == 0 && plan.chunks.n == 0 {
		_ = c.found.add(Fault{Message: "the file holds no payment"})
	}
	if err := c.found.err(); err != nil {
		return nil, err
	}
	plan.Rows = c.sums.rows
	for currency, sum := range c.sums.of {
		plan.Sums[currency] = *sum
	}
	return plan, nil
}

// countingReader tells how much was read.
type countingReader struct {
	in   io.Reader
	read int64
	told func(bytes int64)
}

// Read is the reader's.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.read += int64(n)
	if r.told != nil {
		r.told(r.read)
	}
	return n, err
}
