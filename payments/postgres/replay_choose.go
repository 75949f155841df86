package postgres

import (
	"context"
	"encoding/json"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// candidate is an open dead letter that a filter chooses.
type candidate struct {
	letterID  string
	tenantID  string
	key       string
	reason    payments.Reason
	payment   *key // what it is about, stored or not; nil: nobody can tell
	ofMessage bool
	ofBatch   bool             // its message is a batch
	accepted  bool             // that batch is accepted already
	busy      bool             // another unfinished replay has it
	payload   []byte           // of a message; nil when it is too large to be one
	status    payments.Status  // of its payment; "" when there is none
	inDoubt   bool             // something of its payment may be at Stripe
	stored    map[string]int64 // the money of its payment
	money     map[string]int64 // by currency, as it stands there; nil: nobody can tell
	operation bool             // it is a capture, a cancel or a refund
	charge    about            // what the message of a capture, cancel or refund is about
}

// about is a charge, as far as its money goes; one that is not there has no currency.
type about struct {
	currency     string
	amount, left int64 // left is what was taken and not given back
}

// asks is the money that a capture, a cancel or a refund asks for, at most; nil: nobody can tell.
func (a about) asks(i payments.Intent) map[string]int64 {
	switch {
	case i.Kind == payments.KindCancel:
		return map[string]int64{} // it moves none
	case a.currency == "":
		return nil
	case !i.All:
		return map[string]int64{a.currency: i.Amount}
	case i.Kind == payments.KindRefund:
		return map[string]int64{a.currency: a.left}
	}
	return map[string]int64{a.currency: a.amount}
}

// settled reports whether its payment has its outcome, so that a replay only reports it.
func (c *candidate) settled() bool {
	if c.ofBatch {
		return c.reason != payments.ReasonKeyReused && c.accepted
	}
	return c.reason != payments.ReasonKeyReused && c.status.Settled()
}

// querier is a connection or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// candidates reads what the filter chooses, those seen first first.
func candidates(ctx context.Context, q querier, f payments.LetterFilter, each func(candidate) bool) error {
	rows, err := q.Query(ctx, query("replay_candidates"), planned(letterFilterParams(f), schema.BatchMaxBytes)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c candidate
		var payment []byte
		var reason, subject, status, currency, kind string
		var amount int64
		if err := rows.Scan(&c.letterID, &c.tenantID, &reason, &c.ofMessage, &c.busy, &payment, &c.key, &subject, &c.accepted, &c.payload, &status,
			&amount, &currency, &c.inDoubt, &c.charge.currency, &c.charge.amount, &c.charge.left, &kind); err != nil {
			return err
		}
		c.reason, c.status, c.ofBatch = payments.Reason(reason), payments.Status(status), c.ofMessage && isBatch(subject)
		if len(payment) == len(payments.ID{}) {
			c.payment = &key{c.tenantID, payments.ID(payment)}
		}
		if status != "" {
			c.stored = map[string]int64{currency: amount}
		}
		c.operation = payments.Kind(kind).FollowUp()
		if c.money = c.stored; c.ofMessage {
			c.money = moneyIn(c.payload)
			if list, sound := c.intent(c.payload); sound && kind == "" && !c.ofBatch && list[0].Kind.FollowUp() {
				c.money, c.operation = c.charge.asks(list[0]), true
			} else if c.operation && c.reason != payments.ReasonKeyReused {
				c.money = c.stored // its message has no currency
			}
		}
		if !each(c) {
			return nil
		}
	}
	return rows.Err()
}

// checkReplayFilter refuses filters that a replay cannot have.
func checkReplayFilter(f payments.LetterFilter) error {
	if f.State != "" && f.State != payments.DeadLetterOpen {
		return &payments.Error{Code: payments.CodeInvalid, Field: "state", Message: "only open dead letters can be replayed or discarded"}
	}
	return checkLetterFilter(f)
}

// PreviewReplay tells what CreateReplay of the same would do now; it changes nothing. CodeInvalid.
func (s *Store) PreviewReplay(ctx context.Context, n payments.NewReplay) (payments.ReplayPreview, error) {
	v := payments.ReplayPreview{Amount: map[string]int64{}, ByReason: map[payments.Reason]int{}}
	if err := checkReplayFilter(n.Filter); err != nil {
		return v, err
	}
	var t outlook
	err := candidates(ctx, s.pool, n.Filter, func(c candidate) bool {
		switch p := c.prospect(n.Set); {
		case c.busy:
			v.PassedOver++
		case p.skipped != "":
			v.Skipped++
		default:
			v.ByReason[c.reason]++
			t.add(p)
		}
		return n.Limit == 0 || t.letters < n.Limit
	})
	t.sum(&v)
	return v, translate(err)
}

// addMoney adds what is known; a sum that no number holds stays at the greatest.
func addMoney(sums, more map[string]int64) {
	for currency, amount := range more {
		if sums[currency] > math.MaxInt64-amount {
			sums[currency] = math.MaxInt64
			continue
		}
		sums[currency] += amount
	}
}

// moneyIn finds the money that a message asks for, however little else of it can be read: an amount beside a currency, or those of a batch's payments.
// It is for people to judge a replay by; nothing is charged by it.
func moneyIn(payload []byte) map[string]int64 {
	type priced struct {
		Amount   json.Number `json:"amount"`
		Currency string      `json:"currency"`
	}
	var message struct {
		priced
		Payments []priced `json:"payments"`
	}
	if json.Unmarshal(payload, &message) != nil {
		return nil
	}
	list := message.Payments
	if list == nil {
		list = []priced{message.priced}
	}
	sums := map[string]int64{}
	for _, p := range list {
		amount, err := p.Amount.Int64()
		currency := payments.Intent{Currency: p.Currency}.Normalized().Currency
		if err != nil || amount < 0 || !payments.KnownCurrency(currency) {
			return nil
		}
		addMoney(sums, map[string]int64{currency: amount})
	}
	return sums
}
