package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// The accounts of these tests, and keys of them.
const (
	ownAccount   = "acct_1Own"
	keyedAccount = "acct_1Keyed"
	otherAccount = "acct_1Other"
	connAccount  = "acct_1Conn"

	ownKey        = "sk_test_own000000000"
	keyedKey      = "sk_test_keyed0000000"
	keyedNewKey   = "sk_test_keyedNew0000"
	restrictedKey = "rk_test_restricted00"
	otherKey      = "sk_test_other0000000"
)

func simKeys() []stripesim.Key {
	return []stripesim.Key{
		{Secret: ownKey, Account: ownAccount, Connected: []string{connAccount, "acct_1Conn2"}}, {Secret: keyedKey, Account: keyedAccount},
		{Secret: keyedNewKey, Account: keyedAccount}, {Secret: otherKey, Account: otherAccount},
		{Secret: restrictedKey, Account: keyedAccount, Deny: []string{"GET /v1/account"}},
	}
}

// waysTable is a store of ways.
type waysTable struct {
	mu    sync.Mutex
	ways  map[string]Way
	reads int
	pins  int
	err   error         // of every call
	hold  chan struct{} // nil: none; else reads wait for it
}

func (w *waysTable) Way(ctx context.Context, id string) (Way, error) {
	if w.hold != nil {
		select {
		case <-w.hold:
		case <-ctx.Done():
			return Way{}, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	way, ok := w.ways[id]
	switch {
	case w.err != nil:
		return Way{}, w.err
	case !ok:
		return Way{}, payments.Errorf(payments.CodeNotFound, "no such tenant")
	}
	return way, nil
}

func (w *waysTable) Pin(_ context.Context, id string, a payments.Account) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	way := w.ways[id]
	switch {
	case w.err != nil:
		return w.err
	case way.Account != (payments.Account{}) && way.Account != a:
		return &payments.Error{Code: payments.CodeInvalid, Field: "account", Message: "another one is pinned"}
	}
	w.pins++
	way.Account = a
	w.ways[id] = way
	return nil
}

func (w *waysTable) set(id string, way Way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ways[id] = way
}

func (w *waysTable) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *waysTable) get(id string) Way {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ways[id]
}

// bank is the simulator with several accounts, and a gateway to all of them.
type bank struct {
	*stripesim.Server
	*Accounts
	ways *waysTable
	log  *lockedLog
	url  string
	dir  string
}

type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// quick pauses, so that what is mended is seen soon.
var quick = pauses{first: 5 * time.Millisecond, unavailable: 20 * time.Millisecond, invalid: 20 * time.Millisecond}

func newBank(t *testing.T, change ...func(*Options)) *bank {
	t.Helper()
	server, err := stripesim.New(stripesim.Options{Keys: simKeys()})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		server.ClearFaults()
		web.CloseClientConnections()
		web.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bank{Server: server, url: web.URL, dir: t.TempDir(), log: &lockedLog{}}
	b.ways = &waysTable{ways: map[string]Way{
		"plain": {}, "plain2": {}, "connected": {Connected: connAccount}, "connected2": {Connected: "acct_1Conn2"},
		"keyed": {KeyRef: b.file(t, "keyed", keyedKey)}, "other": {KeyRef: b.file(t, "other", otherKey)},
	}}
	b.connect(t, change...)
	return b
}

// connect is another process of the same installation.
func (b *bank) connect(t *testing.T, change ...func(*Options)) {
	t.Helper()
	o := options(b.url)
	o.Key, o.Logger = ownKey, slog.New(slog.NewTextHandler(b.log, nil))
	for _, f := range change {
		f(&o)
	}
	a, err := NewAccounts(t.Context(), o, b.ways)
	if err != nil {
		t.Fatal(err)
	}
	a.pauses = quick
	t.Cleanup(a.Close)
	b.Accounts = a
}

// file writes a key's file and returns the reference to it.
func (b *bank) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path+".new", []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return "file:" + path
}

// poll asks again and again until done.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("did not come: " + what)
		}
	}
}

// known waits until the tenant's account is known.
func (b *bank) known(t *testing.T, tenant string) payments.Account {
	t.Helper()
	var account payments.Account
	var err error
	poll(t, "the account of "+tenant, func() bool {
		account, err = b.Account(t.Context(), tenant)
		return err == nil
	})
	return account
}

