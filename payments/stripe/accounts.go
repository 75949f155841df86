package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Way is how one tenant's payments get to Stripe. It was set when the tenant was created and never changes.
type Way struct {
	Connected string // acct_… that the installation's key acts for (Stripe-Account); "" : none
	KeyRef    string // where the tenant's own key is found, as CheckKeyRef wants it; "" : it has none
	// Account is what Stripe named when the way was used for the first time; zero: it has not been yet.
	Account payments.Account
}

// installation reports whether the tenant has no way of its own.
func (w Way) installation() bool { return w.Connected == "" && w.KeyRef == "" }

// Ways knows the tenants' ways.
type Ways interface {
	// Way reads a tenant's. CodeNotFound: there is no such tenant; CodeUnavailable.
	Way(ctx context.Context, tenantID string) (Way, error)
	// Pin stores the account that Stripe named for the tenant's way, for ever. CodeInvalid: another one stands there; CodeUnavailable.
	Pin(ctx context.Context, tenantID string, account payments.Account) error
}

const (
	// wayTimeout bounds the reading of a tenant's way, for which payments wait.
	wayTimeout = 3 * time.Second
	// connectsMax is how many tenants' accounts are read from Stripe at once.
	connectsMax = 8
)

// Accounts is a payments.Gateway over many Stripe accounts: the installation's own, accounts that are connected to it, and accounts with keys of
// their own. Each payment goes by its tenant's way and no other; what cannot be sent that way is held back. It is safe for concurrent use.
//
// A tenant's account is read when it is first needed, and in the background: nobody waits for it, and until it is known the tenant's payments
// stay where they are. One that cannot be read is tried again with growing pauses, for as long as it takes, and holds up no other tenant.
type Accounts struct {
	own     *Gateway
	options Options // the installation's, complete
	ways    Ways
	pauses  pauses

	base    context.Context // of everything in the background
	stop    context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{}

	tenants sync.Map // of *tenant, by id; those that exist and were asked for
	mu      sync.Mutex
	closed  bool
	reading map[string]*reading
}

var _ payments.Gateway = (*Accounts)(nil)

// reading is one tenant's way being read, for everybody who needs it at the moment.
type reading struct {
	done   chan struct{}
	tenant *tenant
	err    error
}

// NewAccounts connects to Stripe with the installation's own key, as New does and with its errors. Nobody else's account is asked for yet.
func NewAccounts(ctx context.Context, o Options, ways Ways) (*Accounts, error) {
	if o.ConnectedAccount != "" {
		return nil, setting("connected account", "must be left out: tenants have those")
	}
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	o.inner = newHTTPTransport(o) // for all accounts: the key and the account are headers, and a connection carries one request at a time
	own, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &Accounts{
		own: own, options: o, ways: ways, pauses: defaultPauses, base: base, stop: stop, slots: make(chan struct{}, connectsMax), reading: map[string]*reading{},
	}, nil
}

// Close ends what runs in the background and closes the connections that are idle. Calls that are running end as they would have.
func (a *Accounts) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.running.Wait()
	a.own.Close()
}

// spawn runs f in the background, unless all is closed.
func (a *Accounts) spawn(f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.running.Go(f)
	}
	return !a.closed
}

// Account implements payments.Gateway; "" is the installation's own account. It waits for the store at most, and never for Stripe.
func (a *Accounts) Account(ctx context.Context, tenantID string) (payments.Account, error) {
	if tenantID == "" {
		return a.own.account, nil
	}
	g, _, err := a.gateway(ctx, tenantID)
	if err != nil {
		return payments.Account{}, err
	}
	return g.account, nil
}

// Submit implements payments.Gateway.
func (a *Accounts) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	g, t, err := a.gateway(ctx, s.Payment.TenantID)
	if err != nil {
		return held(payments.ObservedAccountUnknown, s.Payment, t, err)
	}
	return a.noticed(t, g, g.Submit(ctx, s))
}

// Look implements payments.Gateway. Look-ups share listings with those that go the same way, and never across accounts.
func (a *Accounts) Look(ctx context.Context, p payments.Payment, progress func() error) payments.Observation {
	g, t, err := a.gateway(ctx, p.TenantID)
	if err != nil {
		return held(payments.ObservedNoRecords, p, t, err)
	}
	return a.noticed(t, g, g.Look(ctx, p, progress))
}

// Retrieve implements payments.Gateway.
func (a *Accounts) Retrieve(ctx context.Context, p payments.Payment) payments.Observation {
	g, t, err := a.gateway(ctx, p.TenantID)
	if err != nil {
		return held(payments.ObservedNoRecords, p, t, err)
	}
	return a.noticed(t, g, g.Retrieve(ctx, p))
}

