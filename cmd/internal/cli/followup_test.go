package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestRefusedFollowUps: what can be no capture, cancel or refund is refused before anything is asked, by the name of its field.
func TestRefusedFollowUps(t *testing.T) {
	t.Parallel()
	b := withSettings(t, map[string]string{"ONCEPAY_NATS_URL": "nats://127.0.0.1:1"})
	of := "--payment-id=" + payments.NewID("demo", "order-1").String()
	for _, c := range []struct{ args, want string }{
		{"--kind refund", "payment_id is required"},
		{"--kind refund --payment-id ref_0", "payment_id must be"},
		{"--kind gift " + of, "kind must be charge, capture, cancel or refund"},
		{"--kind refund --amount 0 " + of, "amount must be a positive integer"},
		{"--kind refund --amount -1 " + of, "amount must be a positive integer"},
		{"--kind cancel --amount 1 " + of, "amount is not for cancels"},
		{"--kind refund --reason abandoned " + of, "reason must be one of"},
		{"--kind capture --reason duplicate " + of, "reason is only for"},
		{"--kind capture --metadata a=1 " + of, "metadata is only for"},
		{"--kind refund --metadata oncepay_x=1 " + of, "metadata"},
		{"--kind refund --metadata a=" + card + " " + of, "metadata: contains what looks like a card number"},
		{"--kind refund --reason " + card + " " + of, "reason: contains what looks like a card number"},
		{"--kind refund --currency usd " + of, "currency is only for charges"},
		{"--kind refund --customer cus_1 " + of, "customer is only for charges"},
		{"--kind refund --payment-method pm_1 " + of, "payment_method is only for charges"},
		{"--kind cancel --description d " + of, "description is only for charges"},
		{"--kind cancel --on-session " + of, "off_session is only for charges"},
		{"--kind capture --capture-method manual " + of, "capture_method is only for charges"},
		{"--kind refund --expires-at 2099-01-01T00:00:00Z " + of, "expires_at is only for charges"},
		{"--amount 100 --currency usd --payment-method pm_1 " + of, "payment_id is only for captures, cancels and refunds"},
		{"--amount 100 --currency usd --payment-method pm_1 --reason duplicate", "reason is only for cancels and refunds"},
	} {
		r := b.run(append([]string{"publish", "--tenant=demo", "--key=k"}, strings.Fields(c.args)...)...)
		b.fails(r, exitUsage, "not published: ", c.want)
		if strings.Contains(r.err, card) {
			t.Errorf("%s: %q", c.args, r.err)
		}
	}
	for in, want := range map[string]string{
		`{"kind":"refund"}`: "payment_id is required", `{"kind":"refund","payment_id":"pay_0"}`: "payment_id must be", `{"kind":"refund","off_session":true}`: "off_session is only",
		`{"kind":"capture","amount":0}`: "amount must be a positive integer", `{"kind":"cancel","reason":"` + card + `"}`: "reason: contains",
	} {
		r := b.with(in, "publish", "-", "--tenant", "demo", "--key", "k")
		b.fails(r, exitUsage, want)
		if strings.Contains(r.err, card) {
			t.Errorf("%q: %q", in, r.err)
		}
	}
	for name, f := range map[string]publishFlags{
		"all of a capture": {kind: "capture"}, "a part": {kind: "capture", named: true, intent: payments.Intent{Amount: 5}}, "a cancel": {kind: "cancel", intent: payments.Intent{Reason: "abandoned"}},
		"a refund": {kind: "refund", metadata: []string{"a=b"}, intent: payments.Intent{Reason: "duplicate"}},
	} {
		f.intent.TenantID, f.intent.IdempotencyKey, f.intent.PaymentID = "demo", "k", payments.NewID("demo", "order-1").String()
		intent, err := f.read(nil)
		if err != nil || refusal(intent) != nil || intent.All == (f.named || f.kind == "cancel") || intent.OffSession {
			t.Errorf("%s: %+v, %v, %v", name, intent, err, refusal(intent))
		}
	}
}