// refused waits until the tenant's way has been tried and found to be wrong.
func (b *bank) refused(t *testing.T, tenant string, parts ...string) {
	t.Helper()
	var err error
	poll(t, "the refusal of "+tenant, func() bool {
		_, err = b.Account(t.Context(), tenant)
		return payments.ErrorCode(err) == payments.CodeInvalid
	})
	for _, part := range append(parts, tenant) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error says %q and nothing of %q", err, part)
		}
	}
	for _, k := range simKeys() {
		if strings.Contains(err.Error(), k.Secret) || strings.Contains(b.log.String(), k.Secret) {
			t.Errorf("a key is told: %q", err)
		}
	}
}

// order is a payment of the tenant, pinned to the account and sent now.
func (b *bank) order(tenant, account string, change ...func(*payments.Payment)) payments.Payment {
	return testPayment(append([]func(*payments.Payment){func(p *payments.Payment) {
		p.TenantID, p.StripeAccount, p.FirstSubmitAt, p.LastSubmitAt = tenant, account, b.Now(), b.Now()
	}}, change...)...)
}

// posts counts the POSTs that each account has seen.
func (b *bank) posts() map[string]int {
	n := map[string]int{}
	for _, r := range b.Ledger().Requests {
		if r.Method == http.MethodPost {
			n[r.Account]++
		}
	}
	return n
}

// Payments of several tenants under one key and for one customer land on their own accounts, and look-ups stay there.
func TestAccountsNeverMeet(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	want := map[string]string{"plain": ownAccount, "plain2": ownAccount, "connected": connAccount, "connected2": "acct_1Conn2", "keyed": keyedAccount, "other": otherAccount}
	for tenant, account := range want {
		if got := b.known(t, tenant); got.ID != account || got.Livemode {
			t.Errorf("%s has the account %+v", tenant, got)
		}
	}
	for _, customer := range []string{"cus_1", ""} { // look-ups by customer, and by window
		for tenant, account := range want {
			p := b.order(tenant, account, func(p *payments.Payment) { p.IdempotencyKey, p.Customer = "order-"+customer, customer })
			o := b.Submit(t.Context(), submission(p))
			if o.Kind != payments.ObservedAnswer || o.Account.ID != account {
				t.Fatalf("%s: %s (%s) of %s", tenant, o.Kind, o.Detail, o.Account.ID)
			}
			looked := b.Look(t.Context(), p, nil)
			if looked.Kind != payments.ObservedRecords || len(looked.Found) != 1 || looked.Found[0].ID != o.Object.ID || looked.Account.ID != account {
				t.Errorf("%s: the look-up shows %+v", tenant, looked)
			}
			p.StripePaymentIntent = o.Object.ID
			if got := b.Retrieve(t.Context(), p); got.Kind != payments.ObservedObject || got.Object == nil {
				t.Errorf("%s: retrieved %+v", tenant, got)
			}
			for stranger, elsewhere := range want {
				if elsewhere == account {
					continue
				}
				// Were the payment's tenant taken for another, nothing would be sent there and nothing found.
				wrong := b.order(stranger, account, func(p *payments.Payment) { p.IdempotencyKey = "order-" + customer })
				if o := b.Submit(t.Context(), submission(wrong)); o.Kind != payments.ObservedForeignAccount {
					t.Errorf("a payment pinned to %s was sent by the way of %s: %s", account, stranger, o.Kind)
				}
				if o := b.Look(t.Context(), wrong, nil); o.Kind != payments.ObservedForeignAccount {
					t.Errorf("a payment pinned to %s was looked for by the way of %s: %s", account, stranger, o.Kind)
				}
			}
		}
	}
	charges := map[string]int{}
	for _, c := range b.Ledger().Charges {
		charges[c.Account]++
		if want[c.Metadata[MetadataTenant]] != c.Account {
			t.Errorf("a charge of %s is on %s", c.Metadata[MetadataTenant], c.Account)
		}
	}
	if !maps.Equal(charges, map[string]int{ownAccount: 4, connAccount: 2, "acct_1Conn2": 2, keyedAccount: 2, otherAccount: 2}) {
		t.Errorf("charges %v", charges)
	}
	if !maps.Equal(b.posts(), charges) {
		t.Errorf("POSTs %v", b.posts())
	}
	if own, err := b.Account(t.Context(), ""); err != nil || own.ID != ownAccount {
		t.Errorf("the installation's account is %+v, %v", own, err)
	}
}

