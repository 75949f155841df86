package doctor

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// secrets are texts that must not be shown, whatever a library puts into its errors.
type secrets []string

// secretMin is the length from which on a text is looked for: a password of one letter would cover all of a report.
const secretMin = 4

func secretsOf(s app.Settings) secrets {
	list := secrets{s.StripeKey}
	if config, err := pgx.ParseConfig(s.DatabaseURL); err == nil {
		list = append(list, config.Password, url.QueryEscape(config.Password), url.PathEscape(config.Password))
	}
	for _, text := range []string{s.NATSURL, s.NATSMonitorURL} {
		for one := range strings.SplitSeq(text, ",") {
			u, err := url.Parse(strings.TrimSpace(one))
			if err != nil || u.User == nil {
				continue
			}
			secret, both := u.User.Password()
			if !both {
				secret = u.User.Username() // a token
			}
			list = append(list, secret, url.QueryEscape(secret), url.PathEscape(secret))
		}
	}
	return list
}

// said is an error as one line that may be shown.
func (x *examination) said(err error) string { return x.secrets.hide(app.OneLine(err.Error())) }

// hide covers every secret in the text. It is for what others say; our own words hold none, and may well hold a password that is a common word.
func (l secrets) hide(text string) string {
	for _, secret := range l {
		if len(secret) >= secretMin {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return text
}
