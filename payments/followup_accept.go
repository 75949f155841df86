package payments

import "fmt"

// FollowUpsMax is how many follow-ups one charge may have, whatever became of them: each is read under a lock of the charge when the next is accepted.
const FollowUpsMax = 1000

// AcceptFollowUp says whether a valid follow-up whose key is new may be stored: VerdictStored with the amount that its row has from then on, or one
// of VerdictPaymentUnknown, VerdictInvalidState, VerdictAmountExceeds and VerdictAmountInvalid with what is wrong and what to do, for whoever asked. charge is the payment that
// it names as it stands under a lock, the zero Payment if the tenant has none; earlier are all that were accepted for it before. It is pure.
//
// What was accepted keeps its amount until its end: all amounts that may still be refunded, together with those that were, never exceed what was
// taken, whatever order they are accepted and run in.
func AcceptFollowUp(charge Payment, earlier []FollowUp, i Intent) (amount int64, verdict Verdict, why string) {
	amount, verdict, why = acceptFollowUp(charge, earlier, i)
	if verdict == VerdictStored && i.Kind != KindCancel && !i.All {
		if wrong := CheckAmount(i.Amount, charge.Currency); wrong != "" && amount != allLeft(charge, earlier, i.Kind) {
			return 0, VerdictAmountInvalid, wrong + "; or leave amount out for all that is left"
		}
	}
	return amount, verdict, why
}

// allLeft is what the follow-up would be about if it named no amount. That much can always be asked for.
func allLeft(charge Payment, earlier []FollowUp, kind Kind) int64 {
	amount, _, _ := acceptFollowUp(charge, earlier, Intent{Kind: kind, All: true})
	return amount
}

// acceptFollowUp is AcceptFollowUp whatever amounts the currency allows, which only what is new is held against.
func acceptFollowUp(charge Payment, earlier []FollowUp, i Intent) (amount int64, verdict Verdict, why string) {
	switch {
	case charge.Kind != KindCharge:
		return 0, VerdictPaymentUnknown, "there is no such payment: check payment_id"
	case len(earlier) >= FollowUpsMax:
		return 0, VerdictInvalidState, fmt.Sprintf("the payment has had %d captures, cancels and refunds, which is the most that is accepted: go on in Stripe's dashboard", FollowUpsMax)
	}
	switch i.Kind {
	case KindCapture:
		return acceptCapture(charge, earlier, i)
	case KindCancel:
		return acceptCancel(charge, earlier)
	case KindRefund:
		return acceptRefund(charge, earlier, i)
	default:
		return 0, VerdictInvalidState, "only captures, cancels and refunds are about a payment: set kind"
	}
}

func acceptCapture(charge Payment, earlier []FollowUp, i Intent) (int64, Verdict, string) {
	if charge.Status != StatusRequiresCapture {
		return 0, VerdictInvalidState, "the payment is " + string(charge.ShownStatus()) + ": only a payment that is requires_capture can be captured; " + beforeCapture(charge)
	}
	if before := standing(earlier); before != nil {
		return 0, VerdictInvalidState, standsInTheWay(before)
	}
	switch {
	case i.All:
		return charge.Amount, VerdictStored, ""
	case i.Amount > charge.Amount:
		return 0, VerdictAmountExceeds, "the amount is more than is held, which is " + inUnits(charge.Amount, charge.Currency) + ": capture that much at most, or leave amount out for all of it"
	}
	return i.Amount, VerdictStored, ""
}

// beforeCapture says what to do with a payment that cannot be captured.
func beforeCapture(charge Payment) string {
	switch {
	case charge.Status == StatusSucceeded:
		return "it has been taken"
	case charge.Status.Final():
		return "it has ended: ask for a new payment under another key"
	case charge.Status == StatusNeedsReview, charge.Status == StatusStalled:
		return "an operator has to decide about it first"
	case charge.CaptureMethod != CaptureManual:
		return "with capture_method automatic it is taken by itself"
	}
	return "wait until it is"
}

