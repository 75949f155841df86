package app

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/consumer"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/schema"
)

// Settings are the effective settings of one process. Each comes from a flag, else the environment, else the settings file.
type Settings struct {
	DatabaseURL       string
	NATSURL           string
	NATSCreds         string
	NATSCA            string
	NATSCert          string
	NATSKey           string
	NATSMonitorURL    string
	NATSSyncConfirmed bool
	SubjectPrefix     string
	StreamMaxBytes    int64
	StreamReplicas    int
	AckWait           time.Duration

	Namespace     string
	StripeKey     string
	StripeAccount string
	StripeURL     string
	StripeRate    float64 // calls a second; 0: unlimited
	StripeTimeout time.Duration

	Roles       []string
	HTTPAddr    string
	APIRate     float64 // requests a second of each API key; 0: unlimited
	Unpublished int64   // how many accepted payments may wait to be published
	AdminAddr   string
	Concurrency int
	Lease       time.Duration
	RetryFirst  time.Duration
	RetryMax    time.Duration
	LookWithin  time.Duration
	MaxTries    int
	// ResubmitAfterAbsent submits a payment again whose absence at Stripe is proven, instead of leaving it to a person.
	ResubmitAfterAbsent bool
	DrainBudget         time.Duration
	LogLevel            string
}

// setting is one row of the table of settings: its name, default and meaning, and how its text gets into Settings.
type setting struct {
	name   string // ONCEPAY_…
	preset string
	usage  string
	secret bool
	set    func(*Settings, string) error
}

