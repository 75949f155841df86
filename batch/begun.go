package batch

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/schema"
)

// begun is which batches of a run are there already.
type begun struct {
	has  []bool // by number
	n    int
	rows int64 // of them together
}

// there reports whether the i-th batch is.
func (b begun) there(i int) bool { return i < len(b.has) && b.has[i] }

// findBegun asks which batches of the plan were accepted by earlier calls. A batch that the plan has not is an error: the file is another.
func findBegun(ctx context.Context, plan *Plan, door Door, o PublishOptions, lately *progress) (begun, error) {
	var found begun
	for cursor := ""; ; {
		var list schema.List[schema.Batch]
		err := o.Patience.until(ctx, lately, func(ctx context.Context) (err error) {
			list, err = door.Batches(ctx, plan.Run, cursor, pageBatches)
			return err
		})
		if err != nil {
			return begun{}, err
		}
		for _, b := range list.Data {
			i, ok := plan.number(b.IdempotencyKey)
			if !ok {
				return begun{}, plan.foreign(b.IdempotencyKey)
			}
			for i >= len(found.has) {
				found.has = append(found.has, false)
			}
			found.has[i] = true
			found.n++
			found.rows += int64(b.Count)
		}
		if list.NextCursor == nil || len(list.Data) == 0 {
			return found, nil
		}
		if o.Found != nil {
			o.Found(found.n)
		}
		cursor = *list.NextCursor
	}
}

// number is the place of a batch in the plan, by its key.
func (p *Plan) number(key string) (int, bool) {
	i, ok := numberOf(p.Run, key)
	return i, ok && i < p.chunks.n
}

// numberOf is the place of a batch in a run of any length, by its key.
func numberOf(run, key string) (int, bool) {
	digits, ok := strings.CutPrefix(key, run+".")
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseUint(digits, 10, 31)
	return int(i), err == nil && key == Key(run, int(i))
}

// ForeignError is a run under whose key there are batches that the file has not.
type ForeignError struct {
	Run   string // the run's key
	Batch int    // the number of such a batch; -1: it is none that a file's rows become
	Rows  int64  // of the file
}

// Error says what was found and what to do. How the run was begun cannot be known, and is not guessed at.
func (e *ForeignError) Error() string {
	if e.Batch < 0 {
		return fmt.Sprintf("a batch of another kind names %s as its parent: pay this file under another --key", e.Run)
	}
	return fmt.Sprintf("under --key %s rows from %d on were sent before (batch %s), and this file has only %s: run a file that begins with every row that was sent, or pay this one under another key",
		e.Run, int64(e.Batch)*ChunkRows+1, Key(e.Run, e.Batch), plural(e.Rows, "row", "rows"))
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// foreign is the error of a batch that is not in the plan.
func (p *Plan) foreign(key string) error {
	i, ok := numberOf(p.Run, key)
	if !ok {
		i = -1
	}
	return &ForeignError{Run: p.Run, Batch: i, Rows: p.Rows}
}
