package scenario

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// chapter is one entry of a payment's timeline, with the tries that its event's payment has.
type chapter struct {
	status payments.Status
	reason string
	tries  int
}

// timeline is all that happened to an order, without its being received.
func timeline(w *world.World, o world.Order) []payments.Entry {
	w.Helper()
	list, err := w.Store.Timeline(w.Context(), o.TenantID, o.ID())
	if err != nil {
		w.Fatal(err)
	}
	if len(list) == 0 || list[0].Sequence != 0 || list[0].Status != payments.StatusReceived {
		w.Fatalf("the timeline does not begin with its being received: %+v", list)
	}
	return list[1:]
}

// story reads the events of an order at rest, and wants the timeline to say the same.
func story(w *world.World, o world.Order) (story []chapter) {
	w.Helper()
	told := map[int64]chapter{}
	for _, m := range w.Messages(w.Context(), w.Subjects.StreamEvents()) {
		e, err := schema.DecodeEvent(m.Data())
		if err != nil {
			w.Fatal(err)
		}
		var data struct {
			Status payments.Status
			Reason string
			Tries  *int
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Tries == nil {
			w.Fatalf("an event without its payment's tries: %s, %v", e.Data, err)
		}
		if e.Subject == o.ID().String() {
			told[e.Sequence] = chapter{data.Status, data.Reason, *data.Tries}
		}
	}
	for _, entry := range timeline(w, o) {
		c, ok := told[entry.Sequence]
		if !ok || c.status != entry.Status || c.reason != entry.Reason {
			w.Errorf("entry %d of the timeline is %s %q, and its event says %v", entry.Sequence, entry.Status, entry.Reason, c)
		}
		story = append(story, c)
	}
	if len(story) != len(told) {
		w.Errorf("%d entries in the timeline and %d events", len(story), len(told))
	}
	return story
}

// mustStand wants an order stored as the chapter says, and its timeline to hold that chapter alone.
func mustStand(w *world.World, o world.Order, want chapter) payments.Payment {
	w.Helper()
	p, err := w.Store.Find(w.Context(), o.TenantID, o.ID())
	if err != nil {
		w.Fatal(err)
	}
	if got := (chapter{p.Status, p.Reason, p.Tries}); got != want {
		w.Errorf("it stands as %v, want %v", got, want)
	}
	if line := timeline(w, o); len(line) != 1 || line[0].Status != want.status || line[0].Reason != want.reason {
		w.Errorf("the timeline is %+v, want %v alone", line, want)
	}
	return p
}

// postFirst sends a form to Stripe under the order's own key, before we do.
func postFirst(w *world.World, o world.Order, form string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.SimURL+"/v1/payment_intents", strings.NewReader(form))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+world.StripeKey)
	r.Header.Set("Idempotency-Key", stripeKey(o))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("Stripe answered %s", answer.Status)
	}
}

// lineDown is a Gateway that finds no connection for its first submits.
type lineDown struct {
	payments.Gateway
	left atomic.Int32
}

func (g *lineDown) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if g.left.Add(-1) >= 0 {
		return payments.Observation{Kind: payments.ObservedNotSent, Detail: "no connection"}
	}
	return g.Gateway.Submit(ctx, s)
}

// TestEveryAttemptIsTold: a payment meets one trouble after the other, and at last Stripe charges and its answer is lost: as a 500 that Stripe would
// repeat for ever, or beyond our time-out. Each attempt stands in the timeline with its status and reason, each event has the tries spent so far,
// only what proves that nothing was sent costs one, and the charge is found by a look-up.
func TestEveryAttemptIsTold(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{stripesim.FaultCommitThen500, stripesim.FaultCommitThenHang} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			w := world.NewOf(t, steady)
			o := w.Order("order-1")
			for _, fault := range []string{stripesim.FaultRateLimit429, stripesim.FaultLockTimeout429, stripesim.FaultUnauthorized401, lost} {
				w.Fault(o, fault, 1)
			}
			w.Publish(o)
			w.Start(world.WorkerOptions{Name: "worker", Gateway: func(g payments.Gateway) payments.Gateway {
				down := &lineDown{Gateway: g}
				down.left.Store(2)
				return down
			}})
			a := w.MustBeGood(0)
			want := []chapter{
				{payments.StatusWaiting, payments.ReasonNotSent, 1}, {payments.StatusWaiting, payments.ReasonNotSent, 2},
				{payments.StatusWaiting, payments.ReasonRateLimited, 2}, {payments.StatusWaiting, payments.ReasonLocked, 2},
				{payments.StatusWaiting, payments.ReasonAuthentication, 2}, {payments.StatusUnknown, payments.ReasonNoAnswer, 2},
				{payments.StatusSucceeded, "", 2},
			}
			if story := story(w, o); !slices.Equal(story, want) {
				t.Errorf("the story is %v, want %v", story, want)
			}
			sent := sentFor(w, o, 0)
			if a.Summary.PaymentIntents != 1 || len(a.Charges) != 1 || len(sent) != 4 {
				t.Errorf("%d PaymentIntents and %d charges in %d requests, want one of each in 4", a.Summary.PaymentIntents, len(a.Charges), len(sent))
			}
		})
	}
}
