package stripesim

import (
	"net/http"
	"time"
)

// operation is a validated POST. apply is pure: it makes the new state of the
// target out of the current one, and says how the request is answered.
type operation interface {
	target() string // id of the PaymentIntent to lock, or of a charge or refund of it; empty when one is created
	apply(e env, current *intent) effect
}

// env is what an operation may know of its surroundings.
type env struct {
	ids     idMaker
	seq     uint64    // the request's number, of which ids are made
	now     time.Time // of the simulator's clock
	created int64     // unix seconds for a new PaymentIntent, in list order
	key     string    // idempotency key
	settle  time.Duration
	saved   map[string]*savedMethod // the account's

	refundCreated int64   // as created, for a new refund
	refunded      int64   // of the target: what was given back already
	refund        *refund // the one that the target names
}

// effect is the outcome of an operation.
type effect struct {
	answer
	changed  bool        // answer.intent is the new state of its PaymentIntent
	charge   *chargeNote // money moved or was authorised
	refunded bool        // answer.refund is the new state of its refund
}

// answer is a response before faults: an error, a PaymentIntent, a refund, or a
// payment method that is attached to a customer, or was.
type answer struct {
	err    *apiError
	intent *intent
	refund *refund
	saved  *savedMethod
}

// about is the id of the PaymentIntent that the answer is about.
func (a answer) about() string {
	switch {
	case a.intent != nil:
		return a.intent.ID
	case a.refund != nil:
		return a.refund.Intent
	}
	return ""
}

func (a answer) status() int {
	if a.err != nil {
		return a.err.Status
	}
	return http.StatusOK
}

// chargeNote is what the ledger adds to a PaymentIntent's state for a charge.
type chargeNote struct {
	ID       string `json:"id"`
	Captured bool   `json:"captured"`
	Key      string `json:"key,omitempty"`
	Held     bool   `json:"held,omitempty"` // the ledger has it already, as authorised
}

func refused(e *apiError, in *intent) effect {
	return effect{answer: answer{err: e, intent: in}}
}

func done(in *intent) effect {
	return effect{answer: answer{intent: in}, changed: true}
}

// wrongState is Stripe's 400 for a PaymentIntent that has moved on.
func wrongState(in *intent, message string) effect {
	e := invalid("payment_intent_unexpected_state", "", message)
	e.showIntent = true
	return refused(e, in)
}
