package consumer

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// fakeBatch is a batch of the store in memory.
type fakeBatch struct {
	request  payments.BatchRequest
	children []payments.ID
	told     bool
}

var _ payments.Batches = (*fakeStore)(nil)

func (s *fakeStore) AdmitBatch(_ context.Context, r payments.BatchRequest) (payments.BatchAdmission, error) {
	if err := s.begin("admit batch", r.ID()); err != nil {
		return payments.BatchAdmission{}, err
	}
	defer s.mu.Unlock()
	if r.Suspect != nil {
		delete(s.letters, originKey(*r.Suspect))
	}
	ref := payments.BatchRef{TenantID: r.TenantID, ID: r.ID()}
	if b := s.batches[ref]; b != nil {
		if b.request.Fingerprint() != r.Fingerprint() {
			return payments.BatchAdmission{Verdict: payments.VerdictConflict, Differs: r.Differs(b.request.Parent, b.request.Children())}, nil
		}
		return s.batchLocked(payments.VerdictExists, b), nil
	}
	switch {
	case s.rows[ref.ID] != nil:
		return payments.BatchAdmission{Verdict: payments.VerdictConflict, Differs: []string{"kind"}}, nil
	case r.Refused != nil:
		return payments.BatchAdmission{Verdict: payments.VerdictRefused}, nil
	case r.TenantID == "nobody":
		return payments.BatchAdmission{Verdict: payments.VerdictTenantUnknown}, nil
	}
	b := &fakeBatch{request: r}
	s.batches[ref] = b
	for _, child := range r.Children() {
		s.insertLocked(child, payments.LaneBulk).payment.BatchID = r.ID().Format(payments.KindBatch)
		b.children = append(b.children, child.ID())
	}
	return s.batchLocked(payments.VerdictStored, b), nil
}

func (s *fakeStore) batchLocked(v payments.Verdict, b *fakeBatch) payments.BatchAdmission {
	a := payments.BatchAdmission{Verdict: v, Batch: payments.Batch{
		TenantID: b.request.TenantID, IdempotencyKey: b.request.IdempotencyKey, Parent: b.request.Parent, Count: len(b.children), CreatedAt: time.Unix(1, 0),
	}}
	for _, id := range b.children {
		a.Children = append(a.Children, s.rows[id].shown())
	}
	return a
}

func (s *fakeStore) CompleteBatches(_ context.Context, refs []payments.BatchRef) (told int, err error) {
	if err := s.begin("complete batches", refs[0].ID); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	for _, ref := range refs {
		b := s.batches[ref]
		if b == nil || b.told || slices.ContainsFunc(b.children, func(id payments.ID) bool { return !s.rows[id].payment.Status.Final() }) {
			continue
		}
		b.told = true
		s.told = append(s.told, ref)
		told++
	}
	return told, nil
}

func (s *fakeStore) OpenBatches(_ context.Context, after payments.BatchRef, limit int) ([]payments.BatchRef, error) {
	if err := s.begin("open batches", after.ID); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	order := func(a, b payments.BatchRef) int {
		return cmp.Or(cmp.Compare(a.TenantID, b.TenantID), bytes.Compare(a.ID[:], b.ID[:]))
	}
	var open []payments.BatchRef
	for ref, b := range s.batches {
		if !b.told && order(ref, after) > 0 {
			open = append(open, ref)
		}
	}
	slices.SortFunc(open, order)
	return open[:min(limit, len(open))], nil
}

// completed lists the batches whose completion was told, in that order.
func (s *fakeStore) completed() []payments.BatchRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}
