package stripesim

import (
	"maps"
	"strings"
)

// Statuses of a refund. None of the simulator's ever requires an action.
const (
	refundPending   = "pending"
	refundSucceeded = "succeeded"
	refundFailed    = "failed"
)

// refund is one state of a Refund. Like those of PaymentIntents, states are never changed in place.
type refund struct {
	ID       string            `json:"id"`
	Intent   string            `json:"intent"`
	Charge   string            `json:"charge"`
	Status   string            `json:"status"`
	Amount   int64             `json:"amount"`
	Currency string            `json:"currency"`
	Created  int64             `json:"created"` // unix seconds, never less than an older one's
	Reason   string            `json:"reason,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Key      string            `json:"key,omitempty"`     // idempotency key of the request that made it
	Failure  string            `json:"failure,omitempty"` // why it failed
	Due      int64             `json:"due,omitempty"`     // unix nanoseconds: it succeeds or fails
}

// refundView is the Refund of API version 2023-10-16.
type refundView struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	BalanceTransaction *string           `json:"balance_transaction"`
	Charge             string            `json:"charge"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	FailureReason      string            `json:"failure_reason,omitempty"`
	Metadata           map[string]string `json:"metadata"`
	PaymentIntent      string            `json:"payment_intent"`
	Reason             *string           `json:"reason"`
	ReceiptNumber      *string           `json:"receipt_number"`
	SourceReversal     *string           `json:"source_transfer_reversal"`
	Status             string            `json:"status"`
	TransferReversal   *string           `json:"transfer_reversal"`
}

func (r *refund) view() *refundView {
	v := &refundView{
		ID: r.ID, Object: "refund", Amount: r.Amount, Charge: r.Charge, Created: r.Created, Currency: r.Currency, FailureReason: r.Failure,
		Metadata: r.Metadata, PaymentIntent: r.Intent, Reason: optional(r.Reason), Status: r.Status,
	}
	if v.Metadata == nil { // an empty map is left out of the ledger file
		v.Metadata = map[string]string{}
	}
	return v
}

// given is how much of the charge the refund takes: nothing once it has failed.
func (r *refund) given() int64 {
	if r == nil || r.Status == refundFailed {
		return 0
	}
	return r.Amount
}

var refundSpec = spec{
	"payment_intent": {}, "charge": {}, "amount": {}, "reason": {},
	"metadata": {kind: dict, loose: true},
}

// giveBack is POST /v1/refunds: all that is left of what was captured, or a part of it.
type giveBack struct {
	of       string // the PaymentIntent, or its charge
	amount   int64  // 0: all that is left
	reason   string
	metadata map[string]string
}

func (g *giveBack) target() string { return g.of }

func (g *giveBack) absent() *apiError {
	if strings.HasPrefix(g.of, "ch_") {
		return notFound("charge", "No such charge: '"+clip(g.of)+"'")
	}
	return notFound("payment_intent", "No such payment_intent: '"+clip(g.of)+"'")
}

func parseRefund(_ string, pairs []pair) (operation, *apiError) {
	v, e := refundSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	intent, charge := v.scalars["payment_intent"], v.scalars["charge"]
	switch {
	case intent == "" && charge == "":
		return nil, invalid("parameter_missing", "", "One of the following params should be provided for this request: payment_intent or charge.")
	case intent != "" && charge != "":
		return nil, invalid("", "charge", "You may only specify one of these parameters: charge, payment_intent.")
	case intent != "" && !strings.HasPrefix(intent, "pi_"):
		return nil, notFound("payment_intent", "No such payment_intent: '"+clip(intent)+"'")
	case charge != "" && !strings.HasPrefix(charge, "ch_"):
		return nil, notFound("charge", "No such charge: '"+clip(charge)+"'")
	}
	g := &giveBack{of: intent + charge}
	if text, ok := v.scalars["amount"]; ok {
		if text == "" {
			return nil, emptyParam("amount")
		}
		if g.amount, e = integer("amount", text); e != nil {
			return nil, e
		}
		if g.amount < 1 {
			return nil, invalid("parameter_invalid_integer", "amount", "Invalid positive integer")
		}
	}
	if g.reason, e = v.choice("reason", "", "duplicate", "fraudulent", "requested_by_customer"); e != nil {
		return nil, e
	}
	if v.scalars["metadata"] != "" {
		return nil, invalid("", "metadata", "Invalid object: metadata must be sent as metadata[key]=value.")
	}
	g.metadata, e = v.metadata()
	return g, e
}

