package stripesim

import "strings"

var refundListSpec = spec{
	"payment_intent": {}, "charge": {}, "limit": {}, "starting_after": {}, "ending_before": {},
	"created": {kind: object, subs: listLimits, loose: true},
}

// readRefund is GET /v1/refunds/{id}.
func readRefund(s *Server, a *attempt) (any, *apiError) {
	if _, e := noParams.read(a.pairs); e != nil {
		return nil, e
	}
	r := s.book.findRefund(a.account, a.id)
	if r == nil {
		return nil, noSuchRefund("id", a.id)
	}
	a.entry.PaymentIntent = r.Intent
	return r.view(), nil
}

// readRefunds is GET /v1/refunds, newest first. A PaymentIntent or charge that is not there has none.
func readRefunds(s *Server, a *attempt) (any, *apiError) {
	v, e := refundListSpec.read(a.pairs)
	if e != nil {
		return nil, e
	}
	p, e := readPage(v)
	if e != nil {
		return nil, e
	}
	intent, charge := v.scalars["payment_intent"], v.scalars["charge"]
	switch {
	case intent != "" && charge != "":
		return nil, invalid("", "charge", "You may only specify one of these parameters: charge, payment_intent.")
	case intent != "" && !strings.HasPrefix(intent, "pi_"):
		return nil, invalid("resource_missing", "payment_intent", "No such payment_intent: '"+clip(intent)+"'")
	case charge != "" && !strings.HasPrefix(charge, "ch_"):
		return nil, invalid("resource_missing", "charge", "No such charge: '"+clip(charge)+"'")
	}
	items, more, ok := s.book.listRefunds(a.account, intent+charge, p)
	if !ok {
		param := "starting_after"
		if p.before != "" {
			param = "ending_before"
		}
		return nil, invalid("resource_missing", param, "No such refund: '"+clip(p.after+p.before)+"'")
	}
	data := make([]*refundView, len(items))
	for i, r := range items {
		data[i] = r.view()
	}
	return map[string]any{"object": "list", "data": data, "has_more": more, "url": refundsPath}, nil
}
