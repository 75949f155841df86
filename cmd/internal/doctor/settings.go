package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// leaseMargin is how much longer than a call a lease should be: what is left of it when a call may take its full time is all that a worker has
// between its token and the first byte.
const leaseMargin = time.Second

// checkSettings checks what `serve` would refuse, and what fits together badly.
func checkSettings(_ context.Context, x *examination) verdict {
	s := x.settings
	if err := s.CheckServe(); err != nil {
		var usage *app.UsageError
		errors.As(err, &usage)
		return bad("correct it; `oncepay config` shows every setting and its meaning", "`oncepay serve` would refuse: %s", err)
	}
	if s.Lease < s.StripeTimeout+leaseMargin {
		return warn("raise ONCEPAY_LEASE", "ONCEPAY_LEASE %s leaves %s beside ONCEPAY_STRIPE_TIMEOUT %s: a busy worker would hold payments back", s.Lease, s.Lease-s.StripeTimeout, s.StripeTimeout)
	}
	if s.DrainBudget < s.StripeTimeout {
		return warn("raise ONCEPAY_DRAIN, and the time that your process manager gives with it", "ONCEPAY_DRAIN %s is shorter than ONCEPAY_STRIPE_TIMEOUT %s: calls that run at a stop are cut off and looked up later", s.DrainBudget, s.StripeTimeout)
	}
	mode := "test mode"
	if s.Live() {
		mode = "live mode"
	}
	return good("complete and in agreement, %s by the form of the key, roles %s", mode, join(s.Roles))
}