func (g *giveBack) apply(e env, current *intent) effect {
	left := current.Received - e.refunded
	switch {
	case current.Status != succeeded && current.Status != needsCapture:
		return wrongState(current, "This PaymentIntent ("+current.ID+") does not have a successful charge to refund.")
	case current.Status == needsCapture:
		return wrongState(current, "This PaymentIntent ("+current.ID+") cannot be refunded because it has a status of requires_capture. Cancel it instead, or capture it first.")
	case left <= 0:
		return refused(invalid("charge_already_refunded", "", "Charge "+current.Charge+" has already been refunded."), nil)
	case g.amount > left:
		return refused(invalid("", "amount", "Refund amount ("+shownMoney(g.amount, current.Currency)+") is greater than unrefunded amount on charge ("+shownMoney(left, current.Currency)+")"), nil)
	}
	r := &refund{
		ID: e.ids.refund(e.seq), Intent: current.ID, Charge: current.Charge, Status: refundSucceeded, Amount: g.amount, Currency: current.Currency,
		Created: e.refundCreated, Reason: g.reason, Metadata: g.metadata, Key: e.key,
	}
	if r.Amount == 0 {
		r.Amount = left
	}
	m := methods[current.Method]
	if m.refund == refundsLater || m.kind == "us_bank_account" {
		r.Status = refundPending
	}
	if r.Status == refundPending || m.refund == refundsFail {
		r.Due = e.now.Add(e.settle).UnixNano()
	}
	return effect{answer: answer{refund: r}, refunded: true}
}

// settled is what the clock makes of a refund that is due: one that was pending has succeeded, one that was thought to have is come back.
func (r *refund) settled() *refund {
	next := *r
	next.Due = 0
	if r.Status == refundPending {
		next.Status = refundSucceeded
	} else {
		next.Status, next.Failure = refundFailed, "expired_or_canceled_card"
	}
	return &next
}

var refundUpdateSpec = spec{"metadata": {kind: dict, loose: true}}

// relabel is POST /v1/refunds/{id}: nothing of a refund can be changed but its metadata. What is named is set or, if empty, unset.
type relabel struct {
	id  string
	set map[string]string
}

func (o *relabel) target() string { return o.id }

func (o *relabel) absent() *apiError { return noSuchRefund("refund", o.id) }

func parseRelabel(id string, pairs []pair) (operation, *apiError) {
	v, e := refundUpdateSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	if v.scalars["metadata"] != "" {
		return nil, invalid("", "metadata", "Invalid object: metadata must be sent as metadata[key]=value.")
	}
	if _, e := v.metadata(); e != nil {
		return nil, e
	}
	return &relabel{id: id, set: v.dicts["metadata"]}, nil
}

func (o *relabel) apply(e env, _ *intent) effect {
	next := *e.refund
	next.Metadata = maps.Clone(e.refund.Metadata)
	if next.Metadata == nil {
		next.Metadata = map[string]string{}
	}
	for k, v := range o.set {
		next.Metadata[k] = v
	}
	maps.DeleteFunc(next.Metadata, func(_, v string) bool { return v == "" })
	if len(next.Metadata) > maxMetadataKeys {
		return refused(invalid("", "metadata", "Metadata can have up to 50 keys."), nil)
	}
	return effect{answer: answer{refund: &next}, refunded: true}
}

func noSuchRefund(param, id string) *apiError {
	return notFound(param, "No such refund: '"+clip(id)+"'")
}
