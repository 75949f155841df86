package operators

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// openCases are payments that a backup knows as waiting for their customer or for a capture: what happened to them at Stripe afterwards, and what they
// must be.
var openCases = map[string]struct {
	held  bool // not even their customer is asked: the money is held at once
	after []string
	want  payments.Status
}{
	"confirmed":              {after: []string{"confirm"}, want: payments.StatusSucceeded},
	"canceled":               {after: []string{"cancel"}, want: payments.StatusCanceled},
	"confirmed-and-captured": {after: []string{"confirm", "capture"}, want: payments.StatusSucceeded},
	"confirmed-and-held":     {after: []string{"confirm"}, want: payments.StatusRequiresCapture},
	"captured":               {held: true, after: []string{"capture"}, want: payments.StatusSucceeded},
	"released":               {held: true, after: []string{"cancel"}, want: payments.StatusCanceled},
	"untouched":              {want: payments.StatusRequiresAction},
	"held-still":             {held: true, want: payments.StatusRequiresCapture},
}

// TestRewindReadsAgainWhatWasOpen: what was made before the backup and went on at Stripe after it is in no listing since then. It is adopted, though the
// runner dies twice on the way and Stripe does not show one of them at first; nothing is sent for it, and nobody is charged again.
func TestRewindReadsAgainWhatWasOpen(t *testing.T) {
	t.Parallel()
	world.TakeTurn(t)
	w := world.New(t)
	var opened atomic.Int64
	v := w.Start(world.WorkerOptions{Name: "worker", Marked: true, OnRewind: func(s payments.RewindStep) bool {
		return s == payments.RewindOpen && opened.Add(1) <= 2
	}})
	before := map[string]payments.Payment{}
	for name, c := range openCases {
		before[name] = openPayment(w, name, c.held, c.held || strings.Contains(name, "and-"))
	}
	w.Clock.Advance(time.Hour) // so that the listing, which goes back ten minutes further, has none of them
	marked(v)
	server, since := serverOf(w), w.Clock.Now()
	backup := server.backUp()
	for name, c := range openCases {
		for _, action := range c.after {
			atStripe(w, before[name].StripePaymentIntent, action)
		}
	}
	connected(w)
	marked(v)
	posts, charges := postsOf(w), len(w.Sim.Ledger().Charges)
	server.restore(backup)
	w.Await("the hold", func() (bool, string) { return v.Mark.Held() != "", "not held" })
	shy := stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: "/v1/payment_intents/" + before["captured"].StripePaymentIntent}, Fault: "html_502", Times: 1}
	if err := w.Sim.AddFault(shy); err != nil {
		t.Fatal(err)
	}
	connected(w)
	r := rewindSince(w, since)
	w.Rest()
	changed := 0
	for name, c := range openCases {
		p, err := w.Store.Find(context.Background(), world.Tenant, before[name].ID)
		if err != nil || p.Status != c.want || p.StripePaymentIntent != before[name].StripePaymentIntent {
			t.Errorf("%s is %s %s of %s, want %s; %v", name, p.Status, p.Reason, p.StripePaymentIntent, c.want, err)
		}
		if len(c.after) > 0 {
			changed++
		} else if p.Sequence != before[name].Sequence {
			t.Errorf("%s has not changed and is told anew", name)
		}
		if p.Status == payments.StatusSucceeded && p.AmountCaptured != p.Amount {
			t.Errorf("%s: %d were captured of %d", name, p.AmountCaptured, p.Amount)
		}
	}
	if n := postsOf(w) - posts; n != 0 || len(w.Sim.Ledger().Charges) != charges || w.Sim.Summary().DoubleCharges != 0 {
		t.Errorf("%d requests that could charge, %d charges, want none and %d", n, len(w.Sim.Ledger().Charges), charges)
	}
	if r.Progress.Adopted != changed || r.Progress.Objects != 0 || opened.Load() < 4 {
		t.Errorf("%d were adopted, want %d; the step was begun %d times", r.Progress.Adopted, changed, opened.Load())
	}
}

// connected waits until the test's own store has connections again, after its database was exchanged.
func connected(w *world.World) {
	w.Helper()
	w.Await("the test's own connection", func() (bool, string) {
		_, err := w.Store.Mark(context.Background())
		return err == nil, fmt.Sprint(err)
	})
}

// openPayment makes a payment that waits for its customer, or for a capture.
func openPayment(w *world.World, name string, held, manual bool) (p payments.Payment) {
	w.Helper()
	intent := payments.Intent{TenantID: world.Tenant, IdempotencyKey: name, Amount: 4200, Currency: "usd", Customer: "cus_1", PaymentMethod: "pm_card_authenticationRequired"}
	want := payments.StatusRequiresAction
	if held {
		intent.PaymentMethod, want = "pm_card_visa", payments.StatusRequiresCapture
	}
	if manual {
		intent.CaptureMethod = payments.CaptureManual
	}
	intent = intent.Normalized()
	ctx := context.Background()
	if a, err := w.Store.Admit(ctx, payments.AdmitRequest{Intent: intent, Lane: payments.LaneInteractive}); err != nil || a.Verdict != payments.VerdictStored {
		w.Fatalf("%+v, %v", a, err)
	}
	w.Await(name+" is open", func() (bool, string) {
		var err error
		p, err = w.Store.Find(ctx, world.Tenant, intent.ID())
		return err == nil && p.Status == want, string(p.Status) + " " + p.Reason
	})
	return p
}

// atStripe is what somebody else does to a PaymentIntent: its customer, or a person in Stripe's dashboard.
func atStripe(w *world.World, paymentIntent, action string) {
	w.Helper()
	if action == "confirm" {
		if status := w.ConfirmWithAnotherCard(paymentIntent); status != http.StatusOK {
			w.Fatalf("confirm: %d", status)
		}
		return
	}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.SimURL+"/v1/payment_intents/"+paymentIntent+"/"+action, strings.NewReader(url.Values{}.Encode()))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+world.StripeKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("%s: %d", action, answer.StatusCode)
	}
}
