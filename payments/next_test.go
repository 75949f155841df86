package payments

import (
	"fmt"
	"testing"
	"time"
)

var testNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestNextExhaustively(t *testing.T) {
	t.Parallel()
	for _, status := range append(Statuses(), "nonsense") {
		for _, inDoubt := range []bool{false, true} {
			for _, sent := range []time.Time{{}, testNow.Add(-time.Minute), testNow.Add(-30 * time.Hour)} {
				for _, expires := range []time.Time{{}, testNow.Add(time.Minute), testNow, testNow.Add(-time.Minute)} {
					for _, pi := range []string{"", "pi_1"} {
						p := Payment{Status: status, InDoubt: inDoubt, FirstSubmitAt: sent, LastSubmitAt: sent, StripePaymentIntent: pi}
						p.ExpiresAt = expires
						expired := !expires.IsZero() && !expires.After(testNow)
						var want Action
						switch status {
						case StatusReceived, StatusWaiting:
							want = ActionSend
							if expired {
								want = ActionExpire
							}
							if inDoubt {
								want = ActionLook
							}
						case StatusUnknown:
							want = ActionLook
						case StatusPending:
							want = ActionLook
							if pi != "" {
								want = ActionRetrieve
							}
						default:
							want = ActionRest
						}
						if got := Next(p, testNow); got != want {
							t.Errorf("%s, in doubt %v, sent %v, expires %v, PaymentIntent %q: %s, want %s", status, inDoubt, sent, expires, pi, got, want)
						}
					}
				}
			}
		}
	}
}

// What is declined on session is canceled, and read after every cancel that showed nothing; a send in doubt comes first.
func TestNextCancels(t *testing.T) {
	t.Parallel()
	for _, expires := range []time.Time{{}, testNow.Add(-time.Hour)} {
		for rounds, want := range []Action{ActionCancel, ActionRetrieve, ActionCancel, ActionRetrieve} {
			p := Payment{Intent: Intent{ExpiresAt: expires}, Status: StatusWaiting, Reason: ReasonCancelling, StripePaymentIntent: "pi_1", Rounds: rounds, FirstSubmitAt: testNow}
			if got := Next(p, testNow); got != want {
				t.Errorf("round %d, expires %v: %s, want %s", rounds, expires, got, want)
			}
			p.InDoubt = true
			if got := Next(p, testNow); got != ActionLook {
				t.Errorf("round %d in doubt: %s", rounds, got)
			}
		}
	}
}

func TestMaySend(t *testing.T) {
	t.Parallel()
	const window = 23 * time.Hour // Stripe may forget a key after 24
	for _, c := range []struct {
		start, expires time.Time
		want           bool
	}{
		{testNow, time.Time{}, true},
		{testNow.Add(-window + 1), time.Time{}, true},
		{testNow.Add(-window), time.Time{}, false},
		{testNow.Add(-48 * time.Hour), time.Time{}, false},
		{testNow, testNow.Add(1), true},
		{testNow, testNow, false},
		{testNow, testNow.Add(-1), false},
		{testNow.Add(-48 * time.Hour), testNow.Add(-1), false},
	} {
		p := Payment{Intent: Intent{ExpiresAt: c.expires}}
		if got := MaySend(p, c.start, testNow); got != c.want {
			t.Errorf("window from %v, expires %v: %v", c.start, c.expires, got)
		}
	}
}

