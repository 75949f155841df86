package payments

import "testing"

func TestHealth(t *testing.T) {
	t.Parallel()
	of := func(k ObservationKind) Observation { return Observation{Kind: k} }
	reading := func(status int, trouble bool) Observation {
		return Observation{Kind: ObservedNoRecords, HTTPStatus: status, Trouble: trouble}
	}
	cases := []struct {
		o    Observation
		want Health
	}{
		{of(ObservedAnswer), HealthGood},
		{of(ObservedDecline), HealthGood},
		{of(ObservedInvalid), HealthGood},
		{of(ObservedKeyConflict), HealthGood},
		{of(ObservedInUse), HealthGood},
		{of(ObservedLocked), HealthGood},
		{of(ObservedRateLimited), HealthGood},
		{of(ObservedRecords), HealthGood},
		{of(ObservedObject), HealthGood},
		{of(ObservedNotSent), HealthBad},
		{of(ObservedUnclear), HealthBad},
		{Observation{Kind: ObservedUnclear, HTTPStatus: 503}, HealthBad},
		{of(ObservedUnauthorized), HealthRefused},
		{of(ObservedHeldBack), HealthNothing},
		{of(ObservedAccountUnknown), HealthNothing},
		{of(ObservedForeignAccount), HealthNothing},
		{of(ObservedNoRecords), HealthNothing},
		{reading(0, true), HealthBad},
		{reading(200, true), HealthBad},
		{reading(200, false), HealthNothing}, // one payment's PaymentIntent could not be read, or its ticket was lost
		{reading(500, true), HealthBad},
		{reading(401, false), HealthRefused},
		{reading(403, false), HealthRefused},
		{reading(404, false), HealthGood},
		{reading(429, false), HealthGood},
	}
	covered := map[ObservationKind]bool{}
	for _, c := range cases {
		covered[c.o.Kind] = true
		if got := c.o.Health(); got != c.want {
			t.Errorf("%s, status %d, trouble %v: health %q, want %q", c.o.Kind, c.o.HTTPStatus, c.o.Trouble, got, c.want)
		}
	}
	for _, k := range ObservationKinds() {
		if !covered[k] {
			t.Errorf("no case for %s", k)
		}
	}
	if h := of("something new").Health(); h != HealthNothing {
		t.Errorf("a kind that nobody knows says %q", h)
	}
}

func TestAdviceChangesTimingAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d      Delay
		advice RetryAdvice
		want   Delay
	}{
		{Delay{Step: 1}, RetryNotSaid, Delay{Step: 1}},
		{Delay{Step: 1, Soon: true}, RetryNotSaid, Delay{Step: 1, Soon: true}},
		{Delay{Step: 1, AtLeast: 7}, RetrySoon, Delay{Step: 1, Soon: true, AtLeast: 7}},
		{Delay{Step: soonRounds + 1}, RetrySoon, Delay{Step: soonRounds + 1}}, // it has been soon often enough
		{Delay{Step: 2, Soon: true}, RetryLater, Delay{Step: 2}},
		{Delay{Long: true}, RetrySoon, Delay{Long: true}},
		{Delay{}, RetrySoon, Delay{}},
		{Delay{Soon: true}, RetryLater, Delay{Soon: true}},
	} {
		if got := c.d.Advised(c.advice); got != c.want {
			t.Errorf("%+v advised %q is %+v, want %+v", c.d, c.advice, got, c.want)
		}
	}
}

// A right that charges do not need says nothing of them, whatever was refused for the want of it.
func TestHealthWithoutARight(t *testing.T) {
	t.Parallel()
	for _, k := range []ObservationKind{ObservedUnauthorized, ObservedNoRecords} {
		if h := (Observation{Kind: k, HTTPStatus: 403, LacksRight: true}).Health(); h != HealthNothing {
			t.Errorf("%s: %q", k, h)
		}
	}
}
