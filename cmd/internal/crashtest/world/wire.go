package world

import (
	"fmt"
	"net/http"

	"github.com/oncepay/oncepay/payments"
)

// wire lists what is wrong with the requests to Stripe, of whichever owners: every submission must have gone out under the one key that its row
// names and with the same bytes each time, and what is recorded as charged must be the PaymentIntent that was charged.
func (a Account) wire() (findings []string) {
	keys, paths := map[string]payments.ID{}, map[string]string{} // by key; where there is one, the only path that it may go to
	for id, p := range a.Rows {
		keys[payments.StripeKey(Namespace, p.Kind, p.TenantID, p.IdempotencyKey)] = id
		paths[payments.StripeKey(Namespace, payments.KindCancel, p.TenantID, p.IdempotencyKey)] = "/v1/payment_intents/" + p.StripePaymentIntent + "/cancel"
	}
	for _, f := range a.FollowUpRows {
		if charge, err := payments.ParseID(f.PaymentID); err == nil { // its own row has none where its charge had none when it was accepted
			f.StripePaymentIntent = a.Rows[charge].StripePaymentIntent
		}
		paths[payments.StripeKey(Namespace, f.Kind, f.TenantID, f.IdempotencyKey)] = stripePath(f)
	}
	bodies := map[string]string{}
	for _, r := range a.Ledger.Requests {
		if r.Method != http.MethodPost || r.IdempotencyKey == "" && r.Path != "/v1/payment_intents" && r.Path != "/v1/refunds" {
			continue // what others do at Stripe
		}
		_, known := keys[r.IdempotencyKey]
		if known = known && r.Path == "/v1/payment_intents"; !known && paths[r.IdempotencyKey] != r.Path {
			findings = append(findings, fmt.Sprintf("request %d went out by %s under the key %q, which is no row's", r.Seq, r.Path, r.IdempotencyKey))
		}
		if earlier, seen := bodies[r.IdempotencyKey]; seen && earlier != r.BodySHA256 {
			findings = append(findings, fmt.Sprintf("request %d under the key %q has other bytes than the one before", r.Seq, r.IdempotencyKey))
		}
		bodies[r.IdempotencyKey] = r.BodySHA256
	}
	for _, c := range a.Ledger.Charges {
		p, known := a.Rows[keys[c.IdempotencyKey]]
		if known && p.Status == payments.StatusSucceeded && p.StripePaymentIntent != c.PaymentIntent {
			findings = append(findings, fmt.Sprintf("%s is recorded with %q, and %s was charged", p.IdempotencyKey, p.StripePaymentIntent, c.PaymentIntent))
		}
	}
	return findings
}

// stripePath is where a capture, a cancel or a refund is sent.
func stripePath(f payments.FollowUp) string {
	if f.Kind == payments.KindRefund {
		return "/v1/refunds"
	}
	return "/v1/payment_intents/" + f.StripePaymentIntent + "/" + string(f.Kind)
}
