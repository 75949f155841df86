package payments

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// CheckEdit says which of the members that are to be set in a message can never be valid, whatever else the message says, and why; "" is none of
// them. Members are named and written as on the wire; an empty text takes a member away, and metadata.NAME is one entry. What cannot be read as the
// member's type, or names none, is for whoever decodes it to say.
func CheckEdit(set map[string]string) (field, message string) {
	kinds := []Kind{Kind(set["kind"])}
	if _, there := set["kind"]; !there {
		kinds = []Kind{KindCharge, KindCapture, KindCancel, KindRefund} // the message's own, whatever that is
	}
	for n, kind := range kinds {
		f, m := checkEdit(kind, set)
		if f == "" {
			return "", ""
		}
		if n == 0 {
			field, message = f, m
		}
	}
	return field, message
}

// checkEdit is CheckEdit for messages of one kind.
func checkEdit(kind Kind, set map[string]string) (field, message string) {
	i := Intent{IdempotencyKey: "k", Kind: kind, Currency: "usd", PaymentMethod: "pm_1", Metadata: map[string]string{}}
	if _, there := set["currency"]; !there || kind.FollowUp() {
		i.Currency = "" // the message's own, whatever that is: an amount is held against no currency's rules
	}
	if kind.FollowUp() {
		i.PaymentMethod = ""
	}
	texts := map[string]*string{
		"payment_method": &i.PaymentMethod, "payment_id": &i.PaymentID, "currency": &i.Currency, "customer": &i.Customer, "description": &i.Description,
		"statement_descriptor_suffix": &i.StatementDescriptorSuffix, "receipt_email": &i.ReceiptEmail, "return_url": &i.ReturnURL, fieldReason: &i.Reason,
	}
	for name, text := range set {
		entry, isEntry := strings.CutPrefix(name, fieldMetadata+".")
		switch {
		case isEntry && text != "":
			i.Metadata[entry] = text
		case name == "amount":
			i.Amount, _ = strconv.ParseInt(text, 10, 64)
			i.All = text == ""
			if kind == KindCancel && text == "0" {
				i.Amount = -1 // said all the same
			}
		case name == "capture_method" && text != "":
			i.CaptureMethod = CaptureMethod(text)
		case name == "off_session":
			i.OffSession = text != ""
		case name == "expires_at" && text != "":
			i.ExpiresAt = time.Unix(0, 0) // of a form that whoever decodes it checks
		case texts[name] != nil:
			*texts[name] = text
		}
	}
	wrong := i.ValidateAny()
	if wrong == nil {
		return "", ""
	}
	at := slices.IndexFunc(wrong.Fields, func(f FieldError) bool {
		if f.Field == fieldMetadata {
			return true // there is no other metadata than what is set
		}
		_, there := set[f.Field]
		return there
	})
	if at < 0 {
		return "", ""
	}
	return wrong.Fields[at].Field, wrong.Fields[at].Message
}
