package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// TestApply holds what every transition must keep, for any payment and any word of Stripe.
func TestApply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		refunded := rapid.Int64Range(0, 100).Draw(rt, "refunded")
		captured := rapid.Int64Range(refunded, 200).Draw(rt, "captured")
		start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		p := payments.Payment{
			Intent: payments.Intent{Amount: rapid.Int64Range(captured, 300).Draw(rt, "amount")}, AmountCaptured: captured, AmountRefunded: refunded,
			Status: rapid.SampledFrom(payments.Statuses()).Draw(rt, "status"), CreatedAt: start, UpdatedAt: start.Add(time.Hour), Tries: 3, Sequence: 2,
			FirstSubmitAt: start, LastSubmitAt: start, StripePaymentIntent: "pi_1", StripeCharge: "ch_1",
		}
		tr := payments.Transition{
			Status: rapid.SampledFrom(payments.Statuses()).Draw(rt, "next"), Reason: rapid.String().Draw(rt, "reason"), InDoubt: rapid.Bool().Draw(rt, "doubt"),
			ClearSubmit: rapid.Bool().Draw(rt, "clear"), CountTry: rapid.Bool().Draw(rt, "try"), ResetTries: rapid.Bool().Draw(rt, "tries anew"), Rounds: rapid.IntRange(0, 9).Draw(rt, "rounds"),
		}
		if rapid.Bool().Draw(rt, "object") {
			tr.Object = &payments.PaymentIntent{ID: "pi_2", AmountReceived: rapid.Int64().Draw(rt, "received")}
		}
		at := start.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Hour)).Draw(rt, "at")))
		next := apply(p, tr, at)
		switch {
		case next.AmountCaptured < next.AmountRefunded, next.AmountCaptured > next.Amount, next.AmountRefunded != refunded:
			rt.Fatalf("amounts: %+v", next)
		case next.Status.Final() == next.FinalizedAt.IsZero():
			rt.Fatalf("final iff finalized: %+v", next)
		case next.UpdatedAt.Before(p.UpdatedAt), next.UpdatedAt.Nanosecond()%1000 != 0:
			rt.Fatalf("times: %+v", next)
		case tr.ClearSubmit != next.FirstSubmitAt.IsZero(), tr.ClearSubmit != next.LastSubmitAt.IsZero(), next.InDoubt != tr.InDoubt:
			rt.Fatalf("submits: %+v", next)
		case next.Sequence != p.Sequence, tr.Object == nil && next.StripePaymentIntent != "pi_1", next.StripeCharge != "ch_1":
			rt.Fatalf("kept: %+v", next)
		case next.Tries != wantTries(tr), !storable(next.Reason):
			rt.Fatalf("tries and reason: %+v", next)
		}
	})
}

// wantTries is what three tries become.
func wantTries(t payments.Transition) int {
	tries := 3
	if t.ResetTries {
		tries = 0
	}
	if t.CountTry {
		tries++
	}
	return tries
}

func FuzzSanitised(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "\xff", "\xed\xa0\x80", strings.Repeat("é", 200), "😀"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		if limit < 0 || limit > 1<<16 {
			return
		}
		got := sanitised(s, limit)
		if !storable(got) || len(got) > limit {
			t.Errorf("sanitised(%q, %d) = %q", s, limit, got)
		}
		if storable(s) && len(s) <= limit && got != s {
			t.Errorf("good text was changed: %q to %q", s, got)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add(cursor{time.Unix(1, 5000), "id\x00\n", "acme"}.encode())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decodeCursor(text)
		if err != nil {
			if payments.ErrorCode(err) != payments.CodeInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := decodeCursor(c.encode())
		if err != nil || !again.at.Equal(c.at) || again.id != c.id || again.tenant != c.tenant {
			t.Errorf("%q: %+v, then %+v, %v", text, c, again, err)
		}
	})
}

func TestDetailsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Filter(func(s string) bool { return storable(s) && utf8.ValidString(s) })
		in := payments.Intent{
			Description: text.Draw(rt, "description"), StatementDescriptorSuffix: text.Draw(rt, "suffix"), ReceiptEmail: text.Draw(rt, "email"),
			ReturnURL: text.Draw(rt, "url"), PaymentID: text.Draw(rt, "payment"), Metadata: rapid.MapOf(text, text).Draw(rt, "metadata"),
		}
		column := encodeDetails(in)
		var out payments.Intent
		if err := decodeDetails(column, &out); err != nil {
			rt.Fatal(err)
		}
		if out.Description != in.Description || out.StatementDescriptorSuffix != in.StatementDescriptorSuffix || out.ReceiptEmail != in.ReceiptEmail ||
			out.ReturnURL != in.ReturnURL || out.PaymentID != in.PaymentID || !maps.Equal(out.Metadata, in.Metadata) {
			rt.Fatalf("%+v became %+v", in, out)
		}
	})
	if column := encodeDetails(payments.Intent{Metadata: map[string]string{}}); column != "" {
		t.Errorf("nothing is null: %q", column)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}) }
	named := func(code, constraint string) error { return &pgconn.PgError{Code: code, ConstraintName: constraint} }
	for name, c := range map[string]struct {
		err       error
		code      payments.Code
		transient bool
		content   bool
	}{
		"deadlock":            {pg("40P01"), payments.CodeUnavailable, true, false},
		"serialization":       {pg("40001"), payments.CodeUnavailable, true, false},
		"shutting down":       {pg("57P01"), payments.CodeUnavailable, true, false},
		"statement timeout":   {pg("57014"), payments.CodeUnavailable, true, false},
		"too many":            {pg("53300"), payments.CodeUnavailable, true, false},
		"disk full":           {pg("53100"), payments.CodeUnavailable, true, false},
		"standby":             {pg("25006"), payments.CodeUnavailable, true, false},
		"connection":          {io.ErrUnexpectedEOF, payments.CodeUnavailable, true, false},
		"deadline":            {context.DeadlineExceeded, payments.CodeUnavailable, true, false},
		"closed group":        {coalesce.ErrClosed, payments.CodeUnavailable, true, false},
		"row gone":            {errRowGone, payments.CodeUnavailable, true, false},
		"no table":            {pg("42P01"), payments.CodeInternal, false, false},
		"a bug of ours":       {errMapping, payments.CodeInternal, false, false},
		"panic":               {&coalesce.PanicError{Value: "x"}, payments.CodeInternal, true, false},
		"NUL":                 {pg("22021"), payments.CodeInvalid, false, true},
		"amount":              {named("23514", "payments_amount"), payments.CodeInvalid, false, true},
		"tenant twice":        {named("23505", "tenants_pkey"), payments.CodeInvalid, false, true},
		"unlisted constraint": {named("23514", "payments_counters"), payments.CodeInternal, false, true},
		"cardinality":         {pg("21000"), payments.CodeInternal, false, true},
		"limits":              {pg("54000"), payments.CodeInternal, false, true},
		"already coded":       {ticketLost(payments.ID{}), payments.CodeTicketLost, false, false},
	} {
		if got := payments.ErrorCode(translate(c.err)); got != c.code {
			t.Errorf("%s: %s, want %s", name, got, c.code)
		}
		if transient(c.err) != c.transient && name != "panic" || contentFault(c.err) != c.content {
			t.Errorf("%s: transient %v, content %v", name, transient(c.err), contentFault(c.err))
		}
		if !errors.Is(translate(c.err), c.err) {
			t.Errorf("%s: the cause is lost", name)
		}
	}
	if translate(nil) != nil || transient(nil) {
		t.Error("nil is no error")
	}
}

// TestConstraintsExist: a code for a constraint that is in no table would never be used.
func TestConstraintsExist(t *testing.T) {
	t.Parallel()
	b := open(t)
	for name := range constraintCodes {
		var n int
		if err := b.pool.QueryRow(context.Background(), "SELECT count(*) FROM pg_constraint WHERE conname = $1", name).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d constraints, %v", name, n, err)
		}
	}
}

// TestOpen names what is wrong, and never the password.
func TestOpen(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]payments.Code{
		"postgres://u:s3cret@127.0.0.1:1/x?connect_timeout=1": payments.CodeUnavailable,
		"postgres://u:s3cret@127.0.0.1:x/y?sslmode=nonsense":  payments.CodeInvalid,
		"mysql://u:s3cret@127.0.0.1/x":                        payments.CodeInvalid,
	} {
		_, err := Open(context.Background(), dsn, Options{})
		if payments.ErrorCode(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
		if bytes.Contains([]byte(fmt.Sprint(err)), []byte("s3cret")) {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