// Cancel implements payments.Gateway.
func (a *Accounts) Cancel(ctx context.Context, s payments.Submission) payments.Observation {
	g, t, err := a.gateway(ctx, s.Payment.TenantID)
	if err != nil {
		return held(payments.ObservedAccountUnknown, s.Payment, t, err)
	}
	return a.noticed(t, g, g.Cancel(ctx, s))
}

// held is the observation of a payment that cannot go its tenant's way: nobody was asked, so it names the account that would have been. The
// payments of a tenant whose way is broken come again when it has been tried again, and not all at once.
func held(kind payments.ObservationKind, p payments.Payment, t *tenant, err error) payments.Observation {
	o := payments.Observation{Kind: kind, Account: payments.Account{ID: p.StripeAccount, Livemode: p.Livemode}, Detail: err.Error()}
	if t != nil {
		if pause := t.pause(); pause > 0 {
			spread := time.Duration(p.ID[len(p.ID)-1]) * pause / 256
			o.RetryAfter = min(pause+spread, retryAfterMax)
		}
	}
	return o
}

// noticed looks at what a call by a tenant's own key showed. Once Stripe refuses the key (401) its file is read again, and when the key may not do
// what it must (403) another one that is in the file by now is taken up: keys are rolled without a restart.
func (a *Accounts) noticed(t *tenant, g *Gateway, o payments.Observation) payments.Observation {
	refused := o.HTTPStatus == http.StatusUnauthorized || o.HTTPStatus == http.StatusForbidden && a.replaced(t, g)
	if refused && t.way.KeyRef != "" && t.current.CompareAndSwap(g, nil) {
		a.own.log.Warn("Stripe refuses a tenant's own key; its payments wait while the file is read again", "tenant", t.id, "file", t.way.KeyRef)
		a.begin(t)
	}
	return o
}

// replaced reports whether the tenant's file has another key than the gateway uses.
func (a *Accounts) replaced(t *tenant, g *Gateway) bool {
	if t.way.KeyRef == "" {
		return false
	}
	k, err := readKeyFile(g.subject, t.way.KeyRef)
	return err == nil && k.key != g.key
}

// gateway returns the tenant's, if it is known. Else it sees to it that it will be, and says why it is not: CodeUnavailable or CodeInvalid.
func (a *Accounts) gateway(ctx context.Context, tenantID string) (*Gateway, *tenant, error) {
	t, err := a.find(ctx, tenantID)
	if err != nil {
		return nil, nil, err
	}
	if g := t.current.Load(); g != nil {
		return g, t, nil
	}
	a.begin(t)
	return nil, t, t.why()
}

// find returns what is known of the tenant. Its way is read once, for all who ask; that there is no such tenant is not remembered.
func (a *Accounts) find(ctx context.Context, tenantID string) (*tenant, error) {
	if t, ok := a.tenants.Load(tenantID); ok {
		return t.(*tenant), nil
	}
	a.mu.Lock()
	r := a.reading[tenantID]
	if t, ok := a.tenants.Load(tenantID); ok { // asked again: a reading may have ended since
		a.mu.Unlock()
		return t.(*tenant), nil
	}
	if r == nil && !a.closed {
		r = &reading{done: make(chan struct{})}
		a.reading[tenantID] = r
		a.running.Go(func() { a.read(tenantID, r) })
	}
	a.mu.Unlock()
	if r == nil {
		return nil, payments.Errorf(payments.CodeUnavailable, "the process is stopping")
	}
	select {
	case <-r.done:
		return r.tenant, r.err
	case <-ctx.Done():
		return nil, payments.Errorf(payments.CodeUnavailable, "the call was ended while the tenant's way to Stripe was read")
	}
}

func (a *Accounts) read(tenantID string, r *reading) {
	ctx, cancel := context.WithTimeout(a.base, wayTimeout)
	defer cancel()
	w, err := a.ways.Way(ctx, tenantID)
	switch {
	case err == nil:
		r.tenant = newTenant(tenantID, w)
		if w.installation() {
			r.tenant.current.Store(a.own)
		}
		a.tenants.Store(tenantID, r.tenant)
	case payments.ErrorCode(err) == payments.CodeNotFound:
		r.err = &payments.Error{Code: payments.CodeInvalid, Field: "tenant_id", Message: "there is no such tenant"}
	default:
		r.err = &payments.Error{Code: payments.CodeUnavailable, Message: "the tenant's way to Stripe could not be read", Err: err}
	}
	a.mu.Lock()
	delete(a.reading, tenantID)
	a.mu.Unlock()
	close(r.done)
}

