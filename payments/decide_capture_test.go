package payments

import (
	"testing"
	"time"
)

// TestDeclinedCaptureInDoubtEnds: a decline that Stripe repeats under the key of a capture in doubt is no outcome for as long as the earlier capture may be
// executed, and one as soon as it cannot be any more and the money is still held.
func TestDeclinedCaptureInDoubtEnds(t *testing.T) {
	t.Parallel()
	w := newTill(KindCapture, StatusRequiresCapture)
	p, s := w.row, FollowUpState{Target: w.charge}
	p.Status, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = StatusUnknown, true, testNow, testNow
	declined := Observation{Kind: ObservedDecline, Account: testAccount, Failure: &Failure{Code: "card_declined"}}
	first, err := DecideFollowUp(p, s, ActionCapture, declined, testNow, Policy{TriesMax: 3})
	if err != nil || first.Status != StatusUnknown {
		t.Fatalf("%+v %v", first, err)
	}
	p.Reason, p.Failure, p.Rounds = first.Reason, first.Failure, first.Rounds
	held := Observation{Kind: ObservedObject, Account: testAccount, Object: &w.pi}
	for after, want := range map[time.Duration]Status{time.Hour: "", AbsenceAfter: StatusRejected} {
		got, err := DecideFollowUp(p, s, ActionRetrieve, held, testNow.Add(after), Policy{TriesMax: 3})
		if err != nil || got.Status != want || got.ThenSend != (want == "") {
			t.Errorf("after %s: %q, sent again %t, %v; want %q", after, got.Status, got.ThenSend, err, want)
		}
	}
}
