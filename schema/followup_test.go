package schema

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyOperation is any document of an operation, with what no event may carry in it.
var anyOperation = rapid.Custom(func(t *rapid.T) Operation {
	p := anyPayment.Draw(t, "of a payment")
	return Operation{
		ID: p.ID, Kind: p.Kind, PaymentID: rapid.String().Draw(t, "payment"), TenantID: p.TenantID, IdempotencyKey: p.IdempotencyKey, Status: p.Status,
		Amount: p.Amount, Currency: p.Currency, Reason: p.Description, Metadata: p.Metadata, StripeRefund: p.Customer,
		StripePaymentIntent: p.StripePaymentIntent, StripeAccount: p.StripeAccount, Tries: p.Tries, StatusReason: p.Reason, Failure: p.Failure,
		NextAttemptAt: p.NextAttemptAt, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt, FinalizedAt: p.FinalizedAt, Events: p.Events,
	}
})

// TestOperationEventsAreWrittenAsAllDocuments: the short way and the long one give the same bytes.
func TestOperationEventsAreWrittenAsAllDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		o, e := anyOperation.Draw(rt, "operation"), sampleEvent()
		got, err := EncodeOperationEvent(e, o)
		if err != nil {
			rt.Fatal(err)
		}
		if e.Data, err = Marshal(o.ForEvent()); err != nil {
			rt.Fatal(err)
		}
		want, err := EncodeEvent(e)
		if err != nil {
			rt.Fatal(err)
		}
		if string(got) != string(want) {
			rt.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestOperationEventsThatCannotBeWritten: both ways refuse what JSON cannot say, and an event that is not whole.
func TestOperationEventsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	bad, now := "\xff", NewTimestamp(time.Now())
	for name, o := range map[string]Operation{
		"text":     {ID: bad, CreatedAt: now, UpdatedAt: now},
		"null":     {Reason: &bad, CreatedAt: now, UpdatedAt: now},
		"metadata": {Metadata: Metadata{bad: "a"}, CreatedAt: now, UpdatedAt: now},
		"year":     {CreatedAt: Timestamp{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, UpdatedAt: now},
	} {
		if out, err := EncodeOperationEvent(sampleEvent(), o); err == nil {
			t.Errorf("%s: %s", name, out)
		}
		if out, err := Marshal(o); err == nil {
			t.Errorf("%s, the long way: %s", name, out)
		}
	}
	if _, err := EncodeOperationEvent(Event{}, Operation{CreatedAt: now, UpdatedAt: now}); err == nil {
		t.Error("an event that is not whole was written")
	}
}

// TestOperationMembers: each kind's body has its own members, and what is no operation has none.
func TestOperationMembers(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		KindCapture: {"amount"}, KindCancel: {"reason"}, KindRefund: {"amount", "reason", "metadata"}, KindCharge: nil, "": nil,
	} {
		if got := OperationMembers(kind); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if (len(want) > 0) != slices.Contains(OperationKinds(), kind) {
			t.Errorf("%q is among the kinds: %v", kind, OperationKinds())
		}
		if _, err := DecodeOperation(kind, []byte(`{"customer":"cus_1"}`)); err == nil {
			t.Errorf("%s: a member of charges was read", kind)
		}
	}
	_, err := DecodeOperation(KindRefund, []byte(`{"metadata":{"a":"`+strings.Repeat("a", IntentMaxBytes)+`"}}`))
	var refused *DecodeError
	if !errors.As(err, &refused) || !strings.Contains(refused.Problem, "send at most") {
		t.Errorf("a body that is too large: %v", err)
	}
}

func FuzzDecodeOperation(f *testing.F) {
	for _, kind := range OperationKinds() {
		for _, m := range slices.Concat(recordings(f, kind+"/accepted"), recordings(f, kind+"/refused")) {
			f.Add(kind, m.data)
		}
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		o, err := DecodeOperation(kind, data)
		if err != nil {
			checkRefusal(t, data, err)
			return
		}
		if len(data) == 0 {
			return
		}
		// encoding/json must see the same members with the same values.
		if theirs := stdlibView(data); !reflect.DeepEqual(any(operationView(o)), theirs) {
			t.Fatalf("we see %v, encoding/json sees %v", operationView(o), theirs)
		}
	})
}
