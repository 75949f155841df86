package stripesim

// outcome says what confirming with a test payment method leads to.
type outcome int

const (
	outcomeOK            outcome = iota
	outcomeDecline               // 402, failed charge
	outcomeAuthenticate          // on-session requires_action, off-session 402
	outcomeAuthOnSession         // set up for off-session use: succeeds there
	outcomeDebit                 // processing, then settles
	outcomeDebitFails            // processing, then back to requires_payment_method
	outcomeDebitStays            // processing for ever
)

// refundFate is what becomes of refunds of what was charged.
type refundFate int

const (
	refundsAtOnce refundFate = iota
	refundsLater             // pending, then succeeded
	refundsFail              // succeeded, then failed
)

// method is one of Stripe's test payment methods (docs.stripe.com/testing).
type method struct {
	kind    string // card or us_bank_account
	brand   string
	last4   string
	outcome outcome
	refund  refundFate
	code    string // error code of a decline or a failed debit
	decline string // decline_code
	message string
}

// methodView is a PaymentMethod inside an error, cut to what clients read.
type methodView struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Card     *cardView         `json:"card,omitempty"`
	Created  int64             `json:"created"`
	Customer *string           `json:"customer"`
	Livemode bool              `json:"livemode"`
	Metadata map[string]string `json:"metadata"`
	Type     string            `json:"type"`
}

type cardView struct {
	Brand    string `json:"brand"`
	Country  string `json:"country"`
	ExpMonth int    `json:"exp_month"`
	ExpYear  int    `json:"exp_year"`
	Funding  string `json:"funding"`
	Last4    string `json:"last4"`
}

const (
	authRequired        = "authentication_required"
	authRequiredMessage = "Your card was declined. This transaction requires authentication."
)

var methods = buildMethods()

func buildMethods() map[string]method {
	m := map[string]method{}
	for id, card := range map[string][2]string{
		"pm_card_visa": {"visa", "4242"}, "pm_card_visa_debit": {"visa", "5556"},
		"pm_card_mastercard": {"mastercard", "4444"}, "pm_card_mastercard_debit": {"mastercard", "3222"},
		"pm_card_mastercard_prepaid": {"mastercard", "5100"}, "pm_card_amex": {"amex", "8431"},
		"pm_card_discover": {"discover", "1117"}, "pm_card_diners": {"diners", "0004"},
		"pm_card_jcb": {"jcb", "0505"}, "pm_card_unionpay": {"unionpay", "0005"},
	} {
		m[id] = method{kind: "card", brand: card[0], last4: card[1]}
	}
	m["pm_card_pendingRefund"] = method{kind: "card", brand: "visa", last4: "7726", refund: refundsLater}
	m["pm_card_refundFail"] = method{kind: "card", brand: "visa", last4: "5126", refund: refundsFail}
	declines := []struct{ id, last4, code, decline, message string }{
		{"pm_card_visa_chargeDeclined", "0002", "card_declined", "generic_decline", "Your card was declined."},
		{"pm_card_visa_chargeDeclinedInsufficientFunds", "9995", "card_declined", "insufficient_funds", "Your card has insufficient funds."},
		{"pm_card_visa_chargeDeclinedLostCard", "9987", "card_declined", "lost_card", "Your card was declined."},
		{"pm_card_visa_chargeDeclinedStolenCard", "9979", "card_declined", "stolen_card", "Your card was declined."},
		{"pm_card_visa_chargeDeclinedVelocityLimitExceeded", "6975", "card_declined", "card_velocity_exceeded", "Your card was declined for making repeated attempts too frequently or exceeding its amount limit."},
		{"pm_card_chargeDeclinedExpiredCard", "0069", "expired_card", "expired_card", "Your card has expired."},
		{"pm_card_chargeDeclinedIncorrectCvc", "0127", "incorrect_cvc", "incorrect_cvc", "Your card's security code is incorrect."},
		{"pm_card_chargeDeclinedProcessingError", "0119", "processing_error", "processing_error", "An error occurred while processing your card. Try again in a little bit."},
		{"pm_card_chargeCustomerFail", "0341", "card_declined", "generic_decline", "Your card was declined."},
		{"pm_card_radarBlock", "0019", "card_declined", "fraudulent", "Your card was declined."},
	}
	for _, d := range declines {
		m[d.id] = method{kind: "card", brand: "visa", last4: d.last4, outcome: outcomeDecline, code: d.code, decline: d.decline, message: d.message}
	}
	// Older pages of Stripe's own docs name these two without the brand.
	m["pm_card_chargeDeclined"] = m["pm_card_visa_chargeDeclined"]
	m["pm_card_chargeDeclinedInsufficientFunds"] = m["pm_card_visa_chargeDeclinedInsufficientFunds"]
	for id, how := range map[string]struct {
		last4 string
		outcome
	}{
		"pm_card_authenticationRequired":                                {"3184", outcomeAuthenticate},
		"pm_card_authenticationRequiredOnSetup":                         {"3155", outcomeAuthenticate},
		"pm_card_authenticationRequiredSetupForOffSession":              {"3155", outcomeAuthOnSession},
		"pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": {"8902", outcomeAuthenticate},
	} {
		m[id] = method{kind: "card", brand: "visa", last4: how.last4, outcome: how.outcome, code: authRequired, decline: authRequired, message: authRequiredMessage}
	}
	for id, how := range map[string]method{
		"pm_usBankAccount_success":            {last4: "6789", outcome: outcomeDebit},
		"pm_usBankAccount_dispute":            {last4: "6789", outcome: outcomeDebit},
		"pm_usBankAccount_processing":         {last4: "6789", outcome: outcomeDebitStays},
		"pm_usBankAccount_insufficientFunds":  {last4: "2227", outcome: outcomeDebitFails, code: "insufficient_funds", message: "The customer's account has insufficient funds to cover this payment."},
		"pm_usBankAccount_accountClosed":      {last4: "1113", outcome: outcomeDebitFails, code: "account_closed", message: "The customer's bank account has been closed."},
		"pm_usBankAccount_noAccount":          {last4: "1116", outcome: outcomeDebitFails, code: "no_account", message: "The customer's bank account could not be located."},
		"pm_usBankAccount_debitNotAuthorized": {last4: "3335", outcome: outcomeDebitFails, code: "debit_not_authorized", message: "The customer has notified their bank that this payment was not authorized."},
	} {
		how.kind = "us_bank_account"
		m[id] = how
	}
	return m
}

func (m method) view(id string, created int64) *methodView {
	v := &methodView{ID: id, Object: "payment_method", Created: created, Metadata: map[string]string{}, Type: m.kind}
	if m.kind == "card" {
		v.Card = &cardView{Brand: m.brand, Country: "US", ExpMonth: 12, ExpYear: 2034, Funding: "credit", Last4: m.last4}
	}
	return v
}
