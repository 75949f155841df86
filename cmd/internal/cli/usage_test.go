package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

const card = "4242424242424242"

// TestUsage: whatever somebody types wrong is one line, exit code 2 and nothing on standard output.
func TestUsage(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	for _, c := range []struct{ args, want string }{
		{"bogus", `unknown command "bogus"; there are serve,`},
		{"--json", "needs a command"},
		{"--nope", "unknown flag: --nope"},
		{"dlq", "dlq: needs a command: list, show"},
		{"dlq --json", "dlq: needs a command: list, show"},
		{"dlq bogus", `dlq: unknown command "bogus"`},
		{"dlq bogus --help", `dlq: unknown command "bogus"`},
		{"bogus --help", `unknown command "bogus"; there are serve,`},
		{"completion nosh --help", "unknown command"},
		{"keys create --tenant A", "--tenant: must be 1 to 63"},
		{"payments", "payments: needs a command"},
		{"tenants", "tenants: needs a command"},
		{"keys", "keys: needs a command"},
		{"migrate", "migrate: needs a command: up, status"},
		{"tenants create", "usage: oncepay tenants create NAME"},
		{"tenants create a b", "wrong number of arguments (2)"},
		{"tenants list extra", "wrong number of arguments (1)"},
		{"dlq show", "usage: oncepay dlq show ID"},
		{"keys revoke", "usage: oncepay keys revoke ID"},
		{"serve now", "wrong number of arguments"},
		{"version 1", "wrong number of arguments"},
		{"completion", "needs a shell: bash, zsh, fish"},
		{"completion nosh", "unknown command"},
		{"help bogus", "there is no such command"},
		{"payments show", "either an id (pay_…, ref_…, op_…), or --tenant and --key"},
		{"payments show pay_00 --key k", "either an id (pay_…, ref_…, op_…), or --tenant and --key"},
		{"payments show --key k", "--tenant: is required with --key"},
		{"payments list --limit 0", "--limit: must be from 1 to 1000"},
		{"payments list --limit 1001", "--limit: must be from 1 to 1000"},
		{"payments list --limit x", "--limit: must be a whole number"},
		{"payments list --status paid", "--status: must be one of processing, received, "},
		{"dlq list --limit 1001", "--limit: must be from 1 to 1000"},
		{"dlq list --state gone", "--state: must be open"},
		{"dlq list --reason key_resued", "--reason: must be one of undecodable, invalid"},
		{"dlq list --since yesterday", "--since: must be an RFC 3339 time"},
		{"dlq list --until -2h", "--until: must be an RFC 3339 time"},
		{"dlq list --id order-1", "--id: must be the id of a dead letter"},
		{"dlq list --batch " + card, "--batch: contains what looks like a card number"},
		{"dlq replay", "dlq replay: say which: --tenant, --reason, --since, --until, --id, --key, --batch, --text, --limit, or --all"},
		{"dlq replay --yes --rate 3", "say which: --tenant"},
		{"dlq replay --tenant=", "--tenant: is empty"},
		{"dlq replay --all --tenant acme", "--all: goes without --tenant"},
		{"dlq replay --all dl_1", "--all: goes without an id"},
		{"dlq replay dl_1 --id dl_2", "--id: goes without an id beside it"},
		{"dlq replay order-1", "--id: must be the id of a dead letter"},
		{"dlq replay --all --limit 0", "--limit: must be at least 1"},
		{"dlq replay --all --rate 0", "--rate: must be more than 0"},
		{"dlq replay --all --rate NaN", "--rate: must be more than 0"},
		{"dlq replay --all --rate fast", "--rate: must be a number"},
		{"dlq replay --all --dry-run --detach", "--detach: goes without --dry-run"},
		{"dlq replay --all --set amount", "--set: must be member=value"},
		{"dlq replay --all --set amount=many", "--set: amount: must be an integer, in minor units\n"},
		{"dlq replay --all --set amount=-1", "--set: amount: must be a positive integer"},
		{"dlq replay --all --set currency=dollars --dry-run", "--set: currency: must be one of Stripe's"},
		{"dlq replay --all --set kind=charge --set payment_method=", "--set: payment_method: is required"},
		{"dlq replay --all --set expires_at=tomorrow", "--set: expires_at: must be an RFC 3339 time"},
		{"payments list --batch B", "--tenant: is required where --batch is a key"},
		{"payments list --batch=", "--batch: is empty"},
		{"dlq replay --all --set idempotency_key=k", "cannot be changed"},
		{"dlq replay --all --set colour=red", "is no member of an intent"},
		{"dlq replay --all --set customer=a --set customer=b", "--set: names a member twice"},
		{"dlq replay --all --set description=" + card, "--set: contains what looks like a card number"},
		{"dlq replay --all --note " + card, "--note: contains what looks like a card number"},
		{"dlq replay --all --note=", "--note: is empty"},
		{"dlq replay --all --actor=", "--actor: is empty"},
		{"dlq replay --all --actor " + strings.Repeat("a", 101), "--actor: must be at most 100 characters"},
		{"dlq replay --reason nonsense", "--reason: must be one of undecodable"},
		{"dlq discard", "dlq discard: say which: --tenant"},
		{"dlq discard --all --limit -1", "--limit: must be at least 1"},
		{"dlq discard --key=", "--key: is empty"},
		{"replays", "replays: needs a command: list, show, pause, resume, cancel"},
		{"replays show", "usage: oncepay replays show ID"},
		{"replays show rpl_1 --result failed", "--result: goes with --items"},
		{"replays show rpl_1 --items --result failed", "--result: must be one of succeeded, already_settled"},
		{"replays show rpl_1 --items --follow", "--follow: goes without --items"},
		{"replays list --limit 0", "--limit: must be from 1 to 1000"},
		{"replays cancel", "usage: oncepay replays cancel ID"},
		{"pause", "--reason: is required"},
		{"pause --tenant acme", "--reason: is required"},
		{"pause --tenant= --reason R", "--tenant: must be 1 to 63"},
		{"pause --account= --reason R", "--account: must be the id of a Stripe account"},
		{"pause --account acct_1 --tenant acme --reason R", "--account: goes without --tenant"},
		{"pause --reason R --until yesterday", "--until: must be an RFC 3339 time"},
		{"pause --reason R --until=", "--until: must be an RFC 3339 time"},
		{"pause --reason R --until -2h", "--until: must be an RFC 3339 time"},
		{"pause --reason R --until 2020-01-01T00:00:00Z", "--until: is past already"},
		{"pause everything --reason R", "wrong number of arguments"},
		{"resume", "--reason: is required"},
		{"resume --reason R --tenant=", "--tenant: must be 1 to 63"},
		{"payments resolve", "usage: oncepay payments resolve ID"},
		{"payments resolve order-1 --as failed --reason R", "the id of a payment is needed: pay_…"},
		{"payments resolve pay_00000000000000000000000000000000 --reason R", "--as: must be one of succeeded"},
		{"payments resolve pay_00000000000000000000000000000000 --as paid --reason R", "--as: must be one of succeeded"},
		{"payments resolve pay_00000000000000000000000000000000 --as stalled --reason R", "--as: must be one of succeeded, failed, canceled, waiting, unknown\n"},
		{"payments resolve pay_00000000000000000000000000000000 --as needs_review --reason R", "--as: must be one of succeeded, failed, canceled, waiting, unknown: what waits"},
		{"payments resolve pay_00000000000000000000000000000000 --as failed", "--reason: is required"},
		{"payments resolve pay_00000000000000000000000000000000 --as failed --reason R --tenant=", "--tenant: must be 1 to 63"},
		{"audit --since yesterday", "--since: must be an RFC 3339 time"},
		{"audit --limit 0", "--limit: must be from 1 to 1000"},
		{"audit --tenant A", "--tenant: must be 1 to 63"},
		{"audit", "ONCEPAY_DATABASE_URL: is required"},
		{"dlq replay --all --yes", "ONCEPAY_DATABASE_URL: is required"},
		{"keys create", "--tenant: is required"},
		{"keys create --tenant a --scopes all", "--scopes: must be a list of"},
		{"keys create --tenant a --ttl -1s", "--ttl: must not be negative"},
		{"keys create --tenant a --ttl soon", "--ttl: must be a duration"},
		{"publish --amount x", "--amount: must be a whole number"},
		{"publish --json=maybe", "--json: must be true or false"},
		{"publish --tenant demo --within 0s", "--within: must be longer than 0"},
		{"publish file.json", "- to read one intent from standard input"},
		{"publish", "--tenant: is required"},
		{"publish --tenant a --metadata x", "--metadata: must be name=value"},
		{"publish --tenant a --expires-at soon", "--expires-at: must be an RFC 3339 time"},
		{"publish --tenant a --expires-at 0001-01-01T00:00:00Z", "--expires-at: must be an RFC 3339 time"},
		{"publish - --tenant a --amount 5", "--amount: goes into the document"},
		{"publish - --tenant a --kind refund", "--kind: goes into the document"},
		{"publish - --tenant a --payment-id pay_0", "--payment-id: goes into the document"},
		{"publish - --tenant a --reason duplicate", "--reason: goes into the document"},
		{"--config /nowhere/settings payments list", "--config: open /nowhere/settings: no such file"},
		{"--config /nowhere/settings serve", "--config: open /nowhere/settings: no such file"},
		{"serve --lease 1", "ONCEPAY_LEASE: must be a duration"},
		{"serve", "ONCEPAY_DATABASE_URL: is required"},
		{"serve --database-url postgres://h/d", "ONCEPAY_STRIPE_KEY: is required"},
		{"serve --database-url postgres://h/d --stripe-key sk_live_hunter2", "ONCEPAY_NATS_MONITOR_URL: is required with a live key"},
		{"serve --database-url postgres://h/d --stripe-key sk_live_hunter2 --stripe-url http://127.0.0.1:1", "ONCEPAY_STRIPE_URL: must be left out"},
		{"migrate up", "ONCEPAY_DATABASE_URL: is required"},
		{"migrate status", "ONCEPAY_DATABASE_URL: is required"},
		{"payments list", "ONCEPAY_DATABASE_URL: is required"},
		{"payments list --database-url postgres://u:hunter2@h:x/d", "ONCEPAY_DATABASE_URL: must be a PostgreSQL URL"},
		{"publish --tenant a --key k --amount 100 --currency usd --payment-method pm_card_visa --nats-url nats://u:hunter2@h:x", "ONCEPAY_NATS_URL: must be nats://"},
		{"publish --tenant a --key k --amount 100 --currency usd --payment-method pm_card_visa --wait", "ONCEPAY_DATABASE_URL: is required"},
		{"config --json --drain 0", "ONCEPAY_DRAIN: must be a duration"},
	} {
		r := b.run(strings.Fields(c.args)...)
		b.fails(r, exitUsage, c.want)
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: %q", c.args, r.err)
		}
	}
}

