package world

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// Fault lets the simulator treat submissions of one order so, the first times of them.
func (w *World) Fault(o Order, fault string, times int) {
	w.Helper()
	rule := stripesim.Rule{Match: stripesim.Match{Path: "/v1/payment_intents", Metadata: map[string]string{"order": o.Key}}, Fault: fault, Times: times}
	if err := w.Sim.AddFault(rule); err != nil {
		w.Fatal(err)
	}
}

// Faults are all that the simulator can do to a submission.
var Faults = []string{
	stripesim.FaultResetBefore, stripesim.FaultCommitThenHang, stripesim.FaultCommitThenReset, stripesim.FaultCommitThen500,
	stripesim.FaultCommitThen503, stripesim.FaultTruncateBody, stripesim.FaultHTML502, stripesim.FaultGarbage200, stripesim.FaultSlow + ":100",
	stripesim.FaultInUse409, stripesim.FaultRateLimit429, stripesim.FaultLockTimeout429, stripesim.FaultUnauthorized401,
	stripesim.FaultShouldRetryTrue, stripesim.FaultShouldRetryFalse,
}

// PostStripe asks the simulator as somebody else beside us, and returns the id of the answer.
func (w *World) PostStripe(path, form string) (id string) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.SimURL+path, strings.NewReader(form))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+StripeKey)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s %v", path, response.Status, err)
	}
	return answer.ID
}

// Unreachable obtains no connection to Stripe.
type Unreachable struct{ payments.Gateway }

// Submit sends nothing.
func (g Unreachable) Submit(_ context.Context, s payments.Submission) payments.Observation {
	return payments.Observation{Kind: payments.ObservedNotSent, Detail: "no connection was obtained"}
}

// ConfirmWithAnotherCard is what the page of a customer does, and returns the status of Stripe's answer.
func (w *World) ConfirmWithAnotherCard(paymentIntent string) int {
	form := url.Values{"payment_method": {"pm_card_visa"}}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.SimURL+"/v1/payment_intents/"+paymentIntent+"/confirm", strings.NewReader(form.Encode()))
	if err != nil {
		w.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+StripeKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Error(err)
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
