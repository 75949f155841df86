package payments

import (
	"fmt"
	"strings"
	"time"
)

// policyClass is one class of what Stripe, or the way to it, may show: a row of docs/FAILURE_POLICY.md.
type policyClass struct {
	name  string
	calls []Action // that may show it
	show  func(*Observation)
}

// policyHistory is what may have been before: a column. make changes a payment that was received and never sent.
type policyHistory struct {
	name   string
	calls  []Action // what its owner may do
	replay bool     // the answer is the stored one of the first send
	make   func(*Payment)
}

var (
	policyNow     = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	policyAccount = Account{ID: "acct_1", Livemode: true}
	policyFailure = &Failure{Code: "card_declined"}
	// policyRules are the defaults of the settings.
	policyRules = Policy{TriesMax: 20}
)

func policyObject(s StripeStatus) *PaymentIntent {
	pi := &PaymentIntent{ID: "pi_1", Status: s, Amount: 9900, Currency: "usd", Livemode: true}
	if s == StripeRequiresPaymentMethod {
		pi.LastError = policyFailure
	}
	return pi
}

var (
	bySend  = []Action{ActionSend}
	byLook  = []Action{ActionLook}
	byRead  = []Action{ActionRetrieve, ActionCancel}
	byPost  = []Action{ActionSend, ActionCancel}
	byCalls = []Action{ActionSend, ActionRetrieve, ActionCancel}
)

var policyClasses = []policyClass{
	{"2xx: succeeded", bySend, func(o *Observation) { o.Kind, o.Object = ObservedAnswer, policyObject(StripeSucceeded) }},
	{"2xx: processing", bySend, func(o *Observation) { o.Kind, o.Object = ObservedAnswer, policyObject(StripeProcessing) }},
	{"402 declined, off session", bySend, func(o *Observation) {
		o.Kind, o.Object, o.Failure = ObservedDecline, policyObject(StripeRequiresPaymentMethod), policyFailure
	}},
	{"402 declined, on session", bySend, func(o *Observation) {
		o.Kind, o.Object, o.Failure = ObservedDecline, policyObject(StripeRequiresPaymentMethod), policyFailure
	}},
	{"402 authentication required", bySend, func(o *Observation) {
		o.Kind, o.Object, o.Failure = ObservedDecline, policyObject(StripeRequiresPaymentMethod), &Failure{Code: "authentication_required"}
	}},
	{"400, 404 invalid", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedInvalid, 400 }},
	{"400 other parameters under our key", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedKeyConflict, 400 }},
	{"401, 403 authentication, permission", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedUnauthorized, 401 }},
	{"409 key in use", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedInUse, 409 }},
	{"429 lock timeout", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedLocked, 429 }},
	{"429 rate; halves the account's budget", byPost, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedRateLimited, 429 }},
	{"not sent: no connection", byPost, func(o *Observation) { o.Kind = ObservedNotSent }},
	{"held back by our own last check", byPost, func(o *Observation) { o.Kind = ObservedHeldBack }},
	{"the tenant's account is not known", byCalls, func(o *Observation) { o.Kind, o.Account = ObservedAccountUnknown, Account{} }},
	{"pinned to another account or mode", byCalls, func(o *Observation) {
		o.Kind, o.Account = ObservedForeignAccount, Account{ID: "acct_2", Livemode: true}
	}},
	{"sent, no definite answer: time-out, reset, 5xx, garbage", byPost, func(o *Observation) { o.Kind = ObservedUnclear }},
	{"listing: one, succeeded", byLook, func(o *Observation) {
		o.Kind, o.Found = ObservedRecords, []PaymentIntent{*policyObject(StripeSucceeded)}
	}},
	{"listing: one, declined on session", byLook, func(o *Observation) {
		o.Kind, o.Found = ObservedRecords, []PaymentIntent{*policyObject(StripeRequiresPaymentMethod)}
	}},
	{"listing: one, of another amount", byLook, func(o *Observation) {
		pi := *policyObject(StripeSucceeded)
		pi.Amount++
		o.Kind, o.Found = ObservedRecords, []PaymentIntent{pi}
	}},
	{"listing: several", byLook, func(o *Observation) {
		o.Kind, o.Found = ObservedRecords, []PaymentIntent{*policyObject(StripeSucceeded), *policyObject(StripeSucceeded)}
	}},
	{"listing: complete, none", byLook, func(o *Observation) { o.Kind = ObservedRecords }},
	{"listing or read failed", []Action{ActionLook, ActionRetrieve}, func(o *Observation) { o.Kind = ObservedNoRecords }},
	{"listing or read refused: 401, 403", []Action{ActionLook, ActionRetrieve}, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedNoRecords, 403 }},
	{"PaymentIntent: succeeded", byRead, func(o *Observation) { o.Kind, o.Object = ObservedObject, policyObject(StripeSucceeded) }},
	{"PaymentIntent: processing", byRead, func(o *Observation) { o.Kind, o.Object = ObservedObject, policyObject(StripeProcessing) }},
	{"PaymentIntent: canceled", byRead, func(o *Observation) { o.Kind, o.Object = ObservedObject, policyObject(StripeCanceled) }},
	{"PaymentIntent: declined, can be confirmed", byRead, func(o *Observation) {
		o.Kind, o.Object = ObservedObject, policyObject(StripeRequiresPaymentMethod)
	}},
	{"PaymentIntent: Stripe has none", byRead, func(o *Observation) { o.Kind = ObservedObject }},
}

