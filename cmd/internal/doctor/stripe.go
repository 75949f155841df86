package doctor

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v76"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// stripeConns is how many connections to Stripe are opened here at most.
const stripeConns = 8

// checkStripe reaches Stripe's server without the key: whatever it answers, it is there, and says what time it is.
func checkStripe(ctx context.Context, x *examination) verdict {
	address := x.settings.StripeURL
	if address == "" {
		address = stripe.DefaultURL
	}
	ctx, cancel := x.limited(ctx)
	defer cancel()
	before := x.clock.Now()
	response, err := get(ctx, address+"/", proxyHTTPS)
	if err != nil {
		return bad("look at the network, DNS and proxy (HTTPS_PROXY) of this machine, and at ONCEPAY_STRIPE_URL", "%s cannot be reached: %s", address, x.said(err))
	}
	response.Body.Close()
	after := x.clock.Now()
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		x.stripeNow = between(before, after, date.Add(500*time.Millisecond)) // it counts whole seconds
	}
	if response.StatusCode >= 500 {
		return warn("see https://status.stripe.com; payments wait meanwhile", "%s answers %s", address, response.Status)
	}
	return good("%s answers within %s", address, age(after.Sub(before)))
}

// proxyHTTPS is how calls to Stripe leave this machine: a proxy is used for https only.
func proxyHTTPS(r *http.Request) (*url.URL, error) {
	if r.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(r)
}

// checkAccount reads which account the key belongs to, as every worker does at its start.
func checkAccount(ctx context.Context, x *examination) verdict {
	s := x.settings
	if s.StripeKey == "" {
		return warn("set ONCEPAY_STRIPE_KEY where workers run", "ONCEPAY_STRIPE_KEY is not set: this process could not be a worker")
	}
	if s.Live() && s.StripeURL != "" && s.StripeURL != stripe.DefaultURL {
		return skipped("settings") // which says why; the key stays here
	}
	x.ways = &knownWays{}
	accounts, err := stripe.NewAccounts(ctx, stripe.Options{
		Key: s.StripeKey, URL: s.StripeURL, AccountID: s.StripeAccount, Namespace: s.Namespace, Timeout: min(s.StripeTimeout, askLimit, x.timeout/4), MaxConns: stripeConns,
		Clock:  ownClock{x.clock}, // the clock is a check of its own
		Logger: slog.New(slog.DiscardHandler),
	}, x.ways)
	if err != nil {
		return x.refusal(err)
	}
	x.onClose(accounts.Close)
	if x.account, err = accounts.Account(ctx, ""); err != nil {
		return x.refusal(err)
	}
	x.accounts = accounts
	mode := "test mode"
	if x.account.Livemode {
		mode = "live mode"
	}
	return good("%s, %s; every call is made in API version %s", x.account.ID, mode, stripego.APIVersion)
}

// refusal is the verdict of a way to Stripe that leads nowhere. The errors say themselves what to do, after a semicolon.
func (x *examination) refusal(err error) verdict {
	found, remedy, ok := strings.Cut(x.said(err), "; ")
	if !ok {
		remedy = "correct ONCEPAY_STRIPE_KEY, ONCEPAY_STRIPE_ACCOUNT or ONCEPAY_STRIPE_URL"
	}
	return bad(remedy, "%s", found)
}

// ownClock is a clock that was given, which the gateway does not compare with Stripe's.
type ownClock struct{ payments.Clock }

// checkStripeClock: look-ups ask for what Stripe created since a time of ours.
func checkStripeClock(_ context.Context, x *examination) verdict {
	if x.stripeNow.theirs.IsZero() {
		return warn("nothing can be done here; see that this machine's clock is set (NTP)", "Stripe's answer has no date")
	}
	return judgeClock("Stripe", x.stripeNow, Failed)
}
