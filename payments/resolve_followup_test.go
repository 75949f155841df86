package payments

import (
	"slices"
	"strings"
	"testing"
)

var byJenny = Operation{Actor: "jenny", Reason: "seen in the dashboard"}

// TestResolveFollowUpsExhaustively: every kind in every status as everything that can be asked for.
func TestResolveFollowUpsExhaustively(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		for _, s := range Statuses() {
			for _, as := range resolutions[StatusNeedsReview] {
				for _, doubt := range []bool{false, true} {
					p := followUpHistories(kind)[0].p
					p.Status, p.InDoubt, p.Reason, p.Failure = s, doubt, ReasonDisagrees+": amount", nil
					d := Decision{As: as}
					if as == StatusSucceeded && kind == KindRefund {
						d.AmountRefunded = 100
					}
					tr, err := Resolve(p, d, byJenny, testNow)
					waits := s == StatusReceived || s == StatusWaiting
					want := waits && as == StatusCanceled && !doubt ||
						s == StatusNeedsReview && (as == StatusFailed || as == StatusCanceled || as == StatusUnknown || as == StatusSucceeded && kind == KindRefund)
					if (err == nil) != want {
						t.Errorf("%s, %s, in doubt %v, as %s: %v", kind, s, doubt, as, err)
					}
					switch {
					case err != nil:
						if ErrorCode(err) != CodeInvalid || s.Final() || strings.Contains(err.Error(), string(kind)) {
							break
						}
						t.Errorf("%s, %s as %s: %v does not say what it is about", kind, s, as, err)
					case tr.Status != as || !s.CanMove(as) || !strings.HasSuffix(tr.Reason, byJenny.Reason) || tr.Object != nil || tr.InDoubt != (as == StatusUnknown):
						t.Errorf("%s, %s as %s: %+v", kind, s, as, tr)
					case (tr.Target != nil) != (as == StatusSucceeded):
						t.Errorf("%s, %s as %s: what happens to its charge: %v", kind, s, as, tr.Target != nil)
					}
				}
			}
		}
	}
}

func TestRefundIsResolvedWithinWhatWasTaken(t *testing.T) {
	t.Parallel()
	p := followUpHistories(KindRefund)[0].p
	p.Status, p.Reason = StatusNeedsReview, ReasonSeveralRefunds
	tr, err := Resolve(p, Decision{As: StatusSucceeded}, byJenny, testNow)
	if err != nil {
		t.Fatal(err)
	}
	charge := chargeIn(StatusSucceeded)
	if to, err := tr.Target(charge); err != nil || to.Refunded != p.Amount || to.Status != StatusSucceeded {
		t.Errorf("%+v, %v", to, err)
	}
	charge.AmountRefunded = charge.AmountCaptured - p.Amount + 1
	if _, err := tr.Target(charge); ErrorCode(err) != CodeInvalid {
		t.Errorf("more than is left: %v", err)
	}
	for _, reason := range []string{ReasonAbsent, ReasonMissingAtStripe} {
		p.Reason = reason
		if _, err := Resolve(p, Decision{As: StatusSucceeded}, byJenny, testNow); err == nil {
			t.Errorf("%s, and it succeeded", reason)
		}
	}
	for _, d := range []Decision{{As: StatusFailed, PaymentIntent: "pi_1"}, {As: StatusFailed, AmountCaptured: 1}} {
		if _, err := Resolve(p, d, byJenny, testNow); err == nil || !strings.Contains(err.Error(), "is for payments alone") {
			t.Errorf("%+v: %v", d, err)
		}
	}
	p.Reason = ReasonDisagrees + ": amount" // ours is known to be wrong
	if _, err := Resolve(p, Decision{As: StatusSucceeded}, byJenny, testNow); err == nil || !strings.Contains(err.Error(), "amount_refunded: is required: Stripe's refund has another amount than 500") {
		t.Errorf("an amount that Stripe contradicts is taken: %v", err)
	}
	charge = chargeIn(StatusSucceeded)
	for _, reason := range []string{ReasonDisagrees + ": amount", ReasonSeveralRefunds, ReasonDisagrees + ": payment_intent", ReasonUnknownStatus} {
		p.Reason = reason
		tr, err := Resolve(p, Decision{As: StatusSucceeded, AmountRefunded: 300}, byJenny, testNow)
		if err != nil || tr.Reason != ReasonResolved+": 3.00 USD given back: "+byJenny.Reason {
			t.Fatalf("%s: %+v, %v", reason, tr, err)
		}
		if to, err := tr.Target(charge); err != nil || to.Refunded != 300 {
			t.Errorf("%s: %+v, %v", reason, to, err)
		}
		all := Decision{As: StatusSucceeded, AmountRefunded: charge.AmountCaptured}
		if tr, err = Resolve(p, all, byJenny, testNow); err != nil {
			t.Fatal(err)
		}
		if to, err := tr.Target(charge); err != nil || to.Refunded != charge.AmountCaptured {
			t.Errorf("%s, all: %+v, %v", reason, to, err)
		}
		all.AmountRefunded++
		if tr, err = Resolve(p, all, byJenny, testNow); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Target(charge); ErrorCode(err) != CodeInvalid {
			t.Errorf("%s, more than was taken: %v", reason, err)
		}
	}
	for _, d := range []Decision{{As: StatusFailed, AmountRefunded: 1}, {As: StatusUnknown, AmountRefunded: 1}, {As: StatusSucceeded, AmountRefunded: -1}} {
		if _, err := Resolve(p, d, byJenny, testNow); err == nil || !strings.Contains(err.Error(), "amount_refunded: ") {
			t.Errorf("%+v: %v", d, err)
		}
	}
	for _, other := range []Payment{{Intent: Intent{Kind: KindCapture}, Status: StatusNeedsReview}, {Intent: Intent{Kind: KindCharge}, Status: StatusNeedsReview, InDoubt: true}} {
		if _, err := Resolve(other, Decision{As: StatusFailed, AmountRefunded: 1}, byJenny, testNow); err == nil || !strings.Contains(err.Error(), "amount_refunded: is for refunds alone") {
			t.Errorf("%s: %v", other.Kind, err)
		}
	}
	p.Owned, p.NextAttemptAt = true, testNow.Add(1)
	if _, err := Resolve(p, Decision{As: StatusFailed}, byJenny, testNow); err == nil {
		t.Error("resolved while a worker is at it")
	}
}

