package schema

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func nullable[T any](g *rapid.Generator[T]) *rapid.Generator[*T] { return rapid.Ptr(g, true) }

var anyTimestamp = rapid.Custom(func(t *rapid.T) Timestamp {
	return NewTimestamp(time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")))
})

// anyPayment is any document of a payment, with what no event may carry in it.
var anyPayment = rapid.Custom(func(t *rapid.T) Payment {
	text, amount := rapid.String(), rapid.Int64()
	secret := "pi_1_secret_2"
	return Payment{
		ID: text.Draw(t, "id"), TenantID: text.Draw(t, "tenant"), IdempotencyKey: text.Draw(t, "key"), Kind: text.Draw(t, "kind"), Status: text.Draw(t, "status"),
		Amount: amount.Draw(t, "amount"), AmountCaptured: amount.Draw(t, "captured"), AmountRefunded: amount.Draw(t, "refunded"), Currency: text.Draw(t, "currency"),
		Customer: nullable(text).Draw(t, "customer"), PaymentMethod: nullable(text).Draw(t, "method"), Description: nullable(text).Draw(t, "description"),
		Metadata: rapid.MapOf(text, text).Draw(t, "metadata"), BatchID: nullable(text).Draw(t, "batch"), StripePaymentIntent: nullable(text).Draw(t, "intent"),
		StripeAccount: nullable(text).Draw(t, "account"), Tries: rapid.Int().Draw(t, "tries"), Reason: nullable(text).Draw(t, "reason"),
		Failure: nullable(rapid.Custom(func(t *rapid.T) Failure {
			return Failure{Code: nullable(text).Draw(t, "code"), DeclineCode: nullable(text).Draw(t, "decline"), Message: nullable(text).Draw(t, "message")}
		})).Draw(t, "failure"),
		NextAttemptAt: nullable(anyTimestamp).Draw(t, "next"), ExpiresAt: nullable(anyTimestamp).Draw(t, "expires"), CreatedAt: anyTimestamp.Draw(t, "created"),
		UpdatedAt: anyTimestamp.Draw(t, "updated"), FinalizedAt: nullable(anyTimestamp).Draw(t, "finalized"),
		NextAction: []byte(`{"type":"x"}`), ClientSecret: &secret, Events: []TimelineEntry{{Sequence: 1}},
	}
})

// TestPaymentEventsAreWrittenAsAllDocuments: the short way and the long one give the same bytes, and none of what an event may not carry.
func TestPaymentEventsAreWrittenAsAllDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPayment.Draw(rt, "payment")
		e := sampleEvent()
		got, err := EncodePaymentEvent(e, p)
		if err != nil {
			rt.Fatal(err)
		}
		if e.Data, err = Marshal(p.ForEvent()); err != nil {
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

// TestPaymentEventsThatCannotBeWritten: both ways refuse what JSON cannot say.
func TestPaymentEventsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	bad := "\xff"
	for name, p := range map[string]Payment{
		"text":     {ID: bad, CreatedAt: NewTimestamp(time.Now()), UpdatedAt: NewTimestamp(time.Now())},
		"null":     {Customer: &bad, CreatedAt: NewTimestamp(time.Now()), UpdatedAt: NewTimestamp(time.Now())},
		"metadata": {Metadata: Metadata{"a": bad}, CreatedAt: NewTimestamp(time.Now()), UpdatedAt: NewTimestamp(time.Now())},
		"name":     {Metadata: Metadata{bad: "a"}, CreatedAt: NewTimestamp(time.Now()), UpdatedAt: NewTimestamp(time.Now())},
		"year":     {CreatedAt: Timestamp{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, UpdatedAt: NewTimestamp(time.Now())},
	} {
		if out, err := EncodePaymentEvent(sampleEvent(), p); err == nil {
			t.Errorf("%s: %s", name, out)
		}
		if out, err := Marshal(p.ForEvent()); err == nil {
			t.Errorf("%s, the long way: %s", name, out)
		}
	}
	if _, err := EncodePaymentEvent(Event{}, Payment{}); err == nil {
		t.Error("an event that is not whole was written")
	}
}

// TestPaymentsAreWrittenAsAllDocuments: the fast way and the general one write the same bytes, whatever a payment has.
func TestPaymentsAreWrittenAsAllDocuments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := anyPayment.Draw(rt, "payment")
		if rapid.Bool().Draw(rt, "plain") {
			p = p.ForEvent()
		}
		got, err := EncodePayment(p)
		want, wantErr := Marshal(p)
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
			rt.Fatalf("%v, %v\n got %s\nwant %s", err, wantErr, got, want)
		}
	})
}
