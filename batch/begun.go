package batch

import (
	"context"
	"fmt"
	"strings"

	"github.com/oncepay/oncepay/schema"
)

// begun is which batches of a run are there already.
type begun struct {
	has []bool // by number
	n   int
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
				return begun{}, errForeignBatch(plan.Run)
			}
			for i >= len(found.has) {
				found.has = append(found.has, false)
			}
			found.has[i] = true
			found.n++
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
	digits, ok := strings.CutPrefix(key, p.Run+".")
	i := 0
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || i >= p.chunks.n {
			return 0, false
		}
		i = 10*i + int(c-'0')
	}
	return i, ok && i < p.chunks.n && key == Key(p.Run, i)
}

// ForeignError is a run under whose key there are batches that the file has not.
type ForeignError struct{ Run string }

// Error says what to do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("under --key %s there are batches that this file has not: it was begun with a file of more rows; run that one, or pay this one under another key", e.Run)
}

func errForeignBatch(run string) error { return &ForeignError{Run: run} }