// A payment without a pinned account goes nowhere, whoever its tenant is.
func TestUnpinnedGoesNowhere(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	for _, tenant := range []string{"plain", "connected", "keyed"} {
		b.known(t, tenant)
		before := len(b.Ledger().Requests)
		p := b.order(tenant, "", func(p *payments.Payment) { p.StripePaymentIntent = "pi_1" })
		for name, o := range map[string]payments.Observation{
			"held_back": b.Submit(t.Context(), submission(p)), "no_records": b.Look(t.Context(), p, nil), "no_records ": b.Retrieve(t.Context(), p),
		} {
			if string(o.Kind) != strings.TrimSpace(name) || !strings.Contains(o.Detail, "no Stripe account is pinned") {
				t.Errorf("%s: %s (%s), want %s", tenant, o.Kind, o.Detail, name)
			}
		}
		if n := len(b.Ledger().Requests) - before; n != 0 {
			t.Errorf("%s: %d requests left", tenant, n)
		}
	}
}

// Look-ups without a customer share a listing on one account, whoever's they are, and none across accounts: while one account's listing hangs,
// the others' go on.
func TestListingsStayOnTheirAccount(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	accounts := map[string]string{"plain": ownAccount, "plain2": ownAccount, "connected": connAccount, "connected2": "acct_1Conn2", "keyed": keyedAccount}
	orders := map[string]payments.Payment{}
	for tenant, account := range accounts {
		b.known(t, tenant)
		orders[tenant] = b.order(tenant, account, func(p *payments.Payment) { p.Customer = "" })
		if o := b.Submit(t.Context(), submission(orders[tenant])); o.Kind != payments.ObservedAnswer {
			t.Fatalf("%s: %s (%s)", tenant, o.Kind, o.Detail)
		}
	}
	if err := b.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET", Path: createPath}, Fault: stripesim.FaultCommitThenHang, Times: 1}); err != nil {
		t.Fatal(err)
	}
	found := func(tenant string) payments.Observation {
		o := b.Look(context.Background(), orders[tenant], nil)
		if o.Kind != payments.ObservedRecords || len(o.Found) != 1 || o.Account.ID != accounts[tenant] {
			t.Errorf("%s: %s (%s) on %s, found %v", tenant, o.Kind, o.Detail, o.Account.ID, o.Found)
		}
		return o
	}
	var wg sync.WaitGroup
	wg.Go(func() { found("plain") })
	if err := b.WaitHung(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"connected", "connected2", "keyed"} {
		found(tenant)
	}
	waits := make(chan struct{})
	wg.Go(func() { defer close(waits); found("plain2") })
	poll(t, "the other tenant of the same account waits for the next listing", func() bool {
		b.own.board.mu.Lock()
		defer b.own.board.mu.Unlock()
		return b.own.board.next != nil && len(b.own.board.next.seats) == 1
	})
	b.ClearFaults()
	<-waits
	wg.Wait()
}

// While Stripe is slow about one tenant's account, nobody waits for it: that tenant's payments are held back at once, others go.
func TestSlowAccountHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	if err := b.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET", Path: "/v1/account"}, Fault: stripesim.FaultCommitThenHang, Times: 1}); err != nil {
		t.Fatal(err)
	}
	account, err := b.Account(t.Context(), "keyed")
	if payments.ErrorCode(err) != payments.CodeUnavailable || account != (payments.Account{}) {
		t.Fatalf("the account is %+v, %v before Stripe has named it", account, err)
	}
	if err := b.WaitHung(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	p := b.order("keyed", keyedAccount)
	o := b.Submit(t.Context(), submission(p))
	if o.Kind != payments.ObservedAccountUnknown || !strings.Contains(o.Detail, "is being read") || o.Account != (payments.Account{ID: keyedAccount}) {
		t.Errorf("a payment of the tenant: %s (%s) at %+v", o.Kind, o.Detail, o.Account)
	}
	decided, err := payments.Decide(testPayment(), o, b.Now(), payments.Policy{TriesMax: 20})
	if err != nil || decided.Status != payments.StatusWaiting || decided.Reason != payments.ReasonAccountUnknown || !decided.ClearSubmit || decided.CountTry {
		t.Errorf("it is decided as %+v, %v", decided, err)
	}
	for _, tenant := range []string{"plain", "connected"} {
		account := b.known(t, tenant)
		if o := b.Submit(t.Context(), submission(b.order(tenant, account.ID))); o.Kind != payments.ObservedAnswer {
			t.Errorf("%s: %s (%s)", tenant, o.Kind, o.Detail)
		}
	}
	b.ClearFaults()
	b.known(t, "keyed")
	if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer {
		t.Errorf("once it is known: %s (%s)", o.Kind, o.Detail)
	}
}

