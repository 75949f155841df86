package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
)

// printPayment shows a payment to a person: what it is, where it stands and why, what was asked of it afterwards, and how it came there. held is what
// holds it.
func (s *shared) printPayment(p payments.Payment, held [][2]string, followUps []payments.FollowUp, timeline []payments.Entry) error {
	lines := [][2]string{
		{"payment", p.ID.Format(p.Kind)}, {"tenant", p.TenantID}, {"key", p.IdempotencyKey}, {"batch", p.BatchID}, {"amount", amountOf(p)},
		{"status", string(p.ShownStatus())}, {"reason", p.Reason}, {"what to do", remedyOf(p)},
	}
	lines = append(append(lines, held...), doubtOf(p)...)
	lines = append(lines, [2]string{"customer", p.Customer}, [2]string{"payment method", p.PaymentMethod}, [2]string{"asked for", askedFor(p)},
		[2]string{"description", p.Description})
	for _, name := range slices.Sorted(maps.Keys(p.Metadata)) {
		lines = append(lines, [2]string{"metadata", name + "=" + p.Metadata[name]})
	}
	lines = append(lines, [2]string{"Stripe", p.StripePaymentIntent}, [2]string{"account", modeOf(p)})
	s.printLines(append(append(lines, courseOf(p)...), operationsOf(followUps)...))
	return s.printTimeline(timeline)
}

// courseOf is how a payment or an operation has gone so far.
func courseOf(p payments.Payment) (lines [][2]string) {
	if p.Failure != nil {
		lines = append(lines, [2]string{"failure", strings.Join(strings.Fields(p.Failure.Code+" "+p.Failure.DeclineCode+" "+p.Failure.Message), " ")})
	}
	if p.Tries > 0 {
		lines = append(lines, [2]string{"tries", strconv.Itoa(p.Tries)})
	}
	lines = append(lines, [2]string{"created", utc(p.CreatedAt)})
	if !p.NextAttemptAt.IsZero() {
		lines = append(lines, [2]string{"next attempt", utc(p.NextAttemptAt)})
	}
	if !p.ExpiresAt.IsZero() {
		lines = append(lines, [2]string{"expires", utc(p.ExpiresAt) + ": never charged after that"})
	}
	if !p.FinalizedAt.IsZero() {
		lines = append(lines, [2]string{"ended", utc(p.FinalizedAt)})
	}
	return lines
}

func (s *shared) printTimeline(timeline []payments.Entry) error {
	rows := make([][]string, len(timeline))
	for i, e := range timeline {
		rows[i] = []string{strconv.FormatInt(e.Sequence, 10), e.At.UTC().Format("2006-01-02 15:04:05.000"), string(e.Status), orDash(e.Reason)}
	}
	return s.table(s.out, []console.Column{{Head: "#"}, {Head: "AT (UTC)"}, {Head: "STATUS"}, {Head: "REASON", Goes: 1, Below: true}}, rows)
}

// utc shows a time beside a text.
func utc(t time.Time) string { return when(t) + " UTC" }

// amountOf shows what was asked for, and what was taken or given back where that is something else.
func amountOf(p payments.Payment) string {
	text := payments.FormatAmount(p.Amount, p.Currency)
	if p.Status == payments.StatusSucceeded && p.AmountCaptured != p.Amount || p.Status != payments.StatusSucceeded && p.AmountCaptured > 0 {
		text += ", captured " + payments.FormatAmount(p.AmountCaptured, p.Currency)
	}
	if p.AmountRefunded > 0 {
		text += ", refunded " + payments.FormatAmount(p.AmountRefunded, p.Currency)
	}
	return text
}

// doubtOf says that a payment may have been charged, and since when: Stripe answers a repeat of its key for a day.
func doubtOf(p payments.Payment) [][2]string {
	if !p.InDoubt || p.FirstSubmitAt.IsZero() {
		return nil
	}
	text := "it may have been sent from " + utc(p.FirstSubmitAt) + " on"
	if p.LastSubmitAt.After(p.FirstSubmitAt) {
		text += ", last at " + utc(p.LastSubmitAt)
	}
	return [][2]string{{"in doubt", text}}
}

// askedFor names what is not as it is by default.
func askedFor(p payments.Payment) string {
	var words []string
	if p.Kind != payments.KindCharge {
		words = append(words, string(p.Kind))
	}
	if p.CaptureMethod == payments.CaptureManual {
		words = append(words, "manual capture")
	}
	if !p.OffSession && p.Kind == payments.KindCharge {
		words = append(words, "on session")
	}
	if p.Lane == payments.LaneBulk {
		words = append(words, "bulk lane")
	}
	return strings.Join(words, ", ")
}

// modeOf is the account that a payment is bound to, and whether real money moves there.
func modeOf(p payments.Payment) string {
	switch {
	case p.StripeAccount == "":
		return ""
	case p.Livemode:
		return p.StripeAccount + " (live)"
	default:
		return p.StripeAccount + " (test)"
	}
}
