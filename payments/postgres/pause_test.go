package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func (b *bench) pause(p payments.Pause) payments.Pause {
	b.t.Helper()
	p.Reason, p.Actor = "an incident", "ada"
	done, err := b.Pause(context.Background(), p)
	if err != nil {
		b.t.Fatalf("Pause %+v: %v", p, err)
	}
	return done
}

func (b *bench) resume(p payments.Pause) bool {
	b.t.Helper()
	ended, err := b.Resume(context.Background(), p, payments.Operation{Actor: "ada"})
	if err != nil {
		b.t.Fatalf("Resume %+v: %v", p, err)
	}
	return ended
}

// TestPauseScopes: whoever a pause names is accepted and gets no token, by Admit or Take, with a rate or without; everybody else does. A payment that
// is held back is shown as paused. It ends with Resume, or when its time is over by the store's clock.
func TestPauseScopes(t *testing.T) {
	t.Parallel()
	own := payments.Account{ID: "acct_own", Livemode: true}
	for name, c := range map[string]struct {
		scope payments.Pause
		held  string
	}{
		"tenant":       {payments.Pause{TenantID: "acme"}, "acme"},
		"own account":  {payments.Pause{AccountID: own.ID}, "rich"},
		"home account": {payments.Pause{AccountID: account.ID}, "acme globex"},
		"everything":   {payments.Pause{}, "acme globex rich"},
	} {
		for _, rate := range []float64{0, 1000} {
			for _, until := range []time.Duration{0, time.Hour} {
				t.Run(name+" at "+strconv.Itoa(int(rate))+" for "+until.String(), func(t *testing.T) {
					t.Parallel()
					b := open(t, func(o *Options) { o.Rate = rate })
					b.pausedScope(c.scope, strings.Fields(c.held), own, until)
				})
			}
		}
	}
}

func (b *bench) pausedScope(scope payments.Pause, held []string, own payments.Account, until time.Duration) {
	ctx := context.Background()
	if _, err := b.CreateTenant(ctx, Tenant{ID: "rich", StripeAccount: own.ID}); err != nil {
		b.t.Fatal(err)
	}
	if err := b.PinTenantAccount(ctx, "rich", own); err != nil {
		b.t.Fatal(err)
	}
	tenants := []string{"acme", "globex", "rich"}
	isHeld := map[string]bool{}
	for _, tenant := range held {
		isHeld[tenant] = true
	}
	for _, tenant := range tenants {
		b.store(tenant, "before", payments.LaneInteractive)
	}
	if until > 0 {
		scope.Until = b.clock.Now().Add(until)
	}
	b.pause(scope)
	for _, tenant := range tenants {
		r := b.claiming(intent(tenant, "during", 100))
		if tenant == "rich" {
			r.Account = own
		}
		want := payments.VerdictClaimed
		if isHeld[tenant] {
			want = payments.VerdictStored
		}
		if a := b.admit(r); a.Verdict != want || isHeld[tenant] != (a.Wait > 0) {
			b.t.Errorf("%s is admitted as %s, to wait %v; want %s", tenant, a.Verdict, a.Wait, want)
		}
	}
	b.clock.Advance(time.Second)
	taken, err := b.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 10, Lease: time.Minute, Account: account})
	if err != nil || len(taken.Claims) != len(tenants)-len(held) || taken.Wait == 0 {
		b.t.Errorf("%d were taken, to ask again in %v, %v", len(taken.Claims), taken.Wait, err)
	}
	for _, c := range taken.Claims {
		if isHeld[c.Payment.TenantID] {
			b.t.Errorf("%s was given %s", c.Payment.TenantID, c.Payment.IdempotencyKey)
		}
	}
	for _, tenant := range tenants {
		p, err := b.Find(ctx, tenant, payments.NewID(tenant, "before"))
		list, _, err2 := b.List(ctx, payments.ListRequest{TenantID: tenant})
		if err != nil || err2 != nil || (p.Reason == payments.ReasonPaused) != isHeld[tenant] || len(list) != 2 || (list[0].Reason == payments.ReasonPaused) != isHeld[tenant] {
			b.t.Errorf("%s is shown with the reason %q, and %d in the list, %v, %v", tenant, p.Reason, len(list), err, err2)
		}
	}
	if until > 0 {
		b.clock.Advance(until)
	} else if !b.resume(scope) || b.resume(scope) {
		b.t.Error("it does not end once")
	}
	if list, err := b.Pauses(ctx); err != nil || len(list) != 0 {
		b.t.Errorf("still listed: %+v, %v", list, err)
	}
	taken, err = b.Take(ctx, payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 10, Lease: time.Minute, Account: account})
	given := 0
	for _, c := range taken.Claims {
		if c.Abandoned == 0 {
			given++
		}
	}
	if err != nil || given != 2*len(held) {
		b.t.Errorf("%d were taken after the pause, want %d, %v", given, 2*len(held), err)
	}
}

