package payments

// AcceptForgotten is AcceptFollowUp for one whose copy stands in a stream, and that the database does not know any more. Nobody can tell what it came to: it
// was accepted, and may have been executed since, or it was refused. It is looked for at Stripe before anything is sent for it. So what its charge has become
// in the meantime, or is still to be found out about it, does not refuse it, nor do others that seem to be open again, since that is only what is known of
// them; an amount that was never there does.
//
// lookOnly: the figures leave no room for a refund, so that it was executed although it does not look so, or refused. It must only be looked for, and never
// be sent by what is decided here.
func AcceptForgotten(charge Payment, earlier []FollowUp, i Intent) (amount int64, verdict Verdict, why string, lookOnly bool) {
	amount, verdict, why = acceptFollowUp(charge, earlier, i)
	if verdict != VerdictInvalidState && verdict != VerdictAmountExceeds || len(earlier) >= FollowUpsMax {
		return amount, verdict, why, false
	}
	switch i.Kind {
	case KindCapture:
		if charge.CaptureMethod == CaptureManual && (charge.unsettled() || charge.Status == StatusSucceeded || charge.Status == StatusCanceled && charge.StripePaymentIntent != "") {
			charge.Status = StatusRequiresCapture
			amount, verdict, why = acceptCapture(charge, nil, i)
		}
	case KindCancel:
		if charge.unsettled() || charge.Status == StatusCanceled {
			return 0, VerdictStored, "", false
		}
	case KindRefund:
		return forgottenRefund(charge, earlier, i)
	}
	return amount, verdict, why, false
}

// forgottenRefund is acceptRefund of a charge that was taken, or may have been, whatever seems to be left of it.
func forgottenRefund(charge Payment, earlier []FollowUp, i Intent) (amount int64, verdict Verdict, why string, lookOnly bool) {
	most := charge.AmountCaptured
	if charge.unsettled() {
		charge.Status, charge.AmountCaptured, most = StatusSucceeded, charge.Amount, charge.Amount
		if f := standing(earlier); f != nil && f.Kind == KindCapture {
			charge.AmountCaptured = f.Amount // as it was when all of it was asked for
		}
	}
	amount, verdict, why = acceptRefund(charge, earlier, i)
	if verdict == VerdictStored || charge.Status != StatusSucceeded {
		return amount, verdict, why, false
	}
	charge.AmountRefunded = 0
	if !i.All {
		charge.AmountCaptured = most
	}
	amount, verdict, why = acceptRefund(charge, nil, i)
	return amount, verdict, why, verdict == VerdictStored
}
