package tenants

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
	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripe"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// branches are a world with three accounts, reached in all three ways.
type branches struct {
	*world.World
	keyPath  string
	accounts map[string]string // by tenant
}

func newBranches(t *testing.T) *branches {
	t.Helper()
	w := world.New(t)
	b := &branches{
		World: w, keyPath: filepath.Join(t.TempDir(), "keyed.key"),
		accounts: map[string]string{world.Tenant: stripesim.DefaultAccount, world.Keyed: world.KeyedAccount, world.Connected: world.ConnectedAccount},
	}
	b.useKeys()
	b.writeKey(world.KeyedKey)
	for _, made := range []postgres.Tenant{{ID: world.Keyed, StripeKeyRef: "file:" + b.keyPath}, {ID: world.Connected, StripeAccount: world.ConnectedAccount}} {
		if _, err := w.Store.CreateTenant(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// useKeys lets Stripe accept the keys, but for those that were rolled.
func (b *branches) useKeys(rolled ...string) {
	b.Helper()
	keys := []stripesim.Key{
		{Secret: world.StripeKey, Connected: []string{world.ConnectedAccount}}, {Secret: world.KeyedKey, Account: world.KeyedAccount}, {Secret: world.KeyedNewKey, Account: world.KeyedAccount},
		{Secret: world.RestrictedKey, Account: world.KeyedAccount, Deny: []string{"GET /v1/account"}}, {Secret: world.OtherKey, Account: world.OtherAccount},
	}
	for i := range keys {
		keys[i].Expired = slices.Contains(rolled, keys[i].Secret)
	}
	if err := b.Sim.SetKeys(keys); err != nil {
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
func (b *branches) start(o world.WorkerOptions) *world.Worker {
	b.Helper()
	o.Gateway = func(payments.Gateway) payments.Gateway {
		var accounts *stripe.Accounts
		b.Await("Stripe, at start", func() (bool, string) {
			var err error
			accounts, err = stripe.NewAccounts(b.Context(), stripe.Options{
				Key: world.StripeKey, URL: b.SimURL, Namespace: world.Namespace, Timeout: b.Times.Call, Clock: b.Clock, Logger: b.Logs.Logger(o.Name),
			}, app.TenantWays(b.Store))
			return err == nil, fmt.Sprint(err)
		})
		b.Cleanup(accounts.Close)
		return accounts
	}
	return b.World.Start(o)
}

// orderOf is an order of the tenant; orders of one name share key, customer and amount, whoever's they are.
func (b *branches) orderOf(owner, name string) world.Order {
	o := b.Order(name)
	o.TenantID = owner
	return o
}

func (b *branches) payment(o world.Order) payments.Payment {
	b.Helper()
	p, err := b.Store.Find(b.Context(), o.TenantID, o.ID())
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		b.Fatal(err)
	}
	return p
}

func (b *branches) awaitStatus(o world.Order, s payments.Status, reason string) {
	b.Helper()
	b.Await(string(s)+" of "+o.TenantID, func() (bool, string) {
		p := b.payment(o)
		return p.Status == s && strings.Contains(p.Reason, reason), fmt.Sprintf("it is %s (%s)", p.Status, p.Reason)
	})
}

func (b *branches) awaitLog(part string) {
	b.Helper()
	b.Await("the log's word", func() (bool, string) { return strings.Contains(b.Logs.Text(), part), "the log does not say " + part })
}

// startMortal starts a worker that knows all accounts, and dies with the requests of the orders at Stripe. Each group of orders is published when
// the requests of those before it are there.
func (b *branches) startMortal(groups ...[]world.Order) *world.Worker {
	b.Helper()
	var ids []payments.ID
	for _, o := range slices.Concat(groups...) {
		ids = append(ids, o.ID())
	}
	first := b.start(world.WorkerOptions{Name: "first", Stop: func(s payments.Step, id payments.ID) bool {
		return s == payments.StepAfterSubmit && slices.Contains(ids, id)
	}})
	for owner := range b.accounts {
		known := b.orderOf(owner, "known")
		b.Publish(known)
		b.awaitStatus(known, payments.StatusSucceeded, "")
	}
	published := 0
	for _, orders := range groups {
		b.Publish(orders...)
		published += len(orders)
		b.Await("the first owner's death", func() (bool, string) { return world.AllStopped(first.Gate, ids[:published]) })
	}
	return first
}

// mustBeApart wants the oracle's consent where money counts as the same only on the same account, and no request of a payment elsewhere than on
// its tenant's account.
func (b *branches) mustBeApart() {
	b.Helper()
	b.Rest()
	a := b.World.Account()
	for i, intent := range a.Intents {
		a.Intents[i].Money.Customer += "@" + b.accounts[intent.TenantID]
	}
	a.Charges = nil
	for _, c := range b.Sim.Ledger().Charges {
		a.Charges = append(a.Charges, oracle.Charge{ID: c.ID, Money: oracle.Money{Amount: c.Amount, Currency: c.Currency, Customer: c.Customer + "@" + c.Account}})
	}
	a.Payments = nil
	for owner, account := range b.accounts {
		list, _, err := b.Store.List(b.Context(), payments.ListRequest{TenantID: owner, Limit: payments.LimitMax})
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
	for _, finding := range a.Wrong() {
		b.Error(finding)
	}
	owners := map[string]string{} // Stripe's keys
	for _, i := range a.Intents {
		owners[payments.StripeKey(world.Namespace, payments.KindCharge, i.TenantID, i.Key)] = i.TenantID
	}
	for _, r := range b.Sim.Ledger().Requests {
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
	var orders, refused []world.Order
	for i, fault := range append([]string{""}, world.Faults...) {
		name := "order-" + fmt.Sprint(i)
		for _, owner := range slices.Sorted(maps.Keys(b.accounts)) {
			o := b.orderOf(owner, name)
			if i%3 == 0 {
				o.Lane = payments.LaneBulk
			}
			if fault == stripesim.FaultUnauthorized401 { // after which nothing is sent for the tenant
				refused = append(refused, o)
			} else {
				orders = append(orders, o)
			}
		}
		if fault != "" {
			b.Fault(b.orderOf(world.Tenant, name), fault, len(b.accounts)) // metadata are equal, too: it meets all three
		}
	}
	b.startMortal(orders, refused).Kill()
	before := len(b.Sim.Ledger().Requests)
	b.start(world.WorkerOptions{Name: "healthy"})
	b.mustBeApart()
	charges, looks := map[string]int{}, map[string]int{}
	for _, c := range b.Sim.Ledger().Charges {
		charges[c.Account]++
	}
	for _, r := range b.Sim.Ledger().Requests[before:] {
		if r.Method == http.MethodGet && r.Path == "/v1/payment_intents" {
			looks[r.Account]++
		}
	}
	for owner, account := range b.accounts {
		if want := len(world.Faults) + 2; charges[account] != want { // without any fault, and the one by which the account got known
			t.Errorf("%s: %d charges, want %d", owner, charges[account], want)
		}
		if looks[account] == 0 {
			t.Errorf("%s: nothing was looked up on %s", owner, account)
		}
	}
	if len(charges) != len(b.accounts) {
		t.Errorf("charges %v", charges)
	}
	listed, err := b.Store.Tenants(t.Context())
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
	o, other := b.orderOf(world.Keyed, "order-1"), b.orderOf(world.Tenant, "order-1")
	b.startMortal([]world.Order{o}).Kill()
	b.writeKey(world.OtherKey)
	second := b.start(world.WorkerOptions{Name: "second"})
	b.Publish(other)
	later := b.orderOf(world.Keyed, "order-2")
	b.Publish(later)
	b.awaitStatus(other, payments.StatusSucceeded, "")
	b.awaitStatus(o, payments.StatusUnknown, payments.ReasonLookingUp)
	b.awaitStatus(later, payments.StatusWaiting, payments.ReasonAccountUnknown)
	b.awaitLog("its payments began on " + world.KeyedAccount + " (test)")
	for _, r := range b.Sim.Ledger().Requests {
		if r.Account == world.OtherAccount && r.Path != "/v1/account" && r.Path != "/v1/balance" {
			t.Errorf("%s %s reached another account", r.Method, r.Path)
		}
	}
	if strings.Contains(b.Logs.Text(), world.OtherKey) || strings.Contains(b.Logs.Text(), world.KeyedKey) {
		t.Error("a key is in the log")
	}
	b.writeKey(world.KeyedKey)
	b.mustBeApart()
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
}

// TestBrokenTenantHoldsUpNobody: tenants whose ways are broken wait visibly, and cost others nothing. Mended, they go on without a restart.
func TestBrokenTenantHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, says, mended string }{
		"refused":    {"sk_test_nobody000", "was refused by Stripe (401)", world.KeyedKey},
		"restricted": {world.RestrictedKey, "write the id acct_… that it belongs to on the second line of that file", world.RestrictedKey + "\n" + world.KeyedAccount},
		"live":       {"sk_live_nobody000", "is a live one", world.KeyedKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBranches(t)
			b.writeKey(c.content)
			broken := []world.Order{b.orderOf(world.Keyed, "order-1"), b.orderOf(world.Keyed, "order-2")}
			b.Publish(broken...)
			b.start(world.WorkerOptions{Name: "worker"})
			b.awaitLog(c.says)
			for i := range 20 {
				good := b.orderOf(world.Tenant, fmt.Sprint("good-", i))
				if i%2 == 1 {
					good = b.orderOf(world.Connected, fmt.Sprint("good-", i))
				}
				b.Publish(good)
				defer b.awaitStatus(good, payments.StatusSucceeded, "")
			}
			for _, o := range broken {
				b.awaitStatus(o, payments.StatusWaiting, payments.ReasonAccountUnknown)
				if p := b.payment(o); p.InDoubt || !p.FirstSubmitAt.IsZero() || p.Tries != 0 {
					t.Errorf("nothing was sent, and it stands as %+v", p)
				}
			}
			for _, r := range b.Sim.Ledger().Requests {
				if r.Account == world.KeyedAccount && r.Method == http.MethodPost {
					t.Error("something was sent for a tenant whose way is broken")
				}
			}
			if strings.Contains(b.Logs.Text(), c.content) {
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
	b.start(world.WorkerOptions{Name: "worker"})
	before := b.orderOf(world.Keyed, "before")
	b.Publish(before)
	b.awaitStatus(before, payments.StatusSucceeded, "")
	b.useKeys(world.KeyedKey)
	met := b.orderOf(world.Keyed, "met")
	b.Publish(met, b.orderOf(world.Tenant, "met"))
	b.awaitLog("Stripe refuses a tenant's own key")
	b.writeKey(world.KeyedNewKey)
	for i := range 10 {
		b.Publish(b.orderOf(world.Keyed, fmt.Sprint("after-", i)))
	}
	b.mustBeApart()
}
