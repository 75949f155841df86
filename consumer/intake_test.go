package consumer

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

const goodBody = `{"idempotency_key":"order-1","amount":9900,"currency":"USD","customer":"cus_1","payment_method":"pm_card_visa"}`

// keyless is goodBody without its key.
const keyless = `{"amount":9900,"currency":"usd","payment_method":"pm_card_visa"}`

func keyHeader(lines ...string) map[string][]string {
	return map[string][]string{"Idempotency-Key": lines}
}

func TestReadAccepts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		m        message
		key      string
		lane     payments.Lane
		reserved bool
	}{
		"body":               {m: message{"payments.intent.acme", nil, []byte(goodBody)}, key: "order-1", lane: payments.LaneInteractive},
		"bulk":               {m: message{"payments.bulk.acme", nil, []byte(goodBody)}, key: "order-1", lane: payments.LaneBulk},
		"header":             {m: message{"payments.intent.acme", keyHeader("order-2"), []byte(keyless)}, key: "order-2", lane: payments.LaneInteractive},
		"header, other case": {m: message{"payments.intent.acme", map[string][]string{"IDEMPOTENCY-key": {"order-2"}}, []byte(keyless)}, key: "order-2", lane: payments.LaneInteractive},
		"quoted header":      {m: message{"payments.intent.acme", keyHeader(`"order-\"2"`), []byte(keyless)}, key: `order-"2`, lane: payments.LaneInteractive},
		"both agree":         {m: message{"payments.intent.acme", keyHeader(`"order-1"`), []byte(goodBody)}, key: "order-1", lane: payments.LaneInteractive},
		"a batch's child":    {m: message{"payments.bulk.acme", keyHeader("b::0"), []byte(keyless)}, key: "b::0", lane: payments.LaneBulk, reserved: true},
		"own tenant named":   {m: message{"payments.intent.acme", keyHeader("k"), []byte(`{"tenant_id":"acme",` + keyless[1:])}, key: "k", lane: payments.LaneInteractive},
		"a message id":       {m: message{"payments.intent.acme", map[string][]string{"Nats-Msg-Id": {"x"}, "traceparent": {"00-1"}}, []byte(goodBody)}, key: "order-1", lane: payments.LaneInteractive},
	} {
		r := read(testSubjects, c.m)
		if r.refusal != nil || r.refused != nil {
			t.Errorf("%s: refused: %+v %+v", name, r.refusal, r.refused)
			continue
		}
		i := r.intent
		if r.tenant != "acme" || i.TenantID != "acme" || i.IdempotencyKey != c.key || r.key != c.key || r.lane != c.lane || r.existingOnly != c.reserved {
			t.Errorf("%s: %+v", name, r)
		}
		if i.Amount != 9900 || i.Currency != "usd" || i.PaymentMethod != "pm_card_visa" || i.Kind != payments.KindCharge || i.CaptureMethod != payments.CaptureAutomatic || !i.OffSession {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

func TestReadMapsEveryMember(t *testing.T) {
	t.Parallel()
	r := read(testSubjects, message{subject: "payments.intent.acme", data: []byte(`{"idempotency_key":"k","amount":5,"currency":"EUR","payment_method":"pm_1","customer":"cus_2",
		"kind":"charge","payment_id":"","description":"d","statement_descriptor_suffix":"sfx","receipt_email":"a@b.example","capture_method":"manual","off_session":false,
		"return_url":"https://r.example/x","metadata":{"a":"1"},"expires_at":"2031-02-03T04:05:06+01:00"}`)})
	if r.refusal != nil {
		t.Fatal(r.refusal)
	}
	want := payments.Intent{
		TenantID: "acme", IdempotencyKey: "k", Kind: payments.KindCharge, Amount: 5, Currency: "eur", PaymentMethod: "pm_1", Customer: "cus_2", Description: "d",
		StatementDescriptorSuffix: "sfx", ReceiptEmail: "a@b.example", CaptureMethod: payments.CaptureManual, ReturnURL: "https://r.example/x",
		Metadata: map[string]string{"a": "1"}, ExpiresAt: time.Date(2031, 2, 3, 3, 5, 6, 0, time.UTC),
	}
	if got, wanted := fmt.Sprintf("%#v", r.intent), fmt.Sprintf("%#v", want); got != wanted {
		t.Errorf("got\n%s\nwant\n%s", got, wanted)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	intent := func(body string) message { return message{subject: "payments.intent.acme", data: []byte(body)} }
	with := func(lines ...string) message {
		return message{subject: "payments.intent.acme", headers: keyHeader(lines...), data: []byte(keyless)}
	}
	for name, c := range map[string]struct {
		m      message
		reason payments.Reason
		key    string // under which the dead letter is found
	}{
		"no JSON":                   {intent("hello"), payments.ReasonUndecodable, ""},
		"empty":                     {intent(""), payments.ReasonUndecodable, ""},
		"cut off":                   {intent(goodBody[:len(goodBody)-3]), payments.ReasonUndecodable, "order-1"},
		"trailing data":             {intent(goodBody + "{}"), payments.ReasonUndecodable, "order-1"},
		"invalid UTF-8":             {intent(goodBody[:len(goodBody)-1] + ",\"description\":\"\xff\"}"), payments.ReasonUndecodable, "order-1"},
		"lone surrogate":            {intent(goodBody[:len(goodBody)-1] + `,"metadata":{"k":"\ud800"}}`), payments.ReasonUndecodable, "order-1"},
		"NUL escape":                {intent(goodBody[:len(goodBody)-1] + `,"description":"a\u0000b"}`), "", "order-1"},
		"NUL in the key":            {intent(`{"idempotency_key":"a\u0000b",` + keyless[1:]), "", ""},
		"unknown member":            {intent(goodBody[:len(goodBody)-1] + `,"amuont":1}`), payments.ReasonInvalid, "order-1"},
		"wrong case":                {intent(strings.Replace(goodBody, "amount", "Amount", 1)), payments.ReasonInvalid, "order-1"},
		"null":                      {intent(strings.Replace(goodBody, "9900", "null", 1)), payments.ReasonInvalid, "order-1"},
		"fraction":                  {intent(strings.Replace(goodBody, "9900", "99.5", 1)), payments.ReasonInvalid, "order-1"},
		"no key":                    {intent(keyless), payments.ReasonKeyMissing, ""},
		"empty key":                 {intent(`{"idempotency_key":"",` + keyless[1:]), payments.ReasonKeyInvalid, ""},
		"key with a space":          {intent(`{"idempotency_key":"a b",` + keyless[1:]), payments.ReasonKeyInvalid, ""},
		"key not ASCII":             {intent(`{"idempotency_key":"é",` + keyless[1:]), payments.ReasonKeyInvalid, ""},
		"long key":                  {intent(`{"idempotency_key":"` + strings.Repeat("k", 256) + `",` + keyless[1:]), payments.ReasonKeyInvalid, ""},
		"two header lines":          {with("a", "a"), payments.ReasonKeyInvalid, ""},
		"blank header":              {with(""), payments.ReasonKeyInvalid, ""},
		"unclosed quote":            {with(`"a`), payments.ReasonKeyInvalid, ""},
		"two spellings of a header": {message{"payments.intent.acme", map[string][]string{"Idempotency-Key": {"a"}, "idempotency-key": {"a"}}, []byte(keyless)}, payments.ReasonKeyInvalid, ""},
		"header and body differ":    {message{"payments.intent.acme", keyHeader("other"), []byte(goodBody)}, payments.ReasonKeyInvalid, "order-1"},
		"undecodable with a header": {message{"payments.intent.acme", keyHeader("order-9"), []byte("{")}, payments.ReasonUndecodable, "order-9"},
		"other tenant":              {intent(`{"tenant_id":"globex",` + goodBody[1:]), payments.ReasonTenantMismatch, "order-1"},
		"batch":                     {message{"payments.batch.acme", nil, []byte(`{"idempotency_key":"b-1","payments":[]}`)}, payments.ReasonInvalid, "b-1"},
		"an event":                  {message{"payments.event.acme.payment-succeeded", nil, []byte(goodBody)}, payments.ReasonInvalid, "order-1"},
		"no tenant":                 {message{"payments.intent", nil, []byte(goodBody)}, payments.ReasonTenantUnknown, "order-1"},
		"impossible tenant":         {message{"payments.intent.ACME", nil, []byte(goodBody)}, payments.ReasonTenantUnknown, "order-1"},
		"two tokens":                {message{"payments.intent.acme.x", nil, []byte(goodBody)}, payments.ReasonTenantUnknown, "order-1"},
		"another prefix":            {message{"pay.intent.acme", nil, []byte(goodBody)}, payments.ReasonTenantUnknown, "order-1"},
	} {
		r := read(testSubjects, c.m)
		switch {
		case r.refusal == nil:
			t.Errorf("%s: accepted as %+v", name, r.intent)
			continue
		case c.reason != "" && r.refusal.reason != c.reason:
			t.Errorf("%s: %s (%s), want %s", name, r.refusal.reason, r.refusal.message, c.reason)
		case c.reason == "" && r.refusal.reason != payments.ReasonUndecodable && r.refusal.reason != payments.ReasonInvalid:
			t.Errorf("%s: %s", name, r.refusal.reason)
		}
		if r.refusal.message == "" || r.refusal.erase || r.key != c.key || r.intent.TenantID != "" || r.refused != nil {
			t.Errorf("%s: %+v, message %q", name, r, r.refusal.message)
		}
	}
}

// What is wrong by the rules of business is admitted for a comparison with the row of its key first.
func TestReadNotesBusinessFaults(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"amount":   strings.Replace(goodBody, "9900", "-1", 1),
		"currency": strings.Replace(goodBody, "USD", "ZZZ", 1),
		"method":   `{"idempotency_key":"order-1","amount":1,"currency":"usd"}`,
		"kind":     goodBody[:len(goodBody)-1] + `,"kind":"refund","payment_id":"pay_1"}`,
		"refund":   `{"idempotency_key":"order-1","kind":"refund","payment_id":"pay_1"}`,
		"metadata": goodBody[:len(goodBody)-1] + `,"metadata":{"oncepay_x":"1"}}`,
	} {
		r := read(testSubjects, message{subject: "payments.intent.acme", data: []byte(body)})
		if r.refusal != nil || r.refused == nil || r.refused.Reason != payments.ReasonInvalid || r.intent.IdempotencyKey != "order-1" {
			t.Errorf("%s: %+v, refusal %+v, refused %+v", name, r, r.refusal, r.refused)
		}
	}
}

const card = "4242424242424242"

// cardMessages hold a card number in every place and spelling.
func cardMessages() map[string]message {
	body := func(member string) message {
		return message{subject: "payments.intent.acme", data: []byte(goodBody[:len(goodBody)-1] + "," + member + "}")}
	}
	escaped := `\u0034\u0032\u003424242424242\u0034\u0032`
	return map[string]message{
		"description":                body(`"description":"` + card + `"`),
		"spaced":                     body(`"description":"4242 4242 4242 4242"`),
		"dashed":                     body(`"description":"4242-4242-4242-4242"`),
		"metadata name":              body(`"metadata":{"` + card + `":"x"}`),
		"metadata value":             body(`"metadata":{"x":"` + card + `"}`),
		"escaped":                    body(`"description":"` + escaped + `"`),
		"escaped metadata name":      body(`"metadata":{"` + escaped + `":"x"}`),
		"escaped dashes":             body(`"description":"4242\u002d4242\u002D4242\u00204242"`),
		"escape right before":        body(`"description":"\u0020` + card + `"`),
		"escaped, unknown member":    body(`"card":"` + escaped + `"`),
		"escaped name of a member":   body(`"` + escaped + `":1`),
		"escaped, cut off":           {subject: "payments.intent.acme", data: []byte(`{"description":"` + escaped)},
		"escaped, twice named":       body(`"customer":"` + escaped + `"`),
		"undecodable":                {subject: "payments.intent.acme", data: []byte("card " + card)},
		"UTF-16":                     {subject: "payments.intent.acme", data: utf16Of(goodBody[:1] + `"description":"` + card + `",` + goodBody[1:])},
		"key":                        {subject: "payments.intent.acme", data: []byte(`{"idempotency_key":"` + card + `",` + keyless[1:])},
		"escaped key":                {subject: "payments.intent.acme", data: []byte(`{"idempotency_key":"` + escaped + `",` + keyless[1:])},
		"header":                     {subject: "payments.intent.acme", headers: keyHeader(card), data: []byte(keyless)},
		"quoted header":              {subject: "payments.intent.acme", headers: keyHeader(`"` + card + `"`), data: []byte(keyless)},
		"another header":             {subject: "payments.intent.acme", headers: map[string][]string{"X-Card": {"4242 4242 4242 4242"}}, data: []byte(goodBody)},
		"a header's name":            {subject: "payments.intent.acme", headers: map[string][]string{"X-" + card: {"1"}}, data: []byte(goodBody)},
		"tenant":                     {subject: "payments.intent." + card, data: []byte(goodBody)},
		"dashed tenant":              {subject: "payments.bulk.4242-4242-4242-4242", data: []byte(goodBody)},
		"subject without a tenant":   {subject: "payments.intent.acme." + card, data: []byte(goodBody)},
		"batch":                      {subject: "payments.batch.acme", data: []byte(`{"payments":[{"description":"` + card + `"}]}`)},
		"as amount of another thing": body(`"payment_id":"` + card + `"`),
	}
}

// utf16Of is how a shell that writes UTF-16 would send the text.
func utf16Of(text string) []byte {
	data := []byte{0xFF, 0xFE}
	for _, c := range []byte(text) {
		data = append(data, c, 0)
	}
	return data
}

// holdsCard reports whether the digits of the card stand in what is kept, in any spelling.
func holdsCard(kept []byte) bool {
	digits := bytes.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, bytes.ReplaceAll(kept, []byte(`\u003`), nil)) // a digit's escape ends in the digit
	return bytes.Contains(kept, []byte(card)) || payments.ContainsCardNumber(kept) || bytes.Contains(digits, []byte(card))
}

func TestNothingOfACardIsKept(t *testing.T) {
	t.Parallel()
	for name, m := range cardMessages() {
		r := read(testSubjects, m)
		if r.refusal == nil || r.refusal.reason != payments.ReasonCardNumber || !r.refusal.erase {
			t.Errorf("%s: %+v", name, r.refusal)
			continue
		}
		msg := &fakeMsg{subject: m.subject, header: m.headers, data: m.data, sequence: 9, deliveries: 1, at: time.Unix(5, 0)}
		letter := letterOf(held{Msg: msg, origin: payments.MessageOrigin{Stream: "S", Sequence: 9, Subject: m.subject}, deliveries: 1}, r, *r.refusal, payments.DeadLetterOpen)
		if letter.Payload != nil || letter.Headers != nil || letter.PayloadLength != len(m.data) || letter.PayloadSHA256 != sha256.Sum256(m.data) {
			t.Errorf("%s: %+v", name, letter)
		}
		kept := fmt.Sprintf("%s|%s|%s|%s|%s|%+v", letter.TenantID, letter.IdempotencyKey, letter.Message, letter.Origin.Subject, letter.Reason, r)
		if holdsCard([]byte(kept)) {
			t.Errorf("%s: kept %s", name, kept)
		}
	}
}

func TestWireHeaders(t *testing.T) {
	t.Parallel()
	if got := wireHeaders(nil); got != nil {
		t.Errorf("none: %q", got)
	}
	headers := map[string][]string{"b": {"2", "3"}, "A": {"x: y"}, "": {"blank"}, "bytes": {"\xff"}}
	raw := wireHeaders(headers)
	if want := "NATS/1.0\r\n: blank\r\nA: x: y\r\nb: 2\r\nb: 3\r\nbytes: \xff\r\n\r\n"; string(raw) != want {
		t.Errorf("got  %q\nwant %q", raw, want)
	}
	got := document.DeadLetterInFull(payments.DeadLetter{Headers: raw, Payload: []byte{}}).Headers
	if want := map[string][]string{"b": {"2", "3"}, "A": {"x: y"}, "": {"blank"}, "bytes": {"\uFFFD"}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read back as %q", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, m := range cardMessages() {
		f.Add(m.subject, "Idempotency-Key", "k", m.data)
	}
	for _, payments := range []string{"", keyless, keyless + "," + keyless, `{"tenant_id":"globex","amount":1}`, `{"amount":-1}`, goodBody, "null"} {
		f.Add("payments.batch.acme", "", "", []byte(`{"idempotency_key":"b-1","parent":"run","payments":[`+payments+`]}`))
		f.Add("payments.batch.acme", "Idempotency-Key", "b::1", []byte(`{"payments":[`+payments+`]}`))
	}
	f.Add("payments.batch.acme", "", "", []byte(`{"idempotency_key":"b-1"}`))
	f.Add("payments.batch.acme", "", "", batchJSON("b-1", 101))
	f.Add("payments.bulk.acme", "", "", batchJSON("b-1", 2))
	for _, subject := range []string{"payments.intent.acme", "payments.bulk.a", "payments.batch.acme", "payments.intent.", ""} {
		f.Add(subject, "Idempotency-Key", `"order-1"`, []byte(goodBody))
		f.Add(subject, "idempotency-key", "b::1", []byte(keyless))
		f.Add(subject, "", "", refundJSON("refund-1"))
		f.Add(subject, "Idempotency-Key", "k", []byte(`{"kind":"cancel","payment_id":"`+chargeOfOrder1+`","amount":0,"off_session":false}`))
		f.Add(subject, "", "", []byte(`{"idempotency_key":"a\u0000b","metadata":{"k":"\ud800"}}`))
	}
	f.Fuzz(func(t *testing.T, subject, name, value string, data []byte) {
		headers := map[string][]string{}
		if name != "" {
			headers[name] = []string{value}
		}
		r := read(testSubjects, message{subject, headers, data})
		if r.refusal != nil {
			if r.batch != nil || r.refused != nil || r.intent.TenantID != "" || r.intent.IdempotencyKey != "" || r.existingOnly || r.refusal.reason == "" || r.refusal.message == "" {
				t.Fatalf("a refusal with an intent: %+v", r)
			}
			if r.refusal.erase != (r.refusal.reason == payments.ReasonCardNumber) {
				t.Fatalf("erase: %+v", r.refusal)
			}
			if payments.ContainsCardNumberString(r.key) || payments.ContainsCardNumberString(r.tenant) || payments.ContainsCardNumberString(r.refusal.message) {
				t.Fatalf("kept a card number: %+v", r)
			}
			return
		}
		if r.batch != nil {
			checkBatch(t, subject, r)
			return
		}
		valid := r.intent.Validate()
		if r.followUp() {
			valid = r.intent.ValidateFollowUp()
		}
		if (r.refused == nil) != (valid == nil) {
			t.Fatalf("refused %+v, valid %+v", r.refused, valid)
		}
		if r.intent.CardField() != "" || payments.CheckKey(r.intent.IdempotencyKey) != "" || payments.CheckTenantID(r.intent.TenantID) != "" {
			t.Fatalf("accepted %+v", r.intent)
		}
		if r.intent.TenantID != r.tenant || r.key != r.intent.IdempotencyKey || r.existingOnly != strings.Contains(r.key, "::") || !strings.HasSuffix(subject, "."+r.tenant) {
			t.Fatalf("whose is it: %+v", r)
		}
	})
}
