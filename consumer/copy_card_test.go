package consumer

import (
	"testing"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// What an intent is refused for as a copy it is refused for at the door: else the payment would be made, and its copy erased as a card number.
func TestCopyHoldsNoCardThatTheDoorLetThrough(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`\":\u0009\u0035018000\u00300009`, `\":\u000a\u0035018000\u00300009`, `\":\u000d\u0035018000\u00300009`, `\u0022:\u0009\u0020501\u0038000\u00300009`,
		`\":501800000009`, `\":\u0020501800000009`, // as long as an amount, and none
		`+493012345678`, `\u000aDE89 3704 0044 0532 0130 00`, `\u0009550e8400-e29b-41d4-a716-446655440000`, `0.4242424242424242`, `a`,
	} {
		for _, body := range []string{
			`{"amount":9900,"currency":"usd","payment_method":"pm_1","description":"` + text + `"}`,
			`{"amount":9900,"currency":"usd","payment_method":"pm_1","metadata":{"k":"` + text + `"}}`,
		} {
			wire, err := schema.DecodeIntent([]byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			in := document.ReadIntent(wire, "acme", "order-1").Normalized()
			if payments.CardInBytes([]byte(body)) || in.CardField() != "" {
				continue
			}
			sent, err := schema.EncodeIntent(document.Intent(in))
			if err != nil {
				t.Fatal(err)
			}
			if r := read(testSubjects, message{"payments.intent.acme", nil, sent}); r.refusal != nil {
				t.Errorf("%s was let in, and its copy is refused: %s", body, r.refusal.message)
			}
		}
	}
}
