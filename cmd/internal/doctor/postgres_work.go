package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments/postgres"
)

// checkSchema compares the database's steps with this build's, and applies none.
func checkSchema(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	steps, err := migrations.Status(ctx, x.settings.DatabaseURL)
	if err != nil {
		return bad("do what PostgreSQL's message says; its log says more", "%s", x.said(app.DatabaseError(err)))
	}
	at, err := migrations.Version(ctx, x.settings.DatabaseURL)
	if err != nil {
		return bad("do what PostgreSQL's message says; its log says more", "%s", x.said(app.DatabaseError(err)))
	}
	return judgeSchema(steps, at, migrations.Target())
}

func judgeSchema(steps []migrations.Step, at, target int64) verdict {
	var missing []string
	for _, s := range steps {
		if !s.Applied {
			missing = append(missing, s.Name)
		}
	}
	switch {
	case len(missing) > 0:
		return bad("run `oncepay migrate up`, or start `oncepay serve`, which does the same", "the database is at version %d and this program needs %d; missing: %s", at, target, join(missing))
	case at > target:
		return warn("run the newer program here too", "the database is at version %d, made by a newer program; this one knows %d", at, target)
	}
	return good("version %d, as this program needs", at)
}

// privileges are what a serving process does to each table. On tables that are not named here it must be able to read.
var privileges = map[string]string{
	"payments":       "SELECT, INSERT, UPDATE",
	"queue":          "SELECT, INSERT, UPDATE, DELETE",
	"payment_events": "SELECT, INSERT",
	"outbox":         "SELECT, INSERT, UPDATE, DELETE",
	"batches":        "SELECT, INSERT, UPDATE",
	"operations":     "SELECT, INSERT, UPDATE",
	"outbox_intents": "SELECT, INSERT, UPDATE, DELETE",
	"dead_letters":   "SELECT, INSERT, UPDATE, DELETE",
	"tenants":        "SELECT, INSERT, UPDATE",
	"api_keys":       "SELECT, INSERT, UPDATE",
	"installation":   "SELECT, INSERT",
	"rate_budgets":   "SELECT, INSERT, UPDATE",
	"audit":          "SELECT, INSERT",
	"pauses":         "SELECT, INSERT, UPDATE, DELETE",
	"stripe_objects": "SELECT, INSERT, UPDATE",
	"replays":        "SELECT, INSERT, UPDATE",
	"replay_items":   "SELECT, INSERT, UPDATE",

	"installation_mark": "SELECT, INSERT, UPDATE",
	"rewinds":           "SELECT, INSERT, UPDATE",
	"resolved_intents":  "SELECT, INSERT, UPDATE, DELETE",
}