// TestStripeAccountsAreThoseThatPaymentsGoTo: those of tenants, before anything was sent, and those that payments were sent to.
func TestStripeAccountsAreThoseThatPaymentsGoTo(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	want := func(accounts ...string) {
		t.Helper()
		if got, err := b.StripeAccounts(ctx); err != nil || !slices.Equal(got, accounts) {
			t.Errorf("%q, %v, want %q", got, err, accounts)
		}
	}
	want()
	if _, err := b.CreateTenant(ctx, Tenant{ID: "rich", StripeAccount: "acct_rich"}); err != nil {
		t.Fatal(err)
	}
	want("acct_rich")
	b.claim("sent")
	both := []string{account.ID, "acct_rich"}
	slices.Sort(both)
	want(both...)
}

// TestPauseIsTold: what is wrong with a pause is named, and what was done stands in the audit.
func TestPauseIsTold(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for _, c := range []struct {
		p     payments.Pause
		field string
		code  payments.Code
	}{
		{payments.Pause{TenantID: "acme", AccountID: "acct_1", Reason: "r", Actor: "a"}, "account", payments.CodeInvalid},
		{payments.Pause{AccountID: "sk_live_1", Reason: "r", Actor: "a"}, "account", payments.CodeInvalid},
		{payments.Pause{TenantID: "nobody", Reason: "r", Actor: "a"}, "tenant", payments.CodeNotFound},
		{payments.Pause{Actor: "a"}, "reason", payments.CodeInvalid},
		{payments.Pause{Reason: "r"}, "actor", payments.CodeInvalid},
		{payments.Pause{Reason: "r", Actor: "a", Until: b.clock.Now()}, "until", payments.CodeInvalid},
	} {
		_, err := b.Pause(ctx, c.p)
		var e *payments.Error
		if e, _ = err.(*payments.Error); e == nil || e.Field != c.field || e.Code != c.code {
			t.Errorf("%+v: %v", c.p, err)
		}
	}
	first := b.pause(payments.Pause{TenantID: "acme"})
	b.clock.Advance(time.Minute)
	again := b.pause(payments.Pause{TenantID: "acme", Until: b.clock.Now().Add(time.Hour)})
	list, err := b.Pauses(ctx)
	if err != nil || len(list) != 1 || !again.Since.Equal(first.Since) || !list[0].Until.Equal(again.Until) || list[0].TenantID != "acme" || list[0].Actor != "ada" {
		t.Errorf("%+v, %v", list, err)
	}
	b.resume(payments.Pause{TenantID: "acme"})
	var actions string
	if err := b.pool.QueryRow(ctx, `SELECT string_agg(action || ' ' || tenant_id || ' ' || actor, ', ' ORDER BY id) FROM audit`).Scan(&actions); err != nil {
		t.Fatal(err)
	}
	if actions != "pause acme ada, pause acme ada, resume acme ada" {
		t.Errorf("the audit says %q", actions)
	}
}

