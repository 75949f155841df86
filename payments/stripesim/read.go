package stripesim

import (
	"math"
	"slices"
)

var (
	noParams   = spec{}
	listLimits = []string{"gte", "gt", "lte", "lt"}
	listSpec   = spec{
		"customer": {}, "limit": {}, "starting_after": {}, "ending_before": {},
		"created": {kind: object, subs: listLimits, loose: true},
	}
)

// readAccount is GET /v1/account.
func readAccount(s *Server, a *attempt) (any, *apiError) {
	if _, e := noParams.read(a.pairs); e != nil {
		return nil, e
	}
	return map[string]any{
		"id": a.account.id, "object": "account", "business_type": "company", "charges_enabled": true, "country": "US",
		"default_currency": "usd", "details_submitted": true, "email": nil, "metadata": map[string]string{},
		"payouts_enabled": true, "type": "standard",
		"capabilities": map[string]string{"card_payments": "active", "us_bank_account_ach_payments": "active", "transfers": "active"},
		"settings":     map[string]any{"dashboard": map[string]any{"display_name": "Oncepay simulator", "timezone": "Etc/UTC"}},
	}, nil
}

// readBalance is GET /v1/balance: what was captured, by currency.
func readBalance(s *Server, a *attempt) (any, *apiError) {
	if _, e := noParams.read(a.pairs); e != nil {
		return nil, e
	}
	s.book.time()
	type funds struct {
		Amount      int64            `json:"amount"`
		Currency    string           `json:"currency"`
		SourceTypes map[string]int64 `json:"source_types"`
	}
	available := []funds{}
	s.book.mu.Lock()
	for currency, amount := range a.account.balance {
		available = append(available, funds{amount, currency, map[string]int64{"card": amount}})
	}
	s.book.mu.Unlock()
	slices.SortFunc(available, func(x, y funds) int {
		if x.Currency < y.Currency {
			return -1
		}
		return 1
	})
	if len(available) == 0 {
		available = []funds{{0, "usd", map[string]int64{"card": 0}}}
	}
	pending := []funds{{0, available[0].Currency, map[string]int64{"card": 0}}}
	return map[string]any{"object": "balance", "available": available, "livemode": false, "pending": pending}, nil
}

// readIntent is GET /v1/payment_intents/{id}.
func readIntent(s *Server, a *attempt) (any, *apiError) {
	if _, e := noParams.read(a.pairs); e != nil {
		return nil, e
	}
	in := s.book.find(a.account, a.id)
	if in == nil {
		return nil, noSuchIntent(a.id)
	}
	a.entry.PaymentIntent = in.ID
	return in.view(), nil
}

func noSuchIntent(id string) *apiError {
	return notFound("intent", "No such payment_intent: '"+clip(id)+"'")
}

// readList is GET /v1/payment_intents, newest first.
func readList(s *Server, a *attempt) (any, *apiError) {
	v, e := listSpec.read(a.pairs)
	if e != nil {
		return nil, e
	}
	p, e := readPage(v)
	if e != nil {
		return nil, e
	}
	items, more, ok := s.book.list(a.account, p)
	if !ok {
		param := "starting_after"
		if p.before != "" {
			param = "ending_before"
		}
		return nil, invalid("resource_missing", param, "No such payment_intent: '"+clip(p.after+p.before)+"'")
	}
	data := make([]*intentView, len(items))
	for i, in := range items {
		data[i] = in.view()
	}
	return map[string]any{"object": "list", "data": data, "has_more": more, "url": intentsPath}, nil
}

func readPage(v *values) (page, *apiError) {
	p := page{customer: v.scalars["customer"], limit: 10, from: math.MinInt64, to: math.MaxInt64,
		after: v.scalars["starting_after"], before: v.scalars["ending_before"]}
	if p.after != "" && p.before != "" {
		return p, invalid("", "ending_before", "You cannot use both starting_after and ending_before.")
	}
	if s, ok := v.scalars["limit"]; ok {
		n, e := integer("limit", s)
		if e != nil {
			return p, e
		}
		if n < 1 || n > 100 {
			return p, invalid("parameter_invalid_integer", "limit", "limit must be from 1 to 100.")
		}
		p.limit = int(n)
	}
	if s, ok := v.scalars["created"]; ok {
		n, e := integer("created", s)
		if e != nil {
			return p, e
		}
		p.from, p.to = n, n
	}
	for _, bound := range listLimits {
		s, ok := v.dicts["created"][bound]
		if !ok {
			continue
		}
		n, e := integer("created["+bound+"]", s)
		if e != nil {
			return p, e
		}
		switch bound {
		case "gte":
			p.from = max(p.from, n)
		case "gt":
			p.from = max(p.from, n+1)
		case "lte":
			p.to = min(p.to, n)
		case "lt":
			p.to = min(p.to, n-1)
		}
	}
	return p, nil
}
