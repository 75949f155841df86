package ingress

import (
	"net/http"
	"strconv"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// createBatch serves POST /v1/batches.
func (a *API) createBatch(c *call) *problem {
	doc, p := a.admitBatch(c)
	if p != nil {
		return p
	}
	return c.w.document(http.StatusAccepted, doc)
}

// admitBatch holds a place among the batches until the answer is known, and not while a client takes its time to read it.
func (a *API) admitBatch(c *call) (doc schema.BatchAccepted, p *problem) {
	if _, p := c.query(); p != nil {
		return doc, p
	}
	if len(c.key) > payments.BatchKeyLengthMax {
		return doc, refuse(CodeIdempotencyInvalid, "the key of a batch may have at most "+strconv.Itoa(payments.BatchKeyLengthMax)+" characters, since its payments' keys begin with it: shorten or hash it")
	}
	select {
	case a.batches <- struct{}{}:
		defer func() { <-a.batches }()
	default:
		return doc, unavailable("too many batches at once; repeat the same request under the same key", time.Second, nil)
	}
	request, p := c.readBatch()
	if p != nil {
		return doc, p
	}
	var closed *problem // as for a single payment
	if request.Refused == nil {
		closed = a.backlog.batchObjection(c.r.Context())
	}
	request.ExistingOnly = closed != nil
	ctx, cancel := c.bounded()
	defer cancel()
	admission, err := a.cfg.Batches.AdmitBatch(ctx, request)
	if err != nil {
		return doc, failed(err)
	}
	repeated := admission.Verdict == payments.VerdictExists
	if !repeated && admission.Verdict != payments.VerdictStored {
		return doc, verdictProblem(admission.Verdict, admission.Differs, request.Refused, closed)
	}
	c.accepted("/v1/batches/"+request.ID().Format(payments.KindBatch), repeated)
	return document.BatchAccepted(admission.Batch, admission.Children), nil
}

// readBatch makes a request of the body, business validation included.
func (c *call) readBatch() (payments.BatchRequest, *problem) {
	data, done, p := c.body(BatchBodyMax)
	if p != nil {
		return payments.BatchRequest{}, p
	}
	defer done()
	wire, err := schema.DecodeBatch(data)
	if err != nil {
		return payments.BatchRequest{}, undecodable(err)
	}
	if p := c.agrees(wire.IdempotencyKey, schema.Optional[string]{}, ""); p != nil {
		return payments.BatchRequest{}, p
	}
	request := payments.BatchRequest{TenantID: c.tenant(), IdempotencyKey: c.key, Parent: wire.Parent.Value, ParentEmpty: wire.Parent.Set && wire.Parent.Value == "",
		Payments: make([]payments.Intent, len(wire.Payments))}
	for i, child := range wire.Payments {
		if p := c.agrees(schema.Optional[string]{}, child.TenantID, "payments["+strconv.Itoa(i)+"].tenant_id"); p != nil {
			return payments.BatchRequest{}, p
		}
		request.Payments[i] = document.ReadIntent(child, c.tenant(), "").Normalized()
	}
	if request.CardField() != "" {
		return payments.BatchRequest{}, refuse(CodeCardNumber, cardDetail)
	}
	request.Refused = request.Validate()
	return request, nil
}

// showBatch serves GET /v1/batches/{id}.
func (a *API) showBatch(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	id, ok := idIn(c.r, "bat_")
	if !ok {
		return refuse(CodeNotFound, notFoundDetail)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	state, err := a.cfg.Reader.Batch(ctx, c.tenant(), id)
	if err != nil {
		return failed(err)
	}
	return c.w.document(http.StatusOK, document.Batch(state))
}
