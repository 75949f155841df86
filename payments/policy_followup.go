package payments

import (
	"slices"
	"strings"
	"time"
)

// followUpPolicy is the table of one kind of follow-up: classes of what is seen against what has been before.
type followUpPolicy struct {
	kind      Kind
	classes   []policyClass
	histories []policyHistory
}

var (
	policySent = []policyClass{ // what any of the three may be answered
		{"400, 404 invalid", nil, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedInvalid, 400 }},
		{"400 other parameters under our key", nil, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedKeyConflict, 400 }},
		{"401, 403 authentication, permission", nil, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedUnauthorized, 401 }},
		{"409 key in use", nil, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedInUse, 409 }},
		{"429 rate, lock", nil, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedRateLimited, 429 }},
		{"no connection", nil, func(o *Observation) { o.Kind = ObservedNotSent }},
		{"held back, account not usable", nil, func(o *Observation) { o.Kind = ObservedHeldBack }},
		{"connected to another account or mode", nil, func(o *Observation) {
			o.Kind, o.Account = ObservedForeignAccount, Account{ID: "acct_2", Livemode: true}
		}},
		{"5xx, time-out, cut off, garbage", nil, func(o *Observation) { o.Kind = ObservedUnclear }},
	}
	policyReads   = []Action{ActionRetrieve, ActionLookRefunds, ActionRetrieveRefund}
	policyNotRead = []policyClass{
		{"listing or read failed", policyReads, func(o *Observation) { o.Kind = ObservedNoRecords }},
		{"listing or read refused: 401, 403", policyReads, func(o *Observation) { o.Kind, o.HTTPStatus = ObservedNoRecords, 403 }},
	}
)

// rows are the classes of the table, and those that every reading may show.
func (f followUpPolicy) rows() []policyClass { return append(slices.Clip(f.classes), policyNotRead...) }

// answers are the classes of any answer, for one call.
func answers(to Action) []policyClass {
	list := make([]policyClass, len(policySent))
	for i, c := range policySent {
		c.calls = []Action{to}
		list[i] = c
	}
	return list
}

// shows is a class that shows a PaymentIntent: by the answer, or by reading it.
func shows(name string, pi PaymentIntent, kind ObservationKind, calls ...Action) policyClass {
	return policyClass{name, calls, func(o *Observation) { o.Kind, o.Object = kind, &pi }}
}

func refunds(name string, s StripeRefundStatus, list ObservationKind, calls ...Action) policyClass {
	return policyClass{name, calls, func(o *Observation) {
		r := Refund{ID: "re_1", Status: s, Amount: 9900, Currency: "usd", PaymentIntent: "pi_1"}
		if o.Kind = list; list == ObservedRecords {
			o.Refunds = []Refund{r}
		} else {
			o.Refund = &r
		}
	}}
}

func captured(amount int64) PaymentIntent {
	pi := *policyObject(StripeSucceeded)
	pi.AmountReceived = amount
	return pi
}

