package ingress

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// query reads the parameters of a request that knows these. Each may be there once, and then has a value.
func (c *call) query(known ...string) (map[string]string, *problem) {
	if c.r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, invalid("query", "it is not well-formed: encode it as name=value&name=value")
	}
	found := make(map[string]string, len(values))
	for name, list := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, unknownParameter(name, known)
		case len(list) > 1:
			return nil, invalid(name, "it is there more than once: send it once")
		case list[0] == "":
			return nil, invalid(name, "it has no value: leave it out")
		}
		found[name] = list[0]
	}
	return found, nil
}

// unknownParameter names the parameter if it looks like a name; what could be a value is not repeated.
func unknownParameter(name string, known []string) *problem {
	message := "is no parameter here; there are none"
	for i, k := range known {
		if i == 0 {
			message = "is no parameter here; there are " + k
		} else {
			message += ", " + k
		}
	}
	if len(name) > 40 || len(name) == 0 {
		return invalid("query", "it has a parameter that "+message)
	}
	for _, b := range []byte(name) {
		if (b|0x20 < 'a' || b|0x20 > 'z') && b != '_' {
			return invalid("query", "it has a parameter that "+message)
		}
	}
	return invalid(name, "this "+message)
}

// limitIn reads limit.
func limitIn(query map[string]string) (int, *problem) {
	text, there := query["limit"]
	if !there {
		return payments.LimitDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > payments.LimitMax || strconv.Itoa(n) != text {
		return 0, invalid("limit", "must be a whole number from 1 to "+strconv.Itoa(payments.LimitMax))
	}
	return n, nil
}

// listPayments serves GET /v1/payments.
func (a *API) listPayments(c *call) *problem {
	query, p := c.query("idempotency_key", "status", "customer", "limit", "cursor")
	if p != nil {
		return p
	}
	limit, p := limitIn(query)
	if p != nil {
		return p
	}
	request := payments.ListRequest{
		TenantID: c.tenant(), Status: payments.Status(query["status"]), Customer: query["customer"],
		IdempotencyKey: query["idempotency_key"], Limit: limit, Cursor: query["cursor"],
	}
	switch {
	case request.Status != "" && !request.Status.Stored() && request.Status != payments.StatusProcessing:
		return invalid("status", "must be a status of a payment, such as succeeded")
	case request.IdempotencyKey != "" && payments.CheckKey(request.IdempotencyKey) != "":
		return invalid("idempotency_key", payments.CheckKey(request.IdempotencyKey))
	case len(request.Customer) > payments.ReferenceLengthMax:
		return invalid("customer", "must have at most "+strconv.Itoa(payments.ReferenceLengthMax)+" characters")
	}
	ctx, cancel := c.bounded()
	defer cancel()
	page, next, err := a.cfg.Reader.List(ctx, request)
	if err != nil {
		return failed(err)
	}
	if request.IdempotencyKey != "" && len(page) == 0 {
		if p := a.namesAnother(ctx, request); p != nil {
			return p
		}
	}
	list := schema.List[schema.Payment]{Data: make([]schema.Payment, len(page)), NextCursor: schema.Null(next)}
	for i, found := range page {
		list.Data[i] = document.Payment(found)
	}
	return c.w.document(http.StatusOK, list)
}

// namesAnother is the answer to whoever looks among payments for what a key of theirs names, and it names something else: that nothing is there would be
// taken for leave to ask for it under another key.
func (a *API) namesAnother(ctx context.Context, r payments.ListRequest) *problem {
	id := payments.NewID(r.TenantID, r.IdempotencyKey)
	found, err := a.cfg.FollowUpReader.FindFollowUp(ctx, r.TenantID, id)
	kind, path := found.Kind, followUpPath(found)
	if payments.ErrorCode(err) == payments.CodeNotFound {
		_, err = a.cfg.Reader.Batch(ctx, r.TenantID, id)
		kind, path = payments.KindBatch, "/v1/batches/"+id.Format(payments.KindBatch)
	}
	switch {
	case payments.ErrorCode(err) == payments.CodeNotFound:
		return nil
	case err != nil:
		return failed(err)
	}
	return invalid("idempotency_key", "names a "+string(kind)+" of yours, and no payment: it is at "+path)
}

// listBatches serves GET /v1/batches.
func (a *API) listBatches(c *call) *problem {
	query, p := c.query("parent", "limit", "cursor")
	if p != nil {
		return p
	}
	limit, p := limitIn(query)
	if p != nil {
		return p
	}
	request := payments.BatchListRequest{TenantID: c.tenant(), Parent: query["parent"], Limit: limit, Cursor: query["cursor"]}
	if request.Parent != "" && payments.CheckKey(request.Parent) != "" {
		return invalid("parent", payments.CheckKey(request.Parent))
	}
	ctx, cancel := c.bounded()
	defer cancel()
	page, next, err := a.cfg.Reader.Batches(ctx, request)
	if err != nil {
		return failed(err)
	}
	list := schema.List[schema.Batch]{Data: make([]schema.Batch, len(page)), NextCursor: schema.Null(next)}
	for i, found := range page {
		list.Data[i] = document.Batch(found)
	}
	return c.w.document(http.StatusOK, list)
}
