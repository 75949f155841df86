package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// checkAttention counts what waits for a person or for Stripe's records. It reads all payments, and is information: a shop has such payments.
func checkAttention(ctx context.Context, x *examination) verdict {
	states := []string{string(payments.StatusUnknown), string(payments.StatusNeedsReview), string(payments.StatusStalled)}
	var counts, held map[string]int
	letters := 0
	err := x.reading(ctx, func(tx pgx.Tx) (err error) {
		if counts, err = countBy(ctx, tx, `SELECT status, count(*) FROM payments WHERE status = ANY ($1) GROUP BY status`, states); err != nil {
			return err
		}
		held, err = countBy(ctx, tx, `SELECT reason, count(*) FROM payments WHERE status IN ('waiting', 'unknown', 'pending') AND reason = ANY ($1) GROUP BY reason`, heldReasons)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT count(*) FROM dead_letters WHERE state = 'open'`).Scan(&letters)
	})
	if err != nil {
		return x.unfinished(err)
	}
	return judgeAttention(counts, held, letters, states)
}

// heldReasons keep payments from Stripe until a person has done something; a key may be refused that could be read here (403).
var heldReasons = []string{payments.ReasonAuthentication, payments.ReasonAccountUnknown, payments.ReasonAccountChanged}

// countBy reads names and numbers.
func countBy(ctx context.Context, tx pgx.Tx, sql string, names []string) (map[string]int, error) {
	rows, err := tx.Query(ctx, sql, names)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	var name string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { counts[name] = n; return nil })
	return counts, err
}

func judgeAttention(counts, held map[string]int, letters int, states []string) verdict {
	var all []string
	for _, state := range slices.Sorted(slices.Values(states)) {
		all = append(all, fmt.Sprintf("%d %s", counts[state], state))
	}
	stand := fmt.Sprintf("payments: %s; dead letters: %d open", strings.Join(all, ", "), letters)
	if len(held) > 0 {
		var shown []string
		for _, reason := range slices.Sorted(maps.Keys(held)) {
			shown = append(shown, fmt.Sprintf("%d %s", held[reason], reason))
		}
		return warn("look at the keys of the installation and of tenants, their accounts, and what the keys may do at Stripe (stripe_rights; create and read PaymentIntents, and refunds); "+
			"the workers' log and `oncepay payments show` say more", "payments that Stripe is not asked for, or refuses for want of rights: %s; %s", strings.Join(shown, ", "), stand)
	}
	if len(counts) == 0 && letters == 0 {
		return good("no payment is %s, no dead letter is open", strings.Join(states, ", "))
	}
	const remedy = "`oncepay payments list --status S` and `oncepay dlq list` show them"
	if counts[string(payments.StatusNeedsReview)]+counts[string(payments.StatusStalled)] > 0 {
		return warn("a person decides about needs_review (review says why); what is stalled goes on by `oncepay dlq replay`, once the cause is mended; "+remedy, "%s", stand)
	}
	return good("%s (%s)", stand, remedy)
}
