package rewind

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

var home = payments.Account{ID: "acct_1"}

// TestWhatBecomesOfOpenPayments: Stripe's word counts where the payment can go there; what it cannot be told is looked up; what has not changed stays.
func TestWhatBecomesOfOpenPayments(t *testing.T) {
	t.Parallel()
	asked := payments.Payment{Intent: payments.Intent{Amount: 9900, Currency: "usd", OffSession: true}, Status: payments.StatusRequiresAction, StripePaymentIntent: "pi_1", StripeAccount: home.ID}
	held, gone, worked := asked, asked, asked
	held.Status, gone.Status, worked.Status = payments.StatusRequiresCapture, payments.StatusCanceled, payments.StatusUnknown
	read := func(status payments.StripeStatus) payments.Observation {
		return payments.Observation{Kind: payments.ObservedObject, Account: home, Object: &payments.PaymentIntent{ID: "pi_1", Status: status, Amount: 9900, Currency: "usd"}}
	}
	wrong := read(payments.StripeSucceeded)
	wrong.Object.Amount++
	for name, c := range map[string]struct {
		p      payments.Payment
		o      payments.Observation
		want   payments.Status // "": it stays
		reason string
	}{
		"asked, paid":                    {asked, read(payments.StripeSucceeded), payments.StatusSucceeded, ""},
		"asked, held":                    {asked, read(payments.StripeRequiresCapture), payments.StatusRequiresCapture, ""},
		"asked, canceled":                {asked, read(payments.StripeCanceled), payments.StatusCanceled, payments.ReasonStripeCanceled},
		"asked, processing":              {asked, read(payments.StripeProcessing), payments.StatusPending, payments.ReasonProcessing},
		"asked still":                    {asked, read(payments.StripeRequiresAction), "", ""},
		"asked, failed and may try anew": {asked, read(payments.StripeRequiresPaymentMethod), "", ""},
		"asked, another amount":          {asked, wrong, payments.StatusNeedsReview, payments.ReasonDisagrees + ": amount"},
		"asked, gone":                    {asked, payments.Observation{Kind: payments.ObservedObject, Account: home}, payments.StatusNeedsReview, payments.ReasonMissingAtStripe},
		"asked, not told":                {asked, payments.Observation{}, payments.StatusUnknown, payments.ReasonRewound},
		"held, captured":                 {held, read(payments.StripeSucceeded), payments.StatusSucceeded, ""},
		"held still":                     {held, read(payments.StripeRequiresCapture), "", ""},
		"held, goes where it cannot":     {held, read(payments.StripeProcessing), payments.StatusUnknown, payments.ReasonRewound},
		"ended meanwhile":                {gone, read(payments.StripeSucceeded), "", ""},
	} {
		var moved payments.Transition
		r := Runner{Config: Config{Clock: still{}, Store: oneStore{p: c.p, moved: &moved}}}
		disagrees, changed, err := r.settled(t.Context(), c.p, c.o, adoptOpen)
		if err != nil || disagrees != "" || changed != (c.want != "") || changed && (moved.Status != c.want || moved.Reason != c.reason) || moved.Status.HasTicket() && moved.Status == payments.StatusUnknown && !moved.InDoubt {
			t.Errorf("%s: %+v, changed %t, %q, %v; want %s %s", name, moved, changed, disagrees, err, c.want, c.reason)
		}
	}
	var moved payments.Transition
	r := Runner{Config: Config{Clock: still{}, Store: oneStore{p: worked, moved: &moved}}}
	if _, changed, err := r.settled(t.Context(), worked, read(payments.StripeSucceeded), adoptOpen); err != nil || changed {
		t.Errorf("worked on: %t, %v", changed, err)
	}
}

// still is a clock that stands.
type still struct{}

func (still) Now() time.Time { return time.Unix(1_700_000_000, 0) }

// oneStore has one payment, and what is to become of it.
type oneStore struct {
	Store
	p     payments.Payment
	moved *payments.Transition
}

func (s oneStore) Evidence(_ context.Context, _ string, _ payments.ID, decide func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error) {
	t, err := decide(s.p)
	if err != nil || t.Status == s.p.Status {
		return payments.Recorded{Payment: s.p}, err
	}
	*s.moved = t
	return payments.Recorded{Payment: s.p, Sequence: 1}, nil
}

// takenStore has a payment whose PaymentIntent a person has given to another one.
type takenStore struct{ Store }

func (takenStore) Evidence(context.Context, string, payments.ID, func(payments.Payment) (payments.Transition, error)) (payments.Recorded, error) {
	return payments.Recorded{}, payments.ErrTaken
}

// TestWhatAPersonHasGivenAwayDisagrees: it is counted for a person to look at, and the rewind goes on.
func TestWhatAPersonHasGivenAwayDisagrees(t *testing.T) {
	t.Parallel()
	r := Runner{Config: Config{Clock: still{}, Store: takenStore{}}}
	if disagrees, changed, err := r.settled(t.Context(), payments.Payment{}, payments.Observation{}, correctEnded); err != nil || changed || !strings.Contains(disagrees, payments.ReasonTaken) {
		t.Errorf("%q, changed %t, %v", disagrees, changed, err)
	}
}

// TestUnread: a trouble of Stripe's, or of ours, is tried again; what lies in one payment alone holds nobody up.
func TestUnread(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		o     payments.Observation
		again bool
	}{
		"read":            {t.Context(), payments.Observation{Kind: payments.ObservedObject}, false},
		"not asked":       {t.Context(), payments.Observation{}, false},
		"this one alone":  {t.Context(), payments.Observation{Kind: payments.ObservedNoRecords}, false},
		"in trouble":      {t.Context(), payments.Observation{Kind: payments.ObservedNoRecords, Trouble: true}, true},
		"too fast":        {t.Context(), payments.Observation{Kind: payments.ObservedNoRecords, HTTPStatus: 429}, true},
		"refused":         {t.Context(), payments.Observation{Kind: payments.ObservedNoRecords, HTTPStatus: 403}, true},
		"out of time":     {over, payments.Observation{Kind: payments.ObservedNoRecords}, true},
		"out of time now": {over, payments.Observation{Kind: payments.ObservedObject}, true},
	} {
		err := unread(c.ctx, payments.Payment{}, c.o)
		if (err != nil) != c.again || err != nil && !payments.Retryable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
