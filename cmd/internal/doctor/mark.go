package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/consumer/mark"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// checkMark compares the database with the copy of its mark, as workers do: one that was restored from a backup has forgotten charges.
func checkMark(ctx context.Context, x *examination) verdict {
	if !slices.Contains(x.settings.Roles, app.RoleWorker) {
		return good("compared by processes with the role worker")
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	subjects, _ := x.settings.Streams()
	stream := schema.StreamOfBucket(subjects.BucketMark())
	if x.denied["$JS.API.STREAM.INFO."+stream] || x.permissions != nil && !x.permissions.publish.permits("$JS.API.STREAM.MSG.GET."+stream) {
		return skipped("nats_permissions")
	}
	// The copy before the database: whoever counts between the two would make the database seem behind.
	copied, err := mark.NewCopy(x.js, subjects.BucketMark()).Read(ctx)
	if err != nil {
		return x.noAnswer(err)
	}
	var state payments.MarkState
	err = x.reading(ctx, func(tx pgx.Tx) (err error) {
		state, err = postgres.ReadMark(ctx, tx)
		return err
	})
	if err != nil {
		return x.unanswered(err)
	}
	return judgeMark(state, copied)
}

func judgeMark(state payments.MarkState, copied *payments.Mark) verdict {
	v := payments.CompareMark(state, copied)
	switch {
	case state.Rewind != 0:
		return warn("`oncepay rewind --since T` follows it; a server with the role worker runs it", "rewind %d is running: nothing is sent to Stripe until it is completed", state.Rewind)
	case v == payments.MarkBegins:
		return good("not marked yet; the first worker does it")
	case !v.Holds():
		return good("the database is as far as the mark that is kept of it in NATS (%d, %s ago)", state.Counter, age(max(0, state.Now.Sub(state.At))))
	case v == payments.MarkPromoted:
		return warn("see that a server with the role worker runs: it does that", "%s", v.Means())
	}
	return bad(v.Remedy(), "nothing is sent to Stripe: %s%s", v.Means(), since(state))
}

// since says when the database was marked last: about the time of the backup.
func since(state payments.MarkState) string {
	if !state.Counted {
		return ""
	}
	return fmt.Sprintf(" (marked last at %s)", state.At.UTC().Format(time.RFC3339))
}