// TestPauseRace: once Pause has returned no token is given any more, whoever was asking for them meanwhile.
func TestPauseRace(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 100_000} {
		t.Run(strconv.Itoa(int(rate)), func(t *testing.T) {
			t.Parallel()
			b := open(t, func(o *Options) { o.Clock, o.Rate = nil, rate })
			ctx, stop := context.WithCancel(context.Background())
			for i := range 200 {
				b.store([]string{"acme", "globex"}[i%2], "k"+strconv.Itoa(i), payments.LaneInteractive)
			}
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						if _, err := b.Take(context.Background(), payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 1, Lease: time.Minute, Account: account}); err != nil {
							t.Errorf("Take: %v", err)
						}
						if _, err := b.Admit(context.Background(), b.claiming(intent("acme", "new"+strconv.Itoa(i)+"-"+strconv.Itoa(n), 100))); err != nil {
							t.Errorf("Admit: %v", err)
						}
					}
				})
			}
			owned := func() (n int) {
				if err := b.pool.QueryRow(context.Background(), "SELECT count(*) FROM queue WHERE token IS NOT NULL").Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			}
			b.until("tokens are given", func() bool { return owned() >= 20 })
			if _, err := b.Pause(context.Background(), payments.Pause{Reason: "an incident", Actor: "ada"}); err != nil {
				t.Fatal(err)
			}
			before := owned()
			var stored int
			b.until("payments are accepted all the same", func() bool {
				if err := b.pool.QueryRow(context.Background(), "SELECT count(*) FROM queue WHERE token IS NULL").Scan(&stored); err != nil {
					t.Error(err)
				}
				return stored >= 200
			})
			if after := owned(); after != before {
				t.Errorf("%d tokens when Pause returned, %d later", before, after)
			}
			stop()
			all.Wait()
		})
	}
}

// TestTakeExceptAndOnly: accounts to which the caller sends nothing are passed over, and one alone can be asked for.
func TestTakeExceptAndOnly(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 1000} {
		t.Run(strconv.Itoa(int(rate)), func(t *testing.T) {
			t.Parallel()
			b := open(t, func(o *Options) { o.Rate = rate })
			own := payments.Account{ID: "acct_own", Livemode: true}
			if _, err := b.CreateTenant(context.Background(), Tenant{ID: "rich", StripeAccount: own.ID}); err != nil {
				t.Fatal(err)
			}
			if err := b.PinTenantAccount(context.Background(), "rich", own); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				b.store("acme", "k"+strconv.Itoa(i), payments.LaneInteractive)
				b.store("rich", "k"+strconv.Itoa(i), payments.LaneInteractive)
			}
			only := func(want string, n int, r payments.TakeRequest) {
				t.Helper()
				b.clock.Advance(time.Millisecond)
				got := b.take(r)
				if len(got) != n {
					t.Errorf("%d were taken, want %d", len(got), n)
				}
				for _, c := range got {
					if c.Payment.TenantID != want {
						t.Errorf("%s was given, want %s", c.Payment.TenantID, want)
					}
				}
			}
			only("acme", 0, payments.TakeRequest{Limit: 9, Except: []payments.Account{own, account}})
			only("rich", 1, payments.TakeRequest{Limit: 1, Only: &own})
			only("acme", 1, payments.TakeRequest{Limit: 1, Only: &account})
			only("acme", 2, payments.TakeRequest{Limit: 9, Except: []payments.Account{own}})
			only("rich", 2, payments.TakeRequest{Limit: 9, Except: []payments.Account{account}})
		})
	}
}

