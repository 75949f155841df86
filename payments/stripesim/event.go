package stripesim

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// eventLifetime is how long Stripe lists events (docs.stripe.com/api/events/list).
const eventLifetime = 30 * 24 * time.Hour

// event is something that happened to a PaymentIntent or a refund of it. Events are not in the
// ledger file: they follow from what is, in the same order and under the same
// ids each time.
type event struct {
	n       uint64 // from 1, in all accounts; the id is made of it
	kind    string
	created int64
	cause   cause
	intent  *intent // as it was then

	refund   *refund // of an event about one; with what was given back of its charge by then
	refunded int64
}

// cause is the request that made an event; zero: the clock did.
type cause struct {
	seq uint64
	key string
}

func causeOf(r *Request) cause {
	if r == nil {
		return cause{}
	}
	return cause{seq: r.Seq, key: r.IdempotencyKey}
}

const (
	eventCreated = "payment_intent.created"
	eventFailed  = "payment_intent.payment_failed"

	eventRefundCreated       = "refund.created"
	eventRefundUpdated       = "refund.updated"
	eventChargeRefunded      = "charge.refunded" // whose object is the charge
	eventChargeRefundUpdated = "charge.refund.updated"
)

// eventOf is the event of a PaymentIntent's having come to a status.
var eventOf = map[string]string{
	succeeded: "payment_intent.succeeded", processing: "payment_intent.processing", needsAction: "payment_intent.requires_action",
	needsCapture: "payment_intent.amount_capturable_updated", canceled: "payment_intent.canceled",
}

// addEvents notes what a change of a PaymentIntent is announced as. Call with
// mu held.
func (b *book) addEvents(a *account, isNew bool, in *intent, c cause, at time.Time) {
	if isNew {
		b.addEvent(a, eventCreated, in, c, at)
	}
	switch kind := eventOf[in.Status]; {
	case kind != "":
		b.addEvent(a, kind, in, c, at)
	case in.LastError != nil:
		b.addEvent(a, eventFailed, in, c, at)
	}
}

func (b *book) addEvent(a *account, kind string, in *intent, c cause, at time.Time) *event {
	created := at.Unix()
	if n := len(a.events); n > 0 {
		created = max(created, a.events[n-1].created)
	}
	b.events++
	a.events = append(a.events, event{n: b.events, kind: kind, created: created, cause: c, intent: in})
	return &a.events[len(a.events)-1]
}

// eventView is the Event of API version 2023-10-16.
type eventView struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Version string      `json:"api_version"`
	Created int64       `json:"created"`
	Data    eventData   `json:"data"`
	Live    bool        `json:"livemode"`
	Pending int         `json:"pending_webhooks"`
	Request requestView `json:"request"`
	Type    string      `json:"type"`
}

type eventData struct {
	Object any `json:"object"`
}

type requestView struct {
	ID  *string `json:"id"`
	Key *string `json:"idempotency_key"`
}

func (e *event) view(ids idMaker) *eventView {
	v := &eventView{ID: ids.event(e.n), Object: "event", Version: apiVersion, Created: e.created, Type: e.kind}
	if e.cause.seq != 0 {
		id := ids.request(e.cause.seq)
		v.Request.ID, v.Request.Key = &id, optional(e.cause.key)
	}
	switch {
	case e.kind == eventChargeRefunded:
		v.Data.Object = e.intent.charge(e.refunded)
		return v
	case e.refund != nil:
		v.Data.Object = e.refund.view()
		return v
	}
	in := *e.intent
	if e.kind == eventCreated && in.Status != needsConfirmation {
		// The PaymentIntent as it was made, before it was confirmed in the same request.
		in.Status, in.Method, in.MethodID, in.Charge, in.Received, in.Capturable = needsMethod, "", "", "", 0, 0
		in.Action, in.LastError = "", nil
	}
	v.Data.Object = in.view()
	return v
}

var eventsSpec = spec{
	"type": {}, "types": {kind: list}, "limit": {}, "starting_after": {}, "ending_before": {},
	"created": {kind: object, subs: listLimits, loose: true},
}

// readEvents is GET /v1/events, newest first, going back 30 days.
func readEvents(s *Server, a *attempt) (any, *apiError) {
	v, e := eventsSpec.read(a.pairs)
	if e != nil {
		return nil, e
	}
	p, e := readPage(v)
	if e != nil {
		return nil, e
	}
	wanted, e := readTypes(v)
	if e != nil {
		return nil, e
	}
	items, more, ok := s.book.listEvents(a.account, p, wanted)
	if !ok {
		param := "starting_after"
		if p.before != "" {
			param = "ending_before"
		}
		return nil, invalid("resource_missing", param, "No such event: '"+clip(p.after+p.before)+"'")
	}
	data := make([]*eventView, len(items))
	for i := range items {
		data[i] = items[i].view(s.ids)
	}
	return map[string]any{"object": "list", "data": data, "has_more": more, "url": eventsPath}, nil
}

// readTypes returns what chooses events by their type: type may end in a
// wildcard, types are exact.
func readTypes(v *values) (func(kind string) bool, *apiError) {
	one, many := v.scalars["type"], v.lists["types"]
	switch group, wild := strings.CutSuffix(one, "*"); {
	case one != "" && many != nil:
		return nil, invalid("", "types", "You may only specify one of these parameters: type, types.")
	case len(many) > 20:
		return nil, invalid("", "types", "You may pass up to 20 types.")
	case many != nil:
		return func(kind string) bool { return slices.Contains(many, kind) }, nil
	case wild:
		return func(kind string) bool { return strings.HasPrefix(kind, group) }, nil
	default:
		return func(kind string) bool { return one == "" || kind == one }, nil
	}
}

// listEvents returns a page, newest first. ok is false if a cursor names nothing.
func (b *book) listEvents(a *account, p page, wanted func(kind string) bool) (items []event, more, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.tick(now)
	all := a.events
	from := max(p.from, now.Add(-eventLifetime).Unix())
	// [lo, hi) is the window of creation time, oldest first.
	lo := sort.Search(len(all), func(i int) bool { return all[i].created >= from })
	hi := sort.Search(len(all), func(i int) bool { return all[i].created > p.to })
	if cursor := p.after + p.before; cursor != "" {
		at, ok := b.eventIndex(a, cursor)
		switch {
		case !ok:
			return nil, false, false
		case p.after != "":
			hi = min(hi, at)
		default:
			lo = max(lo, at+1)
		}
	}
	for i := range max(hi-lo, 0) {
		e := hi - 1 - i
		if p.before != "" {
			e = lo + i
		}
		if !wanted(all[e].kind) {
			continue
		}
		if len(items) == p.limit {
			more = true
			break
		}
		items = append(items, all[e])
	}
	if p.before != "" {
		slices.Reverse(items)
	}
	return items, more, true
}

// eventIndex finds an event by its id. Only who pages through events pays for
// the index. Call with mu held.
func (b *book) eventIndex(a *account, id string) (int, bool) {
	if a.eventAt == nil {
		a.eventAt = make(map[string]int, len(a.events))
	}
	for i := len(a.eventAt); i < len(a.events); i++ {
		a.eventAt[b.ids.event(a.events[i].n)] = i
	}
	i, ok := a.eventAt[id]
	return i, ok
}