// table is every setting that this version reads.
var table = []setting{
	{"ONCEPAY_DATABASE_URL", "", "PostgreSQL, as a URL: postgres://user:password@host:5432/database, or file:/path of it", true, databaseURL},
	{"ONCEPAY_NATS_URL", "nats://127.0.0.1:4222", "NATS servers, comma separated, or file:/path of them", true, natsURL},
	{"ONCEPAY_NATS_CREDS", "", "path of a NATS credentials file", false, text(func(s *Settings) *string { return &s.NATSCreds })},
	{"ONCEPAY_NATS_CA", "", "path of the certificate authority of the NATS servers", false, text(func(s *Settings) *string { return &s.NATSCA })},
	{"ONCEPAY_NATS_CERT", "", "path of the client certificate for NATS", false, text(func(s *Settings) *string { return &s.NATSCert })},
	{"ONCEPAY_NATS_KEY", "", "path of the key of the client certificate for NATS", false, text(func(s *Settings) *string { return &s.NATSKey })},
	{"ONCEPAY_NATS_MONITOR_URL", "", "monitoring endpoint of NATS, to see that it syncs every write; of each server, comma separated", true, webURL(func(s *Settings) *string { return &s.NATSMonitorURL })},
	{"ONCEPAY_NATS_SYNC_CONFIRMED", "false", "true: you confirm that NATS runs with sync_interval: always", false, boolean(func(s *Settings) *bool { return &s.NATSSyncConfirmed })},
	{"ONCEPAY_SUBJECT_PREFIX", schema.DefaultPrefix, "first token of all subjects; streams are named after it", false, prefix},
	{"ONCEPAY_STREAM_MAX_BYTES", strconv.FormatInt(schema.DefaultStreamMaxBytes, 10), "how large each stream may grow, in bytes", false, whole(func(s *Settings) *int64 { return &s.StreamMaxBytes }, 1<<20, math.MaxInt64)},
	{"ONCEPAY_STREAM_REPLICAS", "1", "copies of each stream: 1, 3 or 5", false, replicas},
	{"ONCEPAY_ACK_WAIT", "30s", "how long a worker may hold a message before it is delivered again", false, duration(func(s *Settings) *time.Duration { return &s.AckWait }, time.Second, time.Hour)},
	{"ONCEPAY_NAMESPACE", "oncepay", "name of this installation: part of every key that Stripe sees; a database that was begun under another is refused", false, namespace},
	{"ONCEPAY_STRIPE_KEY", "", "secret key of Stripe, or file:/path", true, secret(func(s *Settings) *string { return &s.StripeKey }, stripeKey)},
	{"ONCEPAY_STRIPE_ACCOUNT", "", "account id (acct_…), needed only when the key may not read its own account", false, stripeAccount},
	{"ONCEPAY_STRIPE_URL", "", "another server than Stripe's, such as the simulator; refused with a live key", false, stripeURL},
	{"ONCEPAY_STRIPE_TIMEOUT", "30s", "time-out of one call to Stripe", false, duration(func(s *Settings) *time.Duration { return &s.StripeTimeout }, 100*time.Millisecond, 10*time.Minute)},
	{"ONCEPAY_STRIPE_RATE", "20", "payments a second that are begun on each Stripe account, all processes together; 0: unlimited. The same for every process", false, perSecond(func(s *Settings) *float64 { return &s.StripeRate })},
	{"ONCEPAY_ROLES", strings.Join(Roles(), ","), "what this process does, comma separated", false, roles},
	{"ONCEPAY_HTTP_ADDR", "127.0.0.1:8080", "listen address of the HTTP API, health and metrics; off: none, and the ingress role serves nobody", false, address(func(s *Settings) *string { return &s.HTTPAddr })},
	{"ONCEPAY_API_RATE", "1000", "requests a second that each API key may make of this process, beyond which they are answered 429; 0: unlimited", false, perSecond(func(s *Settings) *float64 { return &s.APIRate })},
	{"ONCEPAY_UNPUBLISHED_MAX", "100000", "accepted payments that may wait to be published while NATS is away or full, before the HTTP API answers 503", false, whole(func(s *Settings) *int64 { return &s.Unpublished }, 1, postgres.UnpublishedMax)},
	{"ONCEPAY_ADMIN_ADDR", "off", "second listen address for health and metrics, for operators on this machine; off: none", false, adminAddress},
	{"ONCEPAY_CONCURRENCY", "512", "payments in flight in this process", false, number(func(s *Settings) *int { return &s.Concurrency }, consumer.ConcurrencyMin, 10_000)},
	{"ONCEPAY_LEASE", "45s", "how long a worker owns a payment; longer than ONCEPAY_STRIPE_TIMEOUT", false, duration(func(s *Settings) *time.Duration { return &s.Lease }, time.Second, time.Hour)},
	{"ONCEPAY_RETRY_FIRST", "500ms", "upper bound of the wait before the first retry", false, duration(func(s *Settings) *time.Duration { return &s.RetryFirst }, time.Millisecond, time.Hour)},
	{"ONCEPAY_RETRY_MAX", "5m", "upper bound of the wait before any retry", false, duration(func(s *Settings) *time.Duration { return &s.RetryMax }, time.Millisecond, 24*time.Hour)},
	{"ONCEPAY_LOOK_WITHIN", "2s", "the first look-up comes within this time of an unknown answer", false, duration(func(s *Settings) *time.Duration { return &s.LookWithin }, time.Millisecond, time.Hour)},
	{"ONCEPAY_MAX_TRIES", "20", "answers that prove that nothing was executed, before a payment stalls", false, number(func(s *Settings) *int { return &s.MaxTries }, 1, 1_000_000)},
	{"ONCEPAY_RESUBMIT_AFTER_ABSENT", "false", "true: a payment in doubt of which Stripe proves to have nothing is submitted again; false: a person decides (needs_review)", false, boolean(func(s *Settings) *bool { return &s.ResubmitAfterAbsent })},
	{"ONCEPAY_DRAIN", "50s", "how long a stopping process may finish what is in flight", false, duration(func(s *Settings) *time.Duration { return &s.DrainBudget }, time.Second, time.Hour)},
	{"ONCEPAY_LOG_LEVEL", "info", "debug, info, warn or error", false, oneOf(func(s *Settings) *string { return &s.LogLevel }, "debug", "info", "warn", "error")},
}

// Names lists the settings in the order of the table.
func Names() []string {
	names := make([]string, len(table))
	for i, t := range table {
		names[i] = t.name
	}
	return names
}

// FlagOf is a setting's flag: ONCEPAY_STRIPE_KEY is --stripe-key.
func FlagOf(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "ONCEPAY_")), "_", "-")
}