// TestFollowUpInWords: a refund is shown whole, and with its payment, where what was asked of that stands in its order.
func TestFollowUpInWords(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2030, 1, 2, 3, minute, 0, 0, time.UTC) }
	charge := payments.Payment{
		Intent: payments.Intent{TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 9900, Currency: "usd", PaymentMethod: "pm_1", OffSession: true},
		ID:     payments.NewID("acme", "order-1"), Status: payments.StatusSucceeded, AmountCaptured: 9900, AmountRefunded: 500, CreatedAt: at(0),
	}
	refund := payments.FollowUp{Payment: payments.Payment{
		Intent: payments.Intent{TenantID: "acme", IdempotencyKey: "refund-1", Kind: payments.KindRefund, PaymentID: charge.ID.String(), Amount: 500, Currency: "usd",
			Reason: "duplicate", Metadata: map[string]string{"rma": "7"}},
		ID: payments.NewID("acme", "refund-1"), Status: payments.StatusWaiting, Reason: payments.ReasonNotSent, StripePaymentIntent: "pi_1", StripeAccount: "acct_1",
		Tries: 1, CreatedAt: at(1), NextAttemptAt: at(2),
	}, Number: 1, StripeRefund: "re_1"}
	id := refund.ID.Format(payments.KindRefund)
	var out bytes.Buffer
	s := &shared{out: &out}
	if err := s.printFollowUp(refund, [][2]string{{"paused", "everything"}}, nil); err != nil {
		t.Fatal(err)
	}
	want := "refund          " + id + "\nof payment      " + charge.ID.String() + "\ntenant          acme\nkey             refund-1\namount          5.00 USD\nstated reason   duplicate\n" +
		"status          waiting\nreason          not_sent\npaused          everything\nmetadata        rma=7\nStripe refund   re_1\nStripe          pi_1\naccount         acct_1 (test)\n" +
		"tries           1\ncreated         2030-01-02 03:01:00 UTC\nnext attempt    2030-01-02 03:02:00 UTC\n\n#  AT (UTC)  STATUS  REASON\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	for status, says := range map[payments.Status]string{
		payments.StatusUnknown: "never ask for it again under another key", payments.StatusPending: "nothing: Stripe carries it out", payments.StatusNeedsReview: "oncepay_payment:" + id,
	} {
		refund.Status = status
		if got := followUpRemedy(refund); !strings.Contains(got, says) {
			t.Errorf("%s: %q", status, got)
		}
	}
	refund.Payment.Reason = payments.ReasonAuthentication
	for _, refund.Status = range []payments.Status{payments.StatusWaiting, payments.StatusUnknown, payments.StatusPending} {
		if got := followUpRemedy(refund); !strings.Contains(got, "stripe_rights") {
			t.Errorf("%s, refused by Stripe: %q", refund.Status, got)
		}
	}
	refund.Status, refund.Payment.Reason = payments.StatusNeedsReview, payments.ReasonMissingAtStripe
	if got := followUpRemedy(refund); !strings.Contains(got, "does not know the PaymentIntent") || !strings.Contains(got, "as failed if nothing was given back") {
		t.Errorf("%q", got)
	}
	refund.Payment.Reason = payments.ReasonSeveralRefunds
	if got := followUpRemedy(refund); !strings.Contains(got, "several refunds") || !strings.Contains(got, "`oncepay payments resolve "+id+" --as STATUS") {
		t.Errorf("%q", got)
	}
	capture := payments.FollowUp{Payment: payments.Payment{Intent: payments.Intent{Kind: payments.KindCapture}, Status: payments.StatusNeedsReview, Reason: payments.ReasonDisagrees}}
	if got := followUpRemedy(capture); !strings.Contains(got, "resolve it as unknown, which reads what became of it") {
		t.Errorf("%q", got)
	}
	for as, says := range map[payments.Status]string{
		payments.StatusSucceeded: "5.00 USD count as refunded of " + charge.ID.String(), payments.StatusFailed: "its amount can be refunded again", payments.StatusUnknown: "records are read again",
	} {
		if got := comesTo(refund.Payment, payments.Transition{Status: as}, payments.Decision{As: as}); !strings.Contains(got, says) {
			t.Errorf("%s: %q", as, got)
		}
	}
	part := payments.Decision{As: payments.StatusSucceeded, AmountRefunded: 300}
	if got := comesTo(refund.Payment, payments.Transition{Status: part.As}, part); !strings.Contains(got, "3.00 USD count as refunded") {
		t.Errorf("another amount: %q", got)
	}
	refund.Status, refund.All = payments.StatusSucceeded, true
	cancel := payments.FollowUp{Payment: payments.Payment{Intent: payments.Intent{Kind: payments.KindCancel, Currency: "usd"}, ID: payments.NewID("acme", "c"), Status: payments.StatusFailed}}
	out.Reset()
	if err := s.printPayment(charge, nil, []payments.FollowUp{cancel, refund}, nil); err != nil {
		t.Fatal(err)
	}
	if lines := "cancel          " + cancel.ID.Format(payments.KindCancel) + ", failed\nrefund          " + id + ", 5.00 USD, all that was left, succeeded\n"; !strings.Contains(out.String(), lines) {
		t.Errorf("%q is missing:\n%s", lines, out.String())
	}
}