// Whoever asks at once, a tenant's way is read once and its account too; then never again.
func TestAccountsAreReadOnce(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.ways.hold = make(chan struct{})
	before := len(b.Ledger().Requests)
	var wg sync.WaitGroup
	var ready atomic.Int32
	for range 50 {
		for _, tenant := range []string{"plain", "keyed"} {
			wg.Go(func() {
				if ready.Add(1) == 100 {
					close(b.ways.hold)
				}
				_, err := b.Account(context.Background(), tenant)
				if tenant == "plain" && err != nil {
					t.Errorf("an installation's tenant must not wait for Stripe: %v", err)
				}
			})
		}
	}
	wg.Wait()
	b.known(t, "keyed")
	for range 10 {
		b.known(t, "keyed")
		b.known(t, "plain")
	}
	if n := len(b.Ledger().Requests) - before; n != 2 || b.ways.reads != 2 || b.ways.pins != 1 {
		t.Errorf("%d requests, %d ways read, %d accounts pinned; want 2, 2, 1", n, b.ways.reads, b.ways.pins)
	}
	// A connected account that was named once is not asked for again, by no process: ten thousand of them must not cost a start.
	b.known(t, "connected")
	before = len(b.Ledger().Requests)
	b.connect(t)
	b.known(t, "connected")
	if n := len(b.Ledger().Requests) - before; n != 2 {
		t.Errorf("%d requests; want the two about the installation's own account", n)
	}
}

// What only a person can mend says how, is tried again, and goes on without a restart.
func TestBrokenTenantIsMended(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		content string
		says    []string
	}{
		"may not read its account": {restrictedKey, []string{"the key in file:", "403", "second line", "acct_"}},
		"states another account":   {keyedKey + "\n" + otherAccount, []string{keyedAccount, otherAccount, "correct one"}},
		// Stripe's refusal names the key's account.
		"restricted, states another": {restrictedKey + "\n" + otherAccount, []string{keyedAccount, otherAccount, "correct one"}},
		"refused":                    {"sk_test_rolled000000", []string{"401"}},
		"publishable":                {"pk_test_0123456789", []string{"sk_"}},
		"empty":                      {"", []string{"must hold one"}},
		"two keys":                   {keyedKey + "\n" + otherKey, []string{"second line"}},
		"three words":                {keyedKey + " " + keyedAccount + " x", []string{"must hold one"}},
		"long":                       {strings.Repeat("x ", 5000), []string{"must hold one"}},
		"live":                       {"sk_live_0123456789", []string{"live", "ONCEPAY_STRIPE_URL"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			b.file(t, "keyed", c.content)
			b.refused(t, "keyed", c.says...)
			if n := b.Broken(); n != 1 {
				t.Errorf("%d tenants are broken", n)
			}
			p := b.order("keyed", keyedAccount)
			for _, o := range []payments.Observation{b.Submit(t.Context(), submission(p)), b.Look(t.Context(), p, nil)} {
				if o.Kind != payments.ObservedAccountUnknown && o.Kind != payments.ObservedNoRecords || !strings.Contains(o.Detail, "keyed") || o.RetryAfter <= 0 {
					t.Errorf("%s (%s), retry after %s", o.Kind, o.Detail, o.RetryAfter)
				}
				noSecrets(t, o)
			}
			if len(b.posts()) != 0 {
				t.Errorf("POSTs left: %v", b.posts())
			}
			if o := b.Submit(t.Context(), submission(b.order("plain", ownAccount))); o.Kind != payments.ObservedAnswer {
				t.Errorf("another tenant: %s (%s)", o.Kind, o.Detail)
			}
			b.file(t, "keyed", keyedKey)
			b.known(t, "keyed")
			if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer || o.Account.ID != keyedAccount {
				t.Errorf("once it is mended: %s (%s)", o.Kind, o.Detail)
			}
			poll(t, "the good news", func() bool { return b.Broken() == 0 && strings.Contains(b.log.String(), "is known now") })
		})
	}
}

// The second line of the file is the setting of a key that may not read its account.
func TestRestrictedKeyStatesItsAccount(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.file(t, "keyed", restrictedKey+"\r\n"+keyedAccount)
	if got := b.known(t, "keyed"); got.ID != keyedAccount {
		t.Errorf("account %+v", got)
	}
	if o := b.Submit(t.Context(), submission(b.order("keyed", keyedAccount))); o.Kind != payments.ObservedAnswer {
		t.Errorf("%s (%s)", o.Kind, o.Detail)
	}
	if b.ways.get("keyed").Account.ID != keyedAccount {
		t.Errorf("pinned %+v", b.ways.get("keyed"))
	}
}

