package stripesim

var cancelSpec = spec{"cancellation_reason": {}}

// cancel is POST /v1/payment_intents/{id}/cancel.
type cancel struct{ id, reason string }

func (c *cancel) target() string { return c.id }

func parseCancel(id string, pairs []pair) (operation, *apiError) {
	v, e := cancelSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	reason, e := v.choice("cancellation_reason", "", "duplicate", "fraudulent", "requested_by_customer", "abandoned")
	if e != nil {
		return nil, e
	}
	return &cancel{id: id, reason: reason}, nil
}

func (c *cancel) apply(e env, current *intent) effect {
	if current.Status == succeeded || current.Status == canceled {
		return wrongState(current, "You cannot cancel this PaymentIntent because it has a status of "+current.Status+". Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action, processing.")
	}
	next := *current
	next.end(e.now.Unix(), c.reason)
	return done(&next)
}

// end cancels the PaymentIntent and releases what it had set aside.
func (in *intent) end(at int64, reason string) {
	in.Status, in.CanceledAt, in.Reason = canceled, at, reason
	in.Capturable, in.Due, in.Action = 0, 0, ""
}

// settle is what the clock does to a PaymentIntent that is due: a bank debit
// succeeds or fails, an authorisation nobody captured is released.
func settle(current *intent) effect {
	next := *current
	next.Due = 0
	m := methods[current.Method]
	switch {
	case current.Status == needsCapture:
		next.end(current.Due/1e9, "automatic")
		return done(&next)
	case m.outcome == outcomeDebitFails:
		next.Status, next.Method, next.MethodID = needsMethod, "", ""
		next.LastError = &apiError{Type: typeCard, Code: m.code, Message: m.message, Charge: next.Charge,
			DocURL: docURL(m.code), PaymentMethod: m.view(current.MethodID, current.Created)}
		return done(&next)
	}
	next.Status, next.Received = succeeded, next.Amount
	eff := done(&next)
	eff.charge = &chargeNote{ID: next.Charge, Captured: true, Key: next.ChargeKey}
	return eff
}
