package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// TestPaymentInWords: what somebody who is called at night has to know stands in the text, too, and what is not so is left out.
func TestPaymentInWords(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2030, 1, 2, 3, minute, 0, 0, time.UTC) }
	show := func(p payments.Payment) string {
		t.Helper()
		var out bytes.Buffer
		if err := (&shared{out: &out}).printPayment(p, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	p := payments.Payment{
		Intent: payments.Intent{TenantID: "acme", IdempotencyKey: "run-1::7", Kind: payments.KindCharge, Amount: 9900, Currency: "usd", PaymentMethod: "pm_1", OffSession: true,
			CaptureMethod: payments.CaptureAutomatic},
		ID: payments.NewID("acme", "run-1::7"), Lane: payments.LaneInteractive, Status: payments.StatusReceived, CreatedAt: at(0),
	}
	want := "payment         " + p.ID.String() + "\ntenant          acme\nkey             run-1::7\namount          99.00 USD\nstatus          received\n" +
		"payment method  pm_1\ncreated         2030-01-02 03:00:00 UTC\n\n#  AT (UTC)  STATUS  REASON\n"
	if got := show(p); got != want {
		t.Errorf("%s", got)
	}

	p.Status, p.ExpiresAt, p.FinalizedAt, p.BatchID, p.Lane = payments.StatusExpired, at(5), at(6), "bat_1", payments.LaneBulk
	p.Metadata, p.OffSession, p.CaptureMethod = map[string]string{"b": "2", "a": "1"}, false, payments.CaptureManual
	for _, line := range []string{"batch           bat_1", "expires         2030-01-02 03:05:00 UTC: never charged after that", "ended           2030-01-02 03:06:00 UTC",
		"metadata        a=1\nmetadata        b=2", "asked for       manual capture, on session, bulk lane"} {
		if got := show(p); !strings.Contains(got, line+"\n") {
			t.Errorf("%q is missing:\n%s", line, got)
		}
	}

	p.Status, p.FinalizedAt, p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt, p.NextAttemptAt = payments.StatusUnknown, time.Time{}, true, at(1), at(2), at(3)
	p.StripeAccount, p.Livemode, p.Tries, p.Failure = "acct_1", true, 2, &payments.Failure{Code: "card_declined", Message: "no"}
	for _, line := range []string{"in doubt        it may have been sent from 2030-01-02 03:01:00 UTC on, last at 2030-01-02 03:02:00 UTC", "next attempt    2030-01-02 03:03:00 UTC",
		"account         acct_1 (live)", "tries           2", "failure         card_declined no"} {
		if got := show(p); !strings.Contains(got, line+"\n") {
			t.Errorf("%q is missing:\n%s", line, got)
		}
	}

	p.Status, p.InDoubt, p.AmountCaptured, p.AmountRefunded = payments.StatusSucceeded, false, 5000, 100
	if got := show(p); !strings.Contains(got, "amount          99.00 USD, captured 50.00 USD, refunded 1.00 USD\n") || strings.Contains(got, "in doubt") {
		t.Errorf("%s", got)
	}
	p.AmountCaptured, p.AmountRefunded = 9900, 0
	if got := show(p); !strings.Contains(got, "amount          99.00 USD\n") {
		t.Errorf("%s", got)
	}
}

// TestLetterInWords: a dead letter is shown whole, its headers in one order, and a key that looks like nothing is a key.
func TestLetterInWords(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "0")
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	d := payments.DeadLetter{
		ID: "dl_1", TenantID: "acme", IdempotencyKey: "0", PaymentID: &id, Reason: payments.ReasonInvalid, Message: "mend it", State: payments.DeadLetterOpen, Replays: 1,
		FirstSeen: at, LastSeen: at.Add(time.Hour), Headers: []byte("NATS/1.0\r\nB: 2\r\nA: 1\r\nC: 3\r\n\r\n"), Payload: []byte("{}"),
		Origin: payments.MessageOrigin{Stream: "PAYMENTS_INTENTS", Sequence: 7, Subject: "payments.intent.acme"},
	}
	want := "dead letter     dl_1\nreason          invalid\nwhat to do      mend it\nstate           open\ntenant          acme\nkey             0\n" +
		"subject         payments.intent.acme\nstream          PAYMENTS_INTENTS\nsequence        7\nreplays         1\nfirst seen      2030-01-02 03:04:05 UTC\n" +
		"last seen       2030-01-02 04:04:05 UTC\npayment         " + id.String() + "\nheader          A: 1\nheader          B: 2\nheader          C: 3\n\n{}\n"
	for range 5 {
		var out bytes.Buffer
		if err := (&shared{out: &out}).printLetter(d); err != nil || out.String() != want {
			t.Fatalf("%v\n%s", err, out.String())
		}
	}
}
