package postgres

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/payments"
)

// details are the members of an intent that few requests have. They stand in one column, so that a row without them is narrow.
type details struct {
	PaymentID                 string            `json:"payment_id,omitempty"`
	All                       bool              `json:"all,omitempty"`
	Reason                    string            `json:"reason,omitempty"`
	Description               string            `json:"description,omitempty"`
	StatementDescriptorSuffix string            `json:"statement_descriptor_suffix,omitempty"`
	ReceiptEmail              string            `json:"receipt_email,omitempty"`
	ReturnURL                 string            `json:"return_url,omitempty"`
	Metadata                  map[string]string `json:"metadata,omitempty"`
}

// encodeDetails returns the column's text, "" for null. It is the JSON of details, written by hand: every payment has it written once.
func encodeDetails(i payments.Intent) string {
	if i.PaymentID == "" && !i.All && i.Reason == "" && i.Description == "" && i.StatementDescriptorSuffix == "" && i.ReceiptEmail == "" && i.ReturnURL == "" && len(i.Metadata) == 0 {
		return ""
	}
	text := append(make([]byte, 0, 256), '{')
	members := [...]struct{ name, text string }{
		{"payment_id", i.PaymentID}, {"reason", i.Reason}, {"description", i.Description}, {"statement_descriptor_suffix", i.StatementDescriptorSuffix},
		{"receipt_email", i.ReceiptEmail}, {"return_url", i.ReturnURL},
	}
	for _, m := range members {
		if m.text != "" {
			text = appendMember(text, m.name, m.text)
		}
	}
	if i.All {
		text = append(appendName(text, "all"), "true"...)
	}
	if len(i.Metadata) > 0 {
		names := make([]string, 0, len(i.Metadata))
		for name := range i.Metadata {
			names = append(names, name)
		}
		slices.Sort(names)
		text = append(appendName(text, "metadata"), '{')
		for _, name := range names {
			text = appendMember(text, name, i.Metadata[name])
		}
		text = append(text, '}')
	}
	return string(append(text, '}'))
}

func appendMember(b []byte, name, text string) []byte { return appendText(appendName(b, name), text) }

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendText(b, name), ':')
}

// appendText writes plain text as it is; what may need an escape is left to the library.
func appendText(b []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(text) // no string fails
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

func decodeDetails(text string, i *payments.Intent) error {
	if text == "" {
		return nil
	}
	var d details
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("%w: details: %w", errMapping, err)
	}
	i.PaymentID, i.All, i.Reason = d.PaymentID, d.All, d.Reason
	i.Description, i.StatementDescriptorSuffix = d.Description, d.StatementDescriptorSuffix
	i.ReceiptEmail, i.ReturnURL, i.Metadata = d.ReceiptEmail, d.ReturnURL, d.Metadata
	return nil
}

type failure struct {
	Code        string `json:"code,omitempty"`
	DeclineCode string `json:"decline_code,omitempty"`
	Message     string `json:"message,omitempty"`
}

// encodeFailure returns the column's text, "" for null.
func encodeFailure(f *payments.Failure) (string, error) {
	if f == nil {
		return "", nil
	}
	text, err := json.Marshal(failure(*f))
	return string(text), err
}

func decodeFailure(text string) (*payments.Failure, error) {
	if text == "" {
		return nil, nil
	}
	var f failure
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("%w: failure: %w", errMapping, err)
	}
	stored := payments.Failure(f)
	return &stored, nil
}
