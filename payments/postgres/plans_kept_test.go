package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestPlansAreKept: PostgreSQL keeps the plans of the statements that every payment needs. One whose estimate depends on how many parameters it is
// given is planned anew at each call, which takes several times as long as the statement itself: a rate was used to a half.
func TestPlansAreKept(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 1000} {
		t.Run(fmt.Sprintf("rate_%g", rate), func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			s := open(t, func(o *Options) { o.Clock, o.Rate, o.PoolSize = nil, rate, 1 })
			for i := range 60 {
				r := payments.AdmitRequest{
					Intent: intent("acme", fmt.Sprintf("order-%d", i), 100), Lane: payments.LaneInteractive, Claim: i%2 == 0, Token: s.newToken(),
					Lease: time.Minute, Account: account, Announce: i%3 == 0,
				}
				if _, err := s.Admit(ctx, r); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 4, Lease: time.Minute, Account: account}); err != nil {
					t.Fatal(err)
				}
			}
			rows, err := s.pool.Query(ctx, "SELECT statement, generic_plans, custom_plans FROM pg_prepared_statements")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			seen := 0
			for rows.Next() {
				var text string
				var kept, anew int
				if err := rows.Scan(&text, &kept, &anew); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"admit", "admit_announced", "accept", "accept_new", "admit_paced", "take", "take_due", "take_rest"} {
					if text == query(name) {
						seen++
						if anew > 5 && kept == 0 {
							t.Errorf("%s was planned %d times: %s", name, anew, strings.SplitN(text, "\n", 2)[0])
						}
					}
				}
			}
			if err := rows.Err(); err != nil || seen < 4 {
				t.Fatalf("%d of the statements were seen, %v", seen, err)
			}
		})
	}
}
