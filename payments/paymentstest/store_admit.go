package paymentstest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// admitClaims: a claim shows the payment as it stood before its owner came; the row says that a send may be under way.
func (b *storeBench) admitClaims() {
	i := b.intent("k", everyField(b.Now()))
	r := b.claiming(i)
	a := b.admit(r, payments.VerdictClaimed)
	c := a.Claim
	switch {
	case c.Token != r.Token, c.Lane != r.Lane, c.Abandoned != 0, !c.ClaimedAt.Equal(b.Now()), !c.WindowStart().Equal(b.Now()):
		b.t.Errorf("the claim: %+v", c)
	case c.LeaseUntil.After(b.Now().Add(lease)), !c.LeaseUntil.After(b.Now()):
		b.t.Errorf("the lease ends at %v, the ticket is due at %v", c.LeaseUntil, b.Now().Add(lease))
	case c.Payment.InDoubt, !c.Payment.FirstSubmitAt.IsZero(), c.Payment.Status != payments.StatusReceived, c.Payment.ID != i.ID():
		b.t.Errorf("the claim's payment: %+v", c.Payment)
	}
	p := b.stored(c.Payment)
	switch {
	case !p.Owned, p.ShownStatus() != payments.StatusProcessing:
		b.t.Errorf("the stored ticket: %+v", p)
	case !p.InDoubt, !p.FirstSubmitAt.Equal(b.Now()), !p.LastSubmitAt.Equal(b.Now()), p.StripeAccount != stripeAccount.ID, !p.Livemode:
		b.t.Errorf("stored of the send: %+v", p)
	case !p.CreatedAt.Equal(b.Now()), p.Sequence != 0, p.Tries != 0, p.RequestVersion <= 0, p.Lane != r.Lane:
		b.t.Errorf("stored: %+v", p)
	}
	sameIntent(b, p.Intent, i)
	b.nothingDue("while it is claimed")
	if items := b.sent(); len(items) != 0 {
		b.t.Errorf("somebody is told of %+v", items)
	}
}

// everyField sets all that an intent may have.
func everyField(now time.Time) func(*payments.Intent) {
	return func(i *payments.Intent) {
		i.Description, i.StatementDescriptorSuffix, i.ReceiptEmail = "Two “shirts” \\ ' \n 日本 🎁", "SHIRTS", "jo+shop@example.com"
		i.ReturnURL, i.CaptureMethod, i.OffSession = "https://shop.example/back?a[]=b#c", payments.CaptureManual, false
		i.Metadata = map[string]string{"order": "<1>", "größe": "", "a.b": strings.Repeat("é", payments.MetadataValueLengthMax)}
		i.ExpiresAt, i.Amount, i.Currency = now.Add(time.Hour).Truncate(time.Microsecond), 999_999_999_999, "idr"
	}
}

func sameIntent(b *storeBench, got, want payments.Intent) {
	b.t.Helper()
	metadata := maps.Equal(got.Metadata, want.Metadata)
	expires := got.ExpiresAt.Equal(want.ExpiresAt)
	if differs := payments.Differs(got, want); len(differs) > 0 || !metadata || !expires || got.IdempotencyKey != want.IdempotencyKey || got.TenantID != want.TenantID {
		b.t.Errorf("the stored intent differs in %v (metadata the same: %v, expires_at: %v):\n%+v\n%+v", differs, metadata, expires, got, want)
	}
}

// admitStores: without Claim the ticket is due at once, and nobody's; nothing was sent.
func (b *storeBench) admitStores() {
	a := b.admit(payments.AdmitRequest{Intent: b.intent("k"), Lane: payments.LaneInteractive}, payments.VerdictStored)
	for name, p := range map[string]payments.Payment{"answered": a.Payment, "stored": b.stored(a.Payment)} {
		if p.Owned || p.InDoubt || p.StripeAccount != "" || !p.FirstSubmitAt.IsZero() || !p.NextAttemptAt.Equal(b.Now()) || p.Status != payments.StatusReceived {
			b.t.Errorf("%s: %+v", name, p)
		}
	}
	b.takeOne()
}

// admitDuplicates: a repeat meets the row as it is now, in every status, and neither restarts it nor makes it due.
func (b *storeBench) admitDuplicates() {
	first := b.claim("k")
	repeat := func(status payments.Status, change ...func(*payments.Intent)) {
		b.t.Helper()
		a := b.admit(b.claiming(b.intent("k", change...)), payments.VerdictExists)
		if a.Payment.ID != first.Payment.ID || a.Payment.Status != status || !a.Claim.Token.IsZero() {
			b.t.Errorf("a repeat is answered with %+v, want the row in status %s", a, status)
		}
	}
	repeat(payments.StatusReceived)
	repeat(payments.StatusReceived, func(i *payments.Intent) { i.Currency = "USD" })
	repeat(payments.StatusReceived, func(i *payments.Intent) { i.ExpiresAt = b.Now().Add(time.Hour) }) // not part of what is charged
	b.admit(payments.AdmitRequest{Intent: b.intent("k"), Lane: payments.LaneBulk}, payments.VerdictExists)
	b.record(first, waits(payments.ReasonLocked), time.Hour)
	repeat(payments.StatusWaiting)
	b.nothingDue("after a repeat")
	b.Advance(time.Hour)
	b.record(b.takeOne(), charged(first.Payment), 0)
	repeat(payments.StatusSucceeded)
	if items := b.sent(); len(items) != 2 {
		b.t.Errorf("%d messages, want the two of the outcomes", len(items))
	}
}

