package dev

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// Proof is the end of a demo: what was asked for, what happened, and whether each was charged once.
type Proof struct {
	Intents             int            `json:"intents"`
	MessagesPublished   int            `json:"messages_published"`
	DuplicatesPublished int            `json:"duplicates_published"`
	Payments            int            `json:"payments"`
	Outcomes            map[string]int `json:"outcomes"`
	StripeRequests      int            `json:"stripe_requests"`
	StripeRepeats       int            `json:"stripe_repeats"`
	StripeCharges       int            `json:"stripe_charges"`
	DoubleCharges       int            `json:"double_charges"`
	Unattributed        int            `json:"unattributed"`
	Lost                int            `json:"lost"`
	DeadLetters         int            `json:"dead_letters"`
	FaultsInjected      int            `json:"faults_injected"`
	WorkersKilled       int            `json:"workers_killed"`
	DurationS           float64        `json:"duration_s"`
	PaymentsPerS        float64        `json:"payments_per_s"`
	E2EP50MS            float64        `json:"e2e_p50_ms"`
	E2EP99MS            float64        `json:"e2e_p99_ms"`
	// Holds: the oracle found nothing wrong, no ticket contradicts its payment, and every process did its part.
	Holds    bool     `json:"holds"`
	Findings []string `json:"findings"`
	Seed     uint64   `json:"seed"`
}

// prove holds the producers' list against Stripe's ledger, the payments, the dead letters and the events.
func (d *demo) prove(ctx context.Context) (*Proof, error) {
	run := oracle.Run{Intents: d.work.intents}
	for i := range run.Intents {
		_, run.Intents[i].Acknowledged = d.firstAck[i]
	}
	for _, c := range d.stack.sim.Ledger().Charges {
		run.Charges = append(run.Charges, oracle.Charge{ID: c.ID, Money: oracle.Money{Amount: c.Amount, Currency: c.Currency, Customer: c.Customer}})
	}
	summary := d.stack.sim.Summary()
	p := &Proof{
		Intents: d.options.Intents, MessagesPublished: int(d.sent.Load()), DuplicatesPublished: int(d.repeats.Load()), Outcomes: map[string]int{},
		StripeRequests: summary.Requests, StripeRepeats: summary.Repeats, StripeCharges: summary.Charges, FaultsInjected: summary.FaultsInjected,
		WorkersKilled: d.killed, Seed: d.options.Seed, DurationS: round(d.endedAt.Sub(d.startedAt).Seconds()),
	}
	if err := readPayments(ctx, d.store, &run); err != nil {
		return nil, err
	}
	letters, err := readLetters(ctx, d.store, &run)
	if err != nil {
		return nil, err
	}
	p.Payments, p.DeadLetters = len(run.Payments), len(letters)
	for _, pay := range run.Payments {
		p.Outcomes[string(pay.Status)]++
	}
	subjects, _ := d.settings.Streams()
	outcomes, _, err := readEvents(ctx, d.js, subjects, &run)
	if err != nil {
		return nil, err
	}
	p.latencies(d, outcomes)
	p.PaymentsPerS = round(float64(p.Payments) / p.DurationS)
	violations, err := d.store.TicketViolations(ctx)
	if err != nil {
		return nil, err
	}
	v := oracle.Judge(run)
	p.DoubleCharges, p.Unattributed, p.Lost, p.Findings = v.DoubleCharges, v.Unattributed, v.Lost, v.Findings
	for _, broken := range violations {
		p.Findings = append(p.Findings, fmt.Sprintf("ticket and status disagree: %+v", broken))
	}
	p.Holds = v.Good() && len(violations) == 0 && p.Payments == p.Intents
	if p.Findings == nil {
		p.Findings = []string{}
	}
	return p, nil
}

// latencies are from an intent's first PubAck to its recorded outcome.
func (p *Proof) latencies(d *demo, outcomes map[string]time.Time) {
	var waits []float64
	for i, first := range d.firstAck {
		id := payments.NewID(d.work.intents[i].TenantID, d.work.intents[i].Key).String()
		if at, ok := outcomes[id]; ok {
			waits = append(waits, max(0, float64(at.Sub(first).Microseconds())/1000))
		}
	}
	p.E2EP50MS, p.E2EP99MS = round(percentile(waits, 0.50)), round(percentile(waits, 0.99))
}

// percentile is the nearest-rank percentile; 0 without values.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, max(0, int(math.Ceil(q*float64(len(values))))-1))]
}

func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*10) / 10
}

// lines is the proof in words.
func (p *Proof) lines() []string {
	verdict := []string{"PROVED: every intent was charged once or has its visible refusal;", "        nothing was charged twice, and nothing is lost."}
	if !p.Holds {
		verdict = []string{"NOT PROVED: see the findings above.", "            oncepay-dev demo --seed " + strconv.FormatUint(p.Seed, 10) + " draws the same again"}
		if payments.SabotageBuild {
			verdict[1] += ", from a build with -tags sabotage"
		}
		verdict[1] += "."
	}
	lines := []string{
		"",
		fmt.Sprintf("  asked for       %6d intents in %d messages (%d of them duplicates)", p.Intents, p.MessagesPublished, p.DuplicatesPublished),
		fmt.Sprintf("  stored          %6d payments: %s", p.Payments, counts(p.Outcomes)),
		fmt.Sprintf("  dead letters    %6d (conflicts under one key, malformed messages)", p.DeadLetters),
		fmt.Sprintf("  Stripe saw      %6d requests, %d repeats of a key; %d faults injected", p.StripeRequests, p.StripeRepeats, p.FaultsInjected),
		fmt.Sprintf("  Stripe charged  %6d", p.StripeCharges),
		fmt.Sprintf("  workers killed  %6d with SIGKILL", p.WorkersKilled),
		fmt.Sprintf("  took            %6.1f s, %.0f payments/s; to outcome p50 %.0f ms, p99 %.0f ms", p.DurationS, p.PaymentsPerS, p.E2EP50MS, p.E2EP99MS),
		"",
		fmt.Sprintf("  double charges  %6d", p.DoubleCharges),
		fmt.Sprintf("  unattributed    %6d charges that nobody asked for", p.Unattributed),
		fmt.Sprintf("  lost            %6d acknowledged intents", p.Lost),
		"",
	}
	for _, f := range p.Findings {
		lines = append(lines, "  ! "+f)
	}
	return append(lines, verdict...)
}

func counts(m map[string]int) string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	text := ""
	for i, name := range names {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d %s", m[name], name)
	}
	return text
}