// TestRefusedIntents: what would be refused is refused before anything is asked, by the name of its field; a value is never repeated, wherever it
// was put.
func TestRefusedIntents(t *testing.T) {
	t.Parallel()
	b := withSettings(t, map[string]string{"ONCEPAY_NATS_URL": "nats://127.0.0.1:1"})
	good := map[string]string{"tenant": "demo", "key": "order-1", "amount": "9900", "currency": "usd", "payment-method": "pm_card_visa"}
	for _, c := range []struct{ flag, value, want string }{
		{"tenant", "De mo", "tenant_id"}, {"key", "order 1", "idempotency_key"}, {"key", "", "idempotency_key"}, {"key", "a::0", "idempotency_key"},
		{"amount", "0", "amount"}, {"amount", "-9900", "amount"}, {"amount", "999999999999", "amount"}, {"currency", "zzz", "currency"}, {"currency", "", "currency"},
		{"payment-method", "", "payment_method"}, {"receipt-email", "nobody", "receipt_email"}, {"return-url", "nowhere", "return_url"},
		{"capture-method", "later", "capture_method"}, {"metadata", "oncepay_x=1", "metadata"}, {"description", strings.Repeat("d", 1001), "description"},
		{"statement-descriptor-suffix", strings.Repeat("d", 23), "statement_descriptor_suffix"},
		{"tenant", card, "tenant_id: contains what looks like a card number"},
		{"key", "order-" + card, "idempotency_key: contains what looks like a card number"}, {"payment-method", card, "payment_method: contains"},
		{"customer", card, "customer: contains"}, {"description", "card 4242 4242 4242 4242", "description: contains"}, {"metadata", "pan=" + card, "metadata: contains"},
		{"metadata", card + "=1", "metadata: contains"}, {"receipt-email", card + "@example.com", "receipt_email: contains"}, {"currency", card, "currency"},
		{"return-url", "https://example.com/" + card, "return_url: contains"}, {"capture-method", card, "capture_method"},
		{"statement-descriptor-suffix", card, "statement_descriptor_suffix: contains"},
		{"amount", card, "amount"}, {"amount", card + "0000", "--amount"}, {"amount", "4242-4242-4242-4242", "--amount"}, {"expires-at", card, "--expires-at"},
		{"metadata", card, "--metadata"}, {"within", card, "--within"}, {"bulk", card, "--bulk"}, {"lease", card, "ONCEPAY_LEASE"}, {"stripe-key", card + " x", "ONCEPAY_STRIPE_KEY"},
		{card, "1", "unknown flag"},
	} {
		flags := map[string]string{c.flag: c.value}
		args := []string{"publish"}
		for name, value := range good {
			if _, given := flags[name]; !given {
				args = append(args, "--"+name+"="+value)
			}
		}
		r := b.run(append(args, "--"+c.flag+"="+c.value)...)
		b.fails(r, exitUsage, c.want)
		if strings.Contains(strings.NewReplacer(" ", "", "-", "").Replace(r.err), card) || strings.Contains(r.err, strings.Repeat("d", 23)) {
			t.Errorf("--%s: the value is repeated: %q", c.flag, r.err)
		}
	}
	for _, args := range [][]string{{"tenants", "create", "--", card, card}, {"tenants", "list", card}, {card}, {"dlq", card}, {"payments", "show", card, card}, {"publish", card}, {"help", card}, {"completion", card}, {"payments", "list", "--status", card}} {
		r := b.run(args...)
		b.fails(r, exitUsage)
		if strings.Contains(r.err, card) {
			t.Errorf("%q: %q", args, r.err)
		}
	}
	for in, want := range map[string]string{
		"": "standard input", "{": "standard input", `{"amount":1}{}`: "standard input", `{"amount":1.5}`: "standard input: ", `{"colour":"red"}`: "standard input",
		`{"tenant_id":"other"}`: "tenant_id: is not the tenant of --tenant", `{"idempotency_key":"other"}`: "idempotency_key: is not the key of --key",
		`{"idempotency_key":"k","amount":100,"currency":"usd","payment_method":"` + card + `"}`: "payment_method",
		`{"idempotency_key":"k","amount":"` + card + `"}`:                                       "amount",
		`{"` + card + `":1}`:              "standard input",
		strings.Repeat(" ", 1<<20) + "{}": "standard input",
	} {
		key := "k"
		r := b.with(in, "publish", "-", "--tenant", "demo", "--key", key)
		b.fails(r, exitUsage, want)
		if strings.Contains(r.err, card) {
			t.Errorf("%q: %q", in, r.err)
		}
	}
}