// A file that is not there yet, or no file at all, holds the tenant back and nobody else.
func TestUnreadableKeyFiles(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	path := filepath.Join(b.dir, "later")
	b.ways.set("later", Way{KeyRef: "file:" + path})
	b.ways.set("folder", Way{KeyRef: "file:" + b.dir})
	b.ways.set("odd", Way{KeyRef: "env:KEY"})
	b.refused(t, "folder", "is not a file")
	b.refused(t, "odd", "file:/path")
	if _, err := b.Account(t.Context(), "later"); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
	poll(t, "the word about the missing file", func() bool {
		_, err := b.Account(t.Context(), "later")
		return strings.Contains(err.Error(), "no such file")
	})
	b.file(t, "later", keyedKey)
	b.known(t, "later")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	b.connect(t)
	b.known(t, "later")
	if !strings.Contains(b.log.String(), "chmod 600") {
		t.Error("nobody was told that the key can be read by others")
	}
}

// A connected account that the installation's key does not reach holds the tenant back.
func TestConnectedAccountOutOfReach(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.ways.set("gone", Way{Connected: "acct_1Gone"})
	b.refused(t, "gone", "acct_1Gone", "ONCEPAY_STRIPE_KEY", "connect it")
	if o := b.Submit(t.Context(), submission(b.order("gone", "acct_1Gone"))); o.Kind != payments.ObservedAccountUnknown {
		t.Errorf("%s (%s)", o.Kind, o.Detail)
	}
	if len(b.posts()) != 0 {
		t.Errorf("POSTs left: %v", b.posts())
	}
	keys := simKeys()
	keys[0].Connected = append(keys[0].Connected, "acct_1Gone")
	keys[0].Deny = []string{"GET /v1/account"} // a platform's restricted key: the header says enough
	if err := b.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	if got := b.known(t, "gone"); got.ID != "acct_1Gone" {
		t.Errorf("account %+v", got)
	}
}

// The key of another account in the tenant's file is refused: at the next start, and after a rotation. Nothing is sent with it.
func TestSwappedKeyIsRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.known(t, "keyed")
	p := b.order("keyed", keyedAccount)
	b.file(t, "keyed", otherKey)
	if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer || o.Account.ID != keyedAccount {
		t.Fatalf("the key in use is still good: %s (%s)", o.Kind, o.Detail)
	}
	first := b.Accounts
	b.connect(t)
	b.refused(t, "keyed", keyedAccount, otherAccount, "put back")
	if err := b.SetKeys([]stripesim.Key{simKeys()[0], simKeys()[2], simKeys()[3]}); err != nil { // the old key is rolled
		t.Fatal(err)
	}
	if o := first.Look(t.Context(), p, nil); o.Kind != payments.ObservedNoRecords || o.HTTPStatus != 401 {
		t.Errorf("with the rolled key: %s (%s)", o.Kind, o.Detail)
	}
	second := b.Accounts
	for _, a := range []*Accounts{first, second} {
		b.Accounts = a
		b.refused(t, "keyed", keyedAccount, otherAccount)
		if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAccountUnknown {
			t.Errorf("%s (%s)", o.Kind, o.Detail)
		}
		if o := b.Look(t.Context(), p, nil); o.Kind != payments.ObservedNoRecords {
			t.Errorf("%s (%s)", o.Kind, o.Detail)
		}
	}
	if n := b.posts(); n[otherAccount] != 0 || n[keyedAccount] != 1 {
		t.Errorf("POSTs %v", n)
	}
	for _, r := range b.Ledger().Requests {
		if r.Account == otherAccount && r.Path != "/v1/account" && r.Path != "/v1/balance" {
			t.Errorf("%s %s reached the other account", r.Method, r.Path)
		}
	}
	b.file(t, "keyed", keyedNewKey)
	b.known(t, "keyed")
	if o := b.Look(t.Context(), p, nil); o.Kind != payments.ObservedRecords || len(o.Found) != 1 {
		t.Errorf("once the right key is back: %s (%s)", o.Kind, o.Detail)
	}
}

// Two processes whose files hold keys of two accounts: the first that uses the way decides, the other is refused.
func TestTwoProcessesTwoKeys(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	tenant, err := b.find(t.Context(), "keyed")
	if err != nil {
		t.Fatal(err)
	}
	b.ways.set("keyed", Way{KeyRef: b.ways.get("keyed").KeyRef, Account: payments.Account{ID: otherAccount}}) // after this process has read it
	b.begin(tenant)
	b.refused(t, "keyed", keyedAccount, otherAccount)
}

