package paymentstest

import (
	"slices"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// FollowUpStore keeps captures, cancels and refunds, and shows them.
type FollowUpStore interface {
	payments.FollowUps
	payments.FollowUpReader
}

// taken is a charge of 99.00 USD that has succeeded; change may make it another.
func (b *storeBench) taken(key string, change ...func(*payments.Intent)) payments.Payment {
	b.t.Helper()
	c := b.admit(b.claiming(b.intent(key, change...)), payments.VerdictClaimed).Claim
	return b.record(c, charged(c.Payment), 0).Payment
}

// held is a charge of 99.00 USD that waits to be captured.
func (b *storeBench) held(key string) payments.Payment {
	b.t.Helper()
	c := b.admit(b.claiming(b.intent(key, func(i *payments.Intent) { i.CaptureMethod = payments.CaptureManual })), payments.VerdictClaimed).Claim
	return b.record(c, authorised(c.Payment), 0).Payment
}

func authorised(p payments.Payment) payments.Transition {
	t := charged(p)
	t.Status, t.Object.Status, t.Object.AmountReceived = payments.StatusRequiresCapture, payments.StripeRequiresCapture, 0
	return t
}

// asking asks for a follow-up of a charge; no amount: all that is left.
func asking(kind payments.Kind, charge payments.Payment, key string, amount int64) payments.FollowUpRequest {
	return payments.FollowUpRequest{Lane: payments.LaneInteractive, Intent: payments.Intent{
		TenantID: charge.TenantID, IdempotencyKey: key, Kind: kind, PaymentID: charge.ID.String(), Amount: amount,
		All: amount == 0 && kind != payments.KindCancel,
	}}
}

// ask wants the verdict; where nothing is stored somebody is told why.
func (b *storeBench) ask(r payments.FollowUpRequest, want payments.Verdict) payments.FollowUpAdmission {
	b.t.Helper()
	a, err := b.FollowUps.AdmitFollowUp(b.ctx, r)
	if err != nil {
		b.t.Fatalf("AdmitFollowUp: %v", err)
	}
	if a.Verdict != want {
		b.t.Fatalf("AdmitFollowUp of %s: %s (%s), want %s", r.Intent.IdempotencyKey, a.Verdict, a.Why, want)
	}
	switch want {
	case payments.VerdictPaymentUnknown, payments.VerdictInvalidState, payments.VerdictAmountExceeds, payments.VerdictAmountInvalid:
		if a.Why == "" {
			b.t.Errorf("%s: nobody is told why", want)
		}
		if p, err := b.Store.Find(b.ctx, r.Intent.TenantID, r.Intent.ID()); payments.ErrorCode(err) != payments.CodeNotFound {
			b.t.Errorf("%s stores %+v, %v", want, p, err)
		}
	}
	return a
}

// takeUp takes what is due, among which the key's ticket must be, and leaves all else to its lease.
func (b *storeBench) takeUp(key string) payments.Claim {
	b.t.Helper()
	claims := b.take(100)
	i := slices.IndexFunc(claims, func(c payments.Claim) bool { return c.Payment.IdempotencyKey == key })
	if i < 0 {
		b.t.Fatalf("the ticket of %s is not among the %d that are due", key, len(claims))
	}
	return claims[i]
}

func (b *storeBench) recordFollowUp(c payments.Claim, t payments.Transition, delay time.Duration) payments.Recorded {
	b.t.Helper()
	done, err := b.FollowUps.RecordFollowUp(b.ctx, b.recording(c, t, delay))
	if err != nil {
		b.t.Fatalf("RecordFollowUp %s: %v", t.Status, err)
	}
	return done
}

func (b *storeBench) followUp(p payments.Payment) payments.FollowUp {
	b.t.Helper()
	f, err := b.FollowUps.FindFollowUp(b.ctx, p.TenantID, p.ID)
	if err != nil {
		b.t.Fatalf("FindFollowUp: %v", err)
	}
	return f
}

func (b *storeBench) state(c payments.Claim) payments.FollowUpState {
	b.t.Helper()
	state, err := b.FollowUps.FollowUpState(b.ctx, c.Payment)
	if err != nil {
		b.t.Fatalf("FollowUpState: %v", err)
	}
	return state
}

func refundOf(p payments.Payment, status payments.StripeRefundStatus) *payments.Refund {
	return &payments.Refund{ID: "re_" + p.ID.Hex()[:24], Status: status, Amount: p.Amount, Currency: p.Currency, PaymentIntent: p.StripePaymentIntent}
}

// refunded is Stripe's word that a refund was made.
func refunded(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Refund: refundOf(p, payments.RefundSucceeded),
		Target: func(charge payments.Payment) (payments.Transition, error) {
			return payments.Transition{Status: charge.Status, Reason: charge.Reason, Refunded: p.Amount}, nil
		}}
}

// refunding is Stripe's word that a refund is on its way.
func refunding(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Refund: refundOf(p, payments.RefundPending)}
}

// captured is Stripe's word that a capture was made.
func captured(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Target: func(charge payments.Payment) (payments.Transition, error) {
		t := charged(charge)
		t.Object.AmountReceived = p.Amount
		return t, nil
	}}
}

// canceling ends a charge that nobody is at.
func canceling() payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Target: func(charge payments.Payment) (payments.Transition, error) {
		if charge.Owned || charge.Status != payments.StatusReceived {
			return payments.Transition{}, payments.Errorf(payments.CodeTargetMoved, "somebody is at it")
		}
		return payments.Transition{Status: payments.StatusCanceled, Reason: "canceled_on_request"}, nil
	}}
}

// behind gives a follow-up back that has nothing to do yet.
func behind() payments.Transition {
	return payments.Transition{Status: payments.StatusWaiting, Reason: "behind_another", ClearSubmit: true}
}

// toldOf wants the outbox to have exactly the events of these types, in order.
func (b *storeBench) toldOf(types ...string) {
	b.t.Helper()
	var got []string
	for _, it := range b.sent() {
		got = append(got, it.EventType)
	}
	slices.Sort(got)
	slices.Sort(types)
	if !slices.Equal(got, types) {
		b.t.Errorf("the events are %v, want %v", got, types)
	}
}