// Warm reads the accounts of tenants in the background, one after another, so that what is wrong with one is told before it has a payment.
func (a *Accounts) Warm(tenantIDs []string) {
	a.spawn(func() {
		for _, id := range tenantIDs {
			t, err := a.find(a.base, id)
			if a.base.Err() != nil {
				return
			}
			if err != nil || t.current.Load() != nil {
				continue
			}
			a.begin(t)
			select {
			case <-t.tried:
			case <-a.base.Done():
				return
			}
		}
	})
}

// Broken is how many tenants' accounts could not be read when that was last tried. Their payments wait.
func (a *Accounts) Broken() int {
	n := 0
	a.tenants.Range(func(_, t any) bool {
		if t.(*tenant).broken() {
			n++
		}
		return true
	})
	return n
}

// open makes the gateway of a tenant's way, once Stripe has named the account and that is the tenant's for ever.
func (a *Accounts) open(t *tenant) (*Gateway, error) {
	ctx, cancel := context.WithTimeout(a.base, 2*a.options.Timeout+wayTimeout)
	defer cancel()
	o := a.options
	o.AccountID, o.ConnectedAccount, o.subject = "", t.way.Connected, subject{tenant: t.id, file: t.way.KeyRef}
	if t.way.KeyRef != "" {
		if err := a.useOwnKey(&o, t); err != nil {
			return nil, err
		}
	}
	g := newGateway(o)
	if known := (payments.Account{ID: t.way.Connected, Livemode: a.own.account.Livemode}); t.way.Connected != "" && t.way.Account == known {
		// Stripe has named it before. The header can lead to this account or to none, and the mode is the key's.
		g.account = known
		return g, nil
	}
	var err error
	if g.account, err = g.readAccount(ctx, o.AccountID); err != nil {
		return nil, err
	}
	if err := a.fits(o.subject, t.way, g.account); err != nil {
		return nil, err
	}
	return g, a.pin(ctx, o.subject, t, g.account)
}

// useOwnKey takes the key out of the tenant's file. A live key is used for nothing at all unless the installation is live: then it is known that
// nothing which is acknowledged can be lost, and that the key goes to Stripe alone.
func (a *Accounts) useOwnKey(o *Options, t *tenant) error {
	k, err := readKeyFile(o.subject, t.way.KeyRef)
	switch {
	case err != nil:
		return err
	case liveKey(k.key) && o.URL != DefaultURL:
		return o.subject.setting("", "is a live one, which is sent to "+DefaultURL+" only; this installation has another ONCEPAY_STRIPE_URL")
	case liveKey(k.key) && !a.own.account.Livemode:
		return o.subject.otherMode(true)
	case k.open:
		a.own.log.Warn("a tenant's key can be read by others than its owner; chmod 600 the file", "tenant", t.id, "file", t.way.KeyRef)
	}
	o.Key, o.AccountID = k.key, k.account
	return nil
}

// fits reports whether the account may be the tenant's: all of an installation is of one mode, so that nobody takes a test payment for money.
func (a *Accounts) fits(s subject, w Way, account payments.Account) error {
	if account.Livemode != a.own.account.Livemode {
		return s.otherMode(account.Livemode)
	}
	if w.Account != (payments.Account{}) && w.Account != account {
		return s.otherAccount(w.Account, account)
	}
	return nil
}

func (a *Accounts) pin(ctx context.Context, s subject, t *tenant, account payments.Account) error {
	err := a.ways.Pin(ctx, t.id, account)
	if payments.ErrorCode(err) != payments.CodeInvalid {
		return err
	}
	// Somebody else has used the way first, and got to another account.
	w, readErr := a.ways.Way(ctx, t.id)
	if readErr != nil || w.Account == (payments.Account{}) {
		return err
	}
	return s.otherAccount(w.Account, account)
}

var errConnecting = errors.New("its Stripe account is being read")

func (s subject) otherMode(live bool) error {
	mode, installation := "a test", "live"
	if live {
		mode, installation = "a live", "in test mode"
	}
	return s.wrong(fmt.Sprintf("its account is %s one, and this installation is %s; give it a key of the same mode, or an installation of its own", mode, installation))
}

func (s subject) otherAccount(pinned, found payments.Account) error {
	key := "ONCEPAY_STRIPE_KEY"
	if s.file != "" {
		key = "the key in " + s.file
	}
	return s.wrong(fmt.Sprintf("its payments began on %s, and %s leads to %s; put back a key of the first, or create another tenant", shown(pinned), key, shown(found)))
}

func shown(a payments.Account) string {
	if a.Livemode {
		return a.ID + " (live)"
	}
	return a.ID + " (test)"
}
