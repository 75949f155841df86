package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/oncepay/oncepay/payments"
)

// details are the members of an intent that few requests have. They stand in one column, so that a row without them is narrow.
type details struct {
	PaymentID                 string            `json:"payment_id,omitempty"`
	Description               string            `json:"description,omitempty"`
	StatementDescriptorSuffix string            `json:"statement_descriptor_suffix,omitempty"`
	ReceiptEmail              string            `json:"receipt_email,omitempty"`
	ReturnURL                 string            `json:"return_url,omitempty"`
	Metadata                  map[string]string `json:"metadata,omitempty"`
}

// encodeDetails returns the column's text, "" for null.
func encodeDetails(i payments.Intent) (string, error) {
	if i.PaymentID == "" && i.Description == "" && i.StatementDescriptorSuffix == "" && i.ReceiptEmail == "" && i.ReturnURL == "" && len(i.Metadata) == 0 {
		return "", nil
	}
	text, err := json.Marshal(details{i.PaymentID, i.Description, i.StatementDescriptorSuffix, i.ReceiptEmail, i.ReturnURL, i.Metadata})
	return string(text), err
}

func decodeDetails(text string, i *payments.Intent) error {
	if text == "" {
		return nil
	}
	var d details
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("%w: details: %w", errMapping, err)
	}
	i.PaymentID, i.Description, i.StatementDescriptorSuffix = d.PaymentID, d.Description, d.StatementDescriptorSuffix
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
