package stripemock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// followUp is a follow-up of a charge whose PaymentIntent is pi_1.
func (s *session) followUp(kind payments.Kind, reason string) payments.Payment {
	c := s.stored(charge())
	i := payments.Intent{
		TenantID: c.TenantID, IdempotencyKey: c.IdempotencyKey + "/" + string(kind) + reason, Kind: kind, PaymentID: c.ID.String(), Reason: reason,
		Amount: 1, Currency: c.Currency,
	}
	switch kind {
	case payments.KindCancel:
		i.Amount = 0
	case payments.KindRefund:
		i.Metadata = map[string]string{"order": "o 1", "a.b-c_d": "ä&=+%", "größe 日本": ""}
	}
	p := s.stored(i)
	p.StripePaymentIntent = "pi_1"
	return p
}

// ofIntent makes the refunds in an answer those of the PaymentIntent pi_1: stripe-mock names one of its own.
func ofIntent(c call, answer string) string {
	var object map[string]any
	if !strings.HasPrefix(c.path, "/v1/refunds") || json.Unmarshal([]byte(answer), &object) != nil || object["object"] != "refund" {
		return answer
	}
	object["payment_intent"], object["metadata"] = "pi_1", map[string]string{}
	b, _ := json.Marshal(object) // it was read from JSON
	return string(b)
}

// TestFollowUps: captures, cancels and refunds, for every reason that there is, are requests that Stripe's specification knows.
func TestFollowUps(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.edit = ofIntent
	ctx := contextOf(t)
	calls := map[payments.Kind]func(payments.Submission) payments.Observation{
		payments.KindCapture: func(sub payments.Submission) payments.Observation { return s.Capture(ctx, sub) },
		payments.KindCancel:  func(sub payments.Submission) payments.Observation { return s.Cancel(ctx, sub) },
		payments.KindRefund:  func(sub payments.Submission) payments.Observation { return s.Refund(ctx, sub) },
	}
	for kind, c := range map[payments.Kind]struct {
		path    string
		reasons []string
		shows   payments.ObservationKind
	}{
		payments.KindCapture: {"/v1/payment_intents/pi_1/capture", []string{""}, payments.ObservedAnswer},
		payments.KindCancel:  {"/v1/payment_intents/pi_1/cancel", []string{"", "duplicate", "fraudulent", "requested_by_customer", "abandoned"}, payments.ObservedObject},
		payments.KindRefund:  {"/v1/refunds", []string{"", "duplicate", "fraudulent", "requested_by_customer"}, payments.ObservedRefund},
	} {
		for _, reason := range c.reasons {
			p := s.followUp(kind, reason)
			body, err := stripe.FollowUpBody(namespace, p)
			if err != nil {
				t.Fatal(err)
			}
			key := payments.StripeKey(namespace, kind, p.TenantID, p.IdempotencyKey)
			before := len(s.all())
			o := calls[kind](payments.Submission{Payment: p, StripeKey: key, MayLeave: func() error { return nil }})
			if o.Kind != c.shows || o.HTTPStatus != http.StatusOK {
				t.Errorf("%s %s: observed %s (%s): %s", kind, reason, o.Kind, o.Detail, strings.Join(s.complaints(), "; "))
			}
			sent := s.all()[before:]
			if len(sent) != 1 || sent[0].method != "POST" || sent[0].path != c.path || sent[0].body != body || sent[0].header.Get("Idempotency-Key") != key {
				t.Errorf("%s %s: sent %+v", kind, reason, sent)
			}
		}
	}
	p := s.followUp(payments.KindRefund, "")
	if o := s.LookRefunds(ctx, p, nil); o.Kind != payments.ObservedRecords || len(o.Refunds) != 0 {
		t.Errorf("the look-up shows %s (%s), %+v", o.Kind, o.Detail, o.Refunds)
	}
	if o := s.RetrieveRefund(ctx, p, "re_1"); o.Kind != payments.ObservedRefund || o.Refund == nil {
		t.Errorf("retrieved %s (%s)", o.Kind, o.Detail)
	}
}

// TestGoldenFollowUps: also the bodies of follow-ups that were begun by earlier versions are accepted.
func TestGoldenFollowUps(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	paths, err := filepath.Glob(filepath.Join("..", "..", "payments", "stripe", "testdata", "followups", "v*", "*.form"))
	if err != nil || len(paths) < 8 {
		t.Fatalf("the golden bodies of follow-ups are not where they were: %v, %v", paths, err)
	}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".form"), "_")
		to := map[string]string{"capture": "/v1/payment_intents/pi_1/capture", "cancel": "/v1/payment_intents/pi_1/cancel", "refund": "/v1/refunds"}[kind]
		if to == "" {
			t.Fatalf("%s is of no kind", path)
		}
		r.post(t, to, string(body))
	}
	if calls := r.all(); len(calls) != len(paths) {
		t.Errorf("%d requests arrived, want %d", len(calls), len(paths))
	}
}

// TestWrongFollowUpsAreRefused: what stripe-mock takes above is what it would refuse were it wrong.
func TestWrongFollowUpsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.tamper = func(_ *http.Request, body string) string { return body } // refusals are wanted
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, c := range [][2]string{
		{"/v1/payment_intents/pi_1/capture", "amount=1"},
		{"/v1/payment_intents/pi_1/capture", "amount_to_capture=some"},
		{"/v1/payment_intents/pi_1/cancel", "cancellation_reason=boredom"},
		{"/v1/payment_intents/pi_1/cancel", "reason=duplicate"},
		{"/v1/refunds", "payment_intent=pi_1&reason=abandoned"},
		{"/v1/refunds", "payment_intent=pi_1&amount=1.5"},
		{"/v1/refunds", "payment_intent=pi_1&description=x"},
	} {
		before := len(r.all())
		r.post(t, c[0], c[1])
		calls := r.all()[before:]
		if len(calls) != 1 || calls[0].accepted() && len(specified.breaches(calls[0])) == 0 {
			t.Errorf("%s %s was accepted: %s", c[0], c[1], fmt.Sprint(calls))
		}
	}
}
