package document_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

var at = time.Date(2030, 1, 31, 12, 0, 0, 123456789, time.UTC)

func full() payments.Payment {
	return payments.Payment{
		Intent: payments.Intent{
			TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 9900, Currency: "usd", Customer: "cus_1",
			PaymentMethod: "pm_1", Description: "two shirts", Metadata: map[string]string{"b": "2", "a": "1"}, ExpiresAt: at.Add(time.Hour),
			ReceiptEmail: "private@example.com",
		},
		ID: payments.NewID("acme", "order-1"), Status: payments.StatusFailed, Reason: "card_declined",
		Failure: &payments.Failure{Code: "card_declined", DeclineCode: "do_not_honor", Message: "no"}, Tries: 2, Sequence: 3,
		StripePaymentIntent: "pi_1", StripeAccount: "acct_1", AmountCaptured: 1, BatchID: "bat_1",
		CreatedAt: at, UpdatedAt: at.Add(time.Second), FinalizedAt: at.Add(time.Second),
	}
}

// TestPaymentGolden fixes the document that the HTTP API, the command line and events share, member by member.
func TestPaymentGolden(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p    payments.Payment
		want string
	}{
		"full": {full(), `{"id":"pay_af5f4f1841e88ebcae502028d51c062c","tenant_id":"acme","idempotency_key":"order-1","kind":"charge","status":"failed",` +
			`"amount":9900,"amount_captured":1,"amount_refunded":0,"currency":"usd","customer":"cus_1","payment_method":"pm_1","description":"two shirts",` +
			`"metadata":{"a":"1","b":"2"},"batch_id":"bat_1","stripe_payment_intent":"pi_1","stripe_account":"acct_1","tries":2,"reason":"card_declined",` +
			`"failure":{"code":"card_declined","decline_code":"do_not_honor","message":"no"},"next_attempt_at":null,"expires_at":"2030-01-31T13:00:00.123456Z",` +
			`"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:01.123456Z","finalized_at":"2030-01-31T12:00:01.123456Z"}`},
		"bare": {payments.Payment{Intent: payments.Intent{TenantID: "acme", IdempotencyKey: "order-1", Kind: payments.KindCharge, Amount: 1, Currency: "usd"},
			ID: payments.NewID("acme", "order-1"), Status: payments.StatusWaiting, NextAttemptAt: at, CreatedAt: at, UpdatedAt: at},
			`{"id":"pay_af5f4f1841e88ebcae502028d51c062c","tenant_id":"acme","idempotency_key":"order-1","kind":"charge","status":"waiting",` +
				`"amount":1,"amount_captured":0,"amount_refunded":0,"currency":"usd","customer":null,"payment_method":null,"description":null,` +
				`"metadata":{},"batch_id":null,"stripe_payment_intent":null,"stripe_account":null,"tries":0,"reason":null,` +
				`"failure":null,"next_attempt_at":"2030-01-31T12:00:00.123456Z","expires_at":null,` +
				`"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finalized_at":null}`},
	} {
		got, err := schema.Marshal(document.Payment(c.p))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, c.want)
		}
	}
}

