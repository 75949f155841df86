package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// TestTenantsOfTheirOwn: the ways to Stripe that tenants can be given, and how they are shown; a key is never kept nor shown.
func TestTenantsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	ref := "file:" + filepath.Join(t.TempDir(), "acme.key")
	if r := b.run("tenants", "create", "keyed", "--stripe-key", ref); r.code != exitOK || r.out != "tenant keyed created; its payments go with the key in "+ref+"\n" ||
		!strings.Contains(r.err, "not to be seen on this machine") {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(strings.TrimPrefix(ref, "file:"), []byte("sk_test_hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.run("tenants", "create", "keyed2", "--stripe-key", ref, "--json"); r.code != exitOK || r.err != "" || oneDocument(t, r.out)["stripe_key"] != ref {
		t.Errorf("%+v", r)
	}
	d := b.json("tenants", "create", "connected", "--stripe-account", "acct_1A")
	if d["stripe_account"] != "acct_1A" || d["stripe_key"] != nil || d["account"] != nil || d["livemode"] != nil {
		t.Errorf("created: %v", d)
	}
	b.json("tenants", "create", "plain")

	store, err := postgres.Open(t.Context(), b.set["ONCEPAY_DATABASE_URL"], postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(t.Context())
	if err := store.PinTenantAccount(t.Context(), "keyed", payments.Account{ID: "acct_1Keyed", Livemode: true}); err != nil {
		t.Fatal(err)
	}
	if err := store.PinTenantAccount(t.Context(), "connected", payments.Account{ID: "acct_1A"}); err != nil {
		t.Fatal(err)
	}
	listed := map[string]map[string]any{}
	for _, item := range list(t, b.json("tenants", "list")) {
		listed[item.(map[string]any)["id"].(string)] = item.(map[string]any)
	}
	if k, c, p := listed["keyed"], listed["connected"], listed["plain"]; k["account"] != "acct_1Keyed" || k["livemode"] != true || c["livemode"] != false || p["account"] != nil || p["livemode"] != nil {
		t.Errorf("listed: %v", listed)
	}
	r := b.run("tenants", "list")
	for _, part := range []string{"with the key in " + ref, "acct_1Keyed (live)", "to the connected account acct_1A", "acct_1A (test)", "not read yet", "to the installation's account"} {
		if !strings.Contains(r.out, part) {
			t.Errorf("%q is not shown:\n%s", part, r.out)
		}
	}
	if strings.Contains(r.out+r.err, "hunter2") {
		t.Errorf("a key is shown: %+v", r)
	}
	// A name that is taken by somebody whose payments go elsewhere must not be taken for done.
	b.fails(b.run("tenants", "create", "plain"), exitFailed, "exists already", "use the tenant as it is")
	b.fails(b.run("tenants", "create", "plain", "--stripe-account", "acct_1A"), exitFailed, "exists already, and its payments go to the installation's account")
	b.fails(b.run("tenants", "create", "connected"), exitFailed, "to the connected account acct_1A", "choose another name")
	b.fails(b.run("tenants", "create", "keyed", "--stripe-key", ref+"2"), exitFailed, "with the key in "+ref+", which never changes")
	b.fails(b.run("tenants", "create", "keyed", "--stripe-key", ref), exitFailed, "use the tenant as it is")
}

// TestTenantsRefused: a way that cannot be one is refused before anything is asked, by the name of its flag, and never repeated.
func TestTenantsRefused(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	for _, c := range []struct{ flag, value, want string }{
		{"stripe-key", "sk_test_hunter2hunter2", "never the key"}, {"stripe-key", "rk_live_hunter2hunter2", "never the key"}, {"stripe-key", "file:sk_live_hunter2hunter2", "full path"},
		{"stripe-key", "hunter2", "file:/path"}, {"stripe-key", "", "file:/path"}, {"stripe-key", "file:hunter2/key", "full path"}, {"stripe-key", "env:hunter2", "file:/path"},
		{"stripe-account", "", "acct_"}, {"stripe-account", "acct_", "acct_"}, {"stripe-account", "hunter2", "acct_"}, {"stripe-account", "sk_test_hunter2hunter2", "acct_"},
		{"stripe-account", "acct_hunter2 x", "acct_"},
	} {
		r := b.run("tenants", "create", "acme", "--"+c.flag+"="+c.value)
		b.fails(r, exitUsage, "--"+c.flag+": ", c.want)
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("--%s: the value is repeated: %q", c.flag, r.err)
		}
	}
	b.fails(b.run("tenants", "create", "acme", "--stripe-account", "acct_1A", "--stripe-key", "file:/k"), exitUsage, "--stripe-account: goes without --stripe-key", "second line")
	// What the settings of the same names say is no way of the tenant's.
	b = newBench(t, migrate)
	config := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(config, []byte("ONCEPAY_STRIPE_KEY=sk_test_simulated\nONCEPAY_STRIPE_ACCOUNT=acct_1Own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.flags = append(b.flags, "--config="+config)
	if d := b.json("tenants", "create", "acme"); d["stripe_key"] != nil || d["stripe_account"] != nil {
		t.Errorf("created: %v", d)
	}
	b.fails(b.run("tenants", "create", "odd", "--stripe-key", "file:/run/sk_live_hunter2"), exitUsage, "--stripe-key: looks like a key")
}

// TestHeldBackSaysWhatToDo: whoever looks at a payment that waits for its tenant's account is told so, and where it is told what is wrong.
func TestHeldBackSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo", "--stripe-key", "file:"+filepath.Join(t.TempDir(), "missing.key"))
	b.serve()
	r := b.run(intentFlags("order-1", "--wait", "--within", "500ms")...)
	for deadline := time.Now().Add(patience); r.code != exitOK || !strings.Contains(r.out, "account_unknown"); {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", r)
		}
		r = b.run("payments", "show", "--tenant", "demo", "--key", "order-1")
	}
	if !strings.Contains(r.out, "\nwhat to do      its tenant's Stripe account cannot be used: `oncepay doctor` says why") || !strings.Contains(r.out, "waiting") {
		t.Errorf("%s", r.out)
	}
}
