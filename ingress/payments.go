package ingress

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// actionTimeout bounds the question what the customer must do: an answer without it is better than none.
const actionTimeout = 3 * time.Second

// createPayment serves POST /v1/payments.
func (a *API) createPayment(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	intent, p := c.readPayment()
	if p != nil {
		return p
	}
	refused := intent.Validate()
	var closed *problem // to what is new; a repeat adds nothing to what waits, and is answered like the first time
	if refused == nil { // what is invalid is only looked up
		closed = a.backlog.objection(c.r.Context())
	}
	ctx, cancel := c.bounded()
	defer cancel()
	admission, err := a.cfg.Store.Admit(ctx, payments.AdmitRequest{
		Intent: intent, Lane: payments.LaneInteractive, Announce: true, Refused: refused, ExistingOnly: closed != nil,
	})
	if err != nil {
		return failed(err)
	}
	repeated := admission.Verdict == payments.VerdictExists
	if !repeated && admission.Verdict != payments.VerdictStored {
		return verdictProblem(admission.Verdict, admission.Differs, refused, closed)
	}
	now := a.awaitPreferred(c, admission.Payment)
	c.accepted("/v1/payments/"+now.ID.Format(now.Kind), repeated)
	return a.sendPayment(c, c.acceptedStatus(now), now)
}

// readPayment makes an intent of the body. Business validation is not done here.
func (c *call) readPayment() (payments.Intent, *problem) {
	data, done, p := c.body(PaymentBodyMax)
	if p != nil {
		return payments.Intent{}, p
	}
	defer done()
	wire, err := schema.DecodeIntent(data)
	if err != nil {
		return payments.Intent{}, undecodable(err)
	}
	if p := c.agrees(wire.IdempotencyKey, wire.TenantID, "tenant_id"); p != nil {
		return payments.Intent{}, p
	}
	intent := document.ReadIntent(wire, c.tenant(), c.key).Normalized()
	if intent.CardField() != "" { // what stood around the number in the raw bytes made it look like something else
		return payments.Intent{}, refuse(CodeCardNumber, cardDetail)
	}
	return intent, nil
}

// verdictProblem is the answer to a request that was not accepted. closed is why nothing new was, if that is so.
func verdictProblem(v payments.Verdict, differs []string, refused *payments.ValidationError, closed *problem) *problem {
	switch v {
	case payments.VerdictAbsent:
		if closed != nil {
			return closed
		}
	case payments.VerdictConflict:
		p := refuse(CodeIdempotencyReused, "the key names another request of yours already, which differs in what differs lists; nothing was changed. Choose a new key for a new request")
		if p.differs = differs; differs == nil {
			p.differs = []string{}
		}
		return p
	case payments.VerdictRefused:
		if refused != nil {
			return invalidFields(refused.Fields)
		}
	case payments.VerdictTenantUnknown:
		return refuse(CodeUnauthorized, unauthorizedDetail)
	}
	return failed(payments.Errorf(payments.CodeInternal, "the store answered %q to a request over HTTP", v))
}

// accepted sets the headers of an accepted request.
func (c *call) accepted(location string, repeated bool) {
	h := c.w.Header()
	h["Location"] = []string{location}
	if repeated {
		h["Idempotent-Replayed"] = []string{"true"}
	}
}

// acceptedStatus is that of the answer to an accepted request: 202, or 200 where the request prefers to wait and has come to where nobody waits any more.
func (c *call) acceptedStatus(now payments.Payment) int {
	if _, preferred := preferredWait(c.r.Header["Prefer"]); preferred && settled(now) {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// awaitPreferred waits as the request prefers, if it does, and returns the payment as it stands then.
func (a *API) awaitPreferred(c *call, p payments.Payment) payments.Payment {
	d, preferred := preferredWait(c.r.Header["Prefer"])
	if !preferred {
		return p
	}
	now, waited := a.waiting.await(c.r.Context(), p, d, c.w.release)
	if waited {
		c.w.Header()["Preference-Applied"] = []string{"wait=" + strconv.Itoa(int(d/time.Second))}
	}
	return now
}

// sendPayment sends a payment to its tenant, with what the customer must do if that is so.
func (a *API) sendPayment(c *call, status int, p payments.Payment) *problem {
	doc := document.Payment(p)
	if p.Status == payments.StatusRequiresAction && a.cfg.Actions != nil {
		a.addAction(c.r.Context(), p, &doc)
	}
	body, err := schema.EncodePayment(doc)
	return c.w.written(status, body, err)
}

func (a *API) addAction(ctx context.Context, p payments.Payment, doc *schema.Payment) {
	select {
	case a.actions <- struct{}{}:
		defer func() { <-a.actions }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, actionTimeout)
	defer cancel()
	next, secret, err := a.cfg.Actions.Action(ctx, p)
	if err != nil {
		a.cfg.Log.Warn("what a customer must do could not be read; the answer went without it", slog.String("payment", p.ID.String()), slog.String("code", string(payments.ErrorCode(err))))
		return
	}
	if value := jsontext.Value(next); len(next) > 0 && value.IsValid() {
		doc.NextAction = value
	}
	doc.ClientSecret = schema.Null(secret)
}

// showPayment serves GET /v1/payments/{id}.
func (a *API) showPayment(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	found, p := a.findPayment(c)
	if p != nil {
		return p
	}
	return a.sendPayment(c, http.StatusOK, a.awaitPreferred(c, found))
}

// listEvents serves GET /v1/payments/{id}/events.
func (a *API) listEvents(c *call) *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	found, p := a.findPayment(c)
	if p != nil {
		return p
	}
	ctx, cancel := c.bounded()
	defer cancel()
	timeline, err := a.cfg.Reader.Timeline(ctx, c.tenant(), found.ID)
	if err != nil {
		return failed(err)
	}
	return c.w.document(http.StatusOK, schema.List[schema.TimelineEntry]{Data: document.Timeline(timeline)})
}

// findPayment reads the charge that the path names. Whatever else it could name, also for another tenant, is not there.
func (a *API) findPayment(c *call) (payments.Payment, *problem) {
	id, ok := idIn(c.r, "pay_")
	if !ok {
		return payments.Payment{}, refuse(CodeNotFound, notFoundDetail)
	}
	ctx, cancel := c.bounded()
	defer cancel()
	found, err := a.cfg.Reader.Find(ctx, c.tenant(), id)
	if err != nil {
		return payments.Payment{}, failed(err)
	}
	if found.Kind != payments.KindCharge {
		return payments.Payment{}, refuse(CodeNotFound, notFoundDetail)
	}
	return found, nil
}

func idIn(r *http.Request, prefix string) (payments.ID, bool) {
	text := r.PathValue("id")
	id, err := payments.ParseID(text)
	return id, err == nil && strings.HasPrefix(text, prefix)
}