// checkPrivileges asks what the role may do, and does none of it.
func checkPrivileges(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var tables []string
	missing := map[string][]string{}
	err := x.reading(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)
			AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('payments')) ORDER BY relname`)
		if err != nil {
			return err
		}
		if tables, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		for _, table := range tables {
			wanted := privileges[table]
			if wanted == "" {
				wanted = "SELECT"
			}
			for _, privilege := range strings.Split(wanted, ", ") {
				var has bool
				if err := tx.QueryRow(ctx, `SELECT has_table_privilege(quote_ident($1), $2)`, table, privilege).Scan(&has); err != nil {
					return err
				}
				if !has {
					missing[table] = append(missing[table], privilege)
				}
			}
		}
		return nil
	})
	if err != nil {
		return x.unanswered(err)
	}
	return judgePrivileges(x.user(), tables, missing)
}

// user is the role that the settings name.
func (x *examination) user() string { return x.pool.Config().ConnConfig.User }

func judgePrivileges(role string, tables []string, missing map[string][]string) verdict {
	var lacks, grants []string
	for _, table := range tables {
		if m := strings.Join(missing[table], ", "); m != "" {
			lacks = append(lacks, table+" ("+m+")")
			grants = append(grants, "GRANT "+m+" ON "+table+" TO "+pgx.Identifier{role}.Sanitize())
		}
	}
	if len(lacks) > 0 {
		return bad(strings.Join(grants, "; "), "role %s lacks rights on %s", role, join(lacks))
	}
	return good("role %s has its rights on %s", role, count(len(tables), "table"))
}

// checkNamespace: under another namespace payments in doubt are looked for in vain, and charged again. A database without one is left so.
func checkNamespace(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var pinned string
	err := x.row(ctx, `SELECT namespace FROM installation`, &pinned)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return good("not bound yet; the first `oncepay serve` binds the database to %q", x.settings.Namespace)
	case err != nil:
		return x.unanswered(err)
	case pinned != x.settings.Namespace:
		return bad(fmt.Sprintf("set ONCEPAY_NAMESPACE to %q, or use another database", pinned),
			"ONCEPAY_NAMESPACE is %q, but the database was begun under %q: payments in doubt would be charged again", x.settings.Namespace, pinned)
	}
	return good("%q, as in the settings", pinned)
}

// checkTickets is the query of invariant I2. It reads all payments.
func checkTickets(ctx context.Context, x *examination) verdict {
	store, err := x.store(ctx)
	if err != nil {
		return bad("do what PostgreSQL's message says; its log says more", "%s", x.said(err))
	}
	violations, err := store.TicketViolations(ctx)
	if err != nil {
		return x.unfinished(err)
	}
	return judgeTickets(violations)
}

// store opens a store for what it has a question of its own for. None of those write.
func (x *examination) store(ctx context.Context) (*postgres.Store, error) {
	store, err := postgres.Open(ctx, x.settings.DatabaseURL, postgres.Options{PoolSize: 1, Namespace: x.settings.Namespace, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	x.onClose(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		_ = store.Close(ctx)
	})
	return store, nil
}

// violationsMax is how many payments the query returns at most.
const violationsMax = 1000

func judgeTickets(violations []postgres.Violation) verdict {
	if len(violations) == 0 {
		return good("every payment that somebody must act on has its ticket, and no other has one")
	}
	var shown []string
	for _, v := range violations {
		status := string(v.Status)
		if status == "" {
			status = "no such payment"
		}
		shown = append(shown, fmt.Sprintf("%s of %s (%s, %s)", v.ID, v.TenantID, status, v.What))
	}
	n := count(len(violations), "payment")
	if len(violations) >= violationsMax {
		n = "at least " + n
	}
	return bad("this is a bug, or somebody wrote to the tables by hand: `oncepay payments show ID` tells what happened; keep what you see and report it",
		"%s with a ticket too few or too many, or one that nobody is given: %s", n, join(shown))
}

// overdue is how long due work, or a message to be sent, may lie before somebody should ask whether anybody works on it.
const overdue = time.Minute

// checkDue: a ticket that is due is taken within a moment where a worker has room.
func checkDue(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	n, oldest, err := x.backlog(ctx, `SELECT count(*), coalesce(extract(epoch FROM now() - min(due_at)), 0)::float8 FROM queue WHERE due_at <= now()`)
	if err != nil {
		return x.unanswered(err)
	}
	return judgeDue(n, oldest)
}

func judgeDue(n int, oldest time.Duration) verdict {
	switch {
	case n == 0:
		return good("no payment is due")
	case oldest > overdue:
		return warn("is a worker running (`oncepay serve`), and does Stripe answer it? Its log and its metrics tell; or somebody holds it back (pauses)", "%s due and not taken, the oldest for %s", count(n, "payment"), age(oldest))
	}
	return good("%s due, the oldest for %s", count(n, "payment"), age(oldest))
}

// checkOutbox: what stands here has happened, and nobody has been told. A row has no time of its own; its event or dead letter has.
func checkOutbox(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	n, oldest, err := x.backlog(ctx, `SELECT (SELECT count(*) FROM outbox), coalesce((
		SELECT extract(epoch FROM now() - coalesce(e.at, l.last_seen)) FROM (SELECT * FROM outbox ORDER BY id LIMIT 1) o
		LEFT JOIN payment_events e ON e.tenant_id = o.tenant_id AND e.payment_id = o.payment_id AND e.sequence = o.sequence
		LEFT JOIN dead_letters l ON l.id = o.dead_letter_id), 0)::float8`)
	if err != nil {
		return x.unanswered(err)
	}
	return judgeOutbox(n, oldest)
}

func judgeOutbox(n int, oldest time.Duration) verdict {
	switch {
	case n == 0:
		return good("empty: every event has its place in the stream")
	case oldest > overdue:
		return warn("is a relay running (`oncepay serve` with the role relay), and may it publish? Its log tells", "%s not published yet, the oldest of %s ago", count(n, "message"), age(oldest))
	}
	return good("%s on the way, the oldest of %s ago", count(n, "message"), age(oldest))
}

// checkUnpublished: these payments are accepted and will be made; what waits is the copy that goes into their stream. Over the setting's number the
// API turns callers away.
func checkUnpublished(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	n, oldest, err := x.backlog(ctx, `SELECT (SELECT coalesce(sum(octet_length(payment_id) / 16 - coalesce(cardinality(sent), 0)), 0)::bigint FROM (SELECT payment_id, sent FROM outbox_intents LIMIT 10000000) o), coalesce((
		SELECT extract(epoch FROM now() - min(p.created_at)) FROM (
			(SELECT * FROM outbox_intents WHERE lane = 1 ORDER BY id LIMIT 1) UNION ALL (SELECT * FROM outbox_intents WHERE lane = 2 ORDER BY id LIMIT 1)) o
		JOIN payments p ON p.tenant_id = o.tenant_id AND p.id = substr(o.payment_id, 1, 16)), 0)::float8`)
	if err != nil {
		return x.unfinished(err)
	}
	return judgeUnpublished(n, x.settings.Unpublished, oldest)
}

func judgeUnpublished(n int, most int64, oldest time.Duration) verdict {
	const remedy = "is NATS there, has its stream room (stream_space), and does a relay run? The payments are made all the same"
	switch {
	case n == 0:
		return good("every accepted payment has its copy in the stream")
	case int64(n) >= most:
		return bad(remedy+"; until fewer wait the HTTP API answers 503", "%s accepted and not published, the oldest of %s ago: ONCEPAY_UNPUBLISHED_MAX is reached", count(n, "payment"), age(oldest))
	case oldest > overdue:
		return warn(remedy, "%s accepted and not published, the oldest of %s ago", count(n, "payment"), age(oldest))
	}
	return good("%s on the way to the stream, the oldest of %s ago", count(n, "payment"), age(oldest))
}

// backlog asks for a number and the age of the oldest in seconds.
func (x *examination) backlog(ctx context.Context, sql string) (n int, oldest time.Duration, err error) {
	var seconds float64
	err = x.row(ctx, sql, &n, &seconds)
	return n, time.Duration(seconds * float64(time.Second)), err
}