// Usage is what --help says of a setting.
func Usage(name string) string {
	t := table[slices.Index(Names(), name)]
	if t.preset == "" {
		return t.usage
	}
	return fmt.Sprintf("%s (default %s)", t.usage, t.preset)
}

// UsageError is a mistake of whoever started the program: one clear line, and exit code 2.
type UsageError struct{ Text string }

// Error is the line.
func (e *UsageError) Error() string { return e.Text }

// Source tells the text of a setting, and whether it is set.
type Source func(name string) (string, bool)

// text is the text of a setting, from the first source that has it.
func (t setting) text(sources []Source) string {
	for _, from := range sources {
		if v, ok := from(t.name); ok {
			return strings.TrimSpace(v)
		}
	}
	return t.preset
}

// Load reads every setting from the first source that has it, and checks them all. The error names the setting and never its value.
func Load(sources ...Source) (Settings, error) {
	var s Settings
	for _, t := range table {
		if err := t.set(&s, t.text(sources)); err != nil {
			return s, &UsageError{t.name + ": " + err.Error()}
		}
	}
	return s, nil
}

// Effective lists name and shown value of every setting: secrets are hidden.
func Effective(sources ...Source) [][2]string {
	list := make([][2]string, len(table))
	for i, t := range table {
		value := t.text(sources)
		if t.secret {
			value = hide(value)
		}
		list[i] = [2]string{t.name, value}
	}
	return list
}

// Environment reads the process's environment.
func Environment(name string) (string, bool) { return os.LookupEnv(name) }

// RequireDatabase, RequireStripe and CheckServe name what a command cannot do without.
func (s Settings) RequireDatabase() error {
	if s.DatabaseURL == "" {
		return &UsageError{"ONCEPAY_DATABASE_URL: is required, for example postgres://oncepay@127.0.0.1:5432/oncepay"}
	}
	return nil
}

// CheckServe checks what the program for production needs.
func (s Settings) CheckServe() error {
	if err := s.RequireDatabase(); err != nil {
		return err
	}
	if slices.Contains(s.Roles, RoleWorker) && s.StripeKey == "" {
		return &UsageError{"ONCEPAY_STRIPE_KEY: is required for the worker role: a secret key of Stripe, or file:/path of one"}
	}
	if slices.Equal(s.Roles, []string{RoleIngress}) && s.HTTPAddr == "" {
		return &UsageError{"ONCEPAY_HTTP_ADDR: is needed for the ingress role: an address to listen on"}
	}
	if s.Lease <= s.StripeTimeout {
		return &UsageError{"ONCEPAY_LEASE: must be longer than ONCEPAY_STRIPE_TIMEOUT, or no call could be made within it"}
	}
	if s.RetryMax < s.RetryFirst {
		return &UsageError{"ONCEPAY_RETRY_MAX: must not be shorter than ONCEPAY_RETRY_FIRST"}
	}
	if (s.NATSCert == "") != (s.NATSKey == "") {
		return &UsageError{"ONCEPAY_NATS_CERT and ONCEPAY_NATS_KEY: must be given together"}
	}
	if slices.Contains(s.Roles, RoleWorker) {
		return s.checkLive()
	}
	return nil
}

// Backoff is the retry policy of these settings.
func (s Settings) Backoff() payments.Backoff {
	return payments.Backoff{First: s.RetryFirst, Max: s.RetryMax, SoonMax: s.LookWithin}
}

// otherNames are variables of ours that are no settings of a process, and those that commands of later versions read.
var otherNames = []string{
	"ONCEPAY_CONFIG", "ONCEPAY_SABOTAGE", "ONCEPAY_DEV_API_KEY", "ONCEPAY_API_URL", "ONCEPAY_API_KEY", "ONCEPAY_ACTOR",
}

// Unknown lists the names that look like settings of ours and are none: a setting with a slip in its name would silently mean its default.
func Unknown(names []string) []string {
	var unknown []string
	for _, name := range names {
		if strings.HasPrefix(name, "ONCEPAY_") && !slices.Contains(Names(), name) && !slices.Contains(otherNames, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}
