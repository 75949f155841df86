package stripe

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// DefaultURL is Stripe's own address, the only one that a live key is ever sent to.
const DefaultURL = "https://api.stripe.com"

// Options configure a Gateway.
type Options struct {
	Key              string        // secret or restricted API key
	URL              string        // "" : DefaultURL. A live key is refused with any other
	AccountID        string        // acct_…; needed only when the key may not read its own account
	ConnectedAccount string        // acct_… that a platform's key acts for; "" : the key's own account
	Namespace        string        // the installation's name, as in payments.StripeKey
	Timeout          time.Duration // of one call, from its start to the last byte of its answer; 0: 30 s
	MaxConns         int           // connections open at once; as many calls run without waiting for one. 0: 512
	Clock            payments.Clock
	Logger           *slog.Logger // told of bugs, and of tenants whose accounts cannot be used; nil: slog.Default

	tls     *tls.Config     // tests trust a server of their own
	inner   *http.Transport // connections shared with other gateways; nil: its own
	subject subject         // whom errors name
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (o Options) tlsConfig() *tls.Config {
	if o.tls != nil {
		return o.tls
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// complete checks the options and fills in what was left out. Its errors name the setting and never contain the key.
func (o Options) complete() (Options, error) {
	if o.URL == "" {
		o.URL = DefaultURL
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxConns == 0 {
		o.MaxConns = 512
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	switch {
	case !validKey(o.Key):
		return o, setting("ONCEPAY_STRIPE_KEY", "must be a secret or restricted key of Stripe's (sk_… or rk_…), without spaces")
	case liveKey(o.Key) && o.URL != DefaultURL:
		return o, setting("ONCEPAY_STRIPE_URL", "must be left out with a live key: that key is sent to "+DefaultURL+" only")
	case !validURL(o.URL):
		return o, setting("ONCEPAY_STRIPE_URL", "must be an http or https address without user, path, query or fragment")
	case o.AccountID != "" && !validID(o.AccountID, "acct_"):
		return o, setting("ONCEPAY_STRIPE_ACCOUNT", "must be an account id, acct_…")
	case o.ConnectedAccount != "" && !validID(o.ConnectedAccount, "acct_"):
		return o, setting("connected account", "must be an account id, acct_…")
	case o.Namespace == "" || strings.ContainsRune(o.Namespace, 0) || len(o.Namespace) > 500:
		return o, setting("ONCEPAY_NAMESPACE", "must be 1 to 500 characters")
	case o.Timeout < 0:
		return o, setting("ONCEPAY_STRIPE_TIMEOUT", "must be positive")
	case o.MaxConns < 0:
		return o, setting("connections", "must be positive")
	}
	return o, nil
}

func setting(name, remedy string) error {
	return &payments.Error{Code: payments.CodeInvalid, Field: name, Message: remedy}
}

func validKey(key string) bool {
	if len(key) < 8 || len(key) > 500 || strings.HasPrefix(key, "pk_") {
		return false
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7E {
			return false
		}
	}
	return true
}

// liveKey reports whether the key moves real money, by the form of Stripe's keys; an organisation's key reads sk_org_live_.
func liveKey(key string) bool { return strings.Contains(key, "_live_") }

// testKey reports whether the key is one of test mode.
func testKey(key string) bool { return strings.Contains(key, "_test_") }

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.HasSuffix(u.Host, ":") && u.User == nil && u.Path == "" &&
		u.RawQuery == "" && !strings.ContainsAny(s, "?#") && u.Opaque == ""
}

// validID reports whether s is an id of Stripe's with the prefix; only such an id is put into a path.
func validID(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	if !ok || rest == "" || len(s) > 255 {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' {
			return false
		}
	}
	return true
}