func TestRotationWithoutRestart(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.known(t, "keyed")
	keys := simKeys()
	keys[1].Expired = true
	if err := b.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	b.file(t, "keyed", keyedNewKey)
	p := b.order("keyed", keyedAccount)
	if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedUnauthorized {
		t.Fatalf("%s (%s)", o.Kind, o.Detail)
	}
	b.known(t, "keyed")
	if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer {
		t.Fatalf("with the new key: %s (%s)", o.Kind, o.Detail)
	}
	// Of the installation's own key nothing is read again: it is a setting.
	keys[0].Expired = true
	if err := b.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	if o := b.Submit(t.Context(), submission(b.order("plain", ownAccount))); o.Kind != payments.ObservedUnauthorized {
		t.Errorf("%s (%s)", o.Kind, o.Detail)
	}
	if got, err := b.Account(t.Context(), "plain"); err != nil || got.ID != ownAccount {
		t.Errorf("the account is %+v, %v", got, err)
	}
}

// A key that is good and may not charge is replaced by one that may.
func TestKeyWithoutPermissionIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	keys := simKeys()
	keys[1].Deny = []string{"POST /v1/payment_intents"}
	if err := b.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	b.known(t, "keyed")
	before := len(b.Ledger().Requests)
	p := b.order("keyed", keyedAccount)
	for range 2 { // the same key is still there: nothing is read again
		if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedUnauthorized || o.HTTPStatus != 403 {
			t.Fatalf("%s (%s)", o.Kind, o.Detail)
		}
	}
	if n := len(b.Ledger().Requests) - before; n != 2 {
		t.Errorf("%d requests, want the two submissions", n)
	}
	b.file(t, "keyed", keyedNewKey)
	if o := b.Submit(t.Context(), submission(p)); o.HTTPStatus != 403 {
		t.Fatalf("%s (%s)", o.Kind, o.Detail)
	}
	b.known(t, "keyed")
	if o := b.Submit(t.Context(), submission(p)); o.Kind != payments.ObservedAnswer {
		t.Fatalf("with the other key: %s (%s)", o.Kind, o.Detail)
	}
}

// Many calls that are refused at once, while the key is rolled again and again: each payment ends up charged once.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.known(t, "keyed")
	keys := simKeys()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			p := b.order("keyed", keyedAccount, func(p *payments.Payment) { p.IdempotencyKey = fmt.Sprint("order-", i) })
			poll(t, "the charge", func() bool { return b.Submit(context.Background(), submission(p)).Kind == payments.ObservedAnswer })
		})
	}
	for i := range 6 {
		keys[1].Expired, keys[2].Expired = i%2 == 0, i%2 == 1
		if err := b.SetKeys(keys); err != nil {
			t.Error(err)
		}
		b.file(t, "keyed", map[bool]string{true: keyedNewKey, false: keyedKey}[keys[1].Expired])
		b.known(t, "keyed")
	}
	wg.Wait()
	if s := b.Summary(); s.Charges != 40 || s.DoubleCharges != 0 {
		t.Errorf("%d charges, %d double", s.Charges, s.DoubleCharges)
	}
}