func followUpPolicies() []followUpPolicy {
	inDoubt := func(calls ...Action) policyHistory {
		return policyHistory{"in doubt, sent 1 h ago", calls, false, policyDoubt(time.Hour, 0)}
	}
	first := func(call Action) policyHistory {
		return policyHistory{"nothing sent before", []Action{call}, false, func(p *Payment) { p.Status = StatusReceived }}
	}
	last := func(call Action) policyHistory {
		return policyHistory{"last try", []Action{call}, false, func(p *Payment) { p.Status, p.Tries = StatusWaiting, policyRules.TriesMax-1 }}
	}
	refused := policyHistory{"was refused as invalid", []Action{ActionRetrieve}, false, func(p *Payment) {
		policyDoubt(time.Minute, 0)(p)
		p.Reason, p.Failure = ReasonInvalidRequest, &Failure{Code: "amount_too_large"}
	}}
	held, processing, canceled := *policyObject(StripeRequiresCapture), *policyObject(StripeProcessing), *policyObject(StripeCanceled)
	return []followUpPolicy{
		{KindCapture, append([]policyClass{
			shows("2xx: taken", captured(9900), ObservedAnswer, ActionCapture),
			{"402 declined", []Action{ActionCapture}, func(o *Observation) { o.Kind, o.Object, o.Failure = ObservedDecline, &held, policyFailure }},
		}, append(answers(ActionCapture),
			shows("PaymentIntent: still held", held, ObservedObject, ActionRetrieve),
			shows("PaymentIntent: this amount was taken", captured(9900), ObservedObject, ActionRetrieve),
			shows("PaymentIntent: another amount was taken", captured(500), ObservedObject, ActionRetrieve),
			shows("PaymentIntent: canceled", canceled, ObservedObject, ActionRetrieve),
			policyClass{"PaymentIntent: Stripe has none", []Action{ActionRetrieve}, func(o *Observation) { o.Kind = ObservedObject }})...),
			[]policyHistory{first(ActionCapture), last(ActionCapture), inDoubt(ActionRetrieve, ActionCapture), refused}},
		{KindCancel, append([]policyClass{
			shows("PaymentIntent: canceled", canceled, ObservedObject, ActionCancel, ActionRetrieve),
			shows("PaymentIntent: can be canceled", held, ObservedObject, ActionCancel, ActionRetrieve),
			shows("PaymentIntent: the money was taken", captured(9900), ObservedObject, ActionCancel, ActionRetrieve),
			shows("PaymentIntent: processing", processing, ObservedObject, ActionCancel, ActionRetrieve),
			{"PaymentIntent: Stripe has none", []Action{ActionCancel, ActionRetrieve}, func(o *Observation) { o.Kind = ObservedObject }},
		}, answers(ActionCancel)...),
			[]policyHistory{first(ActionCancel), last(ActionCancel), inDoubt(ActionRetrieve, ActionCancel)}},
		{KindRefund, append([]policyClass{
			refunds("2xx: succeeded", RefundSucceeded, ObservedRefund, ActionRefund),
			refunds("2xx: pending, requires action", RefundPending, ObservedRefund, ActionRefund),
			refunds("2xx: failed", RefundFailed, ObservedRefund, ActionRefund),
			{"402 declined", []Action{ActionRefund}, func(o *Observation) { o.Kind, o.Failure = ObservedDecline, policyFailure }},
		}, append(answers(ActionRefund),
			refunds("listing: one of ours", RefundSucceeded, ObservedRecords, ActionLookRefunds),
			policyClass{"listing: several", []Action{ActionLookRefunds}, func(o *Observation) { o.Kind, o.Refunds = ObservedRecords, make([]Refund, 2) }},
			policyClass{"listing: complete, none", []Action{ActionLookRefunds}, func(o *Observation) { o.Kind = ObservedRecords }},
			policyClass{"listing: Stripe has no such PaymentIntent", []Action{ActionLookRefunds}, func(o *Observation) { o.Kind = ObservedObject }},
			refunds("refund: succeeded", RefundSucceeded, ObservedRefund, ActionRetrieveRefund),
			refunds("refund: pending", RefundPending, ObservedRefund, ActionRetrieveRefund),
			refunds("refund: failed", RefundFailed, ObservedRefund, ActionRetrieveRefund),
			refunds("refund: canceled", RefundCanceled, ObservedRefund, ActionRetrieveRefund),
			policyClass{"refund: Stripe has none", []Action{ActionRetrieveRefund}, func(o *Observation) { o.Kind = ObservedRefund }})...),
			[]policyHistory{
				{"nothing sent before", []Action{ActionLookRefunds, ActionRefund}, false, func(p *Payment) { p.Status = StatusReceived }}, last(ActionRefund),
				inDoubt(ActionLookRefunds, ActionRefund), {"in doubt, key replayed", []Action{ActionRefund}, true, policyDoubt(time.Hour, 0)},
				{"in doubt, sent 26 h ago, absent 1 h ago", []Action{ActionLookRefunds}, false, policyDoubt(26*time.Hour, time.Hour)},
				{"pending at Stripe", []Action{ActionRetrieveRefund}, false, func(p *Payment) { p.Status, p.Reason = StatusPending, ReasonProcessing }},
			}},
	}
}

