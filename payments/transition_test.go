package payments

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	b := BackoffDefault
	rnd := rand.New(rand.NewPCG(7, 7)).Int64N
	for step := 1; step <= 80; step++ {
		ceiling := 5 * time.Minute
		if step <= 10 { // 0.5 s doubled nine times is 256 s
			ceiling = min(ceiling, 500*time.Millisecond<<(step-1))
		}
		longest := time.Duration(0)
		for range 200 {
			wait := b.After(Delay{Step: step}, rnd)
			if wait < 0 || wait > ceiling {
				t.Fatalf("step %d: %v, at most %v", step, wait, ceiling)
			}
			longest = max(longest, wait)
			if soon := b.After(Delay{Step: step, Soon: true}, rnd); soon < 0 || soon > min(ceiling, 2*time.Second) {
				t.Fatalf("step %d soon: %v", step, soon)
			}
		}
		if longest < ceiling/2 { // 200 draws: the chance of that is 2^-200
			t.Errorf("step %d: the longest of 200 waits is %v of %v: the jitter is not full", step, longest, ceiling)
		}
	}
}

func TestBackoffSpecialCases(t *testing.T) {
	t.Parallel()
	b := BackoffDefault
	most := func(n int64) int64 { return n - 1 }
	least := func(int64) int64 { return 0 }
	for name, c := range map[string]struct {
		d    Delay
		rnd  func(int64) int64
		want time.Duration
	}{
		"as soon as may be":          {Delay{}, most, 0},
		"negative step":              {Delay{Step: -5}, most, 0},
		"at least":                   {Delay{AtLeast: time.Hour}, most, time.Hour},
		"at least with a step":       {Delay{AtLeast: time.Second, Step: 1}, most, time.Second},
		"at least below the step":    {Delay{AtLeast: time.Millisecond, Step: 1}, most, 500 * time.Millisecond},
		"negative at least":          {Delay{AtLeast: -time.Hour, Step: 1}, least, 0},
		"first step at most":         {Delay{Step: 1}, most, 500 * time.Millisecond},
		"long at least":              {Delay{Long: true}, least, 150 * time.Second},
		"long at most":               {Delay{Long: true}, most, 5 * time.Minute},
		"step a million":             {Delay{Step: 1_000_000}, most, 5 * time.Minute},
		"step a million soon":        {Delay{Step: 1_000_000, Soon: true}, most, 2 * time.Second},
		"the largest step there is":  {Delay{Step: math.MaxInt}, most, 5 * time.Minute},
		"long wins over step":        {Delay{Step: 1, Long: true}, most, 5 * time.Minute},
		"long wins over soon":        {Delay{Step: 1, Long: true, Soon: true}, least, 150 * time.Second},
		"at least is above the long": {Delay{AtLeast: time.Hour, Long: true}, most, time.Hour},
	} {
		if got := b.After(c.d, c.rnd); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := b.After(Delay{Step: 1}, nil); got < 0 || got > 500*time.Millisecond {
		t.Errorf("with the runtime's randomness: %v", got)
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := Backoff{
			First:   time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "first")),
			Max:     time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(rt, "max")),
			SoonMax: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(rt, "soon")),
		}
		d := Delay{Step: rapid.IntRange(0, 100).Draw(rt, "step"), Soon: rapid.Bool().Draw(rt, "is soon"), Long: rapid.Bool().Draw(rt, "is long")}
		got := b.After(d, func(n int64) int64 {
			if n <= 0 {
				rt.Fatalf("asked for a random number below %d", n)
			}
			return n - 1
		})
		if got < 0 || got > b.Max {
			rt.Fatalf("%+v of %+v: %v", d, b, got)
		}
	})
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	p := Payment{Status: StatusUnknown, Reason: ReasonLookingUp}
	quiet := Transition{Status: StatusUnknown, Reason: ReasonLookingUp, InDoubt: true, Rounds: 9, AbsentAt: testNow, Delay: Delay{Step: 9}}
	if !quiet.Quiet(p) {
		t.Error("the same status for the same reason is news")
	}
	for name, change := range map[string]func(*Transition){
		"status":      func(t *Transition) { t.Status = StatusWaiting },
		"reason":      func(t *Transition) { t.Reason = ReasonNoAnswer },
		"try":         func(t *Transition) { t.CountTry = true },
		"object":      func(t *Transition) { t.Object = &PaymentIntent{} },
		"dead letter": func(t *Transition) { t.DeadLetter = ReasonAttemptsExhausted },
	} {
		loud := quiet
		change(&loud)
		if loud.Quiet(p) {
			t.Errorf("another %s is no news", name)
		}
	}
}
