package cli

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// TestRemedyByStatus: whoever has to do something about a payment that nobody works on, or must not, is told.
func TestRemedyByStatus(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "k")
	for status, says := range map[payments.Status]string{
		payments.StatusUnknown:         "never send it again under another key",
		payments.StatusRequiresCapture: "`oncepay payments resolve " + id.String() + " --as unknown --reason R`",
		payments.StatusRequiresAction:  "`oncepay payments resolve " + id.String() + " --as unknown --reason R`",
	} {
		p := payments.Payment{Intent: payments.Intent{Kind: payments.KindCharge}, ID: id, Status: status}
		if status == payments.StatusUnknown {
			p.Reason = payments.ReasonLookingUp
		}
		if got := remedyOf(p); !strings.Contains(got, says) {
			t.Errorf("%s: %q", status, got)
		}
	}
	for status, kind := range map[payments.Status]string{payments.StatusRequiresCapture: "capture", payments.StatusRequiresAction: "cancel"} { // whole, to be pasted
		p := payments.Payment{Intent: payments.Intent{TenantID: "acme", Kind: payments.KindCharge}, ID: id, Status: status}
		if got := remedyOf(p); !strings.Contains(got, "`oncepay publish --tenant acme --key NEW_KEY --kind "+kind+" --payment-id "+id.String()+"`") {
			t.Errorf("%s: %q", status, got)
		}
	}
	p := payments.Payment{ID: id, Status: payments.StatusNeedsReview, Reason: payments.ReasonCancelRefused}
	if got := remedyOf(p); !strings.Contains(got, "cancel it there") {
		t.Errorf("%q", got)
	}
	p.Status, p.Reason = payments.StatusUnknown, payments.ReasonRewound
	if got := remedyOf(p); !strings.HasPrefix(got, "nothing: the database was restored") {
		t.Errorf("a reason's own remedy goes first: %q", got)
	}
}

// TestPausesOver: only pauses that hold a payment are named, also before it was sent.
func TestPausesOver(t *testing.T) {
	t.Parallel()
	tenants := []postgres.Tenant{{ID: "plain"}, {ID: "rich", StripeAccount: "acct_rich", Account: payments.Account{ID: "acct_rich"}}, {ID: "new", StripeKeyRef: "file:/k"}}
	pauses := []payments.Pause{{}, {TenantID: "plain"}, {TenantID: "rich"}, {AccountID: "acct_rich"}, {AccountID: "acct_own"}}
	for _, c := range []struct{ tenant, pinned, want string }{
		{"plain", "", "everything, tenant plain, account acct_own"},
		{"plain", "acct_own", "everything, tenant plain, account acct_own"},
		{"plain", "acct_old", "everything, tenant plain"},
		{"rich", "", "everything, tenant rich, account acct_rich"},
		{"new", "", "everything"},
	} {
		p := payments.Payment{Intent: payments.Intent{TenantID: c.tenant}, StripeAccount: c.pinned}
		if got := strings.TrimPrefix(stillPaused(pausesOver(pauses, p, tenants)), "; still paused: "); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.tenant, c.pinned, got, c.want)
		}
	}
}