// TestRewoundPaymentIsLookedUp: a payment that is new to the database, and of which Stripe has PaymentIntents, is never sent first, whichever way it
// comes: it begins in doubt, with the time of the first of them.
func TestRewoundPaymentIsLookedUp(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 1000} {
		t.Run(strconv.Itoa(int(rate)), func(t *testing.T) {
			t.Parallel()
			b := open(t, func(o *Options) { o.Rate = rate })
			created := b.clock.Now().Add(-time.Hour)
			child := batchIntents(t, "b")[0]
			for i, in := range []payments.Intent{intent("acme", "claimed", 100), intent("acme", "announced", 100), intent("acme", "accepted", 100), child} {
				for n := range 2 {
					id := in.ID()
					if _, err := b.pool.Exec(context.Background(), `INSERT INTO stripe_objects VALUES ($1, now(), true, $2, $3, $4, $5)`,
						created.Add(time.Duration(n)*time.Minute), id[:], in.TenantID, account.ID, "pi_"+strconv.Itoa(i)+"_"+strconv.Itoa(n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			// By the statement for what nobody claims, which leaves it to the others.
			over := b.flush(announced("accepted", payments.LaneInteractive), announced("unknown-to-Stripe", payments.LaneInteractive))
			if s := over[0].Payment.Status; s != payments.StatusUnknown || over[1].Payment.Status != payments.StatusReceived || len(b.sent.all()) != 2 {
				t.Errorf("accepted as %s and %s, %d announced", s, over[1].Payment.Status, len(b.sent.all()))
			}
			r := b.claiming(intent("acme", "claimed", 100))
			announced := b.claiming(intent("acme", "announced", 100))
			announced.Announce = true
			for _, a := range []payments.Admission{b.admit(r), b.admit(announced)} {
				if a.Verdict != payments.VerdictStored || a.Payment.Status != payments.StatusUnknown {
					t.Errorf("admitted as %s, %s", a.Verdict, a.Payment.Status)
				}
			}
			if a := b.admit(r); a.Verdict != payments.VerdictExists {
				t.Errorf("a repeat is %s", a.Verdict)
			}
			if a := b.admit(b.claiming(intent("acme", "claimed", 999))); a.Verdict != payments.VerdictConflict {
				t.Errorf("another request is %s", a.Verdict)
			}
			if a := b.admit(b.claiming(intent("acme", "other", 100))); a.Verdict != payments.VerdictClaimed {
				t.Errorf("one that Stripe does not know is %s", a.Verdict)
			}
			done, err := b.AdmitBatch(context.Background(), payments.BatchRequest{TenantID: "acme", IdempotencyKey: "b", Payments: batchIntents(t, "b")})
			if err != nil || done.Verdict != payments.VerdictStored || done.Children[0].Status != payments.StatusUnknown || done.Children[1].Status != payments.StatusReceived {
				t.Errorf("the batch: %+v, %v", done, err)
			}
			b.clock.Advance(time.Second)
			got := b.take(payments.TakeRequest{Limit: 9})
			got = append(got, b.take(payments.TakeRequest{Limit: 9, Lane: payments.LaneBulk})...)
			looks := 0
			for _, c := range got {
				if c.Payment.IdempotencyKey == "claimed" || c.Payment.IdempotencyKey == "announced" || c.Payment.IdempotencyKey == "accepted" || c.Payment.ID == child.ID() {
					looks++
					p := c.Payment
					if payments.Next(p, b.clock.Now()) != payments.ActionLook || !p.FirstSubmitAt.Equal(created) || !p.LastSubmitAt.Equal(created.Add(time.Minute)) ||
						p.StripeAccount != account.ID || !p.Livemode || !p.InDoubt {
						t.Errorf("%+v", p)
					}
				}
			}
			if looks != 4 {
				t.Errorf("%d of 4 were taken", looks)
			}
		})
	}
}

// batchIntents are the payments of a batch, with the keys that it gives them.
func batchIntents(t *testing.T, key string) []payments.Intent {
	t.Helper()
	list := make([]payments.Intent, 2)
	for i := range list {
		list[i] = intent("acme", key+payments.ChildSeparator+strconv.Itoa(i), 100)
	}
	return list
}