// TestHelpFits: help is there for every command, fits a terminal, and says what it must.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	for _, command := range []string{"", "batch", "batch run", "batch show", "payments list", "keys create", "publish", "dlq list", "tenants create", "serve", "doctor",
		"dlq", "dlq replay", "dlq discard", "replays", "replays list", "replays show", "replays pause", "replays resume", "replays cancel", "pause", "resume", "payments resolve", "audit"} {
		r := b.run(append(strings.Fields(command), "--help")...)
		if r.code != exitOK || r.err != "" || !strings.Contains(r.out, "Usage:") {
			t.Errorf("%s: %+v", command, r)
		}
		for line := range strings.Lines(r.out) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: too wide: %s", command, line)
			}
		}
	}
	r := b.run("batch", "run", "--help")
	for _, want := range []string{"case-sensitive", "At most 20 faults", "at most 231 characters", `without "::"`, "true or false", "K.000005::7 is row 5*100 + 7 + 1 = 508", "is shorter, is refused", "added at its end once the last batch that was sent is full"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("batch run --help does not say %q", want)
		}
	}
	var sample []string
	for line := range strings.Lines(r.out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "amount_decimal,") || len(sample) > 0 && len(sample) < 3 {
			sample = append(sample, line)
		}
	}
	if d := b.with(strings.Join(sample, "\n"), "batch", "run", "-", "--format", "csv", "--key", "k", "--dry-run"); d.code != exitOK || !strings.HasPrefix(d.out, "2 payments in 1 batch") {
		t.Errorf("the sample of the help: %+v", d)
	}
}

