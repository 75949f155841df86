package producer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
	"pgregory.net/rapid"
)

// TestWireCarriesEveryField sets one field of the intent at a time: a field that
// is added to the domain and forgotten here would be charged as if it were absent.
func TestWireCarriesEveryField(t *testing.T) {
	t.Parallel()
	encode := func(i payments.Intent) []byte {
		out, err := schema.EncodeIntent(document.Intent(i))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	typ := reflect.TypeFor[payments.Intent]()
	for n := range typ.NumField() {
		var i payments.Intent
		if name := typ.Field(n).Name; name == "All" || name == "Reason" { // which charges do not have
			i = payments.Intent{Kind: payments.KindRefund, Amount: 7}
		}
		empty := encode(i)
		field := reflect.ValueOf(&i).Elem().Field(n)
		switch field.Interface().(type) {
		case time.Time:
			field.Set(reflect.ValueOf(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)))
		case map[string]string:
			field.Set(reflect.ValueOf(map[string]string{"a": "b"}))
		default:
			switch field.Kind() {
			case reflect.String:
				field.SetString("charge")
			case reflect.Int64:
				field.SetInt(7)
			case reflect.Bool:
				field.SetBool(true)
			default:
				t.Fatalf("%s has a type that this test does not know", typ.Field(n).Name)
			}
		}
		changed := !bytes.Equal(encode(i), empty)
		if name := typ.Field(n).Name; changed == (name == "TenantID") { // the subject says the tenant
			t.Errorf("%s: on the wire: %v", name, changed)
		}
	}
}

// TestOnlyProofsAreNotStored walks all of JetStream's codes: what is not on the
// list of refusals ahead of the store leaves the outcome open.
func TestOnlyProofsAreNotStored(t *testing.T) {
	t.Parallel()
	again := map[jetstream.ErrorCode]bool{
		codeAccountResources: true, codeInsufficient: true, codeMemoryResources: true, codeStorageResources: true, codeTooManyRequests: true,
		codeAtomicDisabled: true, codeAtomicIncomplete: true, codeAtomicTooLarge: true, codeAtomicDuplicate: true, codeAtomicTooMany: true,
		codeMessageTooLarge: false, codeOtherStream: false, codeHeaderTooLarge: false, codeSealed: false,
	}
	for code := jetstream.ErrorCode(10000); code < 10400; code++ {
		err := refusedByServer(fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: code, Description: "whatever"}))
		retry, proof := again[code]
		if (err.Outcome == NotStored) != proof || proof && err.Again != retry || !proof && !err.Again {
			t.Errorf("%d: %+v", code, err)
		}
	}
	for text, want := range map[string]Outcome{
		"maximum bytes exceeded": NotStored, "maximum messages exceeded": NotStored, "maximum messages per subject exceeded": NotStored,
		"message to large": NotStored, "store is closed": Unknown, "no space left on device": Unknown,
	} {
		if err := refusedByStream(&jetstream.APIError{ErrorCode: codeStoreFailed, Description: text}); err.Outcome != want {
			t.Errorf("10077 %s: %v, want %v", text, err, want)
		}
	}
	for err, want := range map[error]Outcome{
		nats.ErrTimeout: Unknown, nats.ErrDisconnected: Unknown, nats.ErrConnectionClosed: Unknown,
		jetstream.ErrInvalidJSAck: Unknown, nats.ErrNoResponders: NotStored,
	} {
		if got := refusedByServer(err); got.Outcome != want || !errors.Is(got, err) {
			t.Errorf("after sending, %v: %v, want %v", err, got, want)
		}
	}
	for err, want := range map[error]Outcome{
		nats.ErrMaxPayload: NotStored, nats.ErrReconnectBufExceeded: NotStored, nats.ErrConnectionClosed: NotStored, nats.ErrConnectionDraining: NotStored,
		nats.ErrBadSubject: NotStored, errors.New("write: broken pipe"): Unknown,
	} {
		if got := refusedToSend(err); got.Outcome != want || !errors.Is(got, err) {
			t.Errorf("while sending, %v: %v, want %v", err, got, want)
		}
	}
	var r Result
	if r.settle(ack{stream: "S", sequence: 1, duplicate: true}, nil); r.Outcome != Unknown || !MayBeStored(r.Err) {
		t.Errorf("a duplicate: %+v", r)
	}
}

// W3C Trace Context, section 3.2.2, version 00, ids of zeros excepted.
var traceparentForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

func FuzzValidTraceparent(f *testing.F) {
	for _, s := range []string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\n", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := traceparentForm.MatchString(s) && s[3:35] != "00000000000000000000000000000000" && s[36:52] != "0000000000000000"
		if got := validTraceparent(s); got != want {
			t.Errorf("validTraceparent(%q) = %v, want %v", s, got, want)
		}
	})
}

