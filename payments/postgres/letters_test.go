package postgres

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func (b *bench) origin(seq uint64) payments.MessageOrigin {
	return payments.MessageOrigin{Stream: "PAYMENTS_INTENTS", StreamCreated: time.Date(2030, 1, 1, 0, 0, 0, 123456789, time.UTC), Sequence: seq, Subject: "payments.intent.acme"}
}

func (b *bench) bury(d payments.DeadLetter) {
	b.t.Helper()
	if err := b.BuryMessage(context.Background(), d); err != nil {
		b.t.Fatalf("BuryMessage: %v", err)
	}
}

func (b *bench) letters(r DeadLettersRequest) []payments.DeadLetter {
	b.t.Helper()
	list, _, err := b.DeadLetters(context.Background(), r)
	if err != nil {
		b.t.Fatalf("DeadLetters: %v", err)
	}
	return list
}

func TestBuryMessage(t *testing.T) {
	t.Parallel()
	b := open(t)
	raw := []byte("{\"a\":\"\x00\xff\\ud800\"}")
	d := payments.DeadLetter{Reason: payments.ReasonUndecodable, Message: "bad \x00", TenantID: "ac\x00me", IdempotencyKey: "\xff", Origin: b.origin(7),
		Payload: raw, Headers: []byte("NATS/1.0\r\nA: \xff\r\n\r\n"), Tries: 1}
	b.bury(d)
	b.clock.Advance(time.Minute)
	d.Tries, d.ID = 2, "dl_other"
	b.bury(d)
	list := b.letters(DeadLettersRequest{})
	if len(list) != 1 || list[0].Tries != 2 || !list[0].LastSeen.Equal(b.clock.Now()) || !list[0].FirstSeen.Equal(b.clock.Now().Add(-time.Minute)) || list[0].ID == "dl_other" {
		t.Fatalf("the same message twice: %+v", list)
	}
	got, err := b.DeadLetter(context.Background(), list[0].ID)
	if err != nil || !bytes.Equal(got.Payload, raw) || got.PayloadLength != len(raw) || got.PayloadSHA256 == [32]byte{} || got.Origin.Sequence != 7 ||
		got.Origin.Subject != d.Origin.Subject || !bytes.Equal(got.Headers, d.Headers) {
		t.Errorf("DeadLetter: %+v, %v", got, err)
	}
	if items := b.sent.all(); len(items) != 1 || items[0].Kind != payments.OutboxDeadLetter || !bytes.Contains(items[0].Body, []byte("payload_base64")) {
		t.Errorf("%d copies", len(items))
	}

	// The same number of a stream that was made anew is another message.
	anew := d
	anew.Origin.StreamCreated = anew.Origin.StreamCreated.Add(time.Hour)
	b.bury(anew)
	if n := len(b.letters(DeadLettersRequest{})); n != 2 {
		t.Errorf("%d dead letters, want 2", n)
	}
	if err := b.BuryMessage(context.Background(), payments.DeadLetter{Reason: payments.ReasonInvalid}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("without an origin: %v", err)
	}
	if _, err := b.DeadLetter(context.Background(), "dl_\x00"); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("an id that cannot be: %v", err)
	}
}

// TestBuryCardNumber: not one byte of it is kept.
func TestBuryCardNumber(t *testing.T) {
	t.Parallel()
	b := open(t)
	card := []byte(`{"description":"4242424242424242"}`)
	b.bury(payments.DeadLetter{Reason: payments.ReasonCardNumber, Origin: b.origin(1), Payload: card})
	got := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{Reason: payments.ReasonCardNumber}})[0]
	if got.Payload != nil || got.PayloadLength != len(card) || got.PayloadSHA256 == [32]byte{} {
		t.Errorf("stored: %+v", got)
	}
	if items := b.sent.all(); bytes.Contains(items[0].Body, []byte("42424242")) || bytes.Contains(items[0].Body, []byte("payload_base64")) {
		t.Errorf("copy: %s", items[0].Body)
	}
}

