package payments

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits that Stripe states for the fields of a PaymentIntent (docs.stripe.com/api/payment_intents/create, docs.stripe.com/metadata,
// docs.stripe.com/get-started/account/statement-descriptors). Lengths count characters, not bytes.
const (
	// MetadataMax is Stripe's 50 less the four entries that are added to every request.
	MetadataMax                = stripeMetadataMax - ownMetadata
	MetadataNameLengthMax      = 40
	MetadataValueLengthMax     = 500
	DescriptionLengthMax       = 1000
	DescriptorSuffixLengthMax  = 22
	ReferenceLengthMax         = 255  // customer, payment_method, payment_id
	ReturnURLLengthMax         = 5000 // Stripe's limit for any string that has no other
	ReceiptEmailLengthMax      = 254  // RFC 5321, section 4.5.3.1.3
	MetadataReservedNamePrefix = "oncepay_"

	stripeMetadataMax = 50
	ownMetadata       = 4
)

const kindRemedy = "must be charge, capture, cancel or refund, or left out for charge; only charges go over POST /v1/payments and in batches"

const currencyRemedy = "must be one of Stripe's three-letter currency codes, as usd (docs.stripe.com/currencies)"

// Validate checks everything that can be known of an intent without asking anybody, and returns nil if all is well. It normalises first, and
// lists every fault, the key's before the others. Reserved keys pass: whether a batch's child key may be used depends on where it came from. The
// tenant's form is the caller's matter too, since the tenant comes from the caller's identity. A card number is looked for by CardField.
//
// It is for charges: a follow-up never passes, so that whoever stores charges stores no other kind. ValidateFollowUp is for those.
func (i Intent) Validate() *ValidationError {
	i = i.Normalized()
	v := &ValidationError{Reason: ReasonInvalid}
	v.addKey(i.IdempotencyKey)
	v.add("kind", checkKind(i.Kind))
	if i.Kind == KindCharge {
		v.add("payment_id", checkAbsent(i.PaymentID, "is only for captures, cancels and refunds: remove it from a charge"))
		v.add("amount", CheckAmount(i.Amount, i.Currency))
		v.add("currency", checkCurrency(i.Currency))
		v.add("payment_method", checkPresent(i.PaymentMethod, "is required: name the Stripe PaymentMethod to charge, as pm_…"))
		v.add(fieldReason, checkAbsent(i.Reason, "is only for cancels and refunds: remove it from a charge"))
	}
	if i.Kind != KindCharge {
		v.add("payment_id", checkReference(i.PaymentID))
	}
	v.add("payment_method", checkReference(i.PaymentMethod))
	v.add("customer", checkReference(i.Customer))
	v.add("description", checkText(i.Description, DescriptionLengthMax))
	v.add("statement_descriptor_suffix", checkDescriptorSuffix(i.StatementDescriptorSuffix))
	v.add("receipt_email", checkEmail(i.ReceiptEmail))
	if !i.Kind.FollowUp() {
		v.add("capture_method", checkCaptureMethod(i.CaptureMethod))
	}
	v.add("return_url", checkReturnURL(i.ReturnURL))
	v.addMetadata(i.Metadata)
	v.add("expires_at", checkExpiresAt(i))
	v.add("tenant_id", checkEncoding(i.TenantID))
	if len(v.Fields) == 0 {
		return nil
	}
	return v
}

// addKey notes what is wrong with the key, which then names the reason.
func (e *ValidationError) addKey(key string) {
	message := CheckKey(key)
	if message == "" {
		return
	}
	e.Reason = ReasonKeyInvalid
	if key == "" {
		e.Reason = ReasonKeyMissing
	}
	e.add("idempotency_key", message)
}

// add notes a fault; "" is none.
func (e *ValidationError) add(field, message string) {
	if message != "" {
		e.Fields = append(e.Fields, FieldError{Field: field, Message: message})
	}
}

func checkKind(k Kind) string {
	switch k {
	case KindCharge:
		return ""
	case KindCapture, KindCancel, KindRefund:
		return "must be charge, or left out: a capture, cancel or refund is a request of its own about one payment, and in no batch"
	default:
		return kindRemedy
	}
}

func checkCaptureMethod(m CaptureMethod) string {
	if m == CaptureAutomatic || m == CaptureManual {
		return ""
	}
	return "must be automatic or manual, or left out for automatic"
}

func checkCurrency(c string) string {
	switch {
	case c == "":
		return "is required: name a three-letter currency code, as usd"
	case !KnownCurrency(c):
		return currencyRemedy
	}
	return ""
}

func checkPresent(s, message string) string {
	if s == "" {
		return message
	}
	return ""
}

func checkAbsent(s, message string) string {
	if s != "" {
		return message
	}
	return ""
}

// checkReference checks the form of an object's name; "" passes.
func checkReference(s string) string {
	if len(s) > ReferenceLengthMax {
		return "must have at most " + strconv.Itoa(ReferenceLengthMax) + " characters"
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7E {
			return "must consist of printable ASCII characters without spaces"
		}
	}
	return ""
}

// checkEncoding refuses what neither JSON readers nor PostgreSQL can all store.
func checkEncoding(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case strings.IndexByte(s, 0) >= 0:
		return "must not contain the character U+0000"
	}
	return ""
}

