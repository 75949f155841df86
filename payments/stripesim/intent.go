package stripesim

import "encoding/json"

// Statuses of a PaymentIntent.
const (
	needsMethod       = "requires_payment_method"
	needsConfirmation = "requires_confirmation"
	needsAction       = "requires_action"
	needsCapture      = "requires_capture"
	processing        = "processing"
	succeeded         = "succeeded"
	canceled          = "canceled"
)

// intent is one state of a PaymentIntent. States are never changed in place:
// a key's stored answer points at the state that it answered with, and is
// rendered from it again at each replay, byte for byte.
type intent struct {
	ID         string            `json:"id"`
	Secret     string            `json:"secret"`
	Status     string            `json:"status"`
	Amount     int64             `json:"amount"`
	Currency   string            `json:"currency"`
	Created    int64             `json:"created"` // unix seconds, never less than an older one's
	Capture    string            `json:"capture"`
	Types      []string          `json:"types"`
	Redirects  string            `json:"redirects,omitempty"` // of automatic payment methods; empty if off
	Customer   string            `json:"customer,omitempty"`
	About      string            `json:"about,omitempty"`
	Receipt    string            `json:"receipt,omitempty"`
	Suffix     string            `json:"suffix,omitempty"`
	ReturnURL  string            `json:"return_url,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Method     string            `json:"method,omitempty"`    // the test payment method's name
	MethodID   string            `json:"method_id,omitempty"` // the id that clients see
	Charge     string            `json:"charge,omitempty"`    // latest_charge
	ChargeKey  string            `json:"charge_key,omitempty"`
	Capturable int64             `json:"capturable,omitempty"`
	Received   int64             `json:"received,omitempty"`
	CanceledAt int64             `json:"canceled_at,omitempty"`
	Reason     string            `json:"reason,omitempty"` // of the cancellation
	Action     string            `json:"action,omitempty"` // URL of the authentication
	LastError  *apiError         `json:"last_error,omitempty"`
	Due        int64             `json:"due,omitempty"` // unix nanoseconds: a debit settles, an authorisation expires
}

// intentView is the PaymentIntent of API version 2023-10-16. Members that the
// simulator never fills are null, as in Stripe's answers.
type intentView struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	Amount             int64             `json:"amount"`
	AmountCapturable   int64             `json:"amount_capturable"`
	AmountDetails      json.RawMessage   `json:"amount_details"`
	AmountReceived     int64             `json:"amount_received"`
	Application        *string           `json:"application"`
	ApplicationFee     *int64            `json:"application_fee_amount"`
	Automatic          *automaticView    `json:"automatic_payment_methods"`
	CanceledAt         *int64            `json:"canceled_at"`
	CancellationReason *string           `json:"cancellation_reason"`
	CaptureMethod      string            `json:"capture_method"`
	ClientSecret       string            `json:"client_secret"`
	ConfirmationMethod string            `json:"confirmation_method"`
	Created            int64             `json:"created"`
	Currency           string            `json:"currency"`
	Customer           *string           `json:"customer"`
	Description        *string           `json:"description"`
	Invoice            *string           `json:"invoice"`
	LastPaymentError   *apiError         `json:"last_payment_error"`
	LatestCharge       *string           `json:"latest_charge"`
	Livemode           bool              `json:"livemode"`
	Metadata           map[string]string `json:"metadata"`
	NextAction         *actionView       `json:"next_action"`
	OnBehalfOf         *string           `json:"on_behalf_of"`
	PaymentMethod      *string           `json:"payment_method"`
	MethodOptions      json.RawMessage   `json:"payment_method_options"`
	MethodTypes        []string          `json:"payment_method_types"`
	Processing         *string           `json:"processing"`
	ReceiptEmail       *string           `json:"receipt_email"`
	Review             *string           `json:"review"`
	SetupFutureUsage   *string           `json:"setup_future_usage"`
	Shipping           *string           `json:"shipping"`
	Source             *string           `json:"source"`
	Descriptor         *string           `json:"statement_descriptor"`
	DescriptorSuffix   *string           `json:"statement_descriptor_suffix"`
	Status             string            `json:"status"`
	TransferData       *string           `json:"transfer_data"`
	TransferGroup      *string           `json:"transfer_group"`
}

type automaticView struct {
	AllowRedirects string `json:"allow_redirects"`
	Enabled        bool   `json:"enabled"`
}

type actionView struct {
	Redirect *redirectView `json:"redirect_to_url,omitempty"`
	Type     string        `json:"type"`
	SDK      *sdkView      `json:"use_stripe_sdk,omitempty"`
}

type redirectView struct {
	ReturnURL string `json:"return_url"`
	URL       string `json:"url"`
}

type sdkView struct {
	Source string `json:"source"`
	Type   string `json:"type"`
}

var emptyObject = json.RawMessage("{}")

// view renders the state as Stripe answers it.
func (in *intent) view() *intentView {
	v := &intentView{
		ID: in.ID, Object: "payment_intent", Amount: in.Amount, AmountCapturable: in.Capturable,
		AmountDetails: json.RawMessage(`{"tip":{}}`), AmountReceived: in.Received,
		CancellationReason: optional(in.Reason), CaptureMethod: in.Capture, ClientSecret: in.Secret,
		ConfirmationMethod: "automatic", Created: in.Created, Currency: in.Currency, Customer: optional(in.Customer),
		Description: optional(in.About), LastPaymentError: in.LastError, LatestCharge: optional(in.Charge),
		Metadata: in.Metadata, NextAction: in.nextAction(), PaymentMethod: optional(in.MethodID),
		MethodOptions: emptyObject, MethodTypes: in.Types, ReceiptEmail: optional(in.Receipt),
		DescriptorSuffix: optional(in.Suffix), Status: in.Status,
	}
	if v.Metadata == nil { // an empty map is left out of the ledger file
		v.Metadata = map[string]string{}
	}
	if in.Redirects != "" {
		v.Automatic = &automaticView{AllowRedirects: in.Redirects, Enabled: true}
	}
	if in.CanceledAt != 0 {
		v.CanceledAt = &in.CanceledAt
	}
	return v
}

func (in *intent) nextAction() *actionView {
	switch {
	case in.Action == "":
		return nil
	case in.ReturnURL != "":
		return &actionView{Type: "redirect_to_url", Redirect: &redirectView{ReturnURL: in.ReturnURL, URL: in.Action}}
	}
	return &actionView{Type: "use_stripe_sdk", SDK: &sdkView{Source: in.Action, Type: "three_d_secure_redirect"}}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
