package dev

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// ChaosProof is the end of a run of chaos.
type ChaosProof struct {
	Seed    uint64 `json:"seed"`
	Command string `json:"command"` // does the same again

	Intents        int            `json:"intents"`
	Acknowledged   int            `json:"acknowledged"`
	Messages       int            `json:"messages_published"` // PubAcks
	Requests       int            `json:"requests_accepted"`  // 2xx
	Repeats        int            `json:"repeats"`
	Refused        int            `json:"requests_refused"`
	Unheard        int            `json:"unheard"` // attempts of which no answer came
	Payments       int            `json:"payments"`
	Outcomes       map[string]int `json:"outcomes"`
	FollowUps      int            `json:"follow_ups"`        // captures, cancels and refunds that were asked for
	FollowUpsKept  int            `json:"follow_ups_stored"` // of them; what was refused is not
	Operations     map[string]int `json:"operations"`        // of these, by kind and status
	StripeRequests int            `json:"stripe_requests"`
	StripeRepeats  int            `json:"stripe_repeats"`
	StripeCharges  int            `json:"stripe_charges"`
	StripeRefunds  int            `json:"stripe_refunds"`
	FaultsInjected int            `json:"faults_injected"` // by Stripe
	Broken         map[string]int `json:"broken"`          // what was done to processes and links
	LinksCut       int            `json:"connections_cut"`
	DoubleCharges  int            `json:"double_charges"`
	DoubleRefunds  int            `json:"double_refunds"`
	Unattributed   int            `json:"unattributed"`
	Lost           int            `json:"lost"`
	DeadLetters    int            `json:"dead_letters"`
	Replays        int            `json:"replays"`
	Replayed       map[string]int `json:"replayed"`  // dead letters of all replays, by result
	GivenUp        int            `json:"given_up"`  // by workers that were killed, and settled once replayed
	HeldBack       int            `json:"held_back"` // pauses that operators were told of
	DurationS      float64        `json:"duration_s"`
	SettleS        float64        `json:"settle_s"`

	Holds    bool     `json:"holds"`
	Findings []string `json:"findings"`
	// Offender is one payment of the findings, Timeline what is known of it.
	Offender string   `json:"offender,omitempty"`
	Timeline []string `json:"timeline,omitempty"`
}

func (p *ChaosProof) find(format string, args ...any) {
	p.Findings = append(p.Findings, fmt.Sprintf(format, args...))
}

// proof counts what happened.
func (c *chaosRun) proof(e evidence, v oracle.Verdict) *ChaosProof {
	p := &ChaosProof{
		Seed: c.o.Seed, Command: c.o.command(), Intents: len(e.Intents), Acknowledged: len(c.book.acknowledged), Messages: c.book.messages,
		Requests: c.book.requests, Repeats: c.book.repeats, Refused: c.book.refused, Unheard: c.book.unheard, Payments: len(e.Payments), Outcomes: map[string]int{},
		StripeRequests: e.summary.Requests, StripeRepeats: e.summary.Repeats, StripeCharges: e.summary.Charges, FaultsInjected: e.summary.FaultsInjected,
		FollowUps: len(e.FollowUps), FollowUpsKept: len(e.Operations), Operations: e.operations(), StripeRefunds: len(e.Refunds), DoubleRefunds: v.DoubleRefunds,
		Broken: map[string]int{}, DoubleCharges: v.DoubleCharges, Unattributed: v.Unattributed, Lost: v.Lost, DeadLetters: len(e.letters),
		Replays: len(e.replays), Replayed: map[string]int{}, HeldBack: len(c.operated.spans),
		DurationS: round(c.took.Seconds()), SettleS: round(c.rested.Seconds()), Findings: []string{},
	}
	for _, pay := range e.Payments {
		p.Outcomes[string(pay.Status)]++
	}
	for _, r := range e.replays {
		for result, n := range r.Results {
			p.Replayed[string(result)] += n
		}
	}
	for _, event := range c.o.schedule() {
		p.Broken[string(event.Kind)]++
	}
	for _, list := range c.links {
		for _, l := range list {
			p.LinksCut += l.Faults()
		}
	}
	faulty := 0
	for _, r := range e.ledger.Requests { // the summary's count ends with each restart
		if r.Fault != "" {
			faulty++
		}
	}
	p.FaultsInjected = max(p.FaultsInjected, faulty)
	return p
}

var (
	paymentID = regexp.MustCompile(`pay_[0-9a-f]{32}`)
	chaosKey  = regexp.MustCompile(`(order-[0-9]{6}|batch-[0-9]{6}(::[0-9]+)?)`)
	chaosAsk  = regexp.MustCompile(`(?:capture|cancel|refund)-([0-9]{6})-[0-9]+`)
	chaosName = regexp.MustCompile(`cus_chaos([0-9]{6})`)
)

// offender is the first payment that the findings name, and what is known of it.
func (c *chaosRun) offender(ctx context.Context, e evidence, findings []string) (key string, lines []string) {
	for _, f := range findings {
		var i int
		name := chaosName.FindStringSubmatch(f)
		if name == nil {
			name = chaosAsk.FindStringSubmatch(f)
		}
		if name != nil {
			if _, err := fmt.Sscan(name[1], &i); err == nil && i < len(e.Intents) {
				key = e.Intents[i].Key
			}
		} else if id := paymentID.FindString(f); id != "" {
			at := slices.IndexFunc(e.Payments, func(p oracle.Payment) bool { return p.ID == id })
			if at >= 0 {
				key = e.Payments[at].Key
			}
		} else {
			key = chaosKey.FindString(f)
		}
		if key != "" {
			return key, c.story(ctx, e, key)
		}
	}
	return "", nil
}

