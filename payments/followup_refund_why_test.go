package payments

import (
	"strings"
	"testing"
)

// TestRefusedRefundSaysWhatIsKnown: of a payment that may have been taken nobody is told that nothing was.
func TestRefusedRefundSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	with := func(s Status, owned, inDoubt bool) Payment {
		p := chargeIn(s)
		p.Owned, p.InDoubt = owned, inDoubt
		return p
	}
	for name, c := range map[string]struct {
		charge Payment
		says   string
	}{
		"unknown":    {with(StatusUnknown, false, true), "it is not known yet whether it was taken"},
		"pending":    {with(StatusPending, false, false), "it is not known yet whether it was taken"},
		"processing": {with(StatusReceived, true, false), "processing: it is not known yet whether it was taken"},
		"again":      {with(StatusWaiting, true, false), "processing: it is not known yet whether it was taken"},
		"in doubt":   {with(StatusWaiting, false, true), "it is not known yet whether it was taken"},
		"received":   {with(StatusReceived, false, false), "nothing has been taken yet"},
		"waiting":    {with(StatusWaiting, false, false), "nothing has been taken yet"},
		"customer":   {with(StatusRequiresAction, false, false), "nothing has been taken yet"},
		"held":       {with(StatusRequiresCapture, false, false), "nothing has been taken: capture it first"},
		"failed":     {with(StatusFailed, false, false), "nothing was taken, so nothing can be refunded"},
		"review":     {with(StatusNeedsReview, false, true), "an operator has to decide"},
	} {
		_, verdict, why := AcceptFollowUp(c.charge, nil, asks(KindRefund, 0))
		if verdict != VerdictInvalidState || !strings.Contains(why, c.says) {
			t.Errorf("%s: %s, %q does not say %q", name, verdict, why, c.says)
		}
		if strings.Contains(c.says, "not known") && (strings.Contains(why, "nothing has been taken") || strings.Contains(why, "cancel")) {
			t.Errorf("%s: %q", name, why)
		}
	}
}
