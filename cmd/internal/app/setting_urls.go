package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments/stripe"
)

// None of these errors repeats the value: it may hold a password.

func databaseURL(s *Settings, v string) error {
	return secret(func(s *Settings) *string { return &s.DatabaseURL }, func(v string) error {
		_, err := pgx.ParseConfig(v)
		var file *fs.PathError
		switch {
		case v == "" || err == nil:
			return nil
		case errors.As(err, &file):
			return fmt.Errorf("names a file that cannot be read: %w", file)
		default:
			return errors.New("must be a PostgreSQL URL such as postgres://user:password@host:5432/database, with what is special in a password percent-encoded")
		}
	})(s, v)
}

func natsURL(s *Settings, v string) error {
	return secret(func(s *Settings) *string { return &s.NATSURL }, func(v string) error {
		for server := range strings.SplitSeq(v, ",") {
			server = strings.TrimSpace(server)
			if !strings.Contains(server, "://") {
				server = "nats://" + server
			}
			u, err := url.Parse(server)
			if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
				return errors.New("must be nats://host:4222 (or tls, ws, wss), several comma separated")
			}
		}
		return nil
	})(s, v)
}

// webURL is the address of an HTTP server, or several comma separated; "" where there is none.
func webURL(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		for one := range strings.SplitSeq(v, ",") {
			u, err := url.Parse(strings.TrimSpace(one))
			if v != "" && (err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https") {
				return errors.New("must be an http or https URL")
			}
		}
		*field(s) = v
		return nil
	}
}

func stripeURL(s *Settings, v string) error {
	u, err := url.Parse(v)
	if v != "" && (err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || strings.ContainsAny(v, "?#")) {
		return errors.New("must be an http or https URL without user, path, query or fragment")
	}
	s.StripeURL = strings.TrimRight(v, "/")
	return nil
}

func stripeKey(v string) error {
	switch {
	case v == "":
		return nil
	case strings.HasPrefix(v, "pk_"):
		return errors.New("is a publishable key; a secret or restricted one is needed (sk_… or rk_…)")
	case len(v) < 8 || len(v) > 500 || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("must be a secret or restricted key of Stripe's (sk_… or rk_…), without spaces")
	}
	return nil
}

func stripeAccount(s *Settings, v string) error {
	word := func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if v != "" && (!strings.HasPrefix(v, "acct_") || v == "acct_" || len(v) > 255 || strings.ContainsFunc(v, word)) {
		return errors.New("must be an account id, acct_…")
	}
	s.StripeAccount = v
	return nil
}

// live reports whether the key moves real money, by the form of Stripe's keys.
func (s Settings) live() bool { return strings.Contains(s.StripeKey, "_live_") }

// checkLive checks what only a live key asks for, as far as it can be told without asking anybody.
func (s Settings) checkLive() error {
	switch {
	case !s.live():
		return nil
	case s.StripeURL != "" && s.StripeURL != stripe.DefaultURL:
		return &UsageError{"ONCEPAY_STRIPE_URL: must be left out with a live key: that key is sent to " + stripe.DefaultURL + " only"}
	case !s.NATSSyncConfirmed && s.NATSMonitorURL == "":
		return errNoMonitor
	}
	return nil
}

func address(field func(*Settings) *string) func(*Settings, string) error {
	return func(s *Settings, v string) error {
		if v == "off" || v == "" {
			*field(s) = ""
			return nil
		}
		if _, port, err := net.SplitHostPort(v); err != nil || port == "" {
			return errors.New("must be host:port, or off")
		}
		*field(s) = v
		return nil
	}
}

// adminAddress is on this machine: operators reach it from there, or through a tunnel.
func adminAddress(s *Settings, v string) error {
	if err := address(func(s *Settings) *string { return &s.AdminAddr })(s, v); err != nil || s.AdminAddr == "" {
		return err
	}
	host, _, _ := net.SplitHostPort(v)
	if at, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !at.IsLoopback()) {
		return errors.New("must be on this machine, such as 127.0.0.1:8081, or off")
	}
	return nil
}

// hide keeps of a value what is no secret: of URLs, host and path and, beside a password, the user; of anything else, nothing.
func hide(value string) string {
	if value == "" || strings.HasPrefix(value, "file:") {
		return value
	}
	var shown []string
	for one := range strings.SplitSeq(value, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" || u.User == nil && strings.Contains(one, "@") || strings.Contains(u.Path, "@") {
			return "(set)" // a password with a / or a ? that was not encoded may stand anywhere
		}
		u.RawQuery, u.Fragment = "", ""
		if _, both := u.User.Password(); u.User != nil && !both && u.Scheme != "postgres" && u.Scheme != "postgresql" {
			u.User = url.User("xxxxx") // a token
		}
		shown = append(shown, u.Redacted())
	}
	return strings.Join(shown, ",")
}
