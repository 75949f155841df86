package stripe

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// followUp is a follow-up of the tenant's charge, on the account.
func (b *bank) followUp(kind payments.Kind, tenant, account, paymentIntent string) payments.Payment {
	return followUp(kind, func(p *payments.Payment) {
		p.TenantID, p.StripeAccount, p.StripePaymentIntent = tenant, account, paymentIntent
	})
}

// Follow-ups of several tenants go their tenants' ways, and those that are pinned elsewhere go nowhere.
func TestFollowUpsStayOnTheirAccounts(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	accounts := map[string]string{"plain": ownAccount, "connected": connAccount, "keyed": keyedAccount, "other": otherAccount}
	refunds := map[string]string{}
	for tenant := range accounts {
		b.known(t, tenant)
	}
	for tenant, account := range accounts {
		manual := b.order(tenant, account, func(p *payments.Payment) { p.IdempotencyKey, p.CaptureMethod = "held", payments.CaptureManual })
		held := b.Submit(t.Context(), submission(manual)).Object.ID
		if o := b.Capture(t.Context(), submission(b.followUp(payments.KindCapture, tenant, account, held))); o.Kind != payments.ObservedAnswer || o.Account.ID != account {
			t.Errorf("%s: captured %s (%s)", tenant, o.Kind, o.Detail)
		}
		refund := b.followUp(payments.KindRefund, tenant, account, held)
		o := b.Refund(t.Context(), submission(refund))
		if o.Kind != payments.ObservedRefund || o.Account.ID != account {
			t.Fatalf("%s: refunded %s (%s)", tenant, o.Kind, o.Detail)
		}
		refunds[account] = o.Refund.ID
		if l := b.LookRefunds(t.Context(), refund, nil); len(l.Refunds) != 1 || l.Refunds[0].ID != o.Refund.ID || l.Account.ID != account {
			t.Errorf("%s: the look-up shows %+v", tenant, l)
		}
		if r := b.RetrieveRefund(t.Context(), refund, o.Refund.ID); r.Refund == nil || r.Account.ID != account {
			t.Errorf("%s: retrieved %+v", tenant, r)
		}
		for stranger, elsewhere := range accounts {
			if elsewhere == account {
				continue
			}
			wrong := b.followUp(payments.KindRefund, stranger, account, held)
			if o := b.Refund(t.Context(), submission(wrong)); o.Kind != payments.ObservedForeignAccount {
				t.Errorf("a refund pinned to %s was sent by the way of %s: %s", account, stranger, o.Kind)
			}
			if o := b.Capture(t.Context(), submission(b.followUp(payments.KindCapture, stranger, account, held))); o.Kind != payments.ObservedForeignAccount {
				t.Errorf("a capture pinned to %s was sent by the way of %s: %s", account, stranger, o.Kind)
			}
			if o := b.LookRefunds(t.Context(), wrong, nil); o.Kind != payments.ObservedForeignAccount {
				t.Errorf("a refund pinned to %s was looked for by the way of %s: %s", account, stranger, o.Kind)
			}
		}
	}
	for _, r := range b.Ledger().Refunds {
		if accounts[r.Metadata[MetadataTenant]] != r.Account || refunds[r.Account] != r.ID {
			t.Errorf("a refund of %s is on %s", r.Metadata[MetadataTenant], r.Account)
		}
	}
	if sum := b.Summary(); sum.Refunds != len(accounts) || sum.DoubleRefunds != 0 {
		t.Errorf("the ledger has %+v", sum)
	}
}

// A tenant whose way is not known has nothing sent for it, and nothing is proved.
func TestFollowUpsOfUnknownTenants(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	before := len(b.Ledger().Requests)
	capture, refund := b.followUp(payments.KindCapture, "nobody", ownAccount, "pi_1"), b.followUp(payments.KindRefund, "nobody", ownAccount, "pi_1")
	for name, o := range map[string]payments.Observation{
		"capture": b.Capture(t.Context(), submission(capture)), "refund": b.Refund(t.Context(), submission(refund)),
	} {
		if o.Kind != payments.ObservedAccountUnknown || o.Account.ID != ownAccount {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for name, o := range map[string]payments.Observation{
		"look-up": b.LookRefunds(t.Context(), refund, nil), "reading": b.RetrieveRefund(t.Context(), refund, "re_1"),
	} {
		if o.Kind != payments.ObservedNoRecords {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if n := len(b.Ledger().Requests); n != before {
		t.Errorf("%d requests left", n-before)
	}
}