// TestErrorLine: an error is one line, without what could move a terminal's cursor, and without a card's digits.
func TestErrorLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                 "plain",
		"two\n\tlines \r\n":     "two lines",
		"\x1b[31mred":           `\u001b[31mred`,
		"a " + card + " in 3 s": "a **************** in * s",
	} {
		if got := errorLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWithoutServices(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	if r := b.run(); r.code != exitOK || !strings.Contains(r.out, "Available Commands") || r.err != "" {
		t.Errorf("alone: %+v", r)
	}
	if r := b.run("help", "dlq"); r.code != exitOK || !strings.Contains(r.out, "list") || r.err != "" {
		t.Errorf("help: %+v", r)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := b.run("completion", shell); r.code != exitOK || !strings.Contains(r.out, "oncepay") || r.err != "" {
			t.Errorf("completion %s: %+v", shell, r)
		}
	}
	if r := b.run("version"); r.code != exitOK || !strings.HasPrefix(r.out, "oncepay ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("version: %+v", r)
	}
	d := b.json("version")
	for _, member := range []string{"version", "revision", "go", "schema"} {
		if _, ok := d[member]; !ok {
			t.Errorf("version --json lacks %s: %v", member, d)
		}
	}
	d = b.json("config", "--database-url", "postgres://u:hunter2@h/d", "--nats-url", "nats://u:hunter2@a,nats://v:hunter2@b", "--stripe-key", "sk_test_hunter2")
	if len(d) != len(app.Names()) || d["ONCEPAY_DATABASE_URL"] != "postgres://u:xxxxx@h/d" || d["ONCEPAY_STRIPE_KEY"] != "(set)" || d["ONCEPAY_NATS_URL"] != "nats://u:xxxxx@a,nats://v:xxxxx@b" {
		t.Errorf("config: %v", d)
	}
	// People see what is set, and then what is wrong with it.
	if r := b.run("config", "--lease", "x"); r.code != exitUsage || !strings.Contains(r.out, "ONCEPAY_LEASE") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("config: %+v", r)
	}
	if r := b.run("config", "--database-url", "postgres://u:hunter2@h:x/d"); r.code != exitUsage || strings.Contains(r.out+r.err, "hunter2") {
		t.Errorf("config: %+v", r)
	}
}

