package payments

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"
)

// Batch is what is kept of a batch beside its children. Its own row in payments, of KindBatch, guards its key; that row is final from the start,
// since what a batch asks for, that its payments be accepted, is done by the commit that stores it.
type Batch struct {
	TenantID       string
	IdempotencyKey string
	Parent         string // the name of the run that it is a part of; "": none
	Count          int    // of its children, 1 to BatchSizeMax
	CreatedAt      time.Time
	CompletedAt    time.Time // zero until its completion was told; set once
}

// ID is the batch's id, bat_… when formatted for KindBatch.
func (b Batch) ID() ID { return NewID(b.TenantID, b.IdempotencyKey) }

// BatchRef names a batch.
type BatchRef struct {
	TenantID string
	ID       ID
}

// StatusTotal is how many payments of a batch are shown with one status in one currency, and the sum of their amounts in minor units.
type StatusTotal struct {
	Status   Status
	Currency string
	Count    int
	Amount   int64
}

// BatchState is a batch and how far its children are.
type BatchState struct {
	Batch
	Totals []StatusTotal // sorted by status, then currency
}

// Complete reports whether every child exists and has a final status.
func (s BatchState) Complete() bool {
	final := 0
	for _, t := range s.Totals {
		if t.Status.Final() {
			final += t.Count
		}
	}
	return final == s.Count
}

// BatchRequest asks for a batch of payments. The children come without tenant, key and lane: those follow from the batch (Children).
type BatchRequest struct {
	TenantID       string
	IdempotencyKey string
	Parent         string
	// ParentEmpty says that a parent was named, by no name: most likely a variable that was not set. Such a batch is none's part, and is not stored anew.
	ParentEmpty bool
	Payments    []Intent
	// Refused, when set, says that nothing may be inserted; a batch that is there is still compared with it.
	Refused *ValidationError
	// ExistingOnly is as in AdmitRequest: insert nothing, compare with the batch if it is there; VerdictAbsent if nothing is.
	ExistingOnly bool
	// Suspect is as in AdmitRequest.
	Suspect *MessageOrigin
}

// ParentLengthMax is the length of the longest name of a run.
const ParentLengthMax = 255

// ID is the id that the batch's tenant and key name.
func (r BatchRequest) ID() ID { return NewID(r.TenantID, r.IdempotencyKey) }

// Intent is the batch's own keyed request, as its row keeps it.
func (r BatchRequest) Intent() Intent {
	return Intent{TenantID: r.TenantID, IdempotencyKey: r.IdempotencyKey, Kind: KindBatch}.Normalized()
}

// Children are the batch's payments, normalised and under their own keys. It panics on a batch that Validate refuses for its size or its key.
func (r BatchRequest) Children() []Intent {
	children := make([]Intent, len(r.Payments))
	for i, p := range r.Payments {
		key, err := ChildKey(r.IdempotencyKey, i)
		if err != nil {
			panic(err)
		}
		p.TenantID, p.IdempotencyKey = r.TenantID, key
		children[i] = p.Normalized()
	}
	return children
}

// BatchFingerprintVersion numbers what BatchFingerprint covers; see FingerprintVersion.
const BatchFingerprintVersion = 1

// Fingerprint is SHA-256 over what the batch asks for: its parent, the number of its payments, and what each asks for, in order. The hashed bytes
// are "batch", the version in decimal and the parent, each after its uvarint length, then the number of payments as uvarint, then Fingerprint of each.
func (r BatchRequest) Fingerprint() [sha256.Size]byte {
	buf := make([]byte, 0, 64+len(r.Parent)+sha256.Size*len(r.Payments))
	for _, s := range []string{"batch", strconv.Itoa(BatchFingerprintVersion), r.Parent} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	buf = binary.AppendUvarint(buf, uint64(len(r.Payments)))
	for _, p := range r.Payments {
		sum := Fingerprint(p)
		buf = append(buf, sum[:]...)
	}
	return sha256.Sum256(buf)
}

// Differs names what the request asks for otherwise than the batch that is there: parent, payments for another number of them, or the members of
// single payments, as payments[3].amount; at most differsMax names. stored are the batch's children in order.
func (r BatchRequest) Differs(parent string, stored []Intent) []string {
	var names []string
	if r.Parent != parent {
		names = append(names, "parent")
	}
	if len(r.Payments) != len(stored) {
		names = append(names, "payments")
	}
	for i := range min(len(r.Payments), len(stored)) {
		for _, field := range Differs(r.Payments[i], stored[i]) {
			if len(names) == differsMax {
				return names
			}
			names = append(names, childField(i, field))
		}
	}
	return names
}

// differsMax bounds the list: a batch whose order was changed differs everywhere.
const differsMax = 50

func childField(i int, field string) string { return "payments[" + strconv.Itoa(i) + "]." + field }

// Validate checks what can be known of a batch without asking anybody, as Intent.Validate does of an intent; faults of payments are named as
// payments[3].amount.
func (r BatchRequest) Validate() *ValidationError {
	v := &ValidationError{Reason: ReasonInvalid}
	message := CheckKey(r.IdempotencyKey)
	switch {
	case message != "":
	case ReservedKey(r.IdempotencyKey):
		message = `must not contain "` + ChildSeparator + `": it is reserved for the payments of a batch`
	case len(r.IdempotencyKey) > BatchKeyLengthMax:
		message = "must have at most " + strconv.Itoa(BatchKeyLengthMax) + " characters for a batch"
	}
	if message != "" {
		v.Reason = ReasonKeyInvalid
		if r.IdempotencyKey == "" {
			v.Reason = ReasonKeyMissing
		}
		v.add("idempotency_key", message)
	}
	if r.ParentEmpty || r.Parent != "" && (CheckKey(r.Parent) != "" || len(r.Parent) > ParentLengthMax) {
		v.add("parent", "must be 1 to "+strconv.Itoa(ParentLengthMax)+" printable ASCII characters without spaces, or left out")
	}
	if n := len(r.Payments); n < 1 || n > BatchSizeMax {
		v.add("payments", "must be 1 to "+strconv.Itoa(BatchSizeMax)+" payments")
	}
	for i, p := range r.Payments {
		p.TenantID, p.IdempotencyKey = r.TenantID, "k" // its own key is made of the batch's, which was checked above
		if wrong := p.Validate(); wrong != nil {
			for _, f := range wrong.Fields {
				v.add(childField(i, f.Field), f.Message)
			}
		}
	}
	if len(v.Fields) == 0 {
		return nil
	}
	return v
}

// CardField is as Intent.CardField, for the key, the parent and every payment.
func (r BatchRequest) CardField() string {
	switch {
	case cardInText(r.IdempotencyKey):
		return "idempotency_key"
	case cardInText(r.Parent):
		return "parent"
	}
	for i, p := range r.Payments {
		if field := p.CardField(); field != "" {
			return childField(i, field)
		}
	}
	return ""
}

// BatchAdmission is the answer to a BatchRequest.
type BatchAdmission struct {
	Verdict  Verdict // conflict, refused, tenant_unknown, exists, absent or stored
	Batch    Batch
	Children []Payment // in order, as they are now; for exists and stored
	Differs  []string  // for a conflict
}