// admitConflict: whatever differs in what would be charged is a conflict that names it, at any time, and changes nothing.
func (b *storeBench) admitConflict() {
	c := b.claim("k")
	ask := func() {
		b.t.Helper()
		before := b.stored(c.Payment)
		for field, change := range map[string]func(*payments.Intent){
			"amount":         func(i *payments.Intent) { i.Amount++ },
			"currency":       func(i *payments.Intent) { i.Currency = "eur" },
			"customer":       func(i *payments.Intent) { i.Customer = "" },
			"payment_method": func(i *payments.Intent) { i.PaymentMethod = "pm_other" },
			"description":    func(i *payments.Intent) { i.Description = "other" },
			"capture_method": func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual },
			"off_session":    func(i *payments.Intent) { i.OffSession = false },
			"return_url":     func(i *payments.Intent) { i.ReturnURL = "https://shop.example" },
			"receipt_email":  func(i *payments.Intent) { i.ReceiptEmail = "a@example.com" },
			"metadata":       func(i *payments.Intent) { i.Metadata = map[string]string{"a": "b"} },
		} {
			a := b.admit(b.claiming(b.intent("k", change)), payments.VerdictConflict)
			if !slices.Equal(a.Differs, []string{field}) || a.Payment.ID != c.Payment.ID || a.Payment.Amount != c.Payment.Amount {
				b.t.Errorf("%s: differs in %v from %+v", field, a.Differs, a.Payment)
			}
		}
		b.unchanged(before)
	}
	ask()
	b.record(c, charged(c.Payment), 0)
	ask()
}

// unchanged wants the stored payment to be as it was.
func (b *storeBench) unchanged(before payments.Payment) {
	b.t.Helper()
	after := b.stored(before)
	if after.Status != before.Status || after.Reason != before.Reason || after.Sequence != before.Sequence || after.InDoubt != before.InDoubt ||
		after.Tries != before.Tries || !after.FirstSubmitAt.Equal(before.FirstSubmitAt) || !after.LastSubmitAt.Equal(before.LastSubmitAt) ||
		after.Owned != before.Owned || !after.NextAttemptAt.Equal(before.NextAttemptAt) || !after.UpdatedAt.Equal(before.UpdatedAt) ||
		after.StripePaymentIntent != before.StripePaymentIntent {
		b.t.Errorf("the payment was changed:\n%+v\nwas\n%+v", after, before)
	}
}

// admitRefused: what validation refuses is only looked up; a conflict outranks the refusal, and nothing is stored.
func (b *storeBench) admitRefused() {
	c := b.claim("there")
	refused := func(key string, amount int64) payments.AdmitRequest {
		r := b.claiming(b.intent(key, func(i *payments.Intent) { i.Amount = amount }))
		r.Refused = &payments.ValidationError{Reason: payments.ReasonInvalid}
		return r
	}
	b.admit(refused("new", -1), payments.VerdictRefused)
	b.admit(refused("there", c.Payment.Amount), payments.VerdictRefused)
	b.admit(refused("there", -1), payments.VerdictConflict)
	b.absent("new")
}

// absent wants no payment under the first tenant's key.
func (b *storeBench) absent(key string) {
	b.t.Helper()
	if p, err := b.Store.Find(b.ctx, b.Tenants[0], payments.NewID(b.Tenants[0], key)); payments.ErrorCode(err) != payments.CodeNotFound {
		b.t.Errorf("%s was stored: %+v, %v", key, p, err)
	}
}

// admitExistingOnly: a key that only a batch may create attaches to its row, and creates none.
func (b *storeBench) admitExistingOnly() {
	c := b.claim("there")
	existing := func(key string, amount int64) payments.AdmitRequest {
		r := b.claiming(b.intent(key, func(i *payments.Intent) { i.Amount = amount }))
		r.ExistingOnly = true
		return r
	}
	if a := b.admit(existing("there", c.Payment.Amount), payments.VerdictExists); a.Payment.ID != c.Payment.ID {
		b.t.Errorf("it attached to %+v", a.Payment)
	}
	b.admit(existing("there", 1), payments.VerdictConflict)
	b.admit(existing("new", 1), payments.VerdictAbsent)
	b.absent("new")
}

