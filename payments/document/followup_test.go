package document_test

import (
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

func fullRefund() payments.FollowUp {
	p := full()
	p.Intent = payments.Intent{
		TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindRefund, PaymentID: "pay_91b6a6b4c548cf0aaabe7f17806f610d", Amount: 500, All: true,
		Reason: "duplicate", Currency: "usd", Metadata: map[string]string{"b": "2", "a": "1"},
	}
	p.Reason = "no_refund"
	return payments.FollowUp{Payment: p, Number: 2, StripeRefund: "re_1"}
}

// TestFollowUpGolden fixes the document that the HTTP API, the command line and events share, member by member.
func TestFollowUpGolden(t *testing.T) {
	t.Parallel()
	bare := payments.FollowUp{Payment: payments.Payment{
		Intent: payments.Intent{TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCancel, PaymentID: "pay_91b6a6b4c548cf0aaabe7f17806f610d", Currency: "usd"},
		ID:     payments.NewID("acme", "order-1"), Status: payments.StatusReceived, Owned: true, NextAttemptAt: at, CreatedAt: at, UpdatedAt: at,
	}, Number: 1}
	for name, c := range map[string]struct {
		f    payments.FollowUp
		want string
	}{
		"full": {fullRefund(), `{"id":"ref_af5f4f1841e88ebcae502028d51c062c","kind":"refund","payment_id":"pay_91b6a6b4c548cf0aaabe7f17806f610d","tenant_id":"acme",` +
			`"idempotency_key":"order-1","status":"failed","amount":500,"currency":"usd","reason":"duplicate","metadata":{"a":"1","b":"2"},"stripe_refund":"re_1",` +
			`"stripe_payment_intent":"pi_1","stripe_account":"acct_1","tries":2,"status_reason":"no_refund",` +
			`"failure":{"code":"card_declined","decline_code":"do_not_honor","message":"no"},"next_attempt_at":null,` +
			`"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:01.123456Z","finalized_at":"2030-01-31T12:00:01.123456Z"}`},
		"bare": {bare, `{"id":"op_af5f4f1841e88ebcae502028d51c062c","kind":"cancel","payment_id":"pay_91b6a6b4c548cf0aaabe7f17806f610d","tenant_id":"acme",` +
			`"idempotency_key":"order-1","status":"processing","amount":0,"currency":"usd","reason":null,"metadata":{},"stripe_refund":null,` +
			`"stripe_payment_intent":null,"stripe_account":null,"tries":0,"status_reason":null,"failure":null,"next_attempt_at":"2030-01-31T12:00:00.123456Z",` +
			`"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finalized_at":null}`},
	} {
		got, err := schema.Marshal(document.FollowUp(c.f))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, c.want)
		}
	}
	if list, err := schema.Marshal(document.FollowUps(nil)); err != nil || string(list) != `{"data":[],"next_cursor":null}` {
		t.Errorf("no follow-ups: %s, %v", list, err)
	}
	if list := document.FollowUps([]payments.FollowUp{bare, fullRefund()}); len(list.Data) != 2 || list.Data[1].Kind != "refund" {
		t.Errorf("%+v", list)
	}
	if doc := document.FollowUpWithEvents(bare, nil); doc.Events == nil {
		t.Error("no entries must be [], not null")
	}
}

// TestFollowUpEvents: a follow-up has events of its own kind and of its own id, whose data is its document.
func TestFollowUpEvents(t *testing.T) {
	t.Parallel()
	for kind, prefix := range map[payments.Kind]string{payments.KindRefund: "ref_", payments.KindCapture: "op_", payments.KindCancel: "op_"} {
		f := fullRefund()
		f.Kind = kind
		for _, status := range payments.Statuses() {
			f.Status = status
			raw, err := document.FollowUpEvent(f, document.EventType(f.Payment), "shop", at)
			if err != nil {
				t.Fatal(err)
			}
			back, err := schema.DecodeEvent(raw)
			if err != nil || back.Type != "oncepay."+string(kind)+"."+string(status) || back.Sequence != 3 || !strings.HasPrefix(back.Subject, prefix) ||
				back.ID != f.ID.Format(kind)+"_3_"+string(status) {
				t.Errorf("%+v, %v", back, err)
			}
			if data, err := schema.Marshal(document.FollowUp(f)); err != nil || string(back.Data) != string(data) {
				t.Errorf("the data are not the document: %v\n%s\n%s", err, back.Data, data)
			}
		}
		plain, err := document.Event(f.Payment, schema.EventPaymentDeadLettered, "shop", at)
		back, decodeErr := schema.DecodeEvent(plain)
		if err != nil || decodeErr != nil || back.Type != schema.EventPaymentDeadLettered || !strings.Contains(string(back.Data), `"stripe_refund":null`) {
			t.Errorf("%s: %+v, %v, %v", kind, back, err, decodeErr)
		}
	}
}