func checkText(s string, lengthMax int) string {
	if message := checkEncoding(s); message != "" {
		return message
	}
	if len(s) > lengthMax && utf8.RuneCountInString(s) > lengthMax {
		return "must have at most " + strconv.Itoa(lengthMax) + " characters"
	}
	return ""
}

// checkDescriptorSuffix: Stripe joins the suffix to the account's prefix, which is not known here, and wants 22 characters in all.
func checkDescriptorSuffix(s string) string {
	if s == "" {
		return ""
	}
	if message := checkText(s, DescriptorSuffixLengthMax); message != "" {
		return message
	}
	letter := false
	for _, r := range s {
		switch {
		case strings.ContainsRune(`<>\'"*`, r):
			return `must not contain any of < > \ ' " *`
		case unicode.IsControl(r), unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r):
			return "must be written in Latin characters"
		}
		letter = letter || unicode.IsLetter(r)
	}
	if !letter {
		return "must contain at least one letter"
	}
	return ""
}

// checkEmail asks for what could be an address: something, an @, and a domain with a dot. Whether mail arrives cannot be known.
func checkEmail(s string) string {
	const remedy = "must be an email address, as name@example.com"
	if s == "" {
		return ""
	}
	if message := checkEncoding(s); message != "" {
		return message
	}
	if len(s) > ReceiptEmailLengthMax {
		return "must have at most " + strconv.Itoa(ReceiptEmailLengthMax) + " bytes"
	}
	local, domain, ok := strings.Cut(s, "@")
	if !ok || local == "" || len(local) > 64 || !strings.Contains(domain, ".") {
		return remedy
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return remedy
		}
	}
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`<>()[]\,;:"`, r) {
			return remedy
		}
	}
	if strings.Contains(domain, "@") {
		return remedy
	}
	return ""
}

// checkReturnURL wants an absolute URL; an app's own scheme is one too.
func checkReturnURL(s string) string {
	const remedy = "must be an absolute URL, as https://example.com/return"
	if s == "" {
		return ""
	}
	if message := checkText(s, ReturnURLLengthMax); message != "" {
		return message
	}
	for _, r := range s {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return remedy
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return remedy
	}
	return ""
}

// checkExpiresAt: a time whose UTC year has not four digits can be neither written in RFC 3339 nor read back.
func checkExpiresAt(i Intent) string {
	if y := i.ExpiresAt.Year(); !i.ExpiresAt.IsZero() && (y < 1970 || y > 9999) {
		return "must be a time between the years 1970 and 9999 in UTC"
	}
	return ""
}
