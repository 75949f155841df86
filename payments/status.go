package payments

import (
	"slices"
	"strings"
)

// Status is where a payment stands; the words are CONTRACT's.
type Status string

// All statuses. StatusProcessing is shown, never stored.
const (
	StatusReceived        Status = "received"
	StatusProcessing      Status = "processing"
	StatusWaiting         Status = "waiting"
	StatusUnknown         Status = "unknown"
	StatusPending         Status = "pending"
	StatusRequiresCapture Status = "requires_capture"
	StatusRequiresAction  Status = "requires_action"
	StatusNeedsReview     Status = "needs_review"
	StatusStalled         Status = "stalled"
	StatusSucceeded       Status = "succeeded"
	StatusFailed          Status = "failed"
	StatusRejected        Status = "rejected"
	StatusExpired         Status = "expired"
	StatusCanceled        Status = "canceled"
)

// statusRule is one row of the state machine.
type statusRule struct {
	status Status
	// ticket: exactly one ticket stands for a payment in this status (invariant I2).
	ticket bool
	final  bool
	// next are the statuses that a transition may lead to. A final status may still move to succeeded by evidence from Stripe, as a flagged
	// correction; that is not listed.
	next    []Status
	meaning string
}

// statusRules is the one table of what a status means; docs/STATE_MACHINE.md is generated from it.
var statusRules = []statusRule{
	{StatusReceived, true, false, outcomes(StatusWaiting, StatusUnknown, StatusPending, StatusRejected, StatusStalled),
		"stored; not yet sent to Stripe, or somebody is sending it now (shown as `processing`)"},
	{StatusWaiting, true, false, outcomes(StatusWaiting, StatusUnknown, StatusPending, StatusRejected, StatusStalled),
		"nothing was executed and it will be tried again at `next_attempt_at`, for the stated reason; or, with the reason `cancelling_declined`, it was declined on session and its PaymentIntent is being canceled"},
	{StatusUnknown, true, false, outcomes(StatusWaiting, StatusUnknown, StatusPending, StatusRejected),
		"a send had no definite answer: it may have been charged, and is being looked up"},
	{StatusPending, true, false, outcomes(StatusWaiting, StatusPending, StatusUnknown),
		"Stripe says processing; settled by Stripe's word, hours or days later"},
	{StatusRequiresCapture, false, false, []Status{StatusSucceeded, StatusCanceled, StatusFailed, StatusUnknown, StatusNeedsReview},
		"authorised; the money is held, not taken"},
	{StatusRequiresAction, false, false, []Status{StatusSucceeded, StatusRequiresCapture, StatusPending, StatusFailed, StatusCanceled, StatusUnknown, StatusNeedsReview},
		"the customer must authenticate"},
	{StatusNeedsReview, false, false, outcomes(StatusWaiting, StatusUnknown, StatusPending, StatusRejected),
		"what Stripe shows does not agree with what was asked: a person decides"},
	{StatusStalled, false, false, outcomes(StatusWaiting, StatusUnknown, StatusPending, StatusRejected),
		"given up without a send that could have charged; it has a dead letter, and a replay takes it up again"},
	{StatusSucceeded, false, true, nil, "charged once"},
	{StatusFailed, false, true, nil, "declined"},
	{StatusRejected, false, true, nil, "refused by Stripe as invalid, or over a cap; nothing was charged"},
	{StatusExpired, false, true, nil, "not charged before its `expires_at`"},
	{StatusCanceled, false, true, nil, "canceled; nothing was taken"},
}

// outcomes is what any owner may find, and what else this status may lead to.
func outcomes(more ...Status) []Status {
	return append(more, StatusSucceeded, StatusRequiresCapture, StatusRequiresAction, StatusFailed, StatusExpired, StatusCanceled, StatusNeedsReview)
}

// Statuses lists all stored statuses in the order of the table.
func Statuses() []Status {
	all := make([]Status, len(statusRules))
	for i, r := range statusRules {
		all[i] = r.status
	}
	return all
}

func (s Status) rule() (statusRule, bool) {
	for _, r := range statusRules {
		if r.status == s {
			return r, true
		}
	}
	return statusRule{}, false
}

// Final reports whether the status is an end.
func (s Status) Final() bool { r, _ := s.rule(); return r.final }

// HasTicket reports whether somebody must still act on a payment in this status, so that exactly one ticket must stand for it (I2).
func (s Status) HasTicket() bool { r, _ := s.rule(); return r.ticket }

// Stored reports whether s is a status that a row may carry.
func (s Status) Stored() bool { _, ok := s.rule(); return ok }

// CanMove reports whether a transition from s to next is in the state machine. A final payment moves only by evidence, to succeeded.
func (s Status) CanMove(next Status) bool {
	r, ok := s.rule()
	return ok && slices.Contains(r.next, next)
}

// TicketStatuses lists the statuses for which exactly one ticket stands.
func TicketStatuses() []Status {
	var list []Status
	for _, r := range statusRules {
		if r.ticket {
			list = append(list, r.status)
		}
	}
	return list
}

// StateMachineMarkdown renders the table as docs/STATE_MACHINE.md.
func StateMachineMarkdown() string {
	var b strings.Builder
	b.WriteString("# The state machine\n\nGenerated from `payments/status.go`; a test compares them. Regenerate with\n" +
		"`go run ./cmd/internal/tidy/statemachine > docs/STATE_MACHINE.md`.\n\n" +
		"`processing` is not stored: it is a `received` or `waiting` payment whose ticket somebody holds. Evidence from Stripe may still move a\n" +
		"final payment to `succeeded`, as a flagged correction. `oncepay payments resolve` records what a person has decided: nobody brings a payment\n" +
		"to `needs_review` by hand, and what may have been charged ends as `failed` or `canceled` only from there, after Stripe's records were read.\n\n" +
		"| status | ticket | final | may become | a person may resolve it as | meaning |\n|---|---|---|---|---|---|\n")
	yes := func(v bool) string {
		if v {
			return "yes"
		}
		return ""
	}
	for _, r := range statusRules {
		b.WriteString("| `" + string(r.status) + "` | " + yes(r.ticket) + " | " + yes(r.final) + " | " + statusNames(r.next) + " | " +
			statusNames(resolutions[r.status]) + " | " + r.meaning + " |\n")
	}
	b.WriteString("\nCaptures, cancels and refunds have the same statuses, each its own; `succeeded` is that it was done. What a person may resolve one of them as:\n\n" +
		"| status | a person may resolve it as |\n|---|---|\n")
	for _, r := range statusRules {
		if choices := followUpResolutions[r.status]; len(choices) > 0 {
			b.WriteString("| `" + string(r.status) + "` | " + statusNames(choices) + " |\n")
		}
	}
	b.WriteString("\nOnly a refund is resolved as `succeeded`: what became of a capture or a cancel is read, by `unknown`.\n")
	b.WriteString("\n```mermaid\nstateDiagram-v2\n    [*] --> received\n")
	for _, r := range statusRules {
		for _, n := range r.next {
			b.WriteString("    " + string(r.status) + " --> " + string(n) + "\n")
		}
		if r.final {
			b.WriteString("    " + string(r.status) + " --> [*]\n")
		}
	}
	b.WriteString("```\n")
	return b.String()
}