func TestWindowStart(t *testing.T) {
	t.Parallel()
	c := Claim{Payment: Payment{FirstSubmitAt: testNow.Add(-time.Hour)}, ClaimedAt: testNow}
	if got := c.WindowStart(); !got.Equal(testNow) {
		t.Errorf("nothing is in doubt and the window began at %v", got)
	}
	c.Payment.InDoubt = true
	if got := c.WindowStart(); !got.Equal(testNow.Add(-time.Hour)) {
		t.Errorf("a send is in doubt and the window began at %v", got)
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	for _, sent := range []time.Time{{}, testNow} {
		got := Expire(Payment{FirstSubmitAt: sent})
		if got.Status != StatusExpired || got.Reason != ReasonExpired || got.InDoubt || got.ClearSubmit != sent.IsZero() {
			t.Errorf("sent %v: %+v", sent, got)
		}
	}
	for _, s := range []Status{StatusReceived, StatusWaiting} {
		if !s.CanMove(StatusExpired) {
			t.Errorf("%s cannot expire", s)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if LaneInteractive.String() != "interactive" || LaneBulk.String() != "bulk" {
		t.Error("the lanes' names changed")
	}
	token := Token{0xde, 0xad, 0xbe, 0xef, 1}
	if token.String() != "deadbeef" || token.IsZero() || !(Token{}).IsZero() || fmt.Sprint(token) != "deadbeef" {
		t.Error("a token shows more or less than its first four bytes")
	}
}

// TestClockThatWasWrong: times that were written by a clock ahead of ours. Nothing is sent while nobody knows when the first send was, and the
// wait for a second listing does not last until a day that is far away.
func TestClockThatWasWrong(t *testing.T) {
	t.Parallel()
	records := Observation{Kind: ObservedRecords, Account: testAccount}
	for ahead, want := range map[time.Duration]bool{4 * time.Minute: true, 6 * time.Minute: false, 30 * 24 * time.Hour: false} {
		first := testNow.Add(ahead)
		if got := MaySend(Payment{}, first, testNow); got != want {
			t.Errorf("a first send %s from now: may send %v", ahead, got)
		}
		p := Payment{Status: StatusUnknown, InDoubt: true, FirstSubmitAt: first, LastSubmitAt: first}
		if got, err := Decide(p, records, testNow, Policy{TriesMax: 3}); err != nil || got.ThenSend != want || !want && got.Status != StatusUnknown {
			t.Errorf("a first send %s from now: %+v, %v", ahead, got, err)
		}
	}
	sent := testNow.Add(-48 * time.Hour)
	p := Payment{Status: StatusUnknown, InDoubt: true, FirstSubmitAt: sent, LastSubmitAt: sent, AbsentAt: testNow.Add(30 * 24 * time.Hour)}
	got, err := Decide(p, records, testNow, Policy{TriesMax: 3})
	if err != nil || got.Status != StatusUnknown || !got.AbsentAt.Equal(testNow) || got.Delay.AtLeast != AbsenceApart {
		t.Errorf("a first listing that is still to come: %+v, %v", got, err)
	}
}

// TestAbsenceOfAKnownPaymentIntent: what Stripe has named before is not absent because it is not listed, so the payment does not expire, and is
// not taken for one that was never sent.
func TestAbsenceOfAKnownPaymentIntent(t *testing.T) {
	t.Parallel()
	sent := testNow.Add(-48 * time.Hour)
	p := Payment{
		Intent: Intent{ExpiresAt: testNow.Add(-time.Hour)}, Status: StatusUnknown, InDoubt: true, FirstSubmitAt: sent, LastSubmitAt: sent,
		AbsentAt: testNow.Add(-2 * time.Hour), StripePaymentIntent: "pi_1",
	}
	got, err := Decide(p, Observation{Kind: ObservedRecords, Account: testAccount}, testNow, Policy{TriesMax: 3})
	if err != nil || got.Status != StatusNeedsReview || got.Reason != ReasonMissingAtStripe || !got.InDoubt || got.ClearSubmit {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPendingAtAnotherAccount: what can no longer be asked for says so, and says that it is being processed once it can be asked for again.
func TestPendingAtAnotherAccount(t *testing.T) {
	t.Parallel()
	p := Payment{Status: StatusPending, Reason: ReasonProcessing, StripePaymentIntent: "pi_1", StripeAccount: testAccount.ID, Livemode: testAccount.Livemode}
	got, err := Decide(p, Observation{Kind: ObservedNoRecords, Account: Account{ID: "acct_2", Livemode: true}}, testNow, Policy{TriesMax: 3})
	if err != nil || got.Status != StatusPending || got.Reason != ReasonAccountChanged || got.Quiet(p) || !got.Delay.Long {
		t.Errorf("%+v, %v", got, err)
	}
	p.Reason = ReasonAccountChanged
	object := &PaymentIntent{ID: "pi_1", Status: StripeProcessing, Livemode: testAccount.Livemode}
	got, err = Decide(p, Observation{Kind: ObservedObject, Account: testAccount, Object: object}, testNow, Policy{TriesMax: 3})
	if err != nil || got.Status != StatusPending || got.Reason != ReasonProcessing || got.Quiet(p) {
		t.Errorf("%+v, %v", got, err)
	}
}
