package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// readAccount asks Stripe which account the key belongs to, and in which mode. A restricted key may be kept from either: the account must
// then be set, and the mode is the one in the key's own prefix.
func (g *Gateway) readAccount(ctx context.Context, configured string) (payments.Account, error) {
	var account payments.Account
	x, err := g.startCall(ctx, "/v1/account")
	switch {
	case err != nil:
		return account, err
	case x.status == http.StatusForbidden && configured == "" && g.connected == "":
		return account, setting("ONCEPAY_STRIPE_ACCOUNT", "is needed: the key may not read its own account (403); set the id acct_… that the key belongs to")
	case x.status == http.StatusForbidden:
		account.ID = configured
	default:
		var a struct{ ID, Object string }
		if json.Unmarshal(x.body, &a) != nil || a.Object != "account" || !validID(a.ID, "acct_") {
			return account, unavailable("/v1/account", "the answer is not an account")
		}
		account.ID = a.ID
	}
	if configured != "" && g.connected == "" && account.ID != configured {
		return account, setting("ONCEPAY_STRIPE_ACCOUNT", fmt.Sprintf("is %s, but the key belongs to %s; correct one of them", configured, account.ID))
	}
	if g.connected != "" {
		if x.status != http.StatusForbidden && account.ID != g.connected {
			return account, setting("connected account", fmt.Sprintf("is %s, but Stripe answered for %s", g.connected, account.ID))
		}
		account.ID = g.connected
	}
	account.Livemode, err = g.readMode(ctx)
	return account, err
}

func (g *Gateway) readMode(ctx context.Context) (bool, error) {
	x, err := g.startCall(ctx, "/v1/balance")
	if err != nil {
		return false, err
	}
	if x.status == http.StatusForbidden {
		if !liveKey(g.key) && !testKey(g.key) {
			return false, setting("ONCEPAY_STRIPE_KEY", "may not read its balance (403), and its form does not tell the mode; permit reading the balance")
		}
		return liveKey(g.key), nil
	}
	var b struct {
		Object   string
		Livemode *bool
	}
	if json.Unmarshal(x.body, &b) != nil || b.Object != "balance" || b.Livemode == nil {
		return false, unavailable("/v1/balance", "the answer is not a balance")
	}
	if liveKey(g.key) && !*b.Livemode || testKey(g.key) && *b.Livemode {
		return false, setting("ONCEPAY_STRIPE_KEY", "is of another mode (live or test) than Stripe says; check ONCEPAY_STRIPE_URL and the key")
	}
	return *b.Livemode, nil
}

// startCall reads an object at start; the answer is a 200 or a 403.
func (g *Gateway) startCall(ctx context.Context, path string) (*exchange, error) {
	x := get(path, "")
	g.do(ctx, x, nil)
	_, shaped := decodeError(x.body)
	switch {
	case x.bug != nil:
		return nil, payments.Errorf(payments.CodeInternal, "GET %s: %s", path, x.bug.Error())
	case x.err != nil:
		return nil, unavailable(path, faultOf(x.err))
	case x.status == http.StatusUnauthorized && shaped:
		return nil, setting("ONCEPAY_STRIPE_KEY", "was refused by Stripe (401); check that it is complete and was not rolled or expired")
	case x.status == http.StatusOK, x.status == http.StatusForbidden && shaped:
		return x, g.checkClock(x.header)
	default:
		return nil, unavailable(path, fmt.Sprintf("answered %d", x.status))
	}
}

// skewMax is how far this machine's clock may be from Stripe's at start. Look-ups ask for what Stripe created since 5 minutes before a send, in
// our time: a charge that Stripe dates before that would be taken for absent, and sent again. An HTTP date counts whole seconds.
const skewMax = time.Minute

// checkClock compares our clock with the Date of an answer (RFC 9110, section 6.6.1). A clock that was given is the caller's own matter.
func (g *Gateway) checkClock(header http.Header) error {
	date, err := http.ParseTime(header.Get("Date"))
	if _, ours := g.clock.(systemClock); err != nil || !ours {
		return nil
	}
	if skew := g.clock.Now().Sub(date); skew.Abs() > skewMax {
		return setting("clock", fmt.Sprintf("of this machine differs from Stripe's by %s; set it (NTP), since look-ups by time would miss charges", skew.Round(time.Second)))
	}
	return nil
}

func unavailable(path, what string) error {
	return payments.Errorf(payments.CodeUnavailable, "Stripe, GET %s: %s; check ONCEPAY_STRIPE_URL and the network", path, what)
}
