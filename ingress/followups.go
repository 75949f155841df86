package ingress

import (
	"net/http"
	"strings"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

func (a *API) createCapture(c *call) *problem { return a.createFollowUp(c, payments.KindCapture) }
func (a *API) createCancel(c *call) *problem  { return a.createFollowUp(c, payments.KindCancel) }
func (a *API) createRefund(c *call) *problem  { return a.createFollowUp(c, payments.KindRefund) }

// createFollowUp serves POST /v1/payments/{id}/capture, /cancel and /refunds.
func (a *API) createFollowUp(c *call, kind payments.Kind) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	charge, ok := idIn(c.r, "pay_")
	if !ok {
		return refuse(CodeNotFound, notFoundDetail)
	}
	intent, p := c.readFollowUp(kind, charge)
	if p != nil {
		return p
	}
	refused := intent.ValidateFollowUp()
	var closed *problem // as for a payment
	if refused == nil {
		closed = a.backlog.objection(c.r.Context())
	}
	ctx, cancel := c.bounded()
	defer cancel()
	admission, err := a.cfg.FollowUps.AdmitFollowUp(ctx, payments.FollowUpRequest{
		Intent: intent, Lane: payments.LaneInteractive, Announce: true, Refused: refused, ExistingOnly: closed != nil,
	})
	if err != nil {
		return failed(err)
	}
	repeated := admission.Verdict == payments.VerdictExists
	if !repeated && admission.Verdict != payments.VerdictStored {
		return followUpProblem(admission, refused, closed)
	}
	now, p := a.awaitFollowUp(c, admission.FollowUp)
	if p != nil {
		now = admission.FollowUp // it was accepted, which no failure to read it again may hide
	}
	c.accepted(followUpPath(now), repeated)
	return c.w.document(c.acceptedStatus(now.Payment), document.FollowUp(now))
}

// readFollowUp makes an intent of the body, which may be left out. Business validation is not done here.
func (c *call) readFollowUp(kind payments.Kind, charge payments.ID) (payments.Intent, *problem) {
	var data []byte
	if c.r.ContentLength != 0 {
		body, done, p := c.body(PaymentBodyMax)
		if p != nil {
			return payments.Intent{}, p
		}
		defer done()
		data = body
	}
	wire, err := schema.DecodeOperation(string(kind), data)
	if err != nil {
		return payments.Intent{}, undecodable(err)
	}
	intent := document.ReadOperation(wire, kind, c.tenant(), c.key, charge).Normalized()
	if intent.CardField() != "" { // as in a payment
		return payments.Intent{}, refuse(CodeCardNumber, cardDetail)
	}
	return intent, nil
}

// followUpProblem is the answer to a follow-up that was not accepted.
func followUpProblem(a payments.FollowUpAdmission, refused *payments.ValidationError, closed *problem) *problem {
	switch a.Verdict {
	case payments.VerdictPaymentUnknown:
		return refuse(CodeNotFound, notFoundDetail) // also what is there and another tenant's
	case payments.VerdictInvalidState:
		return refuse(CodeInvalidState, a.Why)
	case payments.VerdictAmountExceeds:
		return refuse(CodeAmountExceedsAvailable, a.Why)
	case payments.VerdictAmountInvalid:
		return invalid("amount", a.Why)
	}
	return verdictProblem(a.Verdict, a.Differs, refused, closed)
}

// awaitFollowUp is awaitPreferred for a follow-up. Those who wait are told of its row alone; a refund that has moved is read again with what Stripe calls it.
func (a *API) awaitFollowUp(c *call, f payments.FollowUp) (payments.FollowUp, *problem) {
	now := a.awaitPreferred(c, f.Payment)
	if f.Kind != payments.KindRefund || now.Sequence == f.Sequence && now.Status == f.Status {
		f.Payment = now
		return f, nil
	}
	ctx, cancel := c.bounded()
	defer cancel()
	again, err := a.cfg.FollowUpReader.FindFollowUp(ctx, f.TenantID, f.ID)
	if err != nil {
		return f, failed(err)
	}
	return again, nil
}

// followUpPath is where a follow-up can be read.
func followUpPath(f payments.FollowUp) string {
	id := f.ID.Format(f.Kind)
	if f.Kind == payments.KindRefund {
		return "/v1/refunds/" + id
	}
	return "/v1/operations/" + id
}

// showFollowUp serves GET /v1/refunds/{id} and GET /v1/operations/{id}: each shows its own kinds alone.
func (a *API) showFollowUp(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	prefix := "op_"
	if strings.HasPrefix(c.w.route, "/v1/refunds/") {
		prefix = "ref_"
	}
	id, ok := idIn(c.r, prefix)
	if !ok {
		return refuse(CodeNotFound, notFoundDetail)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := a.cfg.FollowUpReader.FindFollowUp(ctx, c.tenant(), id)
	if err != nil {
		return failed(err)
	}
	if !strings.HasPrefix(id.Format(found.Kind), prefix) {
		return refuse(CodeNotFound, notFoundDetail)
	}
	now, p := a.awaitFollowUp(c, found)
	if p != nil {
		return p
	}
	return c.w.document(http.StatusOK, document.FollowUp(now))
}

// listRefunds serves GET /v1/payments/{id}/refunds. A payment has so few that they come whole.
func (a *API) listRefunds(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	charge, ok := idIn(c.r, "pay_")
	if !ok {
		return refuse(CodeNotFound, notFoundDetail)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	list, err := a.cfg.FollowUpReader.FollowUpsOf(ctx, c.tenant(), charge, payments.KindRefund)
	if err != nil {
		return failed(err)
	}
	return c.w.document(http.StatusOK, document.FollowUps(list))
}