// admitTenants: a key is one tenant's own, and a tenant that does not exist has none.
func (b *storeBench) admitTenants() {
	ids := map[payments.ID]bool{}
	for n, tenant := range b.Tenants {
		a := b.admit(b.claiming(b.intent("k", func(i *payments.Intent) { i.TenantID, i.Amount = tenant, int64(100+n) })), payments.VerdictClaimed)
		ids[a.Payment.ID] = true
		if p := b.stored(a.Payment); p.TenantID != tenant || p.Amount != int64(100+n) {
			b.t.Errorf("stored: %+v", p)
		}
	}
	if len(ids) != len(b.Tenants) {
		b.t.Errorf("%d payments of %d tenants", len(ids), len(b.Tenants))
	}
	b.admit(b.claiming(b.intent("k", func(i *payments.Intent) { i.TenantID = "conformance-nobody" })), payments.VerdictTenantUnknown)
}

// admitOnce: of many callers in several processes one owns the key, and all are told of the same row.
func (b *storeBench) admitOnce() {
	b.among(50, func(int) payments.Intent { return b.intent("k") }, func(answers []payments.Admission) {
		owners := 0
		for n, a := range answers {
			switch a.Verdict {
			case payments.VerdictClaimed:
				owners++
			case payments.VerdictExists:
			default:
				b.t.Errorf("caller %d: %q", n, a.Verdict)
			}
			if a.Payment.ID != payments.NewID(b.Tenants[0], "k") {
				b.t.Errorf("caller %d is told of another row: %+v", n, a.Payment)
			}
		}
		if owners != 1 {
			b.t.Errorf("%d callers own the key, want 1", owners)
		}
	})
}

// among lets n callers of three processes admit at the same moment.
func (b *storeBench) among(n int, intent func(caller int) payments.Intent, judge func([]payments.Admission)) {
	b.t.Helper()
	stores := []payments.Store{b.Store, b.Another(), b.Another()}
	answers := make([]payments.Admission, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range n {
		wg.Go(func() {
			<-start
			var err error
			if answers[caller], err = stores[caller%len(stores)].Admit(b.ctx, b.claiming(intent(caller))); err != nil {
				b.t.Errorf("caller %d: %v", caller, err)
			}
		})
	}
	close(start)
	wg.Wait()
	judge(answers)
}

// admitConflictAtOnce: of two requests under one key one wins, whole; all that asked for the other are conflicts.
func (b *storeBench) admitConflictAtOnce() {
	amount := func(caller int) int64 { return int64(100 + caller%2) }
	b.among(40, func(n int) payments.Intent {
		return b.intent("k", func(i *payments.Intent) { i.Amount = amount(n) })
	}, func(answers []payments.Admission) {
		stored := b.stored(payments.Payment{Intent: b.intent("k"), ID: b.intent("k").ID()})
		owners := 0
		for n, a := range answers {
			same := amount(n) == stored.Amount
			if a.Verdict == payments.VerdictClaimed {
				owners++
			}
			if same != (a.Verdict == payments.VerdictClaimed || a.Verdict == payments.VerdictExists) || same == (a.Verdict == payments.VerdictConflict) {
				b.t.Errorf("caller %d asked for %d: %s, and %d is stored", n, amount(n), a.Verdict, stored.Amount)
			}
		}
		if owners != 1 {
			b.t.Errorf("%d callers own the key, want 1", owners)
		}
	})
}

// admitOppositeOrders: processes that admit the same keys in opposite orders do not stand in each other's way.
func (b *storeBench) admitOppositeOrders() {
	const keys = 60
	counts := map[payments.Verdict]int{}
	b.among(2*keys, func(n int) payments.Intent {
		if n%2 == 1 {
			n = 2*keys - 1 - n
		}
		return b.intent(numbered("k", n/2))
	}, func(answers []payments.Admission) {
		for _, a := range answers {
			counts[a.Verdict]++
		}
	})
	if counts[payments.VerdictClaimed] != keys || counts[payments.VerdictExists] != keys {
		b.t.Errorf("%v, want %d claimed and as many that exist", counts, keys)
	}
}

// admitAgain: a caller that does not know whether its request was committed repeats it, through any process, and is the owner it was; never
// with a longer lease than the ticket has.
func (b *storeBench) admitAgain() {
	r := b.claiming(b.intent("k"))
	first := b.admit(r, payments.VerdictClaimed).Claim
	b.Advance(lease / 3)
	for _, s := range []payments.Store{b.Store, b.Another()} {
		a, err := s.Admit(b.ctx, r)
		if err != nil || a.Verdict != payments.VerdictClaimed || a.Claim.Token != first.Token {
			b.t.Fatalf("again: %+v, %v", a, err)
		}
		if a.Claim.Payment.InDoubt || a.Claim.LeaseUntil.After(first.LeaseUntil) || !a.Claim.ClaimedAt.Equal(first.ClaimedAt) {
			b.t.Errorf("the second claim %+v is not the first one %+v", a.Claim, first)
		}
	}
	b.Advance(lease)
	taken := b.takeOne()
	if a := b.admit(r, payments.VerdictExists); a.Payment.ID != first.Payment.ID {
		b.t.Errorf("after a takeover: %+v", a)
	}
	b.record(taken, charged(first.Payment), 0)
	b.admit(r, payments.VerdictExists)
}