// followUpCell is policyCell for a follow-up; what it does to its charge stands behind an arrow.
func followUpCell(kind Kind, c policyClass, h policyHistory) string {
	did, charge := meeting(c.calls, h.calls), policyCharge(kind)
	if did == "" {
		return ""
	}
	p := policyFollowUp(kind)
	h.make(&p)
	o := Observation{Account: policyAccount, Replayed: h.replay}
	c.show(&o)
	state := FollowUpState{Target: charge}
	if p.Status == StatusPending {
		state.StripeRefund = "re_1"
	}
	t, err := DecideFollowUp(p, state, did, o, policyNow, policyRules)
	switch {
	case err != nil:
		return err.Error()
	case t.ThenSend && p.InDoubt:
		return "send again at once, same key"
	case t.ThenSend:
		return "send at once"
	}
	return transitionInWords(t) + targetInWords(t, charge)
}

func policyFollowUp(kind Kind) Payment {
	return Payment{Intent: Intent{Kind: kind, Amount: 9900, Currency: "usd"}, StripeAccount: policyAccount.ID, Livemode: true, StripePaymentIntent: "pi_1"}
}

// policyCharge is a charge as a follow-up of the kind needs it.
func policyCharge(kind Kind) Payment {
	charge := policyFollowUp(KindCharge)
	switch kind {
	case KindCapture:
		charge.Status = StatusRequiresCapture
	case KindCancel:
		charge.Status = StatusRequiresAction
	default:
		charge.Status, charge.AmountCaptured = StatusSucceeded, 9900
	}
	return charge
}

func meeting(a, b []Action) Action {
	for _, one := range a {
		for _, other := range b {
			if one == other {
				return one
			}
		}
	}
	return ""
}

// targetInWords says what a follow-up does to its charge.
func targetInWords(t Transition, charge Payment) string {
	if t.Target == nil {
		return ""
	}
	to, err := t.Target(charge)
	switch {
	case err != nil:
		return " → looked at again"
	case to.Refunded > 0:
		return " → amount_refunded grows"
	case to.Status == charge.Status:
		return ""
	}
	return " → payment `" + string(to.Status) + "`"
}

// acceptanceCell says whether a follow-up of the kind is accepted for a charge of the status, and what it does first.
func acceptanceCell(kind Kind, s Status) string {
	charge := policyCharge(kind)
	charge.Status = s
	if s == StatusReceived || s == StatusWaiting || s == StatusUnknown {
		charge.StripePaymentIntent = "" // as is usual
	}
	cell := "refused"
	if _, verdict, _ := AcceptFollowUp(charge, nil, Intent{Kind: kind, All: true}); verdict == VerdictStored {
		cell = "accepted"
	}
	p := policyFollowUp(kind)
	p.Status = StatusReceived
	act, t := NextFollowUp(p, FollowUpState{Target: charge})
	if act != ActionSettle {
		return cell + "; " + strings.ReplaceAll(string(act), "_", " ")
	}
	return cell + "; " + transitionInWords(t) + targetInWords(t, charge)
}

// followUpMarkdown is the part of docs/FAILURE_POLICY.md about captures, cancels and refunds.
func followUpMarkdown() string {
	var b strings.Builder
	b.WriteString(policyFollowUpIntroduction + "\n| the payment is | capture | cancel | refund |\n|---|---|---|---|\n")
	for _, s := range Statuses() {
		b.WriteString("| `" + string(s) + "` | " + acceptanceCell(KindCapture, s) + " | " + acceptanceCell(KindCancel, s) + " | " + acceptanceCell(KindRefund, s) + " |\n")
	}
	for _, f := range followUpPolicies() {
		b.WriteString("\n### " + strings.ToUpper(string(f.kind[:1])) + string(f.kind[1:]) + "\n\n| what is seen |")
		for _, h := range f.histories {
			b.WriteString(" " + h.name + " |")
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(f.histories)) + "\n")
		for _, c := range f.rows() {
			b.WriteString("| " + c.name + " |")
			for _, h := range f.histories {
				b.WriteString(" " + followUpCell(f.kind, c, h) + " |")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
