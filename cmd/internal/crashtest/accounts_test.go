package crashtest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// The tenants with a way to Stripe of their own, the accounts of all, and keys of those.
const (
	keyed     = "keyed"     // has a key of its own
	connected = "connected" // has an account that is connected to the installation's

	keyedAccount     = "acct_1Keyed"
	connectedAccount = "acct_1Connected"
	otherAccount     = "acct_1Other" // nobody's

	keyedKey      = "sk_test_keyed0000"
	keyedNewKey   = "sk_test_keyedNew0"
	restrictedKey = "rk_test_keyed0000" // may not read its account
	otherKey      = "sk_test_other0000"
)

// branches are a world with three accounts, reached in all three ways.
type branches struct {
	*world
	keyPath  string
	accounts map[string]string // by tenant
}

func newBranches(t *testing.T) *branches {
	t.Helper()
	w := newWorld(t)
	b := &branches{
		world: w, keyPath: filepath.Join(t.TempDir(), "keyed.key"),
		accounts: map[string]string{tenant: stripesim.DefaultAccount, keyed: keyedAccount, connected: connectedAccount},
	}
	b.useKeys()
	b.writeKey(keyedKey)
	for _, made := range []postgres.Tenant{{ID: keyed, StripeKeyRef: "file:" + b.keyPath}, {ID: connected, StripeAccount: connectedAccount}} {
		if _, err := w.store.CreateTenant(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// useKeys lets Stripe accept the keys, but for those that were rolled.
func (b *branches) useKeys(rolled ...string) {
	b.Helper()
	keys := []stripesim.Key{
		{Secret: stripeKey, Connected: []string{connectedAccount}}, {Secret: keyedKey, Account: keyedAccount}, {Secret: keyedNewKey, Account: keyedAccount},
		{Secret: restrictedKey, Account: keyedAccount, Deny: []string{"GET /v1/account"}}, {Secret: otherKey, Account: otherAccount},
	}
	for i := range keys {
		keys[i].Expired = slices.Contains(rolled, keys[i].Secret)
	}
	if err := b.sim.SetKeys(keys); err != nil {
		b.Fatal(err)
	}
}

// writeKey replaces the tenant's key file, as its operator does.
func (b *branches) writeKey(content string) {
	b.Helper()
	if err := os.WriteFile(b.keyPath+".new", []byte(content+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(b.keyPath+".new", b.keyPath); err != nil {
		b.Fatal(err)
	}
}

// start starts a worker with all accounts, as production has it.
func (b *branches) start(o workerOptions) *worker {
	b.Helper()
	o.gateway = func(payments.Gateway) payments.Gateway {
		var accounts *stripe.Accounts
		b.await("Stripe, at start", func() (bool, string) {
			var err error
			accounts, err = stripe.NewAccounts(b.Context(), stripe.Options{
				Key: stripeKey, URL: b.simURL, Namespace: namespace, Timeout: b.times.call, Clock: b.clock, Logger: b.logs.logger(o.name),
			}, app.TenantWays(b.store))
			return err == nil, fmt.Sprint(err)
		})
		b.Cleanup(accounts.Close)
		return accounts
	}
	return b.world.start(o)
}

// orderOf is an order of the tenant; orders of one name share key, customer and amount, whoever's they are.
func (b *branches) orderOf(owner, name string) order {
	o := b.order(name)
	o.TenantID = owner
	return o
}

func (b *branches) payment(o order) payments.Payment {
	b.Helper()
	p, err := b.store.Find(b.Context(), o.TenantID, o.id())
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		b.Fatal(err)
	}
	return p
}

func (b *branches) awaitStatus(o order, s payments.Status, reason string) {
	b.Helper()
	b.await(string(s)+" of "+o.TenantID, func() (bool, string) {
		p := b.payment(o)
		return p.Status == s && strings.Contains(p.Reason, reason), fmt.Sprintf("it is %s (%s)", p.Status, p.Reason)
	})
}

func (b *branches) awaitLog(part string) {
	b.Helper()
	b.await("the log's word", func() (bool, string) { return strings.Contains(b.logs.text(), part), "the log does not say " + part })
}

// startMortal starts a worker that knows all accounts, and dies with the requests of the orders at Stripe. Each group of orders is published when
// the requests of those before it are there.
func (b *branches) startMortal(groups ...[]order) *worker {
	b.Helper()
	var ids []payments.ID
	for _, o := range slices.Concat(groups...) {
		ids = append(ids, o.id())
	}
	first := b.start(workerOptions{name: "first", stop: func(s payments.Step, id payments.ID) bool {
		return s == payments.StepAfterSubmit && slices.Contains(ids, id)
	}})
	for owner := range b.accounts {
		known := b.orderOf(owner, "known")
		b.publish(known)
		b.awaitStatus(known, payments.StatusSucceeded, "")
	}
	published := 0
	for _, orders := range groups {
		b.publish(orders...)
		published += len(orders)
		b.await("the first owner's death", func() (bool, string) { return allStopped(first.gate, ids[:published]) })
	}
	return first
}

// mustBeApart wants the oracle's consent where money counts as the same only on the same account, and no request of a payment elsewhere than on
// its tenant's account.
func (b *branches) mustBeApart() {
	b.Helper()
	b.rest()
	a := b.world.account()
	for i, intent := range a.Intents {
		a.Intents[i].Money.Customer += "@" + b.accounts[intent.TenantID]
	}
	a.Charges = nil
	for _, c := range b.sim.Ledger().Charges {
		a.Charges = append(a.Charges, oracle.Charge{ID: c.ID, Money: oracle.Money{Amount: c.Amount, Currency: c.Currency, Customer: c.Customer + "@" + c.Account}})
	}
	a.Payments = nil
	for owner, account := range b.accounts {
		list, _, err := b.store.List(b.Context(), payments.ListRequest{TenantID: owner, Limit: payments.LimitMax})
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range list {
			a.Payments = append(a.Payments, oracle.Payment{
				ID: p.ID.String(), TenantID: p.TenantID, Key: p.IdempotencyKey, Status: p.Status,
				Money: oracle.Money{Amount: p.Amount, Currency: p.Currency, Customer: p.Customer + "@" + p.StripeAccount},
			})
			if p.StripeAccount != account {
				b.Errorf("a payment of %s is pinned to %q", owner, p.StripeAccount)
			}
		}
	}
	for _, finding := range a.wrong() {
		b.Error(finding)
	}
	owners := map[string]string{} // Stripe's keys
	for _, i := range a.Intents {
		owners[payments.StripeKey(namespace, payments.KindCharge, i.TenantID, i.Key)] = i.TenantID
	}
	for _, r := range b.sim.Ledger().Requests {
		if r.Method == http.MethodPost && b.accounts[owners[r.IdempotencyKey]] != r.Account {
			b.Errorf("a request of %q reached %s", owners[r.IdempotencyKey], r.Account)
		}
	}
}

// TestTenantsOnTheirOwnAccounts: tenants on three accounts send the same keys for the same customers, under all of Stripe's faults, and the
// first owner dies with every request at Stripe. Each payment is looked up, sent and charged on its own tenant's account alone.
func TestTenantsOnTheirOwnAccounts(t *testing.T) {
	t.Parallel()
	b := newBranches(t)
	var orders, refused []order
	for i, fault := range append([]string{""}, faults...) {
		name := "order-" + fmt.Sprint(i)
		for _, owner := range slices.Sorted(maps.Keys(b.accounts)) {
			o := b.orderOf(owner, name)
			if i%3 == 0 {
				o.lane = payments.LaneBulk
			}
			if fault == stripesim.FaultUnauthorized401 { // after which nothing is sent for the tenant
				refused = append(refused, o)
			} else {
				orders = append(orders, o)
			}
		}
		if fault != "" {
			b.fault(b.orderOf(tenant, name), fault, len(b.accounts)) // metadata are equal, too: it meets all three
		}
	}
	b.startMortal(orders, refused).kill()
	before := len(b.sim.Ledger().Requests)
	b.start(workerOptions{name: "healthy"})
	b.mustBeApart()
	charges, looks := map[string]int{}, map[string]int{}
	for _, c := range b.sim.Ledger().Charges {
		charges[c.Account]++
	}
	for _, r := range b.sim.Ledger().Requests[before:] {
		if r.Method == http.MethodGet && r.Path == "/v1/payment_intents" {
			looks[r.Account]++
		}
	}
	for owner, account := range b.accounts {
		if want := len(faults) + 2; charges[account] != want { // without any fault, and the one by which the account got known
			t.Errorf("%s: %d charges, want %d", owner, charges[account], want)
		}
		if looks[account] == 0 {
			t.Errorf("%s: nothing was looked up on %s", owner, account)
		}
	}
	if len(charges) != len(b.accounts) {
		t.Errorf("charges %v", charges)
	}
	listed, err := b.store.Tenants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range listed {
		if made.OwnWay() && made.Account != (payments.Account{ID: b.accounts[made.ID]}) {
			t.Errorf("%s is pinned to %+v", made.ID, made.Account)
		}
	}
}

// TestSwappedKeyFile: while a payment is in doubt, the tenant's file gets the key of another account. Looking there would find nothing, and
// sending again would charge twice: nothing of the payment reaches that account, and the log says what to do.
func TestSwappedKeyFile(t *testing.T) {
	t.Parallel()
	b := newBranches(t)
	o, other := b.orderOf(keyed, "order-1"), b.orderOf(tenant, "order-1")
	b.startMortal([]order{o}).kill()
	b.writeKey(otherKey)
	second := b.start(workerOptions{name: "second"})
	b.publish(other)
	later := b.orderOf(keyed, "order-2")
	b.publish(later)
	b.awaitStatus(other, payments.StatusSucceeded, "")
	b.awaitStatus(o, payments.StatusUnknown, payments.ReasonLookingUp)
	b.awaitStatus(later, payments.StatusWaiting, payments.ReasonAccountUnknown)
	b.awaitLog("its payments began on " + keyedAccount + " (test)")
	for _, r := range b.sim.Ledger().Requests {
		if r.Account == otherAccount && r.Path != "/v1/account" && r.Path != "/v1/balance" {
			t.Errorf("%s %s reached another account", r.Method, r.Path)
		}
	}
	if strings.Contains(b.logs.text(), otherKey) || strings.Contains(b.logs.text(), keyedKey) {
		t.Error("a key is in the log")
	}
	b.writeKey(keyedKey)
	b.mustBeApart()
	if err := second.stop(); err != nil {
		t.Error(err)
	}
}

// TestBrokenTenantHoldsUpNobody: tenants whose ways are broken wait visibly, and cost others nothing. Mended, they go on without a restart.
func TestBrokenTenantHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, says, mended string }{
		"refused":    {"sk_test_nobody000", "was refused by Stripe (401)", keyedKey},
		"restricted": {restrictedKey, "write the id acct_… that it belongs to on the second line of that file", restrictedKey + "\n" + keyedAccount},
		"live":       {"sk_live_nobody000", "is a live one", keyedKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBranches(t)
			b.writeKey(c.content)
			broken := []order{b.orderOf(keyed, "order-1"), b.orderOf(keyed, "order-2")}
			b.publish(broken...)
			b.start(workerOptions{name: "worker"})
			b.awaitLog(c.says)
			for i := range 20 {
				good := b.orderOf(tenant, fmt.Sprint("good-", i))
				if i%2 == 1 {
					good = b.orderOf(connected, fmt.Sprint("good-", i))
				}
				b.publish(good)
				defer b.awaitStatus(good, payments.StatusSucceeded, "")
			}
			for _, o := range broken {
				b.awaitStatus(o, payments.StatusWaiting, payments.ReasonAccountUnknown)
				if p := b.payment(o); p.InDoubt || !p.FirstSubmitAt.IsZero() || p.Tries != 0 {
					t.Errorf("nothing was sent, and it stands as %+v", p)
				}
			}
			for _, r := range b.sim.Ledger().Requests {
				if r.Account == keyedAccount && r.Method == http.MethodPost {
					t.Error("something was sent for a tenant whose way is broken")
				}
			}
			if strings.Contains(b.logs.text(), c.content) {
				t.Error("a key is in the log")
			}
			b.writeKey(c.mended)
			b.mustBeApart()
		})
	}
}

// TestKeyIsRolled: the tenant's key is rolled and its file replaced while payments come in. Those that met the old key's refusal are not lost.
func TestKeyIsRolled(t *testing.T) {
	t.Parallel()
	b := newBranches(t)
	b.start(workerOptions{name: "worker"})
	before := b.orderOf(keyed, "before")
	b.publish(before)
	b.awaitStatus(before, payments.StatusSucceeded, "")
	b.useKeys(keyedKey)
	met := b.orderOf(keyed, "met")
	b.publish(met, b.orderOf(tenant, "met"))
	b.awaitLog("Stripe refuses a tenant's own key")
	b.writeKey(keyedNewKey)
	for i := range 10 {
		b.publish(b.orderOf(keyed, fmt.Sprint("after-", i)))
	}
	b.mustBeApart()
}
