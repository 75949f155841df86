package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// followUpAdmission is one request for a follow-up on its way.
type followUpAdmission struct {
	*admission
	charge key
	token  payments.Token // names this very request, should the answer to its commit get lost
	// forgotten: its copy stands in a stream, and the database does not know any more what it came to. lookOnly is what AcceptForgotten says of it.
	forgotten, lookOnly bool
	allowed             func() error
}

// AdmitFollowUp implements payments.FollowUps: in one transaction it locks the charge, asks payments.AcceptFollowUp, and stores the follow-up with its
// ticket, its place and what announces it. A key that is there already is found without a lock. CodeInvalid as for Admit; CodeUnavailable, too, while a rewind
// is running, for a key that is new.
func (s *Store) AdmitFollowUp(ctx context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error) {
	a, refused, err := s.prepareFollowUp(r)
	if err != nil {
		return payments.FollowUpAdmission{}, err
	}
	if refused {
		return payments.FollowUpAdmission{Verdict: payments.VerdictRefused}, nil
	}
	var done payments.FollowUpAdmission
	var messages []payments.OutboxItem
	err = s.write(ctx, func(ctx context.Context) error {
		missing, err := s.missingTenants(ctx, []string{a.Intent.TenantID})
		if err != nil {
			return err
		}
		return s.transact(ctx, func(tx *transaction) error {
			if done, messages, err = s.admitFollowUp(ctx, tx, a, missing[a.Intent.TenantID]); err != nil {
				return err
			}
			b := tx.batch()
			queueClearSuspect(b, r.Suspect)
			s.reached("follow_up")
			return tx.commit(ctx, b)
		})
	})
	if err != nil {
		return payments.FollowUpAdmission{}, err
	}
	s.committed(messages)
	return done, nil
}

// prepareFollowUp does all that needs no database. refused says that the request names no key that could be looked up.
func (s *Store) prepareFollowUp(r payments.FollowUpRequest) (a *followUpAdmission, refused bool, err error) {
	one := payments.AdmitRequest{
		Intent: r.Intent, Lane: r.Lane, Refused: r.Refused, ExistingOnly: r.ExistingOnly, Announce: r.Announce, Suspect: r.Suspect,
	}
	if one.Refused == nil && !one.Intent.Kind.FollowUp() {
		return nil, false, &payments.Error{Code: payments.CodeInvalid, Field: "kind", Message: "must be capture, cancel or refund"}
	}
	a = &followUpAdmission{token: s.newToken(), allowed: r.Allowed}
	if a.admission, refused, err = prepareAny(one); err != nil || refused {
		return nil, refused, err
	}
	if a.inserts() {
		a.charge.tenant = a.Intent.TenantID
		if a.charge.id, err = payments.ParseID(a.Intent.PaymentID); err != nil {
			return nil, false, &payments.Error{Code: payments.CodeInvalid, Field: "payment_id", Message: "must be the id of a payment, pay_ followed by 32 lower-case hex digits"}
		}
	}
	return a, false, nil
}

// admitFollowUp is all of an admission but its commit.
func (s *Store) admitFollowUp(ctx context.Context, tx *transaction, a *followUpAdmission, tenantUnknown bool) (payments.FollowUpAdmission, []payments.OutboxItem, error) {
	k := a.key()
	var met []row
	if !tenantUnknown {
		b := tx.batch()
		b.Queue(query("find_follow_up"), k.tenant, k.id[:]).Query(collectFollowUps(&met))
		if err := tx.send(ctx, b); err != nil {
			return payments.FollowUpAdmission{}, nil, err
		}
	}
	if tenantUnknown || len(met) > 0 || !a.inserts() {
		return a.answer(met, tenantUnknown), nil, nil
	}
	if err := s.trusted(ctx, tx, a); err != nil {
		return payments.FollowUpAdmission{}, nil, err
	}
	t, err := s.lockTarget(ctx, tx, a)
	if err != nil {
		return payments.FollowUpAdmission{}, nil, err
	}
	if len(t.met) > 0 { // by somebody who had the lock before
		return a.answer(t.met, false), nil, nil
	}
	amount, verdict, why := int64(0), payments.Verdict(""), ""
	if a.forgotten {
		amount, verdict, why, a.lookOnly = payments.AcceptForgotten(t.charge, t.earlier, a.Intent)
	} else {
		amount, verdict, why = payments.AcceptFollowUp(t.charge, t.earlier, a.Intent)
	}
	if verdict != payments.VerdictStored {
		return payments.FollowUpAdmission{Verdict: verdict, Why: why}, nil, nil
	}
	return s.storeFollowUp(ctx, tx, a, t, amount)
}

// trusted refuses what is new while the database may have forgotten what was accepted before: how much is left is what a rewind finds out.
func (s *Store) trusted(ctx context.Context, tx *transaction, a *followUpAdmission) error {
	if a.forgotten {
		return nil
	}
	if a.allowed != nil {
		if err := a.allowed(); err != nil {
			return err
		}
	}
	err := s.notRewinding(ctx, tx)
	if payments.ErrorCode(err) == payments.CodeInvalid {
		return payments.Errorf(payments.CodeUnavailable, "a rewind is running")
	}
	return err
}

