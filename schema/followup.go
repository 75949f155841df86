package schema

// Operation is one capture, cancel or refund of a payment.
type Operation struct {
	ID                  string     `json:"id"` // ref_… of a refund, op_… of the others
	Kind                string     `json:"kind"`
	PaymentID           string     `json:"payment_id"`
	TenantID            string     `json:"tenant_id"`
	IdempotencyKey      string     `json:"idempotency_key"`
	Status              string     `json:"status"`
	Amount              int64      `json:"amount"` // minor units; 0 of a cancel
	Currency            string     `json:"currency"`
	Reason              *string    `json:"reason"` // as the client stated it
	Metadata            Metadata   `json:"metadata"`
	StripeRefund        *string    `json:"stripe_refund"`
	StripePaymentIntent *string    `json:"stripe_payment_intent"`
	StripeAccount       *string    `json:"stripe_account"`
	Tries               int        `json:"tries"`
	StatusReason        *string    `json:"status_reason"` // why it stands where it stands
	Failure             *Failure   `json:"failure"`
	NextAttemptAt       *Timestamp `json:"next_attempt_at"`
	CreatedAt           Timestamp  `json:"created_at"`
	UpdatedAt           Timestamp  `json:"updated_at"`
	FinalizedAt         *Timestamp `json:"finalized_at"`

	// Events are what "payments show" adds.
	Events []TimelineEntry `json:"events,omitzero"`
}

// ForEvent is the operation as an event carries it: without its timeline.
func (o Operation) ForEvent() Operation {
	o.Events = nil
	return o
}

// OperationRequest is the body of a request for a capture, a cancel or a refund
// as it stands on the wire: nothing filled in, nothing required.
type OperationRequest struct {
	Amount   Optional[int64]   // minor units; of captures and refunds
	Reason   Optional[string]  // of cancels and refunds
	Metadata map[string]string // of refunds; nil is absent, empty is {}
}

// OperationMembers lists the members that the body of a request of the kind may
// have; none for a kind that is no operation.
func OperationMembers(kind string) []string {
	switch kind {
	case KindCapture:
		return []string{memberAmount}
	case KindCancel:
		return []string{memberReason}
	case KindRefund:
		return []string{memberAmount, memberReason, memberMetadata}
	}
	return nil
}

// DecodeOperation reads the body of a request for a capture, a cancel or a
// refund, as strictly as [DecodeIntent] reads an intent. No bytes at all are {}:
// nothing that such a request may say is required. The error is a
// [*DecodeError].
func DecodeOperation(kind string, data []byte) (OperationRequest, error) {
	if len(data) == 0 {
		return OperationRequest{}, nil
	}
	if len(data) > IntentMaxBytes {
		return OperationRequest{}, errTooLarge(len(data), IntentMaxBytes)
	}
	r := newReader(data)
	defer r.release()
	var request OperationRequest
	err := r.operation(OperationMembers(kind), &request)
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return OperationRequest{}, err.settle(data)
	}
	return request, nil
}

func (r *reader) operation(members []string, to *OperationRequest) *DecodeError {
	if err := r.begin(""); err != nil {
		return err
	}
	for {
		name, more, err := r.name("")
		if err != nil || !more {
			return err
		}
		if err := r.operationMember(name, members, to); err != nil {
			return err
		}
	}
}

func (r *reader) operationMember(name []byte, members []string, to *OperationRequest) *DecodeError {
	known := ""
	for _, member := range members {
		if string(name) == member {
			known = member
		}
	}
	switch known {
	case memberAmount:
		return r.integer(memberAmount, &to.Amount)
	case memberReason:
		return r.text(memberReason, &to.Reason)
	case memberMetadata:
		return r.texts(memberMetadata, &to.Metadata)
	}
	return r.unknown(name, members)
}
