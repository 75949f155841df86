package stripesim

// chargeView is the Charge of API version 2023-10-16, cut to what clients read.
type chargeView struct {
	ID             string            `json:"id"`
	Object         string            `json:"object"`
	Amount         int64             `json:"amount"`
	AmountCaptured int64             `json:"amount_captured"`
	AmountRefunded int64             `json:"amount_refunded"`
	Captured       bool              `json:"captured"`
	Created        int64             `json:"created"`
	Currency       string            `json:"currency"`
	Customer       *string           `json:"customer"`
	Description    *string           `json:"description"`
	Disputed       bool              `json:"disputed"`
	Livemode       bool              `json:"livemode"`
	Metadata       map[string]string `json:"metadata"`
	Paid           bool              `json:"paid"`
	PaymentIntent  string            `json:"payment_intent"`
	PaymentMethod  *string           `json:"payment_method"`
	Refunded       bool              `json:"refunded"` // in full
	Status         string            `json:"status"`
}

// charge is the PaymentIntent's latest charge, of which so much was given back. What was held and is released is no refund here.
func (in *intent) charge(refunded int64) *chargeView {
	v := &chargeView{
		ID: in.Charge, Object: "charge", Amount: in.Amount, AmountCaptured: in.Received, AmountRefunded: refunded, Captured: in.Received > 0,
		Created: in.Created, Currency: in.Currency, Customer: optional(in.Customer), Description: optional(in.About), Metadata: in.Metadata,
		Paid: true, PaymentIntent: in.ID, PaymentMethod: optional(in.MethodID), Refunded: in.Received > 0 && refunded == in.Received, Status: "succeeded",
	}
	switch {
	case in.Status == processing:
		v.Status, v.Paid = "pending", false
	case in.LastError != nil:
		v.Status, v.Paid = "failed", false
	}
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	return v
}

// readCharge is GET /v1/charges/{id}, of charges that are the latest of their PaymentIntent.
func readCharge(s *Server, a *attempt) (any, *apiError) {
	if _, e := noParams.read(a.pairs); e != nil {
		return nil, e
	}
	in, refunded := s.book.findCharge(a.account, a.id)
	if in == nil {
		return nil, notFound("id", "No such charge: '"+clip(a.id)+"'")
	}
	a.entry.PaymentIntent = in.ID
	return in.charge(refunded), nil
}