// TestShownStatus: processing is a ticket that somebody has, never a stored word.
func TestShownStatus(t *testing.T) {
	t.Parallel()
	for _, s := range payments.Statuses() {
		p := payments.Payment{Status: s, Owned: true}
		want := string(s)
		if s == payments.StatusReceived || s == payments.StatusWaiting {
			want = "processing"
		}
		if got := document.Payment(p).Status; got != want {
			t.Errorf("%s: shown as %s, want %s", s, got, want)
		}
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	raw, err := document.Event(full(), document.EventType(full()), "shop", at)
	if err != nil {
		t.Fatal(err)
	}
	back, err := schema.DecodeEvent(raw)
	if err != nil || back.ID != "pay_af5f4f1841e88ebcae502028d51c062c_3_failed" || back.Type != "oncepay.payment.failed" || back.Source != "urn:oncepay:shop" ||
		back.Subject != "pay_af5f4f1841e88ebcae502028d51c062c" || back.TenantID != "acme" || back.Sequence != 3 {
		t.Errorf("%+v, %v", back, err)
	}
	if strings.Contains(string(raw), "private@example.com") {
		t.Errorf("the event shows the customer's address: %s", raw)
	}
	if data, err := schema.Marshal(document.Payment(full())); err != nil || string(back.Data) != string(data) {
		t.Errorf("the data are not the document: %v\n%s\n%s", err, back.Data, data)
	}
	again, err := document.Event(full(), document.EventType(full()), "shop", at)
	if err != nil || string(again) != string(raw) {
		t.Errorf("the same transition gave another event: %s, %v", again, err)
	}
	refund := full()
	refund.Kind = payments.KindRefund
	raw, err = document.Event(refund, document.EventType(refund), "shop", at)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := schema.DecodeEvent(raw); err != nil || r.Type != "oncepay.refund.failed" || !strings.HasPrefix(r.Subject, "ref_") {
		t.Errorf("refund: %+v, %v", r, err)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	entries := []payments.Entry{{At: at, Type: "oncepay.payment.received", Status: payments.StatusReceived}, {Sequence: 1, At: at, Type: "oncepay.payment.waiting", Status: payments.StatusWaiting, Reason: "locked"}}
	doc := document.PaymentWithEvents(full(), entries)
	if len(doc.Events) != 2 || doc.Events[0].Reason != nil || *doc.Events[1].Reason != "locked" || doc.Events[1].Sequence != 1 {
		t.Errorf("%+v", doc.Events)
	}
	if got := document.Timeline(nil); got == nil {
		t.Error("no entries must be [], not null")
	}
}

func TestDeadLetter(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "order-1")
	d := payments.DeadLetter{
		ID: "dl_1", TenantID: "acme", PaymentID: &id, Reason: payments.ReasonInvalid, Message: "amount must be positive", State: payments.DeadLetterOpen, Tries: 2,
		Origin:  payments.MessageOrigin{Stream: "PAYMENTS_INTENTS", Sequence: 7, Subject: "payments.intent.acme"},
		Headers: []byte("NATS/1.0\r\nIdempotency-Key: a: b\r\nX: 1\r\nX: \xff\r\nbroken\r\n\r\n"), Payload: []byte("\x00\xff"), FirstSeen: at, LastSeen: at,
	}
	list := document.DeadLetter(d)
	if list.Headers != nil || list.PayloadBase64 != nil || *list.StreamSeq != 7 || *list.PaymentID != id.String() || list.IdempotencyKey != nil || *list.Subject != "payments.intent.acme" {
		t.Errorf("%+v", list)
	}
	shown := document.DeadLetterInFull(d)
	if *shown.PayloadBase64 != "AP8=" || !slices.Equal(shown.Headers["Idempotency-Key"], []string{"a: b"}) || len(shown.Headers["X"]) != 2 || len(shown.Headers) != 2 {
		t.Errorf("%+v", shown)
	}
	d.Payload, d.Headers, d.Origin, d.PaymentID = nil, nil, payments.MessageOrigin{}, nil
	if bare := document.DeadLetterInFull(d); bare.PayloadBase64 != nil || bare.Headers != nil || bare.StreamSeq != nil || bare.Subject != nil || bare.PaymentID != nil {
		t.Errorf("%+v", bare)
	}
	if shown.PayloadLength != nil || shown.PayloadSHA256 != nil {
		t.Errorf("the payload and its hash: %+v", shown)
	}
	// Of a message with a card number nothing else is left to know it by.
	d.PayloadLength, d.PayloadSHA256 = 3, [32]byte{0xAB, 31: 0xCD}
	if erased := document.DeadLetterInFull(d); *erased.PayloadLength != 3 || *erased.PayloadSHA256 != "ab"+strings.Repeat("00", 30)+"cd" {
		t.Errorf("%+v", erased)
	}
}

// FuzzHeaders: whatever bytes stand in the headers, the document is JSON.
func FuzzHeaders(f *testing.F) {
	for _, s := range []string{"", "NATS/1.0\r\n\r\n", "NATS/1.0\r\nA:\r\n", "NATS/1.0 503\r\n\r\n", "NATS/1.0\r\n:\x00\xff\r\n\r\n", "\r\n\r\nA: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := schema.Marshal(document.DeadLetterInFull(payments.DeadLetter{ID: "dl_1", Headers: raw, Payload: raw, FirstSeen: at, LastSeen: at}))
		if err != nil || !json.Valid(out) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// TestEventsAlwaysEncode: an event of any payment that can be stored can be published.
func TestEventsAlwaysEncode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := full()
		p.Status = rapid.SampledFrom(payments.Statuses()).Draw(rt, "status")
		p.Reason, p.Description = rapid.String().Draw(rt, "reason"), rapid.String().Draw(rt, "description")
		p.Metadata = rapid.MapOf(rapid.String(), rapid.String()).Draw(rt, "metadata")
		namespace := rapid.String().Filter(func(s string) bool { return len(s) < 40 }).Draw(rt, "namespace")
		if _, err := document.Event(p, document.EventType(p), namespace, at); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestIntentWayBack: what is written of an intent and read again asks for the same.
func TestIntentWayBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,20}`)
		in := payments.Intent{
			TenantID: "acme", IdempotencyKey: rapid.StringMatching(`[!-~]{1,20}`).Draw(rt, "key"), Kind: payments.KindCharge,
			PaymentID: text.Draw(rt, "payment_id"), Amount: rapid.Int64Range(1, 99_999_999).Draw(rt, "amount"), Currency: "usd",
			Customer: text.Draw(rt, "customer"), PaymentMethod: text.Draw(rt, "payment_method"), Description: text.Draw(rt, "description"),
			StatementDescriptorSuffix: text.Draw(rt, "suffix"), ReceiptEmail: text.Draw(rt, "email"),
			CaptureMethod: rapid.SampledFrom([]payments.CaptureMethod{payments.CaptureAutomatic, payments.CaptureManual}).Draw(rt, "capture"),
			OffSession:    rapid.Bool().Draw(rt, "off_session"), ReturnURL: text.Draw(rt, "return_url"),
			Metadata: rapid.MapOfN(text, text, 0, 3).Draw(rt, "metadata"),
		}
		if rapid.Bool().Draw(rt, "expires") {
			in.ExpiresAt = at.Truncate(time.Microsecond)
		}
		raw, err := schema.EncodeIntent(document.Intent(in))
		if err != nil {
			rt.Fatal(err)
		}
		wire, err := schema.DecodeIntent(raw)
		if err != nil {
			rt.Fatal(err)
		}
		back := document.ReadIntent(wire, in.TenantID, wire.IdempotencyKey.Value)
		if payments.Fingerprint(back) != payments.Fingerprint(in) || !back.ExpiresAt.Equal(in.ExpiresAt) || back.ID() != in.ID() {
			rt.Fatalf("%+v\n became %+v", in, back)
		}
	})
}

func TestBatchGolden(t *testing.T) {
	t.Parallel()
	b := payments.Batch{TenantID: "acme", IdempotencyKey: "run.000000", Parent: "run", Count: 4}
	state := payments.BatchState{Batch: b, Totals: []payments.StatusTotal{
		{Status: payments.StatusFailed, Currency: "usd", Count: 1, Amount: 5}, {Status: payments.StatusSucceeded, Currency: "eur", Count: 1, Amount: 7},
		{Status: payments.StatusSucceeded, Currency: "usd", Count: 2, Amount: 30},
	}}
	got, err := schema.Marshal(document.Batch(state))
	want := `{"id":"bat_8b7d7833e297393056762a0618a6d05f","idempotency_key":"run.000000","parent":"run","count":4,"by_status":{` +
		`"failed":{"count":1,"amount":{"usd":5}},"succeeded":{"count":3,"amount":{"eur":7,"usd":30}}},"complete":true}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	bare, err := schema.Marshal(document.Batch(payments.BatchState{Batch: payments.Batch{TenantID: "acme", IdempotencyKey: "b", Count: 1}}))
	if err != nil || !strings.Contains(string(bare), `"parent":null,"count":1,"by_status":{},"complete":false}`) {
		t.Errorf("%v, %s", err, bare)
	}
	children := []payments.Payment{full()}
	accepted, err := schema.Marshal(document.BatchAccepted(b, children))
	if err != nil || string(accepted) != `{"id":"bat_8b7d7833e297393056762a0618a6d05f","payments":[{"index":0,"id":"pay_af5f4f1841e88ebcae502028d51c062c","idempotency_key":"order-1","status":"failed"}]}` {
		t.Errorf("%v, %s", err, accepted)
	}
}