func TestSuspect(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	d := payments.DeadLetter{Reason: payments.ReasonHandlerPanic, Origin: b.origin(3), Payload: []byte("raw")}
	for want := 1; want <= 3; want++ {
		if starts, err := b.Suspect(ctx, d); err != nil || starts != want {
			t.Fatalf("Suspect: %d, %v, want %d", starts, err, want)
		}
	}
	if list := b.letters(DeadLettersRequest{}); len(list) != 0 {
		t.Errorf("a suspect is listed: %+v", list)
	}
	if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{State: payments.DeadLetterSuspect}}); len(list) != 1 || string(list[0].Payload) != "raw" {
		t.Errorf("suspects: %+v", list)
	}
	b.bury(d)
	if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{State: payments.DeadLetterOpen}}); len(list) != 1 || len(b.sent.all()) != 1 {
		t.Errorf("opened: %+v, %d copies", list, len(b.sent.all()))
	}

	if starts, err := b.Suspect(ctx, d); err != nil || starts <= payments.SuspectStartsMax {
		t.Errorf("Suspect of an open one: %d, %v", starts, err)
	}
	b.bury(d)
	if n := len(b.sent.all()); n != 1 {
		t.Errorf("%d copies of one dead letter", n)
	}

	// One that reaches Admit was no danger; its row goes in the same transaction. An open dead letter stays.
	d.Origin = b.origin(4)
	if _, err := b.Suspect(ctx, d); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{3, 4} {
		r := b.claiming(intent("acme", "k"+strconv.FormatUint(seq, 10), 1))
		o := b.origin(seq)
		r.Suspect = &o
		b.admit(r)
	}
	if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{State: payments.DeadLetterSuspect}}); len(list) != 0 {
		t.Errorf("after Admit: %+v", list)
	}
	if list := b.letters(DeadLettersRequest{}); len(list) != 1 || list[0].Origin.Sequence != 3 {
		t.Errorf("the open one: %+v", list)
	}
}

// TestBuryMessageSettled: a redelivery does not open what an operator has settled.
func TestBuryMessageSettled(t *testing.T) {
	t.Parallel()
	b := open(t)
	d := payments.DeadLetter{Reason: payments.ReasonInvalid, Origin: b.origin(1)}
	b.bury(d)
	if _, err := b.pool.Exec(context.Background(), "UPDATE dead_letters SET state = 'discarded'"); err != nil {
		t.Fatal(err)
	}
	b.bury(d)
	if list := b.letters(DeadLettersRequest{}); list[0].State != payments.DeadLetterDiscarded || len(b.sent.all()) != 1 {
		t.Errorf("%+v, %d copies", list, len(b.sent.all()))
	}
}

func TestDeadLetterPages(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i := range 25 {
		if i%3 == 0 {
			b.clock.Advance(time.Second)
		}
		d := payments.DeadLetter{Reason: payments.ReasonInvalid, TenantID: "acme", Origin: b.origin(uint64(i + 1))}
		if i%5 == 0 {
			d.TenantID = "globex"
		}
		b.bury(d)
	}
	seen := map[uint64]bool{}
	r := DeadLettersRequest{Limit: 7}
	for {
		list, next, err := b.DeadLetters(context.Background(), r)
		if err != nil || len(list) > 7 {
			t.Fatalf("%d, %v", len(list), err)
		}
		for _, d := range list {
			if seen[d.Origin.Sequence] {
				t.Errorf("%d twice", d.Origin.Sequence)
			}
			seen[d.Origin.Sequence] = true
		}
		if next == "" {
			break
		}
		r.Cursor = next
	}
	if len(seen) != 25 {
		t.Errorf("%d of 25", len(seen))
	}
	if n := len(b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{TenantID: "globex"}})); n != 5 {
		t.Errorf("globex: %d", n)
	}
	if n := len(b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{Since: b.clock.Now()}})); n != 1 {
		t.Errorf("since now: %d", n)
	}
	if _, _, err := b.DeadLetters(context.Background(), DeadLettersRequest{Cursor: "x"}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// TestDeadLettersByIDAndText: a text is looked for as it is written, in the message and in the payload's bytes; it is no pattern.
func TestDeadLettersByIDAndText(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.bury(payments.DeadLetter{ID: "dl_a", Reason: payments.ReasonInvalid, Message: "amount 100% wrong", Origin: b.origin(1), Payload: []byte("{\"k\":\"grün_1\"}\xff\x00")})
	b.bury(payments.DeadLetter{ID: "dl_b", Reason: payments.ReasonInvalid, Message: "Amount", Origin: b.origin(2), Payload: []byte("greenX1")})
	b.bury(payments.DeadLetter{ID: "dl_c", Reason: payments.ReasonCardNumber, Message: "nothing kept", Origin: b.origin(3), Payload: []byte("green")})
	for _, c := range []struct {
		r    DeadLettersRequest
		want string
	}{
		{DeadLettersRequest{LetterFilter: payments.LetterFilter{ID: "dl_b"}}, "dl_b"}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{ID: "dl_x"}}, ""}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{ID: "dl_a", Text: "Amount"}}, ""},
		{DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "amount"}}, "dl_a"}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "Amount"}}, "dl_b"}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "mount"}}, "dl_b dl_a"},
		{DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "grün_1"}}, "dl_a"}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "green_1"}}, ""}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "%"}}, "dl_a"},
		{DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "green"}}, "dl_b"}, {DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "' OR true --"}}, ""},
	} {
		var got []string
		for _, d := range b.letters(c.r) {
			got = append(got, d.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
	if _, _, err := b.DeadLetters(context.Background(), DeadLettersRequest{LetterFilter: payments.LetterFilter{Text: "a\x00"}}); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("a text that cannot be: %v", err)
	}
}
