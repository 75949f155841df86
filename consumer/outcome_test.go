package consumer

import (
	"errors"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

func TestAfterAdmission(t *testing.T) {
	t.Parallel()
	for verdict, want := range map[payments.Verdict]struct {
		what   delivery
		reason payments.Reason
	}{
		payments.VerdictExists:         {deliverAck, ""},
		payments.VerdictStored:         {deliverAck, ""},
		payments.VerdictConflict:       {deliverBury, payments.ReasonKeyReused},
		payments.VerdictRefused:        {deliverBury, payments.ReasonInvalid},
		payments.VerdictPaymentUnknown: {deliverBury, payments.ReasonInvalid},
		payments.VerdictInvalidState:   {deliverBury, payments.ReasonInvalid},
		payments.VerdictAmountExceeds:  {deliverBury, payments.ReasonInvalid},
		payments.VerdictAmountInvalid:  {deliverBury, payments.ReasonInvalid},
		payments.VerdictTenantUnknown:  {deliverBury, payments.ReasonTenantUnknown},
		payments.VerdictAbsent:         {deliverBury, payments.ReasonKeyInvalid},
		payments.VerdictClaimed:        {deliverLeave, ""}, // settling decides
		"no verdict at all":            {deliverLeave, ""},
		"":                             {deliverLeave, ""},
	} {
		if what, reason := afterAdmission(verdict); what != want.what || reason != want.reason {
			t.Errorf("%q: %s %s, want %+v", verdict, what, reason, want)
		}
	}
}

func TestAfterSettlement(t *testing.T) {
	t.Parallel()
	lost := payments.Errorf(payments.CodeTicketLost, "lost")
	for name, c := range map[string]struct {
		s    payments.Settlement
		want delivery
	}{
		"recorded":   {payments.Settlement{Recorded: payments.Recorded{Sequence: 1}}, deliverAck},
		"lost":       {payments.Settlement{Lost: true, Err: lost}, deliverAck},
		"away":       {payments.Settlement{Err: errAway}, deliverLeave},
		"other":      {payments.Settlement{Err: errors.New("bug")}, deliverLeave},
		"quiet, too": {payments.Settlement{}, deliverAck},
	} {
		if got := afterSettlement(c.s); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
