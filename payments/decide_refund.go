package payments

import "time"

// A refund gives money away, once for each request: it is guarded as a charge is.

// decideRefund: what Stripe answered to a refund.
func decideRefund(p Payment, o Observation) Transition {
	switch o.Kind {
	case ObservedRefund:
		if o.Refund == nil || o.Refund.ID == "" || o.Refund.Status == "" {
			return unknown(p, ReasonNoAnswer, nextLook(p, o))
		}
		if p.InDoubt && !o.Replayed && !SabotageNoLook {
			// This send was executed anew, so what became of the earlier one is still open: one more look.
			t := unknown(p, ReasonConfirming, Delay{Step: 1, Soon: true})
			t.Refund = o.Refund
			return t
		}
		return adoptRefund(p, o, *o.Refund)
	case ObservedDecline:
		if p.InDoubt && !SabotageNoLook {
			return unknown(p, ReasonConfirming, nextLook(p, o))
		}
		t := settled(StatusFailed, ReasonRefundFailed, nil)
		if t.Failure = o.Failure; o.Failure != nil && o.Failure.Code != "" {
			t.Reason = o.Failure.Code
		}
		return t
	case ObservedInvalid:
		return decideInvalid(p, o)
	}
	return unknown(p, ReasonConfirming, nextLook(p, o))
}

// decideRefunds: a complete listing of the PaymentIntent's refunds.
func decideRefunds(p Payment, s FollowUpState, o Observation, now time.Time, policy Policy) Transition {
	switch {
	case len(o.Refunds) > 1:
		return review(ReasonSeveralRefunds, nil)
	case len(o.Refunds) == 1:
		return adoptRefund(p, o, o.Refunds[0])
	case foreign(p, o.Account):
		return unread(p, o) // another account's empty list proves nothing
	case p.Status == StatusPending:
		return review(ReasonMissingAtStripe, nil)
	case !p.InDoubt:
		return Transition{ThenSend: true}
	}
	t := decideAbsent(p, o, s.StripeRefund != "", now, policy)
	if !t.ThenSend {
		return t
	}
	switch {
	case s.Ahead:
		return p.waits(ReasonBehind)
	case !s.Target.taken():
		return p.untaken(s)
	}
	return t
}

// decideRefundSeen: a refund that Stripe is processing, read again.
func decideRefundSeen(p Payment, s FollowUpState, o Observation) Transition {
	if o.Refund == nil || o.Refund.ID != s.StripeRefund {
		return review(ReasonMissingAtStripe, nil)
	}
	t := adoptRefund(p, o, *o.Refund)
	if t.Status == StatusPending && t.Reason == p.Reason {
		return stillPending(p, Delay{Step: p.Rounds + 1})
	}
	return t
}

// adoptRefund gives a follow-up the state of Stripe's refund, if that is the one that was asked for.
func adoptRefund(p Payment, o Observation, r Refund) Transition {
	if field := refundDisagrees(p, o.Account, r); field != "" {
		t := disagrees(field)
		t.Refund = &r
		return t
	}
	t := Transition{Refund: &r}
	switch r.Status {
	case RefundSucceeded:
		t.Status, t.Target = StatusSucceeded, givenBack(p.Amount)
	case RefundPending, RefundRequiresAction:
		t.Status, t.Reason, t.Rounds, t.Delay = StatusPending, ReasonProcessing, 1, Delay{Step: 1}
	case RefundFailed:
		t.Status, t.Reason = StatusFailed, ReasonRefundFailed
		if r.FailureReason != "" {
			t.Reason = r.FailureReason
		}
		t.Failure = &Failure{Code: t.Reason}
	case RefundCanceled:
		t.Status, t.Reason = StatusCanceled, ReasonStripeCanceled
	default:
		t = review(ReasonUnknownStatus, nil)
		t.Refund = &r
	}
	return t
}

// refundDisagrees names what differs between the refund and what was asked for, or returns "".
func refundDisagrees(p Payment, account Account, r Refund) string {
	switch {
	case p.StripeAccount != "" && account.ID != p.StripeAccount:
		return "account"
	case foreign(p, account):
		return "livemode"
	case r.Amount != p.Amount:
		return "amount"
	case r.Currency != p.Currency:
		return "currency"
	case r.PaymentIntent != p.StripePaymentIntent:
		return "payment_intent"
	}
	return ""
}
