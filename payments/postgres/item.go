package postgres

import (
	"strconv"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// letterCopyMax bounds the raw bytes that the published copy of a dead letter carries; NATS takes no more than 1 MiB in all. The row has them.
const letterCopyMax = 512 << 10

// eventItem is an event as the relay gets it, but for the row's number.
func eventItem(p payments.Payment, sequence int64, eventType string, body []byte) payments.OutboxItem {
	return payments.OutboxItem{
		Kind: payments.OutboxEvent, TenantID: p.TenantID, EventType: eventType, EventID: schema.EventID(p.ID.Format(p.Kind), sequence, eventType), Body: body,
	}
}

// letterItem is the copy of a dead letter. Its id is that of the outbox row: a letter that is opened again is told again.
func letterItem(d payments.DeadLetter, outbox int64) (payments.OutboxItem, error) {
	doc := document.DeadLetter(d)
	if len(d.Payload)+len(d.Headers) <= letterCopyMax {
		doc = document.DeadLetterInFull(d)
	}
	body, err := schema.Marshal(doc)
	if err != nil {
		return payments.OutboxItem{}, payments.Errorf(payments.CodeInternal, "the dead letter %s cannot be written: %w", d.ID, err)
	}
	return payments.OutboxItem{
		ID: outbox, Kind: payments.OutboxDeadLetter, TenantID: d.TenantID, EventID: d.ID + "_" + strconv.FormatInt(outbox, 10), Body: body,
	}, nil
}
