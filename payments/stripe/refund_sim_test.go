package stripe

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// refundOf charges, and returns a refund of the charge that was not sent yet.
func (s sim) refundOf(t *testing.T, amount int64, change ...func(*payments.Payment)) payments.Payment {
	t.Helper()
	charge := s.payment(change...)
	id := s.submits(t, charge, payments.ObservedAnswer).Object.ID
	return s.anotherRefund(id, amount, "")
}

func (s sim) anotherRefund(paymentIntent string, amount int64, key string) payments.Payment {
	return followUp(payments.KindRefund, func(p *payments.Payment) {
		p.StripeAccount, p.StripePaymentIntent, p.Amount = s.account.ID, paymentIntent, amount
		p.IdempotencyKey += key
	})
}

// A refund that is pending, or that fails after all, is read as it stands then, and what failed can be given back anew.
func TestRefundsSettleOnTheSimulator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then payments.StripeRefundStatus
		reason      string
	}{
		"pm_card_visa":          {payments.RefundSucceeded, payments.RefundSucceeded, ""},
		"pm_card_pendingRefund": {payments.RefundPending, payments.RefundSucceeded, ""},
		"pm_card_refundFail":    {payments.RefundSucceeded, payments.RefundFailed, "expired_or_canceled_card"},
	} {
		s := newSim(t, stripesim.Options{DebitSettle: time.Hour})
		p := s.refundOf(t, 9900, method(name))
		o := s.Refund(t.Context(), submission(p))
		if o.Kind != payments.ObservedRefund || o.Refund.Status != c.first {
			t.Fatalf("%s: observed %s, %+v", name, o.Kind, o.Refund)
		}
		if err := s.AdvanceClock(time.Hour); err != nil {
			t.Fatal(err)
		}
		for what, later := range map[string]payments.Observation{"read": s.RetrieveRefund(t.Context(), p, o.Refund.ID), "looked up": s.LookRefunds(t.Context(), p, nil)} {
			r := later.Refund
			if len(later.Refunds) == 1 {
				r = &later.Refunds[0]
			}
			if noSecrets(t, later); r == nil || r.ID != o.Refund.ID || r.Status != c.then || r.FailureReason != c.reason {
				t.Errorf("%s, %s: %+v", name, what, later)
			}
		}
		again := s.Refund(t.Context(), submission(s.anotherRefund(p.StripePaymentIntent, 9900, "/again")))
		if want := c.then == payments.RefundFailed; (again.Kind == payments.ObservedRefund) != want {
			t.Errorf("%s: another refund is observed as %s (%s)", name, again.Kind, again.Detail)
		}
	}
}

// What breaks a call breaks a reading too: then it proves nothing.
func TestFaultsOnReadingRefunds(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		stripesim.FaultResetBefore, stripesim.FaultCommitThenReset, stripesim.FaultCommitThenHang, stripesim.FaultCommitThen500,
		stripesim.FaultCommitThen503, stripesim.FaultTruncateBody, stripesim.FaultHTML502, stripesim.FaultGarbage200, stripesim.FaultRateLimit429,
		stripesim.FaultUnauthorized401, stripesim.FaultInUse409, stripesim.FaultLockTimeout429,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := newSim(t, stripesim.Options{}, func(o *Options) { o.Timeout = 3 * time.Second })
			p := s.refundOf(t, 100)
			made := s.Refund(t.Context(), submission(p))
			reads(t, made, payments.ObservedRefund)
			if err := s.AddFault(stripesim.Rule{Match: stripesim.Match{Method: "GET"}, Fault: fault}); err != nil {
				t.Fatal(err)
			}
			reads(t, s.LookRefunds(t.Context(), p, nil), payments.ObservedNoRecords)
			reads(t, s.RetrieveRefund(t.Context(), p, made.Refund.ID), payments.ObservedNoRecords)
		})
	}
}

// reads is want for the simulator's account.
func reads(t *testing.T, o payments.Observation, kind payments.ObservationKind) {
	t.Helper()
	if noSecrets(t, o); o.Kind != kind || o.Refunds != nil {
		t.Errorf("observed %s (%s), %+v; want %s", o.Kind, o.Detail, o.Refunds, kind)
	}
}

// More refunds than fit on a page are read all, and one of a neighbour's PaymentIntent is no part of it.
func TestLookRefundsOnTheSimulator(t *testing.T) {
	t.Parallel()
	s := newSim(t, stripesim.Options{})
	first := s.refundOf(t, 10)
	made := s.Refund(t.Context(), submission(first))
	for i := range 120 {
		s.post(t, refundsPath, fmt.Sprintf("payment_intent=%s&amount=5&metadata[n]=%d", first.StripePaymentIntent, i))
	}
	asked := 0
	o := s.LookRefunds(t.Context(), first, func() error { asked++; return nil })
	if o.Kind != payments.ObservedRecords || len(o.Refunds) != 1 || o.Refunds[0].ID != made.Refund.ID || asked != 2 {
		t.Errorf("%s (%s): found %+v on %d pages", o.Kind, o.Detail, o.Refunds, asked)
	}
	none := s.anotherRefund(first.StripePaymentIntent, 10, "/never sent")
	if o := s.LookRefunds(t.Context(), none, nil); o.Kind != payments.ObservedRecords || len(o.Refunds) != 0 {
		t.Errorf("%s: found %+v", o.Kind, o.Refunds)
	}
	asked = 0
	o = s.LookRefunds(t.Context(), first, func() error {
		if asked++; asked == 2 {
			return errors.New("the ticket is lost")
		}
		return nil
	})
	if o.Kind != payments.ObservedNoRecords || len(o.Refunds) != 0 {
		t.Errorf("ended half-way: %+v", o)
	}
}
