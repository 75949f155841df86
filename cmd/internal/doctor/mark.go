package doctor

import (
	"cmp"
	"context"
	"errors"
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
	var last lastRewind
	err = x.reading(ctx, func(tx pgx.Tx) (err error) {
		if state, err = postgres.ReadMark(ctx, tx); err != nil {
			return err
		}
		last, err = readLastRewind(ctx, tx)
		return err
	})
	if err != nil {
		return x.unanswered(err)
	}
	if last.detail != "" {
		last.detail = x.said(errors.New(last.detail))
	}
	return judgeMark(state, copied, last)
}

// lastRewind is the newest rewind, as far as it matters here; the zero value: there was none.
type lastRewind struct {
	id            int64
	state, detail string
	since, at     time.Time // from when on it reads; and when it last went on, or ended
	accepted      bool      // somebody has said since then that the database is right
}

func readLastRewind(ctx context.Context, tx pgx.Tx) (r lastRewind, err error) {
	err = tx.QueryRow(ctx, `SELECT r.id, r.state, coalesce(r.detail, ''), r.since, r.updated_at,
		EXISTS (SELECT FROM audit a WHERE a.action = 'doctor --accept-mark' AND a.at > r.updated_at)
		FROM rewinds r ORDER BY r.id DESC LIMIT 1`).Scan(&r.id, &r.state, &r.detail, &r.since, &r.at, &r.accepted)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil
	}
	return r, err
}

// failed reports whether the newest rewind came to nothing, and nobody has said that it does not matter.
func (r lastRewind) failed() bool { return r.state == string(payments.RewindFailed) && !r.accepted }

// why says what became of a rewind that failed.
func (r lastRewind) why() string {
	if !r.failed() {
		return ""
	}
	return fmt.Sprintf("; rewind %d failed at %s: %s", r.id, r.at.UTC().Format(time.RFC3339), cmp.Or(r.detail, "nothing was said"))
}

// again is what to do about a rewind that failed.
func (r lastRewind) again() string {
	return fmt.Sprintf("mend why it failed, then rewind again: `oncepay rewind --since %s`", r.since.UTC().Format(time.RFC3339))
}

func judgeMark(state payments.MarkState, copied *payments.Mark, last lastRewind) verdict {
	v := payments.CompareMark(state, copied)
	switch {
	case state.Rewind != 0 && last.detail != "":
		return warn("mend that: it is tried again by itself, and `oncepay rewind --since T` follows it", "rewind %d is running, and nothing is sent to Stripe until it is completed; it stands still: %s", state.Rewind, last.detail)
	case state.Rewind != 0:
		return warn("`oncepay rewind --since T` follows it; a server with the role worker runs it", "rewind %d is running: nothing is sent to Stripe until it is completed", state.Rewind)
	case last.failed() && v.Holds():
		return bad(last.again(), "nothing is sent to Stripe: %s%s%s", v.Means(), since(state), last.why())
	case last.failed():
		return warn(last.again(), "the database is as far as its mark%s; what it was to adopt may be missing", last.why())
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