// TestWhereSettingsComeFrom runs in the real environment of a process of its own: a flag is stronger than the environment, and that than the file.
func TestWhereSettingsComeFrom(t *testing.T) {
	t.Parallel()
	if os.Getenv("ONCEPAY_TEST_CONFIG") != "" {
		os.Exit(Main([]string{"config", "--json", "--lease", "1m"}, nil, os.Stdout, os.Stderr))
	}
	file := filepath.Join(t.TempDir(), "settings")
	text := "# settings\nexport ONCEPAY_LEASE=3m\nONCEPAY_DRAIN='3m'\nONCEPAY_ACK_WAIT=3m\nONCEPAY_DATABASE_URL='postgres://u:it'\\''s@h/d'\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^TestWhereSettingsComeFrom$")
	c.Env = []string{"ONCEPAY_TEST_CONFIG=1", "ONCEPAY_CONFIG=" + file, "ONCEPAY_LEASE=2m", "ONCEPAY_DRAIN=2m", "PATH=" + os.Getenv("PATH")}
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := oneDocument(t, string(out))
	for name, want := range map[string]string{
		"ONCEPAY_LEASE": "1m", "ONCEPAY_DRAIN": "2m", "ONCEPAY_ACK_WAIT": "3m", "ONCEPAY_MAX_TRIES": "20", "ONCEPAY_DATABASE_URL": "postgres://u:xxxxx@h/d",
	} {
		if d[name] != want {
			t.Errorf("%s is %v, want %s", name, d[name], want)
		}
	}
}
