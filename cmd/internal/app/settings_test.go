package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEverySetting: for each setting what is accepted at its bounds, and what is refused with a line that names it and never its value.
func TestEverySetting(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ good, bad []string }{
		"ONCEPAY_DATABASE_URL": {
			[]string{"", "postgres://u:p@h:5432/d", "postgresql://h/d?sslmode=disable", "host=h user=u password='a b' dbname=d"},
			[]string{"mysql://u:hunter2@h/d", "postgres://u:hunter2@h:notaport/d", "postgres://u:hunt/er2@h:5432/d", "nonsense", "postgres://h/d?sslmode=nonsense", "postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem"},
		},
		"ONCEPAY_NATS_URL": {
			[]string{"nats://h:4222", "h:4222", "tls://u:p@a:1,tls://u:p@b:2", "ws://h:80", " nats://a , nats://b "},
			[]string{"", "http://h", "nats://", "nats://a,,nats://b", "nats://u:hunter2@h:notaport"},
		},
		"ONCEPAY_NATS_CREDS":            {[]string{"", "/etc/nats.creds"}, nil},
		"ONCEPAY_NATS_CA":               {[]string{"", "/etc/ca.pem"}, nil},
		"ONCEPAY_NATS_CERT":             {[]string{"", "/etc/cert.pem"}, nil},
		"ONCEPAY_NATS_KEY":              {[]string{"", "/etc/key.pem"}, nil},
		"ONCEPAY_NATS_MONITOR_URL":      {[]string{"", "http://h:8222", "http://a:8222,https://b:8222"}, []string{"h:8222", "nats://h", "http://", "http://a,", "%"}},
		"ONCEPAY_NATS_SYNC_CONFIRMED":   {[]string{"true", "false", "1", "0"}, []string{"", "yes", "on"}},
		"ONCEPAY_SUBJECT_PREFIX":        {[]string{"", "payments", "a.b"}, []string{"a..b", "a b", "*", ">", "a\x00"}},
		"ONCEPAY_STREAM_MAX_BYTES":      {[]string{"1048576", "10737418240"}, []string{"", "1048575", "-1", "10GiB", "9223372036854775808"}},
		"ONCEPAY_STREAM_REPLICAS":       {[]string{"1", "3", "5"}, []string{"", "0", "2", "4", "7", "three"}},
		"ONCEPAY_ACK_WAIT":              {[]string{"1s", "30s", "1h"}, []string{"", "999ms", "61m", "30", "-30s"}},
		"ONCEPAY_NAMESPACE":             {[]string{"a", "oncepay", strings.Repeat("n", 63)}, []string{"", "a b", "ü", strings.Repeat("n", 64), "a\x00"}},
		"ONCEPAY_STRIPE_KEY":            {[]string{"", "sk_test_1", "rk_test_2"}, []string{"short", "pk_test_publishable", "sk_test_ hunter2", "sk_test_\x01hunter2", strings.Repeat("k", 501), "file:/nowhere/key"}},
		"ONCEPAY_STRIPE_ACCOUNT":        {[]string{"", "acct_1A"}, []string{"acct_", "1A", "acct_a/b", "acct_" + strings.Repeat("a", 255)}},
		"ONCEPAY_STRIPE_URL":            {[]string{"", "http://127.0.0.1:1/", "https://h"}, []string{"127.0.0.1:1", "ftp://h", "http://u:hunter2@h", "http://h/v1", "http://h?x=1", "http://h#x", "http://"}},
		"ONCEPAY_STRIPE_TIMEOUT":        {[]string{"100ms", "10m"}, []string{"", "99ms", "11m", "abc"}},
		"ONCEPAY_STRIPE_RATE":           {[]string{"0", "0.5", "20", "100000", "0.001"}, []string{"", "-1", "-0.1", "NaN", "Inf", "100001", "0.0001", "20/s", "1,5"}},
		"ONCEPAY_API_RATE":              {[]string{"0", "0.5", "1000"}, []string{"", "-1", "NaN", "1,5"}},
		"ONCEPAY_UNPUBLISHED_MAX":       {[]string{"1", "100000", "1000000"}, []string{"", "0", "-1", "many", "1000001"}},
		"ONCEPAY_ROLES":                 {[]string{"ingress", "worker", "relay", "worker, relay", "worker,worker"}, []string{"", "worker,", "boss"}},
		"ONCEPAY_HTTP_ADDR":             {[]string{"", "off", ":8080", "0.0.0.0:0", "[::1]:80"}, []string{"8080", "h", "h:", "::1:80"}},
		"ONCEPAY_ADMIN_ADDR":            {[]string{"", "off", "127.0.0.1:0", "[::1]:80", "localhost:80"}, []string{"8080", ":8080", "0.0.0.0:80", "10.0.0.1:80", "example.com:80"}},
		"ONCEPAY_CONCURRENCY":           {[]string{"512", "10000"}, []string{"", "0", "-1", "10001", "1e3", "99999999999999999999"}},
		"ONCEPAY_LEASE":                 {[]string{"1s", "1h"}, []string{"", "999ms", "61m"}},
		"ONCEPAY_RETRY_FIRST":           {[]string{"1ms", "1h"}, []string{"", "0s", "61m"}},
		"ONCEPAY_RETRY_MAX":             {[]string{"1ms", "24h"}, []string{"", "0s", "25h"}},
		"ONCEPAY_LOOK_WITHIN":           {[]string{"1ms", "1h"}, []string{"", "0s", "61m"}},
		"ONCEPAY_MAX_TRIES":             {[]string{"1", "1000000"}, []string{"", "0", "1000001"}},
		"ONCEPAY_RESUBMIT_AFTER_ABSENT": {[]string{"true", "false"}, []string{"", "yes", "2"}},
		"ONCEPAY_DRAIN":                 {[]string{"1s", "1h"}, []string{"", "0s", "61m"}},
		"ONCEPAY_LOG_LEVEL":             {[]string{"debug", "info", "warn", "error"}, []string{"", "INFO", "loud"}},
	}
	for _, name := range Names() {
		c, ok := cases[name]
		if !ok {
			t.Errorf("%s has no test", name)
		}
		for _, v := range c.good {
			if _, err := Load(given(map[string]string{name: v})); err != nil {
				t.Errorf("%s=%q: %v", name, v, err)
			}
		}
		for _, v := range c.bad {
			_, err := Load(given(map[string]string{name: v}))
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, name+": ") {
				t.Errorf("%s=%q: %v", name, v, err)
				continue
			}
			if strings.Contains(usage.Text, "\n") || strings.Contains(usage.Text, "hunt") || strings.Contains(usage.Text, "er2") {
				t.Errorf("%s: the error shows too much: %q", name, usage.Text)
			}
		}
	}
}

