package schema

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func sampleEvent() Event {
	return Event{
		ID: EventID("pay_1", 3, "oncepay.payment.succeeded"), Source: EventSource("oncepay"), Type: "oncepay.payment.succeeded",
		Subject: "pay_1", Time: time.Date(2030, 1, 31, 13, 0, 0, 123456789, time.FixedZone("", 3600)),
		TenantID: "acme", Sequence: 3, Data: jsontext.Value(`{ "id" : "pay_1" }`),
	}
}

func TestEncodeEvent(t *testing.T) {
	t.Parallel()
	got, err := EncodeEvent(sampleEvent())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"specversion":"1.0","id":"pay_1_3_succeeded","source":"urn:oncepay:oncepay","type":"oncepay.payment.succeeded",` +
		`"subject":"pay_1","time":"2030-01-31T12:00:00.123456Z","tenantid":"acme","sequence":3,` +
		`"datacontenttype":"application/json","data":{"id":"pay_1"}}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	decoded, err := DecodeEvent(got)
	if err != nil {
		t.Fatal(err)
	}
	again, err := EncodeEvent(decoded)
	if err != nil || string(again) != want {
		t.Errorf("decoded and encoded again: %s, %v", again, err)
	}
}

func TestEncodeEventRefuses(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*Event){
		"id":       func(e *Event) { e.ID = "" },
		"source":   func(e *Event) { e.Source = "a b" },
		"type":     func(e *Event) { e.Type = "oncepay.payment" },
		"subject":  func(e *Event) { e.Subject = strings.Repeat("a", 256) },
		"time":     func(e *Event) { e.Time = time.Time{} },
		"tenantid": func(e *Event) { e.TenantID = "acme.>" },
		"sequence": func(e *Event) { e.Sequence = 1 << 31 },
		"data":     func(e *Event) { e.Data = jsontext.Value(`{"a":}`) },
		"":         func(e *Event) { e.Data = jsontext.Value(`{"a":"` + strings.Repeat("a", EventMaxBytes) + `"}`) },
	} {
		e := sampleEvent()
		spoil(&e)
		out, err := EncodeEvent(e)
		var refused *DecodeError
		if !errors.As(err, &refused) || refused.Field != field || out != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, data := range []string{``, `null`, `[]`, `{}{}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		e := sampleEvent()
		e.Data = jsontext.Value(data)
		if _, err := EncodeEvent(e); err == nil {
			t.Errorf("data %q was accepted", data)
		}
	}
}

// After a restore the same number may belong to another transition.
func TestEventIDTellsTransitionsApart(t *testing.T) {
	t.Parallel()
	if EventID("pay_1", 4, PaymentEventType("unknown")) == EventID("pay_1", 4, PaymentEventType("succeeded")) {
		t.Error("two transitions share an id")
	}
	seen := map[string]bool{}
	for _, subject := range []string{"pay_1", "pay_2"} {
		for sequence := int64(1); sequence <= 12; sequence++ {
			for _, eventType := range EventTypes() {
				// A payment has no refund's events: those have the refund's id.
				if strings.HasPrefix(eventType, "oncepay.payment.") {
					id := EventID(subject, sequence, eventType)
					if seen[id] || !validAttribute(id) {
						t.Fatalf("%q is not unique, or not a safe token", id)
					}
					seen[id] = true
				}
			}
		}
	}
}

func TestEventSource(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{
		"oncepay": "urn:oncepay:oncepay", "shop eu/1": "urn:oncepay:shop%20eu%2F1", "é": "urn:oncepay:%C3%A9",
	} {
		if got := EventSource(namespace); got != want || !validAttribute(got) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEventToken(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{}
	for _, eventType := range EventTypes() {
		token, err := EventToken(eventType)
		if err != nil || tokens[token] != "" || !validToken(token) {
			t.Errorf("%q: %q, %v", eventType, token, err)
		}
		tokens[token] = eventType
	}
	for token, want := range map[string]string{
		"payment-succeeded": "oncepay.payment.succeeded", "payment-dead_lettered": "oncepay.payment.dead_lettered",
		"payment-requires_capture": "oncepay.payment.requires_capture", "refund-failed": "oncepay.refund.failed",
		"batch-completed": "oncepay.batch.completed", "cap-threshold": "oncepay.cap.threshold",
	} {
		if tokens[token] != want {
			t.Errorf("%q belongs to %q, want %q", token, tokens[token], want)
		}
	}
	for _, bad := range []string{
		"", "oncepay.", "oncepay.payment", "oncepay.payment.", "oncepay..failed", "oncepay.payment.a.b", "oncepay.payment.*",
		"oncepay.payment.A", "oncepay.pay-ment.failed", "oncepay.payment._a", "oncepay.payment.a_", "oncepay.payment.a__b",
		"payment.failed", "oncepay.payment." + strings.Repeat("a", 100),
	} {
		if got, err := EventToken(bad); !errors.Is(err, ErrEventType) || got != "" {
			t.Errorf("%.30q: got %q, %v", bad, got, err)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	for _, kind := range []string{"event/accepted", "event/refused"} {
		for _, m := range recordings(f, kind) {
			f.Add(m.data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := DecodeEvent(data)
		if err != nil {
			return
		}
		e.Time = NewTimestamp(e.Time).Time
		out, err := EncodeEvent(e)
		if err != nil {
			t.Fatalf("accepted, but not to be written: %v", err)
		}
		again, err := DecodeEvent(out)
		if err != nil {
			t.Fatalf("written, but not to be read: %v\n%s", err, out)
		}
		twice, err := EncodeEvent(again)
		if err != nil || string(twice) != string(out) {
			t.Fatalf("not stable: %v\n%s\n%s", err, out, twice)
		}
		e.Data, again.Data = nil, nil
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("got %+v, want %+v", again, e)
		}
	})
}
