package document_test

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// TestCopyOfAFollowUp: the copy that is published of a follow-up's row is the same request as the one that was accepted, and a valid one.
func TestCopyOfAFollowUp(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]payments.Intent{
		"capture":     {Kind: payments.KindCapture, Amount: 500},
		"capture all": {Kind: payments.KindCapture, All: true},
		"cancel":      {Kind: payments.KindCancel, Reason: "abandoned"},
		"refund":      {Kind: payments.KindRefund, Amount: 500, Reason: "duplicate", Metadata: map[string]string{"a": "1"}},
		"refund all":  {Kind: payments.KindRefund, All: true},
	} {
		asked.TenantID, asked.IdempotencyKey, asked.PaymentID = "acme", "again-1", "pay_af5f4f1841e88ebcae502028d51c062c"
		row := asked.Normalized()
		row.Currency = "usd"
		if row.All {
			row.Amount = 9900
		}
		body, err := schema.EncodeIntent(document.Intent(row))
		if err != nil {
			t.Fatal(err)
		}
		wire, err := schema.DecodeIntent(body)
		if err != nil {
			t.Fatal(err)
		}
		back := document.ReadIntent(wire, "acme", wire.IdempotencyKey.Value)
		if wrong := back.ValidateFollowUp(); wrong != nil || payments.Fingerprint(back) != payments.Fingerprint(asked) {
			t.Errorf("%s: %s is another request: %v, %v", name, body, payments.Differs(back, asked), wrong)
		}
	}
}

// TestReadFollowUp: what a follow-up does not have is seen, whatever it says.
func TestReadFollowUp(t *testing.T) {
	t.Parallel()
	read := func(text string) payments.Intent {
		wire, err := schema.DecodeIntent([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return document.ReadIntent(wire, "acme", "k")
	}
	if i := read(`{"kind":"refund","off_session":false}`); !i.OffSession || !i.All {
		t.Errorf("%+v", i)
	}
	if i := read(`{"kind":"refund","amount":0}`); i.All || i.OffSession {
		t.Errorf("%+v", i)
	}
	if i := read(`{"kind":"cancel"}`); i.All {
		t.Errorf("%+v", i)
	}
	if i := read(`{"off_session":false}`); i.OffSession || i.All {
		t.Errorf("%+v", i)
	}
}
