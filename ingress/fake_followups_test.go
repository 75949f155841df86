package ingress

import (
	"context"

	"github.com/oncepay/oncepay/payments"
)

func (s *fakeStore) AdmitFollowUp(ctx context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error) {
	if err := s.begin(ctx, "admit_follow_up"); err != nil {
		return payments.FollowUpAdmission{}, err
	}
	defer s.mu.Unlock()
	s.asked = append(s.asked, r)
	at := ref(r.Intent)
	if row, there := s.rows[at]; there {
		if differs := payments.Differs(r.Intent, row.Intent); len(differs) > 0 {
			return payments.FollowUpAdmission{Verdict: payments.VerdictConflict, FollowUp: payments.FollowUp{Payment: row}, Differs: differs}, nil
		}
		return payments.FollowUpAdmission{Verdict: payments.VerdictExists, FollowUp: s.followUpLocked(at)}, nil
	}
	switch {
	case r.Refused != nil:
		return payments.FollowUpAdmission{Verdict: payments.VerdictRefused}, nil
	case r.ExistingOnly:
		return payments.FollowUpAdmission{Verdict: payments.VerdictAbsent}, nil
	}
	id, err := payments.ParseID(r.Intent.PaymentID)
	if err != nil {
		return payments.FollowUpAdmission{}, err
	}
	of := payments.BatchRef{TenantID: r.Intent.TenantID, ID: id}
	charge, i := s.rows[of], r.Intent
	amount, verdict, why := payments.AcceptFollowUp(charge, s.followUpsLocked(of), i)
	if verdict != payments.VerdictStored {
		return payments.FollowUpAdmission{Verdict: verdict, Why: why}, nil
	}
	i.Amount, i.Currency = amount, charge.Currency
	s.insertLocked(i, r.Lane, payments.StatusReceived, "")
	s.followUps[of] = append(s.followUps[of], at.ID)
	return payments.FollowUpAdmission{Verdict: payments.VerdictStored, FollowUp: s.followUpLocked(at)}, nil
}

func (s *fakeStore) followUpsLocked(of payments.BatchRef) (list []payments.FollowUp) {
	for _, id := range s.followUps[of] {
		list = append(list, s.followUpLocked(payments.BatchRef{TenantID: of.TenantID, ID: id}))
	}
	return list
}

func (s *fakeStore) followUpLocked(at payments.BatchRef) payments.FollowUp {
	return payments.FollowUp{Payment: s.rows[at], Number: 1, StripeRefund: s.refunds[at]}
}

func (s *fakeStore) FindFollowUp(ctx context.Context, tenantID string, id payments.ID) (payments.FollowUp, error) {
	if err := s.begin(ctx, "find_follow_up"); err != nil {
		return payments.FollowUp{}, err
	}
	defer s.mu.Unlock()
	at := payments.BatchRef{TenantID: tenantID, ID: id}
	if !s.rows[at].Kind.FollowUp() {
		return payments.FollowUp{}, payments.Errorf(payments.CodeNotFound, "no such follow-up")
	}
	return s.followUpLocked(at), nil
}

func (s *fakeStore) FollowUpsOf(ctx context.Context, tenantID string, charge payments.ID, kind payments.Kind) (list []payments.FollowUp, err error) {
	if err := s.begin(ctx, "follow_ups_of"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	of := payments.BatchRef{TenantID: tenantID, ID: charge}
	if s.rows[of].Kind != payments.KindCharge {
		return nil, payments.Errorf(payments.CodeNotFound, "no such charge")
	}
	for _, f := range s.followUpsLocked(of) {
		if kind == "" || f.Kind == kind {
			list = append(list, f)
		}
	}
	return list, nil
}

// refunded ends a refund as a worker would that Stripe has given a name for it.
func (s *fakeStore) refunded(tenant, key, name string, status payments.Status) {
	s.mu.Lock()
	s.refunds[payments.BatchRef{TenantID: tenant, ID: payments.NewID(tenant, key)}] = name
	s.mu.Unlock()
	s.set(tenant, key, status)
}

// charged makes a payment and takes so much of it.
func (d *desk) charged(key string, status payments.Status, captured int64) string {
	d.t.Helper()
	id, _ := d.post("/v1/payments", key, goodBody).member("id").(string)
	d.store.set("acme", key, status)
	at := payments.BatchRef{TenantID: "acme", ID: payments.NewID("acme", key)}
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	p := d.store.rows[at]
	p.AmountCaptured, p.StripePaymentIntent = captured, "pi_1"
	d.store.rows[at] = p
	return id
}