// TestStalledFollowUps: the PaymentIntent that they name is their charge's, and says nothing of them.
func TestStalledFollowUps(t *testing.T) {
	t.Parallel()
	for _, kind := range followUpKinds {
		for _, doubt := range []bool{false, true} {
			p := followUpHistories(kind)[0].p
			p.Status, p.InDoubt = StatusStalled, doubt
			again, err := TakeUpAgain(p)
			want := StatusWaiting
			if doubt {
				want = StatusUnknown
			}
			if err != nil || again.Status != want || again.InDoubt != doubt || !again.ResetTries {
				t.Errorf("%s, in doubt %v: %+v, %v", kind, doubt, again, err)
			}
			gone, err := Discard(p)
			if (err == nil) == doubt || err == nil && gone.Status != StatusCanceled {
				t.Errorf("%s, in doubt %v: %+v, %v", kind, doubt, gone, err)
			}
		}
	}
}

// TestFollowUpPolicyIsWhole: every kind of observation stands in a table, every row and column meets something, and every reason is explained.
func TestFollowUpPolicyIsWhole(t *testing.T) {
	t.Parallel()
	var explained []string
	for _, r := range reasonRules {
		explained = append(explained, r.reason)
	}
	kinds := map[ObservationKind]bool{}
	for _, f := range followUpPolicies() {
		met := map[string]int{}
		for _, c := range f.rows() {
			var o Observation
			c.show(&o)
			kinds[o.Kind] = true
			for _, h := range f.histories {
				cell := followUpCell(f.kind, c, h)
				if cell == "" {
					continue
				}
				met[c.name]++
				met[h.name]++
				words := strings.Fields(cell)
				switch {
				case !strings.HasPrefix(cell, "`") && !strings.HasPrefix(cell, "send "):
					t.Errorf("%s, %s, %s: %s", f.kind, c.name, h.name, cell)
				case strings.HasPrefix(cell, "`") && len(words) > 1 && words[1] != "→":
					if reason := strings.Trim(words[1], ";:"); reason != "card_declined" && !slices.Contains(explained, reason) {
						t.Errorf("%s, %s, %s: the reason %s is not explained", f.kind, c.name, h.name, reason)
					}
				}
			}
			if met[c.name] == 0 {
				t.Errorf("%s: %s meets no history", f.kind, c.name)
			}
		}
		for _, h := range f.histories {
			if met[h.name] == 0 {
				t.Errorf("%s: %s meets no class", f.kind, h.name)
			}
		}
	}
	for _, k := range FollowUpObservationKinds() {
		if !kinds[k] && k != ObservedLocked && k != ObservedAccountUnknown { // each stands with another like it
			t.Errorf("%s is in no class", k)
		}
	}
}
