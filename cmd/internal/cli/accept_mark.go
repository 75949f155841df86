package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

// acceptMark is one call of doctor --accept-mark.
type acceptMark struct {
	*shared
	accept, yes bool
	reason      string
}

func (a *acceptMark) bind(c *cobra.Command) {
	c.Flags().BoolVar(&a.accept, "accept-mark", false, "say that the database has lost nothing, although it does not fit its mark; instead of all checks")
	c.Flags().StringVar(&a.reason, "reason", "", "with --accept-mark: how you know it, for the audit (required there)")
	c.Flags().BoolVar(&a.yes, "yes", false, "with --accept-mark: do not ask")
	bindActor(c)
}

// check refuses flags that mean nothing without --accept-mark.
func (a *acceptMark) check(c *cobra.Command) (op payments.Operation, err error) {
	if a.accept {
		return a.operation(c, "--reason", a.reason, true)
	}
	for _, name := range []string{"reason", "yes", app.FlagOf(actorName)} {
		if c.Flags().Changed(name) {
			return op, &app.UsageError{Text: "--" + name + ": goes with --accept-mark alone"}
		}
	}
	return op, nil
}

// markCopy is the copy of the database's mark.
type markCopy interface {
	Read(ctx context.Context) (*payments.Mark, error)
	Accept(ctx context.Context, m payments.Mark) (*payments.Mark, error)
}

// run accepts the database as it is. The copy comes first: whoever dies in between leaves a database that is still held.
func (a *acceptMark) run(ctx context.Context, settings app.Settings, in io.Reader, op payments.Operation) error {
	return a.withOperators(ctx, func(store operators) error {
		copied, closing, err := a.openMark(ctx, settings)
		if err != nil {
			return err
		}
		defer closing()
		known, err := copied.Read(ctx)
		if err != nil {
			return NewExit(exitFailed, "oncepay: the copy of the mark in NATS: "+err.Error())
		}
		state, err := store.Mark(ctx)
		if err != nil {
			return err
		}
		if state.Rewind != 0 {
			return NewExit(exitFailed, fmt.Sprintf("oncepay: rewind %d is running, and accepts the mark when it is completed: `oncepay rewind --since T` follows it", state.Rewind))
		}
		found := payments.CompareMark(state, known)
		if found.Holds() {
			fmt.Fprintln(a.err, errorLine(found.Means()))
			fmt.Fprintln(a.err, "if payments were made that this database does not know, they may be charged again once it is accepted; `oncepay rewind --since T` adopts them")
		} else {
			fmt.Fprintln(a.err, "the database fits the copy of its mark")
		}
		if err := a.confirm(ctx, in, a.yes, "accept the database as it is?", "nothing was changed"); err != nil {
			return err
		}
		next := state.Mark
		next.At = state.Now
		accepted, err := copied.Accept(ctx, next)
		if err != nil {
			return NewExit(exitFailed, "oncepay: the copy of the mark in NATS: "+err.Error())
		}
		doc := document.AcceptedMark(found, *accepted)
		result, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		if err := store.AcceptMark(ctx, accepted.Counter, op, result); err != nil {
			return failure(err)
		}
		if a.json {
			return console.JSON(a.out, doc)
		}
		fmt.Fprintf(a.out, "accepted; the mark stands at %d\n", accepted.Counter)
		return nil
	})
}

func (s *shared) openMark(ctx context.Context, settings app.Settings) (markCopy, func(), error) {
	if s.copied != nil {
		return s.copied, func() {}, nil
	}
	return app.OpenMark(ctx, settings, "oncepay doctor")
}