// target is what a follow-up meets under the lock of its charge.
type target struct {
	charge  payments.Payment // the zero Payment: there is none
	earlier []payments.FollowUp
	met     []row // what stands under the follow-up's own key
}

// lockTarget locks the charge and reads, each with a newer snapshot, what is decided by. A cancel may hold the charge back, and so locks its ticket, too,
// in the order of everybody: before the payment.
func (s *Store) lockTarget(ctx context.Context, tx *transaction, a *followUpAdmission) (target, error) {
	var t target
	var charge, earlier []row
	k := a.key()
	b := tx.batch()
	tenants, ids := keyArrays([]key{a.charge})
	if a.Intent.Kind == payments.KindCancel {
		b.Queue(query("lock_ticket"), a.charge.tenant, a.charge.id[:])
	}
	b.Queue(query("lock_payments"), tenants, ids)
	b.Queue(query("find"), a.charge.tenant, a.charge.id[:]).Query(collect(&charge))
	b.Queue(query("follow_ups_of"), a.charge.tenant, a.charge.id[:], nil).Query(collectFollowUps(&earlier))
	b.Queue(query("find_follow_up"), k.tenant, k.id[:]).Query(collectFollowUps(&t.met))
	if err := tx.send(ctx, b); err != nil {
		return t, err
	}
	if len(charge) > 0 {
		t.charge = charge[0].payment
	}
	t.earlier = followUps(earlier)
	return t, nil
}

// storeFollowUp inserts what was accepted, and reads what stands under its key then: of two charges that get a follow-up under one key at the same
// time, one does.
func (s *Store) storeFollowUp(ctx context.Context, tx *transaction, a *followUpAdmission, t target, amount int64) (done payments.FollowUpAdmission, messages []payments.OutboxItem, err error) {
	k, p, in := a.key(), t.charge, a.Intent
	number := int64(1)
	if n := len(t.earlier); n > 0 {
		number = t.earlier[n-1].Number + 1
	}
	var met []row
	b := tx.batch()
	b.Queue(query("accept_follow_up"), s.now(), k.tenant, k.id[:], number, a.charge.id[:], in.IdempotencyKey, string(in.Kind), int16(a.Lane),
		s.opts.RequestVersion, a.fingerprint[:], payments.FingerprintVersion, amount, p.Currency, a.details, p.StripePaymentIntent, p.StripeAccount,
		p.Livemode, a.forgotten, a.token[:], a.announced != nil, s.holdParam()).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var outbox int64
			if err := rows.Scan(&outbox); err != nil {
				return err
			}
			if outbox > 0 {
				messages = append(messages, announcedItem(alone(outbox), k.tenant, a.Lane, a.announced))
			}
		}
		return rows.Err()
	})
	if !a.forgotten && payments.HoldsBack(p, in) {
		b.Queue(query("park_ticket"), a.charge.tenant, a.charge.id[:], k.id[:])
	}
	b.Queue(query("find_follow_up"), k.tenant, k.id[:]).Query(collectFollowUps(&met))
	if err := tx.send(ctx, b); err != nil {
		return done, nil, err
	}
	if len(met) == 0 {
		return done, nil, errRowGone // never go on without knowing whose it is
	}
	return a.answer(met, false), messages, nil
}

// answer ranks what the request met.
func (a *followUpAdmission) answer(met []row, tenantUnknown bool) payments.FollowUpAdmission {
	m := meeting{tenantUnknown: tenantUnknown, rowThere: len(met) > 0, refused: a.Refused != nil, existingOnly: a.ExistingOnly}
	if m.rowThere {
		m.sameRequest = payments.SabotageNoFingerprint || sameRequest(a.admission, &met[0])
		m.inserted = a.inserts() && met[0].lastToken == a.token // also by an earlier attempt, whose answer was lost
	}
	done := payments.FollowUpAdmission{Verdict: rank(m)}
	switch done.Verdict {
	case payments.VerdictConflict:
		done.Differs = differs(met[0].payment.Intent, a.Intent)
		done.FollowUp = met[0].followUp()
	case payments.VerdictExists, payments.VerdictStored:
		done.FollowUp = met[0].followUp()
	}
	return done
}

// collectFollowUps is the callback of a statement that returns {payment}, {ticket}, a number and the name of a refund.
func collectFollowUps(into *[]row) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var number int64
			var refund string
			r, err := scanRow(rows, &number, &refund)
			if err != nil {
				return err
			}
			r.number, r.refund = number, refund
			*into = append(*into, r)
		}
		return rows.Err()
	}
}

func followUps(rows []row) []payments.FollowUp {
	list := make([]payments.FollowUp, len(rows))
	for i, r := range rows {
		list[i] = r.followUp()
	}
	return list
}
