package stripesim

import "strconv"

var captureSpec = spec{"amount_to_capture": {}}

// capture is POST /v1/payment_intents/{id}/capture: all that is held, or a part
// of it; the rest is released.
type capture struct {
	id     string
	amount int64 // 0: all
}

func (c *capture) target() string { return c.id }

func parseCapture(id string, pairs []pair) (operation, *apiError) {
	v, e := captureSpec.read(pairs)
	if e != nil {
		return nil, e
	}
	c := &capture{id: id}
	if text := v.scalars["amount_to_capture"]; text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, invalid("parameter_invalid_integer", "amount_to_capture", "Invalid integer: "+clip(text))
		}
		c.amount = n
	}
	return c, nil
}

func (c *capture) apply(_ env, current *intent) effect {
	switch {
	case current.Status != needsCapture:
		return wrongState(current, "This PaymentIntent could not be captured because it has a status of "+current.Status+". Only a PaymentIntent with one of the following statuses may be captured: requires_capture.")
	case c.amount > current.Capturable:
		return refused(invalid("amount_too_large", "amount_to_capture", "The payment could not be captured because the requested capture amount is greater than the authorized amount."), nil)
	}
	next := *current
	next.Status, next.Received, next.Capturable, next.Due = succeeded, current.Capturable, 0, 0
	if c.amount > 0 {
		next.Received = c.amount
	}
	eff := done(&next)
	eff.charge = &chargeNote{ID: next.Charge, Captured: true, Key: next.ChargeKey, Held: true}
	return eff
}
