package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

var instant = time.Date(2030, 1, 31, 13, 0, 0, 120_000_999, time.FixedZone("", 3600))

// both writes a document with our encoder and with the standard library's, which
// an HTTP framework may use, and wants one text.
func both(t *testing.T, document any) string {
	t.Helper()
	ours, err := Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(ours) != string(theirs) {
		t.Errorf("two encoders disagree:\n%s\n%s", ours, theirs)
	}
	return string(ours)
}

func TestPaymentDocument(t *testing.T) {
	t.Parallel()
	got := both(t, Payment{
		ID: "pay_1", TenantID: "acme", IdempotencyKey: "k", Kind: KindCharge, Status: "received", Amount: 1, Currency: "usd",
		CreatedAt: NewTimestamp(instant), UpdatedAt: NewTimestamp(instant),
	})
	const want = `{"id":"pay_1","tenant_id":"acme","idempotency_key":"k","kind":"charge","status":"received","amount":1,` +
		`"amount_captured":0,"amount_refunded":0,"currency":"usd","customer":null,"payment_method":null,"description":null,` +
		`"metadata":{},"batch_id":null,"stripe_payment_intent":null,"stripe_account":null,"tries":0,"reason":null,` +
		`"failure":null,"next_attempt_at":null,"expires_at":null,"created_at":"2030-01-31T12:00:00.12Z",` +
		`"updated_at":"2030-01-31T12:00:00.12Z","finalized_at":null}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	full := Payment{
		Metadata: Metadata{"b": "2", "a": "1"}, Failure: &Failure{Code: Null("card_declined")}, FinalizedAt: NullTimestamp(instant),
		ClientSecret: Null("pi_secret"), NextAction: jsontext.Value(`{"type":"redirect"}`), Events: []TimelineEntry{{Sequence: 1, At: NewTimestamp(instant)}},
	}
	text := both(t, full)
	for _, part := range []string{
		`"metadata":{"a":"1","b":"2"}`, `"failure":{"code":"card_declined","decline_code":null,"message":null}`,
		`"finalized_at":"2030-01-31T12:00:00.12Z"`, `"next_action":{"type":"redirect"}`, `"client_secret":"pi_secret"`,
		`"events":[{"sequence":1,"at":"2030-01-31T12:00:00.12Z","type":"","status":"","reason":null}]`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing in\n%s", part, text)
		}
	}
	if public := both(t, full.ForEvent()); strings.Contains(public, "secret") || strings.Contains(public, "next_action") || strings.Contains(public, "events") {
		t.Errorf("an event would carry what only the tenant's request may see:\n%s", public)
	}
	var again Payment
	if err := json.Unmarshal([]byte(text), &again); err != nil || !reflect.DeepEqual(again, full) && both(t, again) != text {
		t.Errorf("read again as %+v, %v", again, err)
	}
}

func TestDeadLetterDocument(t *testing.T) {
	t.Parallel()
	seq := int64(7)
	d := DeadLetter{
		ID: "dl_1", TenantID: Null("acme"), Reason: "undecodable", Message: "m", Subject: Null("payments.intent.acme"), StreamSeq: &seq,
		Tries: 1, State: DeadOpen, FirstSeen: NewTimestamp(instant), LastSeen: NewTimestamp(instant),
	}
	const want = `{"id":"dl_1","tenant_id":"acme","idempotency_key":null,"payment_id":null,"reason":"undecodable","message":"m",` +
		`"subject":"payments.intent.acme","stream_seq":7,"tries":1,"state":"open","replays":0,` +
		`"first_seen":"2030-01-31T12:00:00.12Z","last_seen":"2030-01-31T12:00:00.12Z"}`
	if got := both(t, d); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.Headers, d.PayloadBase64, d.Differs = map[string][]string{"a": {"b"}}, Null("e30="), []string{"amount"}
	if got := both(t, d); !strings.HasSuffix(got, `"differs":["amount"],"headers":{"a":["b"]},"payload_base64":"e30="}`) {
		t.Errorf("got %s", got)
	}
}

func TestBatchAndListDocuments(t *testing.T) {
	t.Parallel()
	b := Batch{ID: "bat_1", IdempotencyKey: "k", Count: 2, ByStatus: map[string]StatusTotal{"succeeded": {Count: 2, Amount: map[string]int64{"usd": 3, "eur": 1}}}, Complete: true}
	const want = `{"id":"bat_1","idempotency_key":"k","parent":null,"count":2,"by_status":{"succeeded":{"count":2,"amount":{"eur":1,"usd":3}}},"complete":true}`
	if got := both(t, b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := both(t, List[Batch]{}); got != `{"data":[],"next_cursor":null}` {
		t.Errorf("an empty page is %s", got)
	}
	if got := both(t, List[string]{Data: []string{"a"}, NextCursor: Null("c")}); got != `{"data":["a"],"next_cursor":"c"}` {
		t.Errorf("a page is %s", got)
	}
	const accepted = `{"id":"bat_1","payments":[{"index":0,"id":"pay_1","idempotency_key":"k::0","status":"received"}]}`
	if got := both(t, BatchAccepted{ID: "bat_1", Payments: []BatchPayment{{0, "pay_1", "k::0", "received"}}}); got != accepted {
		t.Errorf("got %s", got)
	}
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	if NullTimestamp(time.Time{}) != nil || Null("") != nil || Null("a") == nil {
		t.Error("absent must be null, and present must not")
	}
	if _, err := Marshal(Timestamp{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("year 10000 was written")
	}
	var ts Timestamp
	if err := json.Unmarshal([]byte(`"2030-01-31T13:00:00.120000999+01:00"`), &ts); err != nil || !ts.Equal(instant.Truncate(time.Microsecond)) {
		t.Errorf("got %v, %v", ts, err)
	}
	for _, bad := range []string{`"2030-01-31"`, `1893456000`, `""`} {
		if err := json.Unmarshal([]byte(bad), &ts); err == nil {
			t.Errorf("%s was read as %v", bad, ts)
		}
	}
	for _, bad := range []string{"2030-01-31T12:00:00+24:00", "2030-01-31T12:00:00+00:60", "2030-01-31T12:00:00.Z", "2030-01-31t12:00:00z", "2030-01-31T12:00:60Z", "2030-01-31T12:00:00ZZ", "2030-01-31T12:00:00"} {
		if got, err := ParseTime(bad); err == nil {
			t.Errorf("%s was read as %v", bad, got)
		}
	}
}
