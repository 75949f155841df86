package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// pauseFacts is a pause that holds now, and how many due payments it keeps from being taken.
type pauseFacts struct {
	tenant, account, reason, actor string
	until                          *time.Time
	held                           int
}

// checkPauses lists what operators hold back. Forgotten pauses look like an outage.
func checkPauses(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var list []pauseFacts
	err := x.reading(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT coalesce(a.tenant_id, ''), coalesce(a.account, ''), a.reason, a.actor, a.until, (
				SELECT count(*) FROM queue q LEFT JOIN payments p ON p.tenant_id = q.tenant_id AND p.id = q.payment_id LEFT JOIN tenants t ON t.id = q.tenant_id
				WHERE q.due_at <= now() AND (a.tenant_id IS NULL OR q.tenant_id = a.tenant_id) AND (a.account IS NULL OR a.account = coalesce(p.stripe_account,
					CASE WHEN coalesce(t.stripe_account, t.stripe_key_ref) IS NULL THEN nullif($1::text, '') ELSE t.account END)))
			FROM pauses a WHERE a.until IS NULL OR a.until > now() ORDER BY a.since`, x.account.ID)
		if err != nil {
			return err
		}
		var p pauseFacts
		_, err = pgx.ForEachRow(rows, []any{&p.tenant, &p.account, &p.reason, &p.actor, &p.until, &p.held}, func() error { list = append(list, p); return nil })
		return err
	})
	if err != nil {
		return x.unfinished(err)
	}
	return judgePauses(list)
}

func judgePauses(list []pauseFacts) verdict {
	if len(list) == 0 {
		return good("nothing is paused")
	}
	var shown, remedies []string
	holds := false
	for _, p := range list {
		whom, flags := "everything", ""
		switch {
		case p.tenant != "":
			whom, flags = "tenant "+p.tenant, " --tenant "+p.tenant
		case p.account != "":
			whom, flags = "account "+p.account, " --account "+p.account
		}
		until := "until it is resumed"
		if p.until != nil {
			until = "until " + p.until.UTC().Format(time.RFC3339)
		}
		shown = append(shown, fmt.Sprintf("%s %s by %s (%s), holding %s", whom, until, p.actor, p.reason, count(p.held, "due payment")))
		remedies = append(remedies, "`oncepay resume"+flags+" --reason R`")
		holds = holds || p.held > 0
	}
	found := "paused: " + join(shown)
	if !holds {
		return good("%s", found)
	}
	return warn("when the reason is gone: "+join(remedies), "%s", found)
}

// replayFacts is a replay under way.
type replayFacts struct {
	id, state   string
	rate        float64
	open        int // without a result
	issued      int // of open: begun
	idleSeconds float64
}

// checkReplays looks for replays that nobody runs, or that somebody has forgotten.
func checkReplays(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	var list []replayFacts
	err := x.reading(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT r.id, r.state, r.rate, count(i.letter_id) FILTER (WHERE i.result IS NULL), count(i.issued_at) FILTER (WHERE i.result IS NULL),
				extract(epoch FROM now() - greatest(r.updated_at, max(i.issued_at), max(i.finished_at)))::float8
			FROM replays r LEFT JOIN replay_items i ON i.replay_id = r.id WHERE r.state IN ('running', 'paused') GROUP BY r.id ORDER BY r.created_at`)
		if err != nil {
			return err
		}
		var r replayFacts
		_, err = pgx.ForEachRow(rows, []any{&r.id, &r.state, &r.rate, &r.open, &r.issued, &r.idleSeconds}, func() error { list = append(list, r); return nil })
		return err
	})
	if err != nil {
		return x.unfinished(err)
	}
	return judgeReplays(list)
}

func judgeReplays(list []replayFacts) verdict {
	if len(list) == 0 {
		return good("no replay is under way")
	}
	var shown, remedies []string
	for _, r := range list {
		idle := time.Duration(r.idleSeconds * float64(time.Second))
		patience := overdue
		if r.rate > 0 { // one that is told to be slow is slow
			patience = max(patience, time.Duration(3/r.rate*float64(time.Second)))
		}
		stand := fmt.Sprintf("%s %s, %s left", r.id, r.state, count(r.open, "dead letter"))
		switch {
		case r.state == string(payments.ReplayPaused):
			remedies = append(remedies, "`oncepay replays resume "+r.id+"` lets it go on, `cancel` ends it")
		case idle > patience && r.issued == r.open:
			stand += " and none of them moved for " + age(idle)
			remedies = append(remedies, "what it took up waits for its outcome: look at pauses, due and stripe")
		case idle > patience:
			stand += " and none of them moved for " + age(idle)
			remedies = append(remedies, "is a worker running (`oncepay serve` with the role worker)? Its log tells")
		}
		shown = append(shown, stand)
	}
	if len(remedies) == 0 {
		return good("%s", join(shown))
	}
	slices.Sort(remedies)
	return warn(join(slices.Compact(remedies)), "%s", join(shown))
}

// checkReview counts the payments that a person decides about, by the reason for it.
func checkReview(ctx context.Context, x *examination) verdict {
	var counts map[string]int
	err := x.reading(ctx, func(tx pgx.Tx) (err error) {
		counts, err = countBy(ctx, tx, `SELECT split_part(coalesce(reason, ''), ':', 1), count(*) FROM payments WHERE status = ANY ($1) GROUP BY 1`,
			[]string{string(payments.StatusNeedsReview)})
		return err
	})
	if err != nil {
		return x.unfinished(err)
	}
	return judgeReview(counts)
}

func judgeReview(counts map[string]int) verdict {
	if len(counts) == 0 {
		return good("no payment waits for a person")
	}
	var shown []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		shown = append(shown, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	return warn("`oncepay payments list --status needs_review` lists them, `oncepay payments show ID` says what to look at, `oncepay payments resolve ID --as STATUS --reason R` ends it",
		"payments that wait for a person: %s", strings.Join(shown, ", "))
}
