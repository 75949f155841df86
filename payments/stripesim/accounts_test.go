package stripesim

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestAccountsShareNothing sends the same request under the same key to three
// accounts: each executes it, shows its own and knows nothing of the others.
func TestAccountsShareNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	keys := []Key{{Secret: "sk_test_a", Account: "acct_a"}, {Secret: "sk_test_b", Account: "acct_b"}}
	r := newRig(t, Options{Keys: keys, Path: path})
	callers := map[string]call{"acct_a": {secret: "sk_test_a"}, "acct_b": {secret: "sk_test_b"}, "acct_c": {secret: "sk_test_a", account: "acct_c"}}
	ids := map[string]string{}
	check := func(r *rig) {
		for account, c := range callers {
			c.path, c.key, c.form = intentsPath, "same", pay("customer", "cus_1", "metadata[oncepay_payment]", "pay_"+account)
			m := r.do(c).want(t, 200, nil)
			if ids[account] == "" {
				ids[account] = m["id"].(string)
			}
			if m["id"] != ids[account] {
				t.Errorf("%s: the repeat is %v, not %s", account, m["id"], ids[account])
			}
			for _, f := range [][]string{{"customer", "cus_1"}, {"created[gte]", "1"}} {
				list := r.do(call{method: "GET", path: intentsPath, secret: c.secret, account: c.account, form: form(f...)}).want(t, 200, nil)["data"].([]any)
				if len(list) != 1 || at(list[0], "id") != ids[account] {
					t.Errorf("%s by %s lists %v", account, f[0], list)
				}
			}
			r.do(call{method: "GET", path: "/v1/balance", secret: c.secret, account: c.account}).want(t, 200, nil)
			for other, id := range ids {
				status := 404
				if other == account {
					status = 200
				}
				r.do(call{method: "GET", path: intentsPath + "/" + id, secret: c.secret, account: c.account}).want(t, status, nil)
			}
		}
		var accounts []string
		for _, c := range r.sim.Ledger().Charges {
			accounts = append(accounts, c.Account)
			if c.PaymentIntent != ids[c.Account] || c.IdempotencyKey != "same" {
				t.Errorf("charge %+v", c)
			}
		}
		slices.Sort(accounts)
		if s := r.sim.Summary(); !slices.Equal(accounts, []string{"acct_a", "acct_b", "acct_c"}) || s.DoubleCharges != 0 {
			t.Errorf("charges on %v, %d double", accounts, s.DoubleCharges)
		}
	}
	check(r)
	if n := r.sim.Summary().Repeats; n != 0 {
		t.Errorf("%d repeats: a key of another account is another key", n)
	}
	// The ledger file keeps them apart, too.
	mustNil(t, r.sim.Close())
	check(newRig(t, Options{Keys: keys, Path: path}))
}

// The same payment charged on two accounts is a double charge.
func TestDoubleChargeAcrossAccounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.do(call{path: intentsPath, key: "k", account: "acct_a", form: pay()}).want(t, 200, nil)
	r.do(call{path: intentsPath, key: "k", account: "acct_b", form: pay()}).want(t, 200, nil)
	if s := r.sim.Summary(); s.DoubleCharges != 1 {
		t.Errorf("%d double charges", s.DoubleCharges)
	}
}

func TestKeysAreRolled(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Keys: []Key{{Secret: "sk_test_old", Account: "acct_a"}}})
	account := func(secret string) result {
		return r.do(call{method: "GET", path: "/v1/account", secret: secret})
	}
	account("sk_test_old").want(t, 200, map[string]any{"id": "acct_a"})
	account("sk_test_new").want(t, 401, nil)
	mustNil(t, r.sim.SetKeys([]Key{{Secret: "sk_test_old", Account: "acct_a", Expired: true}, {Secret: "sk_test_new", Account: "acct_a"}}))
	account("sk_test_old").want(t, 401, map[string]any{"error.code": "api_key_expired"})
	account("sk_test_new").want(t, 200, map[string]any{"id": "acct_a"})
	for _, bad := range []Key{{Secret: "sk_live_1"}, {Secret: "sk_test_1", Account: "me"}, {Secret: "sk_test_1", Connected: []string{"me"}}, {Secret: "sk_test_1", Deny: []string{"GET /"}}} {
		if r.sim.SetKeys([]Key{bad}) == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	account("sk_test_new").want(t, 200, nil)
}

func TestConnectedAccounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Keys: []Key{{Secret: "sk_test_all"}, {Secret: "sk_test_one", Connected: []string{"acct_a"}}, {Secret: "sk_test_none", Connected: []string{}}}})
	for _, c := range []struct {
		secret, connected string
		status            int
	}{
		{"sk_test_all", "acct_b", 200}, {"sk_test_one", "acct_a", 200}, {"sk_test_one", "acct_b", 403}, {"sk_test_none", "acct_a", 403}, {"sk_test_none", "", 200},
	} {
		res := r.do(call{method: "GET", path: "/v1/account", secret: c.secret, account: c.connected})
		m := res.want(t, c.status, nil)
		if c.status == 403 && at(m, "error.code") != "account_invalid" {
			t.Errorf("%+v: %v", c, m)
		}
	}
}

// Without Options.Keys a key of Stripe's own form names its account.
func TestKeysNameTheirAccounts(t *testing.T) {
	t.Parallel()
	const id = "1AbCdEfGhIjKlMnO"
	for secret, want := range map[string]string{
		"sk_test_5" + id + "rest": "acct_" + id, "rk_test_5" + id + "other": "acct_" + id, "sk_test_5" + id: DefaultAccount, "sk_test_simulated": DefaultAccount,
		"sk_test_52bCdEfGhIjKlMnOpQ": DefaultAccount, "sk_test_51AbCdEfGhIjKl_nOpQ": DefaultAccount, "sk_test_51short": DefaultAccount,
	} {
		r := newRig(t, Options{})
		r.do(call{method: "GET", path: "/v1/account", secret: secret}).want(t, 200, map[string]any{"id": want})
		r = newRig(t, Options{Keys: []Key{{Secret: secret, Account: "acct_told"}}})
		r.do(call{method: "GET", path: "/v1/account", secret: secret}).want(t, 200, map[string]any{"id": "acct_told"})
	}
}