func acceptCancel(charge Payment, earlier []FollowUp) (int64, Verdict, string) {
	if why := notCancelable(charge.Status); why != "" {
		return 0, VerdictInvalidState, "the payment is " + string(charge.Status) + ": " + why
	}
	if before := standing(earlier); before != nil {
		return 0, VerdictInvalidState, standsInTheWay(before)
	}
	return 0, VerdictStored, ""
}

// notCancelable says why a payment in this status cannot be canceled, and what to do instead; "": it can.
func notCancelable(s Status) string {
	switch s {
	case StatusReceived, StatusWaiting, StatusUnknown, StatusPending, StatusRequiresAction, StatusRequiresCapture:
		return ""
	case StatusSucceeded:
		return "it has been taken: refund it instead"
	case StatusCanceled:
		return "nothing is left to cancel"
	case StatusStalled:
		return "nothing is sent for it, and an operator can give it up for good: `oncepay dlq discard`"
	case StatusNeedsReview:
		return "an operator has to decide about it first: `oncepay payments resolve`"
	default:
		return "nothing was taken, and nothing is left to cancel"
	}
}

func acceptRefund(charge Payment, earlier []FollowUp, i Intent) (int64, Verdict, string) {
	taken := charge.AmountCaptured
	switch ahead := standing(earlier); {
	case charge.Status == StatusSucceeded:
	case charge.Status == StatusRequiresCapture && ahead != nil && ahead.Kind == KindCapture && !ahead.Status.Final():
		taken = ahead.Amount // it is taken first, or this refund fails
	default:
		return 0, VerdictInvalidState, "the payment is " + string(charge.ShownStatus()) + ": " + beforeRefund(charge)
	}
	left := taken - charge.AmountRefunded - reserved(earlier)
	switch {
	case left <= 0:
		return 0, VerdictAmountExceeds, "nothing is left to refund: all that was taken is refunded, or will be by refunds that were accepted before"
	case i.All:
		return left, VerdictStored, ""
	case i.Amount > left:
		return 0, VerdictAmountExceeds, "the amount is more than is left after all refunds that were accepted before, which is " + inUnits(left, charge.Currency) +
			": refund that much at most, or leave amount out for all of it"
	}
	return i.Amount, VerdictStored, ""
}

// inUnits is an amount as it is asked for, in minor units, and as people write it.
func inUnits(amount int64, currency string) string {
	return fmt.Sprintf("%d (%s)", amount, FormatAmount(amount, currency))
}

// beforeRefund says what to do with a payment that is not known to be taken.
func beforeRefund(charge Payment) string {
	switch s := charge.ShownStatus(); {
	case s == StatusRequiresCapture:
		return "nothing has been taken: capture it first, or cancel it instead"
	case s.Final():
		return "nothing was taken, so nothing can be refunded"
	case s == StatusNeedsReview, s == StatusStalled:
		return "an operator has to decide about it first"
	case s == StatusUnknown, s == StatusProcessing, s == StatusPending, charge.InDoubt:
		return "it is not known yet whether it was taken: wait until it has its outcome, and refund it once it has succeeded"
	default:
		return "nothing has been taken yet: wait until it has succeeded, or cancel it instead"
	}
}

// standing is the capture or cancel that stands for good, or may still: at most one does at any time.
func standing(earlier []FollowUp) *FollowUp {
	for n := range earlier {
		f := &earlier[n]
		if (f.Kind == KindCapture || f.Kind == KindCancel) && (!f.Status.Final() || f.Status == StatusSucceeded) {
			return f
		}
	}
	return nil
}

func standsInTheWay(f *FollowUp) string {
	if f.Status == StatusSucceeded {
		return "a " + string(f.Kind) + " of the payment has succeeded"
	}
	return "a " + string(f.Kind) + " of the payment was accepted before and has not ended: wait for " + f.ID.Format(f.Kind)
}

// reserved is what refunds that were accepted and have not ended may still give back. Those that succeeded are in the charge's own figure.
func reserved(earlier []FollowUp) (sum int64) {
	for _, f := range earlier {
		if f.Kind == KindRefund && !f.Status.Final() {
			sum += f.Amount
		}
	}
	return sum
}
