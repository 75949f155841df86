package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
)

// showPayment shows one payment or operation, as JSON or in words.
func (s *shared) showPayment(ctx context.Context, store *postgres.Store, p payments.Payment) error {
	f, err := followUpOf(ctx, store, p)
	if err != nil {
		return err
	}
	if !s.json {
		held, err := hold(ctx, store, p)
		if err != nil {
			return err
		}
		return s.printWithTimeline(ctx, store, p, f, held)
	}
	timeline, err := store.Timeline(ctx, p.TenantID, p.ID)
	switch {
	case err != nil:
		return err
	case p.Kind.FollowUp():
		return console.JSON(s.out, document.FollowUpWithEvents(f, timeline))
	}
	return console.JSON(s.out, document.PaymentWithEvents(p, timeline))
}

// followUpOf reads what an operation has beside its row; of a payment there is nothing to read.
func followUpOf(ctx context.Context, store *postgres.Store, p payments.Payment) (payments.FollowUp, error) {
	if !p.Kind.FollowUp() {
		return payments.FollowUp{}, nil
	}
	return store.FindFollowUp(ctx, p.TenantID, p.ID)
}

// printWithTimeline shows a payment, or the operation f, in words.
func (s *shared) printWithTimeline(ctx context.Context, store *postgres.Store, p payments.Payment, f payments.FollowUp, held [][2]string) error {
	timeline, err := store.Timeline(ctx, p.TenantID, p.ID)
	if err != nil {
		return err
	}
	if p.Kind.FollowUp() {
		return s.printFollowUp(f, held, timeline)
	}
	var asked []payments.FollowUp
	if p.Kind == payments.KindCharge {
		if asked, err = store.FollowUpsOf(ctx, p.TenantID, p.ID, ""); err != nil {
			return err
		}
	}
	return s.printPayment(p, held, asked, timeline)
}

// printFollowUp shows a capture, a cancel or a refund to a person, as printPayment does a payment.
func (s *shared) printFollowUp(f payments.FollowUp, held [][2]string, timeline []payments.Entry) error {
	lines := [][2]string{
		{string(f.Kind), f.ID.Format(f.Kind)}, {"of payment", f.PaymentID}, {"tenant", f.TenantID}, {"key", f.IdempotencyKey}, {"amount", askedAmount(f)},
		{"stated reason", f.Intent.Reason}, {"status", string(f.ShownStatus())}, {"reason", f.Payment.Reason}, {"what to do", followUpRemedy(f)},
	}
	lines = append(append(lines, held...), doubtOf(f.Payment)...)
	for _, name := range slices.Sorted(maps.Keys(f.Metadata)) {
		lines = append(lines, [2]string{"metadata", name + "=" + f.Metadata[name]})
	}
	lines = append(lines, [2]string{"Stripe refund", f.StripeRefund}, [2]string{"Stripe", f.StripePaymentIntent}, [2]string{"account", modeOf(f.Payment)})
	s.printLines(append(lines, courseOf(f.Payment)...))
	return s.printTimeline(timeline)
}

// askedAmount is what an operation is about; a cancel is about all of it.
func askedAmount(f payments.FollowUp) string {
	switch {
	case f.Kind == payments.KindCancel:
		return ""
	case f.All:
		return payments.FormatAmount(f.Amount, f.Currency) + ", all that was left"
	}
	return payments.FormatAmount(f.Amount, f.Currency)
}

// operationsOf lists what was asked of a payment afterwards, in the order in which it is done.
func operationsOf(list []payments.FollowUp) (lines [][2]string) {
	for _, f := range list {
		text := f.ID.Format(f.Kind)
		if amount := askedAmount(f); amount != "" {
			text += ", " + amount
		}
		lines = append(lines, [2]string{string(f.Kind), text + ", " + string(f.ShownStatus())})
	}
	return lines
}

// followUpRemedy says what to do about an operation; "" where nothing is to be done.
func followUpRemedy(f payments.FollowUp) string {
	word, _, _ := strings.Cut(f.Payment.Reason, ":")
	switch remedy, ok := remedies[word]; {
	case f.Status == payments.StatusNeedsReview:
		return followUpReview(f) + ": `oncepay payments resolve " + f.ID.Format(f.Kind) + " --as STATUS --reason R`; what was asked of the payment after it waits for that"
	case ok:
		return remedy
	case f.Status == payments.StatusUnknown:
		return "wait: it may have been executed, and Stripe's records are read until they tell; never ask for it again under another key"
	case f.Status == payments.StatusPending:
		return "nothing: Stripe carries it out, for days at times, and is asked until it has"
	}
	return remedyOf(f.Payment)
}

// refundReviews say what to look at before a refund that waits for a person is resolved.
var refundReviews = map[string]string{
	payments.ReasonAbsent:         "Stripe's records show no such refund: resolve it as failed, and ask for another under another key",
	payments.ReasonDisagrees:      "Stripe has a refund of it that is not what was asked for: see there what was given back; resolve it as succeeded, with that as --amount-refunded, or as failed if it is nothing",
	payments.ReasonSeveralRefunds: "Stripe has several refunds of it: find out who made the other, and resolve it as succeeded, with what they gave back in all as --amount-refunded",
	payments.ReasonMissingAtStripe: "Stripe does not show a refund that it named before, or does not know the PaymentIntent below: check the account, the key and that PaymentIntent, then resolve it as " +
		"unknown, which looks again; as failed if nothing was given back",
}

// followUpReview says what to look at before an operation that waits for a person is resolved.
func followUpReview(f payments.FollowUp) string {
	word, _, _ := strings.Cut(f.Payment.Reason, ":")
	if remedy, ok := refundReviews[word]; ok && f.Kind == payments.KindRefund {
		return remedy
	}
	if f.Kind == payments.KindRefund {
		return "look at Stripe what became of it, by its metadata oncepay_payment:" + f.ID.Format(f.Kind)
	}
	return "look at the payment's PaymentIntent at Stripe and put it right there; then resolve it as unknown, which reads what became of it"
}

// followUpComesTo says what a decision about an operation does, before it is made.
func followUpComesTo(p payments.Payment, d payments.Decision) string {
	switch {
	case d.As == payments.StatusSucceeded:
		return "for good, as executed: " + payments.FormatAmount(d.GivenBack(p), p.Currency) + " count as refunded of " + p.PaymentID + "; Stripe is not asked, your word stands"
	case p.Kind == payments.KindRefund:
		return "for good, as not executed: its amount can be refunded again under another key; Stripe is not asked, your word stands"
	}
	return "for good, as not executed: nothing is ever sent for it; Stripe is not asked, your word stands"
}