func TestPausesGrowAndAreBounded(t *testing.T) {
	t.Parallel()
	opts := RelayOptions{RetryBase: time.Second, RetryCap: 5 * time.Second, Jitter: func(limit time.Duration) time.Duration { return limit }}.withDefaults()
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 1000: 5 * time.Second} {
		if got := opts.pause(n); got != want {
			t.Errorf("pause(%d) = %v, want %v", n, got, want)
		}
	}
	for range 100 {
		if got := (RelayOptions{}).withDefaults().pause(3); got < 0 || got >= 4*DefaultRelayRetry {
			t.Errorf("pause = %v", got)
		}
	}
}

// TestQueueKeepsItsBooks runs random operations against a plain model: every item
// is held once, groups keep the order, and the queue never outgrows its bound by
// offers.
func TestQueueKeepsItsBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		maxItems := rapid.IntRange(1, 20).Draw(t, "max")
		q := newRelayQueue(maxItems, time.Now)
		lane := &relayLane{wake: make(chan struct{}, 1)}
		route := func(payments.OutboxItem) *relayLane { return lane }
		var queued, inHand []int64
		held := map[int64]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"offer", "poll", "take", "back", "release"}).Draw(t, "step") {
			case "offer", "poll":
				id, poll := rapid.Int64Range(1, 40).Draw(t, "id"), rapid.Bool().Draw(t, "poll")
				all := q.add(route, []payments.OutboxItem{{ID: id, Body: make([]byte, id)}}, poll)
				fits := held[id] || poll || len(held) < maxItems
				if all != fits {
					t.Fatalf("add said %v with %d of %d held", all, len(held), maxItems)
				}
				if fits && !held[id] {
					held[id], queued = true, append(queued, id)
				}
			case "take":
				if len(inHand) > 0 {
					continue
				}
				n := rapid.IntRange(1, 10).Draw(t, "n")
				for _, w := range q.take(lane, n) {
					inHand = append(inHand, w.item.ID)
				}
				want := queued[:min(n, len(queued))]
				if fmt.Sprint(inHand) != fmt.Sprint(append([]int64(nil), want...)) {
					t.Fatalf("took %v, want %v", inHand, want)
				}
				queued = queued[len(want):]
			case "back":
				q.putBack(lane, group(inHand))
				queued, inHand = append(inHand[:len(inHand):len(inHand)], queued...), nil
			case "release":
				q.release(group(inHand))
				for _, id := range inHand {
					delete(held, id)
				}
				inHand = nil
			}
			bytes := 0
			for id := range held {
				bytes += int(id)
			}
			if n, _ := q.depth(); n != len(held) || q.bytes != bytes || q.empty(lane) != (len(queued) == 0) || q.room() != max(maxItems-len(held), 0) {
				t.Fatalf("%d held with %d bytes, want %d with %d", n, q.bytes, len(held), bytes)
			}
		}
	})
}

func group(ids []int64) []waiting {
	var out []waiting
	for _, id := range ids {
		out = append(out, waiting{item: payments.OutboxItem{ID: id, Body: make([]byte, id)}})
	}
	return out
}

// TestAPollThatAnOverflowOvertook: an offer that finds no room while the poll is
// under way may concern an item that the poll has not seen.
func TestAPollThatAnOverflowOvertook(t *testing.T) {
	t.Parallel()
	q := newRelayQueue(1, time.Now)
	lane := &relayLane{wake: make(chan struct{}, 1)}
	route := func(payments.OutboxItem) *relayLane { return lane }
	q.polled(q.polling(), false)
	if idle, _ := q.idle(); !idle {
		t.Fatal("not idle after an empty poll")
	}
	began := q.polling()
	q.add(route, []payments.OutboxItem{{ID: 1}, {ID: 2}}, false)
	q.polled(began, false)
	q.release(q.take(lane, 10))
	if idle, _ := q.idle(); idle {
		t.Error("idle, and item 2 was never polled")
	}
}

// FuzzReadPlain: the short way to read an acknowledgement says what the long way
// says, or nothing.
func FuzzReadPlain(f *testing.F) {
	for _, s := range []string{
		`{"stream":"PAYMENTS_INTENTS", "seq":7}`, `{"stream":"S", "seq":18446744073709551615}`, `{"stream":"S", "seq":18446744073709551616}`,
		`{"stream":"S", "seq":7,"duplicate": true}`, `{"stream":"S", "seq":7,"batch":"b","count":3}`, `{"stream":"", "seq":7}`, `{"stream":"S", "seq":0}`,
		`{"stream":"S", "seq":-7}`, `{"stream":"S", "seq":07}`, `{"stream":"S", "seq":7e2}`, `{"stream":"a\u0041", "seq":7}`, `{"stream":"S", "seq":7}}`,
		`{"error":{"code":400,"err_code":10077},"stream":"S","seq":0}`, `{"stream":"S", "seq":7, "error":{"code":400}}`, "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, ok := readPlain(data)
		if !ok {
			return
		}
		var long answerTo
		if err := json.Unmarshal(data, &long); err != nil || long.Error != nil || long.Duplicate || a.duplicate ||
			!utf8.Valid(data) || long.Stream != a.stream || long.Sequence != a.sequence || a.sequence == 0 || a.stream == "" {
			t.Errorf("%q is read as %+v; the decoder says %+v, %v", data, a, long, err)
		}
	})
}