func TestSettingsSourcesAndDefaults(t *testing.T) {
	t.Parallel()
	s, err := Load(given(nil))
	if err != nil || s.Concurrency != 512 || s.StripeTimeout != 30*time.Second || s.Lease != 45*time.Second || s.AckWait != 30*time.Second || s.MaxTries != 20 ||
		s.StreamMaxBytes != 10<<30 || s.RetryFirst != 500*time.Millisecond || s.RetryMax != 5*time.Minute || s.Namespace != "oncepay" || s.AdminAddr != "" || s.StripeRate != 20 {
		t.Errorf("defaults: %+v, %v", s, err)
	}
	flag, env, file := given(map[string]string{"ONCEPAY_LEASE": "1m"}), given(map[string]string{"ONCEPAY_LEASE": "2m", "ONCEPAY_DRAIN": "2m"}),
		given(map[string]string{"ONCEPAY_LEASE": "3m", "ONCEPAY_DRAIN": "3m", "ONCEPAY_RETRY_MAX": "3m"})
	s, err = Load(flag, env, file)
	if err != nil || s.Lease != time.Minute || s.DrainBudget != 2*time.Minute || s.RetryMax != 3*time.Minute {
		t.Errorf("order of sources: %+v, %v", s, err)
	}
}

func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	s, err := Load(given(map[string]string{
		"ONCEPAY_STRIPE_KEY": file("key", "sk_test_fromfile\n"), "ONCEPAY_DATABASE_URL": file("db", " postgres://u:p@h/d \n"), "ONCEPAY_NATS_URL": file("nats", "nats://u:p@h:1"),
	}))
	if err != nil || s.StripeKey != "sk_test_fromfile" || s.DatabaseURL != "postgres://u:p@h/d" || s.NATSURL != "nats://u:p@h:1" {
		t.Errorf("%+v, %v", s, err)
	}
	for name, want := range map[string]string{
		file("empty", " \n"): "the file is empty", "file:" + filepath.Join(dir, "missing"): "cannot be read: no such file", "file:" + dir: "cannot be read",
		file("bad", "two words of secret"): "without spaces",
	} {
		if _, err := Load(given(map[string]string{"ONCEPAY_STRIPE_KEY": name})); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "two words") {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestCheckServe(t *testing.T) {
	t.Parallel()
	base := map[string]string{"ONCEPAY_DATABASE_URL": "postgres://h/d", "ONCEPAY_STRIPE_KEY": "sk_test_12345"}
	live := "sk_live_12345"
	for name, c := range map[string]struct {
		change map[string]string
		want   string // "" is accepted
	}{
		"complete":                     {nil, ""},
		"no database":                  {map[string]string{"ONCEPAY_DATABASE_URL": ""}, "ONCEPAY_DATABASE_URL: is required"},
		"no key":                       {map[string]string{"ONCEPAY_STRIPE_KEY": ""}, "ONCEPAY_STRIPE_KEY: is required"},
		"a relay needs no key":         {map[string]string{"ONCEPAY_STRIPE_KEY": "", "ONCEPAY_ROLES": "relay"}, ""},
		"lease as long as the call":    {map[string]string{"ONCEPAY_LEASE": "30s"}, "ONCEPAY_LEASE: must be longer than ONCEPAY_STRIPE_TIMEOUT"},
		"lease longer":                 {map[string]string{"ONCEPAY_LEASE": "31s"}, ""},
		"retries the wrong way":        {map[string]string{"ONCEPAY_RETRY_FIRST": "2m", "ONCEPAY_RETRY_MAX": "1m"}, "ONCEPAY_RETRY_MAX: must not be shorter"},
		"certificate without key":      {map[string]string{"ONCEPAY_NATS_CERT": "c"}, "must be given together"},
		"live, unknown sync":           {map[string]string{"ONCEPAY_STRIPE_KEY": live}, "ONCEPAY_NATS_MONITOR_URL: is required with a live key"},
		"live, confirmed":              {map[string]string{"ONCEPAY_STRIPE_KEY": live, "ONCEPAY_NATS_SYNC_CONFIRMED": "true"}, ""},
		"live, to be seen":             {map[string]string{"ONCEPAY_STRIPE_KEY": live, "ONCEPAY_NATS_MONITOR_URL": "http://h:8222"}, ""},
		"live, another Stripe":         {map[string]string{"ONCEPAY_STRIPE_KEY": live, "ONCEPAY_NATS_SYNC_CONFIRMED": "true", "ONCEPAY_STRIPE_URL": "http://127.0.0.1:1"}, "ONCEPAY_STRIPE_URL: must be left out"},
		"live, Stripe by name":         {map[string]string{"ONCEPAY_STRIPE_KEY": live, "ONCEPAY_NATS_SYNC_CONFIRMED": "true", "ONCEPAY_STRIPE_URL": "https://api.stripe.com/"}, ""},
		"live restricted, another":     {map[string]string{"ONCEPAY_STRIPE_KEY": "rk_live_12345", "ONCEPAY_STRIPE_URL": "https://api.stripe.com.example"}, "ONCEPAY_STRIPE_URL: must be left out"},
		"live, a relay charges nobody": {map[string]string{"ONCEPAY_STRIPE_KEY": live, "ONCEPAY_ROLES": "relay"}, ""},
	} {
		s, err := Load(given(c.change), given(base))
		if err != nil {
			t.Fatal(err)
		}
		err = s.CheckServe()
		var usage *UsageError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &usage) || !strings.Contains(usage.Text, c.want) || strings.Contains(usage.Text, "12345")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestEffectiveHidesSecrets(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"postgres://user:hunter2@h:5432/d?sslmode=disable&password=hunter2": "postgres://user:xxxxx@h:5432/d",
		"postgres://user@h/d":                            "postgres://user@h/d",
		"host=h user=u password=hunter2 dbname=d":        "(set)",
		"postgres://u:1?hunter2@h/d":                     "(set)",
		"postgres://u:1#hunter2@h/d":                     "(set)",
		"postgres://u:1/hunter2@h/d":                     "(set)",
		"postgres://u:hunter2%zz@h/d":                    "(set)",
		"nats://u:hunter2@a:1,nats://v:hunter2@b:2":      "nats://u:xxxxx@a:1,nats://v:xxxxx@b:2",
		"nats://hunter2@a:1, tls://b:2":                  "nats://xxxxx@a:1,tls://b:2",
		"nats://u:hunt,er2@a:1":                          "(set)",
		"nats://u:1,hunter2@a:1":                         "(set)",
		"a:1,u:hunter2@b:2":                              "(set)",
		"sk_test_hunter2":                                "(set)",
		"file:/run/secrets/key":                          "file:/run/secrets/key",
		"":                                               "",
		"http://u:hunter2@127.0.0.1:8222/?token=hunter2": "http://u:xxxxx@127.0.0.1:8222/",
	} {
		if got := hide(value); got != want || strings.Contains(got, "hunt") || strings.Contains(got, "er2") {
			t.Errorf("hide(%q) = %q, want %q", value, got, want)
		}
	}
	values := map[string]string{}
	for _, name := range Names() {
		values[name] = "xx_hunter2"
	}
	for _, pair := range Effective(given(values)) {
		secret := strings.Contains(pair[0], "URL") && pair[0] != "ONCEPAY_STRIPE_URL" || pair[0] == "ONCEPAY_STRIPE_KEY"
		if shown := strings.Contains(pair[1], "hunter2"); shown == secret {
			t.Errorf("%s is shown as %q", pair[0], pair[1])
		}
	}
}
