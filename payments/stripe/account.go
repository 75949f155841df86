package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// readAccount asks Stripe which account the key belongs to, and in which mode; with Stripe-Account, that it answers for that one. A restricted
// key may be kept from either: its account must then be stated, and the mode is the one in the key's own prefix.
func (g *Gateway) readAccount(ctx context.Context, stated string) (payments.Account, error) {
	x, err := g.startCall(ctx, "/v1/account", "")
	if err != nil {
		return payments.Account{}, err
	}
	var account payments.Account
	if g.connected != "" {
		account.ID, err = g.connectedAccount(x)
	} else {
		account.ID, err = g.keyAccount(x, stated)
	}
	if err != nil {
		return payments.Account{}, err
	}
	account.Livemode, err = g.readMode(ctx)
	return account, err
}

// keyAccount is the account that the key belongs to, from the answer of /v1/account.
func (g *Gateway) keyAccount(x *exchange, stated string) (string, error) {
	var belongs string
	switch {
	case x.status != http.StatusForbidden:
		id, err := decodeAccount(x.body)
		if err != nil {
			return "", err
		}
		belongs = id
	case stated == "":
		return "", g.subject.needsAccount()
	default:
		belongs = namedInRefusal(x.body, stated)
	}
	if stated != "" && belongs != stated {
		return "", g.subject.accountDiffers(stated, belongs)
	}
	return belongs, nil
}

// connectedAccount is the one that calls with Stripe-Account go to. Such a call reaches that account or none, so that a key which may not read
// accounts at all needs nothing more.
func (g *Gateway) connectedAccount(x *exchange) (string, error) {
	if x.status == http.StatusForbidden {
		if e, _ := decodeError(x.body); e.Code == accountInvalid {
			return "", g.subject.setting("connected account", fmt.Sprintf("%s is not reached by ONCEPAY_STRIPE_KEY (403 account_invalid); connect it to that key's account", g.connected))
		}
		return g.connected, nil
	}
	id, err := decodeAccount(x.body)
	if err == nil && id != g.connected {
		err = g.subject.setting("connected account", fmt.Sprintf("is %s, but Stripe answered for %s", g.connected, id))
	}
	return g.connected, err
}

func decodeAccount(body []byte) (string, error) {
	var a struct{ ID, Object string }
	if json.Unmarshal(body, &a) != nil || a.Object != "account" || !validID(a.ID, "acct_") {
		return "", unavailable("/v1/account", "the answer is not an account")
	}
	return a.ID, nil
}

var accountPattern = regexp.MustCompile(`\bacct_[A-Za-z0-9]+`)

// namedInRefusal is the account that a refusal names ("… for this endpoint on account 'acct_…'"), else the stated one. No other use is made of
// such a text than to find out that an account was stated wrongly.
func namedInRefusal(body []byte, stated string) string {
	e, _ := decodeError(body)
	named := accountPattern.FindAllString(e.Message, 2)
	if len(named) == 1 {
		return named[0]
	}
	return stated
}

func (g *Gateway) readMode(ctx context.Context) (bool, error) {
	x, err := g.startCall(ctx, "/v1/balance", "")
	if err != nil {
		return false, err
	}
	if x.status == http.StatusForbidden {
		if !liveKey(g.key) && !testKey(g.key) {
			return false, g.subject.setting("ONCEPAY_STRIPE_KEY", "may not read its balance (403), and its form does not tell the mode; permit reading the balance")
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
		return false, g.subject.setting("ONCEPAY_STRIPE_KEY", "is of another mode (live or test) than Stripe says; check ONCEPAY_STRIPE_URL and the key")
	}
	return *b.Livemode, nil
}

// startCall reads an object at start; the answer is a 200 or a 403.
func (g *Gateway) startCall(ctx context.Context, path, query string) (*exchange, error) {
	x := get(path, query)
	g.do(ctx, x)
	_, shaped := decodeError(x.body)
	switch {
	case x.bug != nil:
		return nil, payments.Errorf(payments.CodeInternal, "GET %s: %s", path, x.bug.Error())
	case x.err != nil:
		return nil, unavailable(path, faultOf(x.err))
	case x.status == http.StatusUnauthorized && shaped:
		return nil, g.subject.setting("ONCEPAY_STRIPE_KEY", "was refused by Stripe (401); check that it is complete and was not rolled or expired")
	case x.status == http.StatusOK, x.status == http.StatusForbidden && shaped:
		return x, g.checkClock(x.header)
	case x.status >= 500:
		return nil, payments.Errorf(payments.CodeUnavailable, "Stripe, GET %s: answered %d; Stripe is failing: wait, payments wait too, and see https://status.stripe.com", path, x.status)
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
