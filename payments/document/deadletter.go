package document

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/textproto"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// DeadLetter is the document of a dead letter in lists: without headers and payload.
func DeadLetter(d payments.DeadLetter) schema.DeadLetter {
	doc := schema.DeadLetter{
		ID:             d.ID,
		TenantID:       schema.Null(d.TenantID),
		IdempotencyKey: schema.Null(d.IdempotencyKey),
		Reason:         string(d.Reason),
		Message:        d.Message,
		Subject:        schema.Null(d.Origin.Subject),
		Tries:          d.Tries,
		State:          string(d.State),
		Replays:        d.Replays,
		FirstSeen:      schema.NewTimestamp(d.FirstSeen),
		LastSeen:       schema.NewTimestamp(d.LastSeen),
	}
	if d.PaymentID != nil {
		doc.PaymentID = schema.Null(d.PaymentID.Format(d.PaymentKind))
	}
	if d.Origin.Stream != "" {
		doc.StreamSeq = schema.Null(int64(d.Origin.Sequence))
	}
	return doc
}

// DeadLetterInFull is DeadLetter with the headers and the raw payload, as `dlq show` prints it.
func DeadLetterInFull(d payments.DeadLetter) schema.DeadLetter {
	doc := DeadLetter(d)
	doc.Headers = headers(d.Headers)
	if d.Payload != nil {
		text := base64.StdEncoding.EncodeToString(d.Payload)
		doc.PayloadBase64 = &text
	}
	if d.Payload == nil && d.PayloadSHA256 != [32]byte{} {
		sum := hex.EncodeToString(d.PayloadSHA256[:])
		doc.PayloadLength, doc.PayloadSHA256 = &d.PayloadLength, &sum
	}
	return doc
}

// headers reads headers in NATS wire form, NATS/1.0 and then lines as in MIME; what cannot be read is left out, since it stands in the row.
func headers(raw []byte) map[string][]string {
	_, lines, found := bytes.Cut(raw, []byte("\r\n"))
	if !found {
		return nil
	}
	parsed := map[string][]string{}
	reader := textproto.NewReader(bufio.NewReader(bytes.NewReader(lines)))
	for {
		line, err := reader.ReadLineBytes()
		if err != nil || len(line) == 0 {
			return parsed
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			continue
		}
		key := string(bytes.ToValidUTF8(name, []byte("\uFFFD")))
		parsed[key] = append(parsed[key], string(bytes.ToValidUTF8(bytes.TrimSpace(value), []byte("\uFFFD"))))
	}
}
