package postgres

import (
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// Why dead letters are skipped.
const (
	cardSkipped   = "cannot be replayed: the message held a card number, and nothing of it is kept"
	setSkipped    = "its payment is stored, and what a stored payment asks for is never changed: replay it as it is, without --set"
	keySetSkipped = "a payment of its key is stored, and what a stored payment asks for is never changed: replay it as it is, without --set, or publish a new key"
	batchSkipped  = "the message is a batch, whose payments cannot be changed here: publish it again under a new key"
)

// fate is what a replay can come to for a dead letter, as far as that is known before.
type fate int

const (
	mayCharge fate = iota
	hasOutcome
	waitsForPerson
	namesAnother // another request under a used key
	isRefused    // as it is, it can become no payment
)

// prospect is what a replay would do with a dead letter.
type prospect struct {
	skipped string // why it would leave it as it is
	payment *key   // nil: nobody can tell
	ofBatch bool
	// operation says that it is about a capture, a cancel or a refund.
	operation bool
	fate      fate
	money     map[string]int64 // of one that may be charged, at most; nil: nobody can tell
}

// prospect looks ahead, with the members that are to be set.
func (c *candidate) prospect(set map[string]string) prospect {
	p := prospect{skipped: c.skipped(set), payment: c.payment, ofBatch: c.ofBatch}
	switch {
	case p.skipped != "":
	case c.reason == payments.ReasonKeyReused:
		p.fate = namesAnother
	case c.settled():
		p.fate = hasOutcome
	case c.status == payments.StatusNeedsReview && !c.ofBatch:
		p.fate = waitsForPerson
	case !c.ofMessage || c.status != "" && !c.ofBatch: // what is stored is charged, whatever else the message says
		p.money = c.stored
	default:
		p.money, p.fate = c.asked(set)
	}
	p.operation = c.operation
	return p
}

// skipped is why a replay leaves it as it is; "": it does not.
func (c *candidate) skipped(set map[string]string) string {
	switch {
	case c.reason == payments.ReasonCardNumber:
		return cardSkipped
	case len(set) == 0:
		return ""
	case !c.ofMessage:
		return setSkipped
	case c.ofBatch:
		return batchSkipped
	case c.status != "":
		return keySetSkipped
	}
	return ""
}

// asked is the money that its message asks for, after the set. What this version refuses for what stands in it is refused again; of what died for
// another reason and cannot be read, some other version may make a payment.
func (c *candidate) asked(set map[string]string) (map[string]int64, fate) {
	switch c.reason {
	case payments.ReasonKeyMissing, payments.ReasonKeyInvalid, payments.ReasonTenantMismatch:
		return nil, isRefused // neither key nor tenant can be set
	}
	data := c.payload
	if len(set) > 0 {
		var err error
		if data, err = schema.EditIntent(data, set); err != nil {
			return nil, isRefused
		}
	}
	read := c.intent
	if c.ofBatch {
		read = c.batch
	}
	list, sound := read(data)
	switch {
	case sound && !c.ofBatch && list[0].Kind.FollowUp():
		c.operation = true // as it may be only after the set
		if _, another := set["payment_id"]; another {
			return about{}.asks(list[0]), mayCharge // in a currency that the message does not say
		}
		return c.charge.asks(list[0]), mayCharge
	case sound:
		money := map[string]int64{}
		for _, i := range list {
			addMoney(money, map[string]int64{i.Currency: i.Amount})
		}
		return money, mayCharge
	case len(set) > 0, c.reason == payments.ReasonUndecodable, c.reason == payments.ReasonInvalid:
		return nil, isRefused
	}
	return c.money, mayCharge
}

// intent reads a message as an intent, and reports whether it is one.
func (c *candidate) intent(data []byte) ([]payments.Intent, bool) {
	wire, err := schema.DecodeIntent(data)
	if err != nil {
		return nil, false
	}
	id := c.key
	if id == "" {
		id = wire.IdempotencyKey.Value
	}
	i := document.ReadIntent(wire, c.tenantID, id).Normalized()
	return []payments.Intent{i}, i.ValidateAny() == nil
}

// batch reads a message as a batch, and reports whether it is one.
func (c *candidate) batch(data []byte) ([]payments.Intent, bool) {
	wire, err := schema.DecodeBatch(data)
	if err != nil {
		return nil, false
	}
	r := payments.BatchRequest{TenantID: c.tenantID, IdempotencyKey: c.key, Parent: wire.Parent.Value}
	for _, p := range wire.Payments {
		r.Payments = append(r.Payments, document.ReadIntent(p, c.tenantID, "").Normalized())
	}
	return r.Payments, r.Validate() == nil
}

// isBatch reports whether a message with this subject is a batch: the tenant is the last token.
func isBatch(subject string) bool {
	end := strings.LastIndexByte(subject, '.')
	return end > 0 && strings.HasSuffix(subject[:end], "."+string(schema.SubjectBatch))
}

// outlook counts prospects of what is not skipped: letters, and each payment once.
type outlook struct {
	letters, nameless, conflict, refused, unpriced, operations int

	known map[subject]*sums
	loose map[string]int64 // money of letters that name no payment
}

// subject is what a letter is about; a batch may have the key of a payment.
type subject struct {
	key
	batch bool
}

// sums are what is known of one payment.
type sums struct {
	fates     [isRefused + 1]bool
	money     map[string]int64
	unpriced  bool
	operation bool
}

func (t *outlook) add(p prospect) {
	t.letters++
	switch p.fate {
	case namesAnother:
		t.conflict++
	case isRefused:
		t.refused++
	}
	if t.known == nil {
		t.known, t.loose = map[subject]*sums{}, map[string]int64{}
	}
	if p.payment == nil {
		if t.nameless++; p.operation && p.fate == mayCharge {
			t.operations++
		}
		if p.fate == mayCharge && p.money == nil {
			t.unpriced++
		}
		addMoney(t.loose, p.money)
		return
	}
	one := t.known[subject{*p.payment, p.ofBatch}]
	if one == nil {
		one = &sums{}
		t.known[subject{*p.payment, p.ofBatch}] = one
	}
	one.fates[p.fate] = true
	if p.fate != mayCharge {
		return
	}
	one.unpriced, one.operation = one.unpriced || p.money == nil, one.operation || p.operation
	if one.money == nil {
		one.money = p.money // shared, and copied before it is changed
		return
	}
	one.money = most(one.money, p.money)
}

// most is the greater of each currency: of two requests under one key, either may be the one that is charged.
func most(a, b map[string]int64) map[string]int64 {
	m := map[string]int64{}
	for _, money := range []map[string]int64{a, b} {
		for currency, amount := range money {
			m[currency] = max(m[currency], amount)
		}
	}
	return m
}

// sum writes what was counted.
func (t *outlook) sum(v *payments.ReplayPreview) {
	v.Count, v.Payments, v.Conflict, v.Refused = t.letters, t.nameless+len(t.known), t.conflict, t.refused
	v.Unpriced, v.Operations, v.Amount = t.unpriced, t.operations, map[string]int64{}
	addMoney(v.Amount, t.loose)
	for _, one := range t.known {
		if one.fates[hasOutcome] {
			v.Settled++
		}
		if one.fates[waitsForPerson] {
			v.Review++
		}
		if one.unpriced {
			v.Unpriced++
		}
		if one.operation {
			v.Operations++
		}
		addMoney(v.Amount, one.money)
	}
}
