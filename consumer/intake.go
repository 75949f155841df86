package consumer

import (
	"errors"
	"strconv"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// message is what a JetStream message says, apart from how it was delivered.
type message struct {
	subject string
	headers map[string][]string
	data    []byte
}

// refusal is why a message can never become a payment or a batch. Its text is safe: it names fields and remedies, never a value.
type refusal struct {
	reason  payments.Reason
	message string
	erase   bool // the message holds a card number: nothing of it may be kept anywhere
}

// reading is what intake makes of a message: an intent or a batch to admit, or a refusal. Tenant and key are what is safe to file a dead letter
// under.
type reading struct {
	tenant       string
	key          string
	lane         payments.Lane
	intent       payments.Intent
	batch        *payments.BatchRequest // nil: it is an intent
	id           payments.ID            // of the payment or the batch
	existingOnly bool                   // the key is a batch child's: attach to its row, never create one
	refused      *payments.ValidationError
	refusal      *refusal
	why          string // the store's own words on why a follow-up was not accepted
}

const cardRemedy = "contains what looks like a card number; send a Stripe payment_method instead, and never card data"

// read maps the wire to the domain. It is pure and total: whatever the bytes are, it says what they are or why they are nothing. The order is
// that of CONTRACT: card numbers, syntax, key, tenant; business validation is only noted here, since a conflict is decided before it.
func read(subjects schema.Subjects, m message) reading {
	kind, tenant, err := subjects.ParseSubject(m.subject)
	r := reading{tenant: tenant, lane: payments.LaneInteractive}
	if kind == schema.SubjectBulk || kind == schema.SubjectBatch {
		r.lane = payments.LaneBulk
	}
	if where := cardIn(m); where != "" {
		r.refusal = &refusal{reason: payments.ReasonCardNumber, message: where + " " + cardRemedy, erase: true}
		if err != nil || payments.ContainsCardNumber([]byte(tenant)) {
			r.tenant = ""
		}
		return r
	}
	if r = r.parse(kind, err, m); r.refusal != nil && !r.refusal.erase && r.key == "" {
		r.key = keyToFileUnder(m)
	}
	return r
}

// parse reads a message in which no card number stands openly. misaddressed is what is wrong with its subject.
func (r reading) parse(kind schema.SubjectKind, misaddressed error, m message) reading {
	switch {
	case misaddressed != nil:
		r.tenant = ""
		return r.refuse(payments.ReasonTenantUnknown, "subject: "+misaddressed.Error())
	case kind == schema.SubjectBatch:
		wire, err := schema.DecodeBatch(m.data)
		if err != nil {
			return r.refuse(decodeReason(err), err.Error())
		}
		return r.fillBatch(wire, m.headers)
	case kind != schema.SubjectIntent && kind != schema.SubjectBulk:
		return r.refuse(payments.ReasonInvalid, "subject: this is not a subject for payment intents or batches")
	}
	wire, err := schema.DecodeIntent(m.data)
	if err != nil {
		return r.refuse(decodeReason(err), err.Error())
	}
	return r.fill(wire, m.headers)
}

func (r reading) refuse(reason payments.Reason, text string) reading {
	r.refusal = &refusal{reason: reason, message: text}
	return r
}

// fill takes the key from body or header, checks whom the intent belongs to, and normalises it.
func (r reading) fill(wire schema.Intent, headers map[string][]string) reading {
	key, reason, text := keyOf(wire.IdempotencyKey, headers)
	if reason != "" {
		return r.refuse(reason, text)
	}
	r.key = key
	if r.isAnothers(wire) {
		return r.refuse(payments.ReasonTenantMismatch, "tenant_id"+anothersRemedy)
	}
	r.existingOnly = payments.ReservedKey(key)
	r.intent = document.ReadIntent(wire, r.tenant, key).Normalized()
	if field := r.intent.CardField(); field != "" {
		// What stood around the number in the raw bytes made it look like something else.
		r.key, r.intent, r.existingOnly = "", payments.Intent{}, false
		r.refusal = &refusal{reason: payments.ReasonCardNumber, message: field + " " + cardRemedy, erase: true}
		return r
	}
	r.id, r.refused = r.intent.ID(), r.intent.Validate()
	if r.followUp() {
		r.refused = r.intent.ValidateFollowUp()
	}
	return r
}

// followUp reports whether the message asks for a capture, a cancel or a refund.
func (r reading) followUp() bool { return r.batch == nil && r.intent.Kind.FollowUp() }

// kind is what the message asks for, for people.
func (r reading) kind() payments.Kind {
	switch {
	case r.batch != nil:
		return payments.KindBatch
	case r.intent.Kind == "":
		return payments.KindCharge
	}
	return r.intent.Kind
}

// fillBatch is fill for a batch. What is wrong with its key is no matter of business: no batch can have such a key, so there is none to compare
// with.
func (r reading) fillBatch(wire schema.BatchMessage, headers map[string][]string) reading {
	key, reason, text := keyOf(wire.IdempotencyKey, headers)
	if reason != "" {
		return r.refuse(reason, text)
	}
	r.key = key
	request := payments.BatchRequest{
		TenantID: r.tenant, IdempotencyKey: key, Parent: wire.Parent.Value, ParentEmpty: wire.Parent.Set && wire.Parent.Value == "",
		Payments: make([]payments.Intent, len(wire.Payments)),
	}
	for i, p := range wire.Payments {
		if r.isAnothers(p) {
			return r.refuse(payments.ReasonTenantMismatch, "payments["+strconv.Itoa(i)+"].tenant_id"+anothersRemedy)
		}
		request.Payments[i] = document.ReadIntent(p, r.tenant, "").Normalized()
	}
	if field := request.CardField(); field != "" {
		r.key = ""
		r.refusal = &refusal{reason: payments.ReasonCardNumber, message: field + " " + cardRemedy, erase: true}
		return r
	}
	wrong := request.Validate()
	if wrong != nil && wrong.Reason != payments.ReasonInvalid {
		return r.refuse(wrong.Reason, wrong.Error())
	}
	request.Refused = wrong
	r.batch, r.id, r.refused = &request, request.ID(), wrong
	return r
}

const anothersRemedy = ": is not the tenant of the subject; leave it out or publish on that tenant's own subject"

// isAnothers reports whether the intent names another tenant than the subject.
func (r reading) isAnothers(wire schema.Intent) bool {
	return wire.TenantID.Set && wire.TenantID.Value != r.tenant
}

// keyToFileUnder finds a key that people can search a dead letter by. No payment is ever made under it.
func keyToFileUnder(m message) string {
	key, ok := schema.PeekKey(m.data)
	if !ok {
		var err error
		if key, _, err = schema.ParseKeyHeader(schema.HeaderLines(m.headers, schema.HeaderIdempotencyKey)); err != nil {
			return ""
		}
	}
	if payments.ContainsCardNumberString(key) {
		return ""
	}
	return key
}

// keyOf reads the idempotency key: from the body, the header, or both when they agree.
func keyOf(member schema.Optional[string], headers map[string][]string) (key string, reason payments.Reason, text string) {
	header, present, err := schema.ParseKeyHeader(schema.HeaderLines(headers, schema.HeaderIdempotencyKey))
	if err != nil {
		return "", payments.ReasonKeyInvalid, err.Error()
	}
	key = member.Or(header)
	switch {
	case !present && !member.Set:
		return "", payments.ReasonKeyMissing, "idempotency_key: " + payments.CheckKey("")
	case present && member.Set && header != member.Value:
		return "", payments.ReasonKeyInvalid, "idempotency_key: the member and the Idempotency-Key header differ; send one of them"
	}
	if problem := payments.CheckKey(key); problem != "" {
		return "", payments.ReasonKeyInvalid, "idempotency_key: " + problem
	}
	return key, "", ""
}

// decodeReason tells bytes that are no message at all from a message that is no intent or batch.
func decodeReason(err error) payments.Reason {
	var d *schema.DecodeError
	if errors.As(err, &d) && !d.Malformed {
		return payments.ReasonInvalid
	}
	return payments.ReasonUndecodable
}
