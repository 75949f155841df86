package schema_test

import (
	"fmt"

	"github.com/oncepay/oncepay/schema"
)

func ExampleDecodeIntent() {
	in, err := schema.DecodeIntent([]byte(`{"idempotency_key":"order-1","amount":9900,"currency":"usd","payment_method":"pm_card_visa"}`))
	fmt.Println(in.IdempotencyKey.Value, in.Amount.Value, in.Kind.Or(schema.KindCharge), in.OffSession.Or(true), err)

	_, err = schema.DecodeIntent([]byte(`{"idempotency_key":"order-1","amount":99.00}`))
	fmt.Println(err)
	// Output:
	// order-1 9900 charge true <nil>
	// amount: it must be an integer literal in minor units, such as 9900, without quotes, fraction or exponent (at byte 43)
}

func ExampleEncodeIntent() {
	data, err := schema.EncodeIntent(schema.Intent{
		IdempotencyKey: schema.Some("order-1"),
		Amount:         schema.Some[int64](9900),
		Currency:       schema.Some("usd"),
		Metadata:       map[string]string{"order": "1", "basket": "7"},
	})
	fmt.Println(string(data), err)
	// Output: {"idempotency_key":"order-1","amount":9900,"currency":"usd","metadata":{"basket":"7","order":"1"}} <nil>
}

func ExampleSubjects() {
	var subjects schema.Subjects
	subject, _ := subjects.Intent("acme")
	fmt.Println(subject)

	kind, tenant, _ := subjects.ParseSubject("payments.bulk.acme")
	fmt.Println(kind, tenant)

	_, err := subjects.Intent("*")
	fmt.Println(err)
	// Output:
	// payments.intent.acme
	// bulk acme
	// invalid subject: the tenant must be 1 to 63 characters of a-z, 0-9, _ and -, beginning with a letter or digit
}

func ExampleParseKeyHeader() {
	for _, line := range []string{`abc`, `"abc"`, `a b`} {
		key, _, err := schema.ParseKeyHeader([]string{line})
		fmt.Println(key, err)
	}
	// Output:
	// abc <nil>
	// abc <nil>
	//  invalid Idempotency-Key header: the key must be printable ASCII without spaces
}
