package doctor

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// checkRates reads the rates of the workers that are connected now off the names of their connections. A budget is one for all processes: with
// several rates it fills as fast as the greatest.
func checkRates(ctx context.Context, x *examination) verdict {
	ctx, cancel := x.limited(ctx)
	defer cancel()
	places := map[float64][]string{}
	err := x.reading(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT DISTINCT coalesce(application_name, ''), coalesce(host(client_addr), '') FROM pg_stat_activity
			WHERE datname = current_database() ORDER BY 1, 2`)
		if err != nil {
			return err
		}
		var name, place string
		_, err = pgx.ForEachRow(rows, []any{&name, &place}, func() error {
			if rate, worker := app.RateOfWorker(name); worker {
				places[rate] = append(places[rate], place)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return x.unanswered(err)
	}
	return judgeRates(places)
}

// judgeRates judges by the addresses from which workers of each rate are connected; "" is one that cannot be seen, or none.
func judgeRates(places map[float64][]string) verdict {
	var shown []string
	for _, rate := range slices.Sorted(maps.Keys(places)) {
		text := "unlimited"
		if rate > 0 {
			text = strconv.FormatFloat(rate, 'g', -1, 64) + "/s"
		}
		from := slices.DeleteFunc(slices.Clone(places[rate]), func(place string) bool { return place == "" })
		if len(from) > 0 {
			text += " (from " + join(from) + ")"
		}
		shown = append(shown, text)
	}
	switch len(shown) {
	case 0:
		return good("no worker is connected, or ONCEPAY_DATABASE_URL gives its connections a name of their own (application_name)")
	case 1:
		return good("all workers that are connected have one rate, %s", shown[0])
	}
	return warn("give every process the same ONCEPAY_STRIPE_RATE and start it anew: an account's budget is one for all of them, and fills at the rate of whoever looks at it",
		"workers with %d rates are connected: %s", len(shown), join(shown))
}
