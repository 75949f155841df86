package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/oncepay/oncepay/payments"
)

// batchAdmission is a batch on its way into the store.
type batchAdmission struct {
	payments.BatchRequest
	key         key
	fingerprint [32]byte
	children    []*admission // in order; none of a request that inserts nothing
}

// inserts is as for an admission.
func (a *batchAdmission) inserts() bool { return a.Refused == nil && !a.ExistingOnly }

// AdmitBatch implements payments.Batches. The batch's row is inserted first: whoever comes with the same key meanwhile waits there, and nobody else
// does. A commit whose answer was lost is repeated, and then answered with exists. CodeInvalid: what cannot be stored, as for Admit; such a request
// should not have passed validation.
func (s *Store) AdmitBatch(ctx context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	f, refused, err := prepareBatch(r)
	if err != nil {
		return payments.BatchAdmission{}, err
	}
	if refused {
		return payments.BatchAdmission{Verdict: payments.VerdictRefused}, nil
	}
	var a *batchAttempt
	err = s.write(ctx, func(ctx context.Context) error {
		missing, err := s.missingTenants(ctx, []string{r.TenantID})
		if err != nil {
			return err
		}
		a = &batchAttempt{batchAdmission: f, tenantUnknown: missing[r.TenantID]}
		return s.transact(ctx, func(tx *transaction) error { return s.admitBatch(ctx, tx, a) })
	})
	if err != nil {
		return payments.BatchAdmission{}, err
	}
	if a.done.Verdict == payments.VerdictStored {
		s.committed(a.messages)
	}
	return a.done, nil
}

// prepareBatch does all that needs no database. refused says that the request names no key that could be looked up.
func prepareBatch(r payments.BatchRequest) (f *batchAdmission, refused bool, err error) {
	asked := payments.AdmitRequest{Refused: r.Refused}
	if problem := payments.CheckTenantID(r.TenantID); problem != "" {
		return nil, r.Refused != nil, refusal(asked, "tenant_id", problem)
	}
	if problem := payments.CheckKey(r.IdempotencyKey); problem != "" {
		return nil, r.Refused != nil, refusal(asked, "idempotency_key", problem)
	}
	f = &batchAdmission{BatchRequest: r, key: key{r.TenantID, r.ID()}, fingerprint: r.Fingerprint()}
	if !f.inserts() {
		return f, false, nil
	}
	invalid := func(field, message string) (*batchAdmission, bool, error) {
		return nil, false, &payments.Error{Code: payments.CodeInvalid, Field: field, Message: message}
	}
	switch n := len(r.Payments); {
	case n < 1 || n > payments.BatchSizeMax:
		return invalid("payments", "must be 1 to "+strconv.Itoa(payments.BatchSizeMax)+" payments")
	case len(r.IdempotencyKey) > payments.BatchKeyLengthMax, payments.ReservedKey(r.IdempotencyKey):
		return invalid("idempotency_key", "must be one that a batch may have")
	case len(r.Parent) > payments.ParentLengthMax:
		return invalid("parent", "must have at most "+strconv.Itoa(payments.ParentLengthMax)+" characters")
	case !storable(r.Parent):
		return nil, false, unstorable("parent")
	}
	f.children = make([]*admission, len(r.Payments))
	for i, child := range r.Children() {
		a, _, err := prepare(payments.AdmitRequest{Intent: child, Lane: payments.LaneBulk, Announce: true})
		if err != nil {
			return nil, false, ofChild(i, err)
		}
		f.children[i] = a
	}
	return f, false, nil
}

// ofChild names the place of what is wrong with a batch's payment.
func ofChild(i int, err error) error {
	var wrong *payments.Error
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return err
	}
	placed := *wrong
	placed.Field = fmt.Sprintf("payments[%d].%s", i, wrong.Field)
	return &placed
}

// admitBatch stores or compares, in one transaction. Where a child's key is another request's nothing stays of it.
func (s *Store) admitBatch(ctx context.Context, tx *transaction, a *batchAttempt) error {
	if !a.tenantUnknown && a.inserts() {
		b := tx.batch()
		s.queueBatch(b, a)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
	}
	if !a.tenantUnknown && (!a.created || len(a.fresh) < len(a.children)) {
		b := tx.batch()
		a.queueRead(b)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
	}
	if err := a.answer(s.opts.RequestVersion); err != nil {
		return err
	}
	b := tx.batch()
	if a.created && a.done.Verdict != payments.VerdictStored {
		b.Queue("rollback")
		b.Queue(begin) // a message that survived is no suspect, whatever became of it
	}
	if a.created && a.done.Verdict == payments.VerdictStored {
		a.queueAdoption(b)
	}
	queueClearSuspect(b, a.Suspect)
	s.reached("admit_batch")
	return tx.commit(ctx, b)
}