// story tells all that is known of one payment, in the order of time.
func (c *chaosRun) story(ctx context.Context, e evidence, key string) (lines []string) {
	type line struct {
		at   int64
		text string
	}
	const clock = "15:04:05.000"
	var list []line
	id := payments.NewID(demoTenant, key)
	entries, err := c.store.Timeline(ctx, demoTenant, id)
	if err != nil {
		lines = append(lines, "its timeline: "+err.Error())
	}
	for _, t := range entries {
		list = append(list, line{t.At.UnixNano(), fmt.Sprintf("%s  payment   %d %s %s %s", t.At.Format(clock), t.Sequence, t.Type, t.Status, t.Reason)})
	}
	ours := map[string]bool{}
	for _, kind := range []payments.Kind{payments.KindCharge, payments.KindCancel} {
		ours[payments.StripeKey(c.settings.Namespace, kind, demoTenant, key)] = true
	}
	keys := map[string]bool{key: true}
	for _, f := range e.followUps {
		if f.PaymentID != id.String() {
			continue
		}
		ours[payments.StripeKey(c.settings.Namespace, f.Kind, demoTenant, f.IdempotencyKey)], keys[f.IdempotencyKey] = true, true
		entries, err := c.store.Timeline(ctx, demoTenant, f.ID)
		if err != nil {
			lines = append(lines, "the timeline of "+f.IdempotencyKey+": "+err.Error())
		}
		for _, t := range entries {
			list = append(list, line{t.At.UnixNano(), fmt.Sprintf("%s  %s  %d %s %s of %d: %s", t.At.Format(clock), f.IdempotencyKey, t.Sequence, t.Type, t.Status, f.Amount, t.Reason)})
		}
	}
	for _, r := range e.ledger.Requests {
		if ours[r.IdempotencyKey] {
			list = append(list, line{r.At.UnixNano(), fmt.Sprintf("%s  Stripe    %s %s: %d %s %s", r.At.Format(clock), r.Method, r.Path, r.Status, r.Fault, r.PaymentIntent)})
		}
	}
	for _, l := range e.letters {
		if keys[l.IdempotencyKey] {
			list = append(list, line{l.FirstSeen.UnixNano(), fmt.Sprintf("%s  letter    %s %s of %s %d", l.FirstSeen.Format(clock), l.ID, l.Reason, l.Origin.Stream, l.Origin.Sequence)})
			for _, i := range e.items[l.ID] {
				list = append(list, line{i.FinishedAt.UnixNano(), fmt.Sprintf("%s  replayed  %s in %s: %s", i.FinishedAt.Format(clock), l.ID, i.ReplayID, i.Result)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for _, l := range list {
		lines = append(lines, l.text)
	}
	if p, err := c.store.Find(ctx, demoTenant, id); err == nil {
		lines = append(lines, fmt.Sprintf("%s is %s %s, tries %d, Stripe %s", id, p.Status, p.Reason, p.Tries, p.StripePaymentIntent))
	}
	return lines
}

// Print shows the proof to a person.
func (p *ChaosProof) Print(w io.Writer) {
	lines := []string{
		"",
		fmt.Sprintf("  asked for       %6d payments, %d acknowledged", p.Intents, p.Acknowledged),
		fmt.Sprintf("  over NATS       %6d messages", p.Messages),
		fmt.Sprintf("  over HTTP       %6d requests accepted, %d refused", p.Requests, p.Refused),
		fmt.Sprintf("  repeated        %6d, and %d attempts went unheard", p.Repeats, p.Unheard),
		fmt.Sprintf("  stored          %6d payments: %s", p.Payments, counts(p.Outcomes)),
		fmt.Sprintf("  followed up     %6d captures, cancels and refunds, %d stored: %s", p.FollowUps, p.FollowUpsKept, counts(p.Operations)),
		fmt.Sprintf("  dead letters    %6d, %d of them given up and settled when replayed", p.DeadLetters, p.GivenUp),
		fmt.Sprintf("  operators       %6d replays (%s), %d pauses", p.Replays, counts(p.Replayed), p.HeldBack),
		fmt.Sprintf("  Stripe saw      %6d requests, %d repeats; %d faults injected", p.StripeRequests, p.StripeRepeats, p.FaultsInjected),
		fmt.Sprintf("  Stripe charged  %6d, and refunded %d", p.StripeCharges, p.StripeRefunds),
		fmt.Sprintf("  broken          %s", counts(p.Broken)),
		fmt.Sprintf("  cut             %6d connections", p.LinksCut),
		fmt.Sprintf("  took            %6.1f s, and %.1f s to come to rest", p.DurationS, p.SettleS),
		"",
		fmt.Sprintf("  double charges  %6d", p.DoubleCharges),
		fmt.Sprintf("  double refunds  %6d", p.DoubleRefunds),
		fmt.Sprintf("  unattributed    %6d charges or refunds that nobody asked for", p.Unattributed),
		fmt.Sprintf("  lost            %6d acknowledged payments, refunds or messages", p.Lost),
		"",
	}
	for _, f := range p.Findings {
		lines = append(lines, "  ! "+f)
	}
	if p.Offender != "" {
		lines = append(lines, "", "  "+p.Offender+":")
		for _, t := range p.Timeline {
			lines = append(lines, "    "+t)
		}
	}
	if p.Holds {
		lines = append(lines, "PROVED: every payment was charged once or has its visible refusal;", "        nothing was charged or refunded twice, and nothing is lost.")
	} else {
		lines = append(lines, "NOT PROVED: see the findings above. The same again:", "            "+p.Command)
	}
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}
