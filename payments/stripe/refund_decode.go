package stripe

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// validRefund reports whether it is a refund's id: re_, or pyr_ for those of charges that are no cards'.
func validRefund(id string) bool { return validID(id, "re_") || validID(id, "pyr_") }

// decodeRefund reads a Refund. What Decide compares must be there; what is missing would compare as zero.
func decodeRefund(raw []byte) (payments.Refund, error) {
	var r payments.Refund
	var object, status string
	m, ok := members(raw)
	if !ok || !text(m["object"], &object) || object != "refund" {
		return r, errors.New("it is no refund")
	}
	if !text(m["id"], &r.ID) || !validRefund(r.ID) || !text(m["status"], &status) || word(status) == "" {
		return payments.Refund{}, errors.New("the refund has no proper id or status")
	}
	if !there(m["amount"]) || !number(m["amount"], &r.Amount) || !there(m["currency"]) || !text(m["currency"], &r.Currency) || word(r.Currency) == "" {
		return payments.Refund{}, errors.New("the refund has no proper amount or currency")
	}
	var created int64
	if !reference(m["payment_intent"], &r.PaymentIntent) || !number(m["created"], &created) || !words(m["metadata"], &r.Metadata) || !text(m["failure_reason"], &r.FailureReason) {
		return payments.Refund{}, errors.New("a member of the refund cannot be read")
	}
	r.Status, r.FailureReason = payments.StripeRefundStatus(word(status)), word(r.FailureReason)
	if created != 0 {
		r.Created = time.Unix(created, 0).UTC()
	}
	return r, nil
}

// decodeRefunds reads a list of refunds.
func decodeRefunds(body []byte) (page, error) {
	return decodeList(body, func(raw json.RawMessage) (record, error) {
		id, metadata, err := whose(raw, "refund", validRefund)
		return record{id: id, metadata: metadata, raw: raw}, err
	})
}