// A thousand connected accounts share the connections of one.
func TestManyAccountsShareConnections(t *testing.T) {
	t.Parallel()
	server, err := stripesim.New(stripesim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var opened atomic.Int32
	web := httptest.NewUnstartedServer(server)
	web.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	web.Start()
	t.Cleanup(func() { web.Close(); _ = server.Close() })
	const tenants, conns = 1000, 16
	ways := &waysTable{ways: map[string]Way{}}
	for i := range tenants {
		ways.ways[fmt.Sprint("t", i)] = Way{Connected: fmt.Sprint("acct_1x", i)}
	}
	o := options(web.URL)
	o.MaxConns = conns
	a, err := NewAccounts(t.Context(), o, ways)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	var wg sync.WaitGroup
	next := make(chan int)
	for range 64 {
		wg.Go(func() {
			for i := range next {
				tenant, account := fmt.Sprint("t", i), fmt.Sprint("acct_1x", i)
				poll(t, "the account", func() bool { _, err := a.Account(context.Background(), tenant); return err == nil })
				p := testPayment(func(p *payments.Payment) { p.TenantID, p.StripeAccount = tenant, account })
				if o := a.Submit(context.Background(), submission(p)); o.Kind != payments.ObservedAnswer {
					t.Errorf("%s: %s (%s)", tenant, o.Kind, o.Detail)
				}
			}
		})
	}
	for i := range tenants {
		next <- i
	}
	close(next)
	wg.Wait()
	// Not more than that at once; one that ends with its call is replaced now and then.
	if n := opened.Load(); n > 4*conns {
		t.Errorf("%d connections were opened for %d accounts, with %d at once", n, tenants, conns)
	}
	charged := map[string]bool{}
	for _, c := range server.Ledger().Charges {
		if charged[c.Account] || c.Account != "acct_1x"+strings.TrimPrefix(c.Metadata[MetadataTenant], "t") {
			t.Errorf("a charge of %s on %s", c.Metadata[MetadataTenant], c.Account)
		}
		charged[c.Account] = true
	}
	if len(charged) != tenants {
		t.Errorf("%d accounts have a charge", len(charged))
	}
}

// Who does not exist is asked for again each time, so that a new tenant can send at once; while the store is away nobody is sent for.
func TestUnknownTenants(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	for range 2 {
		if _, err := b.Account(t.Context(), "new"); payments.ErrorCode(err) != payments.CodeInvalid || !strings.Contains(err.Error(), "no such tenant") {
			t.Errorf("the error is %v", err)
		}
	}
	b.ways.set("new", Way{})
	b.known(t, "new")
	b.ways.fail(errors.New("connection refused"))
	if _, err := b.Account(t.Context(), "plain2"); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
	if o := b.Submit(t.Context(), submission(b.order("plain2", ownAccount))); o.Kind != payments.ObservedAccountUnknown {
		t.Errorf("%s (%s)", o.Kind, o.Detail)
	}
	b.known(t, "new") // known already
	b.ways.fail(nil)
	b.known(t, "plain2")
	// The way was read, and the account cannot be stored: nothing goes before it can.
	if _, err := b.find(t.Context(), "keyed"); err != nil {
		t.Fatal(err)
	}
	b.ways.fail(payments.Errorf(payments.CodeUnavailable, "PostgreSQL is away"))
	poll(t, "the word about the store", func() bool {
		_, err := b.Account(t.Context(), "keyed")
		return strings.Contains(err.Error(), "PostgreSQL is away")
	})
	b.ways.fail(nil)
	b.known(t, "keyed")
	ended, end := context.WithCancel(t.Context())
	end()
	b.ways.hold = make(chan struct{})
	if _, err := b.Account(ended, "connected"); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
}

// An installation is of one mode.
func TestOneModeOnly(t *testing.T) {
	t.Parallel()
	live := `{"object":"balance","livemode":true}`
	s := newRawServer(t, func(_ int, c net.Conn, r request) bool {
		balance := balanceJSON
		if strings.HasSuffix(r.Header.Get("Authorization"), "nameless-key") {
			balance = live
		}
		answers := map[string]string{"/v1/account": reply(200, accountJSON), "/v1/balance": reply(200, balance)}
		return byPath(answers)(0, c, r)
	})
	dir := t.TempDir()
	for name, key := range map[string]string{"nameless": "nameless-key", "marked": "sk_live_marked000"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ways := &waysTable{ways: map[string]Way{
		"nameless": {KeyRef: "file:" + filepath.Join(dir, "nameless")}, "marked": {KeyRef: "file:" + filepath.Join(dir, "marked")},
		"turned": {Connected: testAccount.ID, Account: payments.Account{ID: testAccount.ID, Livemode: true}},
	}}
	a, err := NewAccounts(t.Context(), options(s.url), ways)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.pauses = quick
	b := &bank{Accounts: a, log: &lockedLog{}}
	b.refused(t, "nameless", "live", "in test mode")
	b.refused(t, "marked", "live", "ONCEPAY_STRIPE_URL")
	b.refused(t, "turned", testAccount.ID+" (live)", testAccount.ID+" (test)", "ONCEPAY_STRIPE_KEY")
	a.Close()
	for len(s.arrived) > 0 {
		if r := <-s.arrived; strings.Contains(r.Header.Get("Authorization"), "sk_live") {
			t.Error("a live key left")
		}
	}
	if s.posts.Load() != 0 || ways.pins != 0 {
		t.Errorf("%d POSTs, %d pins", s.posts.Load(), ways.pins)
	}
}

// A live installation, whose keys go to Stripe alone, takes no tenant of test mode. No server is asked: the check is made on the answers.
func TestTestTenantOfLiveInstallation(t *testing.T) {
	t.Parallel()
	o, err := Options{Key: "sk_live_0123456789", Namespace: "n"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	a := &Accounts{own: newGateway(o), options: o}
	a.own.account = payments.Account{ID: "acct_1Live", Livemode: true}
	who := subject{tenant: "acme", file: "file:/k"}
	err = a.fits(who, Way{KeyRef: "file:/k"}, payments.Account{ID: "acct_1Test"})
	checkError(t, err, "its account is a test one, and this installation is live", payments.CodeInvalid)
	if err := a.fits(who, Way{KeyRef: "file:/k"}, payments.Account{ID: "acct_1A", Livemode: true}); err != nil {
		t.Error(err)
	}
	// And a live key is used for a live installation.
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("rk_live_9876543210"), 0o600); err != nil {
		t.Fatal(err)
	}
	who.file = "file:" + path
	o.subject = who
	if err := a.useOwnKey(&o, newTenant("acme", Way{KeyRef: who.file})); err != nil || o.Key != "rk_live_9876543210" {
		t.Errorf("%v", err)
	}
}

func TestWarm(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.ways.set("broken", Way{KeyRef: "file:" + filepath.Join(b.dir, "nowhere")})
	b.Warm([]string{"nobody", "broken", "plain", "keyed", "connected"})
	poll(t, "the last one's account", func() bool {
		v, ok := b.tenants.Load("connected")
		return ok && v.(*tenant).current.Load() != nil
	})
	poll(t, "the word about the broken one", func() bool { return b.Broken() == 1 && strings.Contains(b.log.String(), "no such file") })
}

// Close ends what hangs, and nothing begins after it.
func TestAccountsClose(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	if err := b.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET"}, Fault: stripesim.FaultCommitThenHang}); err != nil {
		t.Fatal(err)
	}
	_, _ = b.Account(t.Context(), "keyed")
	if err := b.WaitHung(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	b.Warm([]string{"connected", "other"})
	b.Accounts.Close()
	if _, err := b.Account(t.Context(), "plain2"); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
	if _, err := b.Account(t.Context(), "keyed"); payments.ErrorCode(err) != payments.CodeUnavailable {
		t.Errorf("the error is %v", err)
	}
	b.Warm([]string{"other"})
}

func TestNewAccountsFails(t *testing.T) {
	t.Parallel()
	s := newRawServer(t, byPath(map[string]string{"/v1/account": reply(403, forbidden)}))
	_, err := NewAccounts(t.Context(), options(s.url), &waysTable{})
	checkError(t, err, "ONCEPAY_STRIPE_ACCOUNT", payments.CodeInvalid)
	o := options(s.url)
	o.ConnectedAccount = "acct_1"
	_, err = NewAccounts(t.Context(), o, &waysTable{})
	checkError(t, err, "connected account", payments.CodeInvalid)
	o = options("ftp://x")
	_, err = NewAccounts(t.Context(), o, &waysTable{})
	checkError(t, err, "ONCEPAY_STRIPE_URL", payments.CodeInvalid)
}

// Stripe names the account of a key that it refuses to let read it: a wrong setting is found all the same.
func TestStatedAccountIsCompared(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"for this endpoint on account 'acct_1Tests'.": true, "without any": true, "on account 'acct_1Tests' or 'acct_2'": true, "on account 'acct_1Else'.": false,
	} {
		body := fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":"no permissions %s"}}`, text)
		s := newRawServer(t, byPath(map[string]string{"/v1/account": reply(403, body), "/v1/balance": reply(200, balanceJSON)}))
		o := options(s.url)
		o.AccountID = "acct_1Tests"
		g, err := New(t.Context(), o)
		if err == nil {
			g.Close()
		}
		if good != (err == nil) || err != nil && !strings.Contains(err.Error(), "belongs to acct_1Else") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCheckKeyRef(t *testing.T) {
	t.Parallel()
	for ref, part := range map[string]string{
		"file:/etc/oncepay/acme.key": "", "file:/a": "", "file:acme.key": "full path", "file:/": "full path", "file:": "full path", "file:/a/../b": "full path",
		"file://host/a": "full path", "": "file:/path", "/etc/key": "file:/path", "env:X": "file:/path", "file:/a b": "printable", "file:/" + strings.Repeat("a", 1000): "1000",
		"sk_test_SecretOfTheTests": "never the key", "rk_live_SecretOfTheTests": "never the key", "file:sk_live_SecretOfTheTests": "full path", "x sk_live_SecretOf": "never the key",
	} {
		got := CheckKeyRef(ref)
		if (part == "") != (got == "") || !strings.Contains(got, part) || strings.Contains(got, "SecretOf") {
			t.Errorf("%q: %q, want %q", ref, got, part)
		}
	}
}

var _ io.Writer = (*lockedLog)(nil)