var policyHistories = []policyHistory{
	{"nothing sent before", bySend, false, func(p *Payment) { p.Status = StatusReceived }},
	{"last try", bySend, false, func(p *Payment) { p.Status, p.Tries = StatusWaiting, policyRules.TriesMax-1 }},
	{"in doubt, sent 1 h ago", []Action{ActionLook, ActionSend}, false, policyDoubt(time.Hour, 0)},
	{"in doubt, key replayed", bySend, true, policyDoubt(time.Hour, 0)},
	{"in doubt, expired", byLook, false, func(p *Payment) { policyDoubt(time.Hour, 0)(p); p.ExpiresAt = policyNow }},
	{"in doubt, sent 26 h ago, absent 1 h ago", byLook, false, policyDoubt(26*time.Hour, time.Hour)},
	{"pending at Stripe", []Action{ActionRetrieve}, false, func(p *Payment) {
		p.Status, p.Reason, p.StripePaymentIntent = StatusPending, ReasonProcessing, "pi_1"
	}},
	{"cancelling a decline", []Action{ActionCancel, ActionRetrieve}, false, func(p *Payment) {
		p.Status, p.Reason, p.StripePaymentIntent, p.Failure = StatusWaiting, ReasonCancelling, "pi_1", policyFailure
	}},
}

func policyDoubt(sent, absent time.Duration) func(*Payment) {
	return func(p *Payment) {
		p.Status, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = StatusUnknown, true, policyNow.Add(-sent), policyNow.Add(-sent)
		if absent > 0 {
			p.AbsentAt = policyNow.Add(-absent)
		}
	}
}

// policyCell is what Decide makes of a class in a history, in words; "" where the two do not meet.
func policyCell(c policyClass, h policyHistory) string {
	meet := false
	for _, a := range c.calls {
		for _, b := range h.calls {
			meet = meet || a == b
		}
	}
	if !meet {
		return ""
	}
	p := Payment{Intent: Intent{Amount: 9900, Currency: "usd", OffSession: strings.Contains(c.name, "off session")}, StripeAccount: policyAccount.ID, Livemode: true}
	h.make(&p)
	o := Observation{Account: policyAccount, Replayed: h.replay}
	c.show(&o)
	t, err := Decide(p, o, policyNow, policyRules)
	if err != nil {
		return err.Error()
	}
	if t.ThenSend {
		return "send again at once, same key"
	}
	return transitionInWords(t)
}

func transitionInWords(t Transition) string {
	cell := "`" + string(t.Status) + "`"
	if t.Reason != "" {
		cell += " " + t.Reason
	}
	for _, note := range policyNotes(t) {
		cell += "; " + note
	}
	return cell
}

func policyNotes(t Transition) (notes []string) {
	if t.CountTry {
		notes = append(notes, "costs a try")
	}
	if t.ResetTries {
		notes = append(notes, "tries anew")
	}
	if t.DeadLetter != "" {
		notes = append(notes, "dead letter "+string(t.DeadLetter))
	}
	switch d := t.Delay; {
	case !t.Status.HasTicket():
	case d.Long:
		notes = append(notes, "after minutes")
	case d.AtLeast > 0:
		notes = append(notes, "after "+fmt.Sprint(d.AtLeast))
	case d.Step == 0:
		notes = append(notes, "at once")
	case d.Soon:
		notes = append(notes, "soon")
	default:
		notes = append(notes, "backoff")
	}
	return notes
}

// FailurePolicyMarkdown renders the policy as docs/FAILURE_POLICY.md: every cell is what Decide says.
func FailurePolicyMarkdown() string {
	var b strings.Builder
	b.WriteString(policyIntroduction)
	b.WriteString("\n## Class of answer and history\n\n| what is seen |")
	for _, h := range policyHistories {
		b.WriteString(" " + h.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(policyHistories)) + "\n")
	for _, c := range policyClasses {
		b.WriteString("| " + c.name + " |")
		for _, h := range policyHistories {
			b.WriteString(" " + policyCell(c, h) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString(followUpMarkdown())
	b.WriteString("\n## Reasons, and what to do\n\nAn outcome that was declined has Stripe's own code as its reason.\n\n| reason | what it means | what to do |\n|---|---|---|\n")
	for _, r := range reasonRules {
		b.WriteString("| `" + r.reason + "` | " + r.meaning + " | " + r.remedy + " |\n")
	}
	return b.String()
}
