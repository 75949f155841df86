package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// troubleEvery is the shortest time between two lines about the same trouble: when Stripe is away every payment in flight has it.
const troubleEvery = 30 * time.Second

// trouble tells the log what keeps payments from their outcome: at once when it begins, and then a line now and then with a count.
type trouble struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told map[string]time.Time
	held map[string]int // times since the last line
}

func newTrouble(log *slog.Logger, now func() time.Time) *trouble {
	return &trouble{log: log, now: now, told: map[string]time.Time{}, held: map[string]int{}}
}

// observed is told of every answer of Stripe. Outcomes of single payments, such as declines, are no trouble.
func (t *trouble) observed(p payments.Payment, o payments.Observation) {
	level, text := slog.LevelWarn, ""
	switch o.Kind {
	case payments.ObservedUnauthorized:
		level, text = slog.LevelError, "Stripe refuses our key; payments wait until it is accepted: check ONCEPAY_STRIPE_KEY, or the tenant's own key or connected account"
	case payments.ObservedForeignAccount:
		level, text = slog.LevelError, "payments of another Stripe account or mode wait: connect the account that they began with"
	case payments.ObservedNotSent:
		text = "Stripe cannot be reached; payments are tried again"
	case payments.ObservedUnclear:
		text = "requests to Stripe had no definite answer; they are looked up"
	case payments.ObservedNoRecords:
		text = "Stripe's records could not be read; payments in doubt stay unknown until they are"
	case payments.ObservedRateLimited, payments.ObservedLocked:
		text = "Stripe limits our calls; payments are tried again"
	default:
		return
	}
	t.tell(level, text, "payment", p.ID.String(), "tenant", p.TenantID, "detail", o.Detail, "request", o.RequestID)
}

// settled is told of the end of every claim.
func (t *trouble) settled(s payments.Settlement) {
	if p := s.Recorded.Payment; s.Err == nil && p.Status == payments.StatusStalled {
		t.tell(slog.LevelError, "payments were given up after ONCEPAY_MAX_TRIES tries, nothing of them was sent; see oncepay dlq list",
			"payment", p.ID.String(), "tenant", p.TenantID, "reason", p.Reason)
	}
}

// tell writes a line, unless one of the same text was written a moment ago; about is an example.
func (t *trouble) tell(level slog.Level, text string, about ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[text]++
	now := t.now()
	if last, told := t.told[text]; told && now.Sub(last) < troubleEvery {
		return
	}
	t.log.Log(context.Background(), level, text, append([]any{"times", t.held[text]}, about...)...)
	t.told[text], t.held[text] = now, 0
}
