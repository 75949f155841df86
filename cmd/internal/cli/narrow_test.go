package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/oncepay/oncepay/payments"
)

// on runs the program on a terminal of that width.
func (b *bench) on(width int, args ...string) result {
	b.t.Helper()
	var out, err bytes.Buffer
	s := &shared{out: &out, err: &err, asks: terminals(false), width: func(io.Writer) int { return width }}
	code := s.run(append(slices.Clone(b.flags), args...), strings.NewReader(""))
	return result{code, out.String(), err.String()}
}

// fits checks that a list fits a terminal, with the ids whole, and that it says what it leaves out; elsewhere the list is whole.
func (r result) fits(t *testing.T, width int, ids ...string) {
	t.Helper()
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(r.out) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d characters on a terminal of %d: %s", n, width, line)
		}
	}
	for _, id := range ids {
		if !strings.Contains(r.out, id) {
			t.Errorf("on a terminal of %d %s is not whole:\n%s", width, id, r.out)
		}
	}
}

// TestListsFitTerminals: every list, with ids and texts as long as they come, in the terminals that people have.
func TestListsFitTerminals(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	tenant := "acme-payments-europe"
	b.json("tenants", "create", tenant, "--stripe-account", "acct_1ABCDEFGHIJKLMNO", "--actor", "ann.of.the.night@operations-host-17", "--note", "they asked us to begin on Monday, see the ticket")
	key := b.json("keys", "create", "--tenant", tenant, "--scopes", "payments:write,payments:read,batches:write,refunds:write", "--ttl", "24h")["id"].(string)
	b.json("keys", "revoke", key)
	b.buryMessages(tenant, 1, payments.ReasonCardNumber, func(int) (string, string) { return "order-2030-01-31-000000000000017", "{}" })
	for _, width := range []int{80, 100} {
		b.on(width, "tenants", "list").fits(t, width, tenant, "acct_1ABCDEFGHIJKLMNO")
		b.on(width, "keys", "list").fits(t, width, key, tenant, "refunds:write")
		b.on(width, "dlq", "list").fits(t, width, "dl_1", "card_number_detected")
		b.on(width, "audit").fits(t, width, key, tenant, "keys revoke", "see the ticket")
		b.on(width, "payments", "list").fits(t, width)
		withSettings(t, nil).on(width, "config").fits(t, width, "ONCEPAY_STRIPE_RATE", "meaning: ")
	}
	if r := b.on(80, "keys", "list"); r.err != "left out, since the terminal is narrow: KEY, CREATED (UTC), EXPIRES; --json has all\n" {
		t.Errorf("%q", r.err)
	}
	if r := b.run("keys", "list"); r.err != "" || !strings.Contains(r.out, "CREATED (UTC)") || strings.Count(r.out, "\n") != 2 {
		t.Errorf("elsewhere: %+v", r)
	}

	id := payments.NewID(tenant, "k")
	f := &fakeOperators{
		looks: []look{{job: payments.Replay{ID: "rpl_0123456789abcdef", State: payments.ReplayCompleted, Total: 1_000_000, Actor: "ann.of.the.night@operations-host-17",
			Reason: strings.Repeat("their key was mended ", 8), CreatedAt: time.Now()}}},
		items: []payments.ReplayItem{{LetterID: "dl_0123456789abcdef0123456789abcdef", PaymentID: &id, Result: payments.ReplayAlreadySettled, Status: payments.StatusRequiresCapture,
			Detail: strings.Repeat("it has its outcome ", 8)}},
	}
	for _, width := range []int{80, 100} {
		f.on(width, "replays list").fits(t, width, "rpl_0123456789abcdef", "1,000,000")
		f.on(width, "replays show rpl_0123456789abcdef --items").fits(t, width, "dl_0123456789abcdef0123456789abcdef", id.String(), "already_settled")
		f.on(width, "replays show rpl_0123456789abcdef").fits(t, width)
	}
}

// TestPaymentsFitTerminals: payments as they come, with the longest ids, statuses and reasons.
func TestPaymentsFitTerminals(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 100} {
		for _, status := range payments.Statuses() {
			p := payments.Payment{
				Intent: payments.Intent{TenantID: "acme-payments-europe", IdempotencyKey: "order-2030-01-31-" + strings.Repeat("0", 200) + "17", Amount: 99_999_999, Currency: "usd"},
				ID:     payments.NewID("acme", "k"), Status: status, Reason: "card_declined:insufficient_funds", CreatedAt: time.Now(),
			}
			refund, cancel := p, p
			refund.Kind, refund.Amount, cancel.Kind, cancel.Amount = payments.KindRefund, 99_999_998, payments.KindCancel, 0
			page := []payments.FollowUp{{Payment: p}, {Payment: refund}, {Payment: cancel}}
			var out, log bytes.Buffer
			s := &shared{out: &out, err: &log, width: func(io.Writer) int { return width }}
			if err := printPage(s, page, "", listedDocument, listColumns(page)); err != nil {
				t.Fatal(err)
			}
			result{exitOK, out.String(), log.String()}.fits(t, width, p.ID.String(), string(status), "999999.99 USD", "insufficient_funds", p.ID.Format(payments.KindRefund), "999999.98 USD",
				p.ID.Format(payments.KindCancel), "refund", "cancel")
			if strings.Contains(out.String(), "0.00 USD") {
				t.Errorf("a cancel has an amount:\n%s", out.String())
			}
			out.Reset()
			if err := printPage(s, page[:1], "", listedDocument, listColumns(page[:1])); err != nil || strings.Contains(out.String(), "OPERATION") {
				t.Errorf("of payments alone: %v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "orde") || !strings.Contains(out.String(), "017") {
				t.Errorf("the key's ends are gone:\n%s", out.String())
			}
		}
	}
}

func (f *fakeOperators) on(width int, line string) result {
	var out, err bytes.Buffer
	s := &shared{out: &out, err: &err, operators: f, every: time.Millisecond, asks: terminals(false), width: func(io.Writer) int { return width }}
	code := s.run(strings.Fields(line), strings.NewReader(""))
	return result{code, out.String(), err.String()}
}

// TestLettersFitTerminals: dead letters with the ids that they are given.
func TestLettersFitTerminals(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 100} {
		for _, reason := range []payments.Reason{payments.ReasonCardNumber, payments.ReasonAttemptsExhausted, payments.ReasonInvalid} {
			d := payments.DeadLetter{ID: "dl_0123456789abcdef0123456789abcdef", TenantID: "acme-payments-europe", IdempotencyKey: strings.Repeat("k", 255), Reason: reason, State: payments.DeadLetterDiscarded,
				LastSeen: time.Now(), Message: "a text that says what to do about it, which is longer than a line " + fmt.Sprint(payments.NewID("acme", "k"))}
			var out, log bytes.Buffer
			s := &shared{out: &out, err: &log, width: func(io.Writer) int { return width }}
			if err := printPage(s, []payments.DeadLetter{d}, "", func(payments.DeadLetter) string { return "" }, letterColumns); err != nil {
				t.Fatal(err)
			}
			result{exitOK, out.String(), log.String()}.fits(t, width, d.ID, string(reason))
			if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "message: "+d.Message) && !strings.Contains(text, "…") {
				t.Errorf("the message is lost:\n%s", out.String())
			}
		}
	}
}
