package postgres

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// admission is one request on its way through a flush.
type admission struct {
	payments.AdmitRequest
	id          payments.ID
	fingerprint [32]byte
	details     string
	announced   []byte // what is published of the intent; nil without Announce
	// leaseFrom is the process's wall-clock time before the first attempt.
	leaseFrom time.Time
}

func (a *admission) key() key { return key{a.Intent.TenantID, a.id} }

// inserts reports whether the request may create its row.
func (a *admission) inserts() bool { return a.Refused == nil && !a.ExistingOnly }

// mayWait: who accepts a payment and only answers comes back by way of a network, and is answered while PostgreSQL has the next flush.
func (a *admission) mayWait() bool { return a.announced != nil && !a.Claim }

func (a *admission) weight() int {
	return 256 + len(a.Intent.IdempotencyKey) + len(a.Intent.Customer) + len(a.Intent.PaymentMethod) + len(a.details) + len(a.announced)
}

// Admit implements payments.Store: it stores a payment and its ticket if the key is new, and reads whichever row is there. Concurrent calls
// share their commits. A request whose text PostgreSQL cannot keep, or with Claim and without a token, a lease or an account, is CodeInvalid: such a one
// should not have passed validation.
func (s *Store) Admit(ctx context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	a, refused, err := prepare(r)
	if err != nil {
		return payments.Admission{}, err
	}
	if refused {
		return payments.Admission{Verdict: payments.VerdictRefused}, nil
	}
	done, err := s.admits.Do(ctx, a)
	if err != nil {
		return payments.Admission{}, translate(err)
	}
	return *done, nil
}

// prepare does, in the caller's goroutine, all that needs no database. refused says that the request names no key that could be looked up.
func prepare(r payments.AdmitRequest) (a *admission, refused bool, err error) {
	if r.Intent.Kind.FollowUp() && r.Refused == nil && !r.ExistingOnly {
		return nil, false, &payments.Error{Code: payments.CodeInvalid, Field: "kind", Message: "what is about a payment is accepted under a lock of it"}
	}
	return prepareAny(r)
}

func prepareAny(r payments.AdmitRequest) (a *admission, refused bool, err error) {
	r.Intent = r.Intent.Normalized()
	i := r.Intent
	if problem := payments.CheckTenantID(i.TenantID); problem != "" {
		return nil, r.Refused != nil, refusal(r, "tenant_id", problem)
	}
	if problem := payments.CheckKey(i.IdempotencyKey); problem != "" {
		return nil, r.Refused != nil, refusal(r, "idempotency_key", problem)
	}
	a = &admission{AdmitRequest: r, id: i.ID(), fingerprint: payments.Fingerprint(i)}
	if !a.inserts() {
		return a, false, nil
	}
	if i.Kind == payments.KindBatch {
		return nil, false, &payments.Error{Code: payments.CodeInvalid, Field: "kind", Message: "a batch is stored with its payments, not alone"}
	}
	if r.Claim && (r.Token.IsZero() || r.Lease <= 0 || r.Account.ID == "") {
		return nil, false, payments.Errorf(payments.CodeInvalid, "a request that claims needs a token, a lease and an account")
	}
	texts := [...]struct{ field, text string }{
		{"kind", string(i.Kind)}, {"currency", i.Currency}, {"capture_method", string(i.CaptureMethod)}, {"customer", i.Customer},
		{"payment_method", i.PaymentMethod}, {"payment_id", i.PaymentID}, {"reason", i.Reason}, {"description", i.Description},
		{"statement_descriptor_suffix", i.StatementDescriptorSuffix}, {"receipt_email", i.ReceiptEmail}, {"return_url", i.ReturnURL},
		{"stripe_account", r.Account.ID},
	}
	for _, t := range texts {
		if !storable(t.text) {
			return nil, false, unstorable(t.field)
		}
	}
	for name, value := range i.Metadata {
		if !storable(name) || !storable(value) {
			return nil, false, unstorable("metadata")
		}
	}
	a.details = encodeDetails(i)
	if r.Announce {
		if a.announced, err = announcement(i); err != nil {
			return nil, false, err
		}
	}
	return a, false, nil
}

func refusal(r payments.AdmitRequest, field, problem string) error {
	if r.Refused != nil {
		return nil
	}
	return &payments.Error{Code: payments.CodeInvalid, Field: field, Message: problem}
}

func unstorable(field string) error {
	return &payments.Error{Code: payments.CodeInvalid, Field: field, Message: "must be valid UTF-8 without U+0000: remove what is not"}
}

// fresh is the row that the request inserts at the store's time now, with its token or without.
func (a *admission) fresh(now time.Time, requestVersion int, claimed bool) row {
	p := payments.Payment{
		Intent: a.Intent, ID: a.id, Lane: a.Lane, Status: payments.StatusReceived, RequestVersion: requestVersion, CreatedAt: now, UpdatedAt: now,
	}
	if !p.ExpiresAt.IsZero() {
		p.ExpiresAt = micro(p.ExpiresAt)
	}
	ticket := &payments.Ticket{Lane: a.Lane, DueAt: now}
	if claimed {
		p.FirstSubmitAt, p.LastSubmitAt, p.InDoubt = now, now, true
		p.StripeAccount, p.Livemode = a.Account.ID, a.Account.Livemode
		ticket.DueAt, ticket.Token = now.Add(a.Lease.Truncate(time.Microsecond)), a.Token
	}
	return row{
		payment: withTicket(p, ticket), fingerprint: a.fingerprint, fingerprintVersion: payments.FingerprintVersion, ticket: ticket,
	}
}

// claim is the right that the request's token gives: the payment as it stood before this owner came, which is as it was sent in.
func (a *admission) claim(r *row, now time.Time) payments.Claim {
	p := r.payment
	claimed := p.FirstSubmitAt
	p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt, p.Owned = false, time.Time{}, time.Time{}, false
	// The ticket's time left, counted from before it was asked for: never longer than the ticket itself, also when the token was committed
	// by an earlier attempt.
	left := min(a.Lease, r.ticket.DueAt.Sub(now))
	return payments.Claim{
		Payment: p, Token: r.ticket.Token, Lane: r.payment.Lane, LeaseUntil: a.leaseFrom.Add(left), ClaimedAt: claimed, Abandoned: r.ticket.Abandoned,
	}
}
