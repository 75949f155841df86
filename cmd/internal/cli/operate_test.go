package cli

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// TestFollowingSpeaksUp: whoever watches a replay that does not move is told why, once, and how to come back after Ctrl-C.
func TestFollowingSpeaksUp(t *testing.T) {
	t.Parallel()
	running := payments.Replay{ID: "rpl_1", State: payments.ReplayRunning, Total: 2000}
	paused, issued := running, running
	paused.State = payments.ReplayPaused
	issued.Issued, issued.Results = 1500, map[payments.ReplayResult]int{payments.ReplaySucceeded: 300}
	away := payments.Errorf(payments.CodeUnavailable, "PostgreSQL cannot be reached")
	for name, c := range map[string]struct {
		look   look
		follow time.Duration
		want   []string
		not    string
	}{
		"nobody runs it": {look{job: running}, time.Minute, []string{"nothing moves: no server takes it up; replays are run by `oncepay serve` with the role worker\n"}, "outcome"},
		"held back":      {look{job: issued}, time.Minute, []string{"nothing moves: 1,200 dead letters are taken up and without an outcome; `oncepay doctor` says what holds payments back\n", "300/2000"}, "no server"},
		"paused":         {look{job: paused}, time.Minute, []string{"paused: `oncepay replays resume rpl_1` lets it go on\n"}, "nothing moves"},
		"in time":        {look{job: running}, 10 * time.Second, nil, "nothing moves"},
		"away":           {look{err: away}, 9 * time.Minute, []string{"trying again: PostgreSQL cannot be reached\n"}, "nothing moves"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, log bytes.Buffer
			f := &fakeOperators{looks: []look{c.look}}
			s := &shared{out: &out, err: &log}
			ctx, cancel := context.WithTimeout(t.Context(), c.follow)
			defer cancel()
			err := s.followReplay(ctx, f, running)
			var coded *exitError
			if !errors.As(err, &coded) || coded.code != exitFailed || !strings.Contains(coded.text, "the replay goes on: `oncepay replays show rpl_1 --follow`") || out.Len() > 0 {
				t.Errorf("%s: %v, %q", name, err, out.String())
			}
			for _, want := range c.want {
				if strings.Count(log.String(), want) != 1 {
					t.Errorf("%s: %q does not say %q once", name, log.String(), want)
				}
			}
			if strings.Contains(log.String(), c.not) {
				t.Errorf("%s: %q says %q", name, log.String(), c.not)
			}
			if len(f.asked) > int(c.follow/followEvery)+1 {
				t.Errorf("%s: asked %d times", name, len(f.asked))
			}
		})
	}
	// A database that stays away is given up, and how to come back is told.
	synctest.Test(t, func(t *testing.T) {
		s := &shared{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
		err := s.followReplay(t.Context(), &fakeOperators{looks: []look{{err: away}}}, running)
		if err == nil || !strings.Contains(err.Error(), "PostgreSQL cannot be reached; the replay goes on: `oncepay replays show rpl_1 --follow`") {
			t.Errorf("%v", err)
		}
	})
}

func TestReplays(t *testing.T) {
	t.Parallel()
	f := tenThousand()
	f.words("replays list").says(t, exitOK, "rpl_1  completed  10,000        10,000  ", "")
	if got := list(t, oneDocument(t, f.words("replays list --json").out)); len(got) != 3 {
		t.Errorf("%v", got)
	}
	f.seen = 1
	r := f.words("replays show rpl_1")
	r.says(t, exitOK, "succeeded  5,000         charged, held", "")
	r.says(t, exitOK, "none yet   5,000         1,000 of them are taken up", "")
	if !regexp.MustCompile(`speed +\d+/s, about \d+s left\n`).MatchString(r.out) || !strings.Contains(r.out, "chosen by       --all\n") {
		t.Errorf("%s", r.out)
	}
	if half := f.looks[1].job; speedOf(half, half.CreatedAt.Add(10*time.Second)) != "500/s, about 10s left" || speedOf(half, half.CreatedAt.Add(time.Hour)) != "1/s, about 1h0m0s left" {
		t.Errorf("%q, %q", speedOf(half, half.CreatedAt.Add(10*time.Second)), speedOf(half, half.CreatedAt.Add(time.Hour)))
	}
	f.words("replays show rpl_1 --json").says(t, exitOK, `"finished": 10000`, "")
	id := payments.NewID("acme", "k")
	f.items, f.next = []payments.ReplayItem{{ReplayID: "rpl_1", LetterID: "dl_1", PaymentID: &id, Result: payments.ReplayFailedAgain, Status: payments.StatusFailed, Detail: "card_declined"}}, "c2"
	f.words("replays show rpl_1 --items --result failed_again").says(t, exitOK, "dl_1         "+id.String()+"  failed_again  failed  card_declined\n", "more: --cursor c2\n")
	if d := oneDocument(t, f.words("replays show rpl_1 --items --json").out); d["next_cursor"] != "c2" || list(t, d)[0].(map[string]any)["dead_letter_id"] != "dl_1" {
		t.Errorf("%v", d)
	}
	if f.count("items rpl_1 failed_again") != 1 || f.count("items rpl_1 ") != 1 {
		t.Errorf("%q", f.asked)
	}
	for verb, did := range map[string]string{"pause": "paused", "resume": "goes on", "cancel": "canceled"} {
		f.words("replays "+verb+" rpl_1 --actor ann --note late").says(t, exitOK, "rpl_1 "+did+": 0 of 10,000 dead letters done\n", "")
		if f.op != (payments.Operation{Actor: "ann", Reason: "late"}) || f.count(verb+" rpl_1") != 1 {
			t.Errorf("%s: %+v, %q", verb, f.op, f.asked)
		}
	}
	f.words("replays cancel rpl_1 --json").says(t, exitOK, `"id": "rpl_1"`, "")
	f.refusal = payments.Errorf(payments.CodeInvalid, "the replay is completed")
	f.words("replays cancel rpl_1").says(t, exitFailed, "", "oncepay: the replay is completed\n")
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	f := &fakeOperators{tenants: []postgres.Tenant{{ID: "acme", Account: payments.Account{ID: "acct_1"}}, {ID: "globex", Account: payments.Account{ID: "acct_2"}}}}
	f.run(false, "", "pause", "--tenant", "acme", "--reason", "their checkout loops", "--until", "2h", "--actor", "ann").
		says(t, exitOK, "paused tenant acme, until ", "payments are accepted and wait; `oncepay resume --tenant acme --reason R` lets them go on\n")
	if p := f.pause; p.TenantID != "acme" || p.AccountID != "" || p.Actor != "ann" || p.Reason != "their checkout loops" || time.Until(p.Until) < time.Hour || time.Until(p.Until) > 2*time.Hour {
		t.Errorf("%+v", p)
	}
	f.words("pause --account acct_1 --reason R --until 2099-01-01T00:00:00Z --json").says(t, exitOK, `"until": "2099-01-01T00:00:00Z"`, "")
	f.words("pause --account acct_1A --reason R").says(t, exitFailed, "", "oncepay: --account: nothing here goes to this account, so nothing was paused; known are acct_1, acct_2. --force")
	if f.count("pause") != 2 {
		t.Errorf("%q", f.asked)
	}
	f.words("pause --account acct_1A --reason R --force").says(t, exitOK, "paused account acct_1A, until it is resumed\n", "")
	f.words("pause --reason fire").says(t, exitOK, "paused everything, until it is resumed\n", "`oncepay resume --reason R`")
	if p := f.pause; p.TenantID+p.AccountID != "" || !p.Until.IsZero() || !strings.Contains(p.Actor, "@") {
		t.Errorf("%+v", p)
	}
	f.pauses = []payments.Pause{{TenantID: "acme", Reason: "fire"}, {AccountID: "acct_1"}, {}}
	f.words("resume --reason over --actor ann").says(t, exitOK, "resumed everything, paused since ", "still paused: tenant acme, account acct_1\n")
	if f.op != (payments.Operation{Actor: "ann", Reason: "over"}) || f.count("resume everything") != 1 {
		t.Errorf("%+v, %q", f.op, f.asked)
	}
	f.words("resume --tenant acme --reason over --json").says(t, exitOK, `"reason": "fire"`, "")
	f.words("resume --account acct_2 --reason over").says(t, exitFailed, "", "oncepay: there is no pause of account acct_2; still paused: tenant acme, account acct_1, everything\n")
}

func TestResolve(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "order-1")
	f := &fakeOperators{payment: payments.Payment{Intent: payments.Intent{TenantID: "acme", Amount: 1_234_500, Currency: "usd", Kind: payments.KindCharge}, ID: id, Status: payments.StatusNeedsReview, Reason: payments.ReasonSeveral, InDoubt: true}}
	line := []string{"payments", "resolve", id.String(), "--as", "succeeded", "--reason", "seen at Stripe", "--actor", "ann"}
	f.run(true, "", line...).says(t, exitFailed, "", "oncepay: --payment-intent: is required: ")
	f.run(false, "", append(line, "--payment-intent", "ch_1")...).says(t, exitUsage, "", "--payment-intent: must be the id of a PaymentIntent")
	f.run(false, "", append(line, "--payment-intent", "")...).says(t, exitUsage, "", "--payment-intent: must be the id of a PaymentIntent")
	line = append(line, "--payment-intent", "pi_1")
	shown := id.String() + " of tenant acme, 12,345.00 USD, is needs_review (several_payment_intents)\nfor good, as paid: 12,345.00 USD captured by pi_1; Stripe is not asked, your word stands\n"
	f.run(true, "n\n", line...).says(t, exitFailed, "", shown+"record it as succeeded? [y/N] oncepay: nothing was changed\n")
	f.run(false, "", line...).says(t, exitUsage, "", "--yes: is required where there is no terminal to ask on; nothing was changed")
	if len(f.asked) > 0 {
		t.Errorf("%q", f.asked)
	}
	f.run(true, "y\n", line...).says(t, exitOK, id.String()+" is succeeded; it was needs_review\n", "[y/N]")
	line = append(line, "--yes")
	f.run(true, "", line...).says(t, exitOK, " is succeeded", "")
	if r := f.run(false, "", append(line, "--json", "--tenant", "acme")...); r.code != exitOK || oneDocument(t, r.out)["status"] != "succeeded" || r.err != "" {
		t.Errorf("%+v", r)
	}
	if f.count("resolve acme "+id.String()+" succeeded pi_1") != 3 || f.op != (payments.Operation{Actor: "ann", Reason: "seen at Stripe"}) {
		t.Errorf("%q, %+v", f.asked, f.op)
	}
	f.run(false, "", append(line, "--tenant", "other")...).says(t, exitFailed, "", "the tenant has no payment "+id.String())
	f.refusal = &payments.Error{Code: payments.CodeInvalid, Field: "as", Message: "a payment that is unknown cannot be resolved as failed"}
	f.run(false, "", line...).says(t, exitFailed, "", "oncepay: --as: a payment that is unknown cannot be resolved as failed\n")
	asked := len(f.asked)
	f.payment.Status = payments.StatusUnknown
	f.words("payments resolve "+id.String()+" --as failed --reason R --yes").says(t, exitFailed, "", "oncepay: --as: a payment that is unknown cannot be resolved as failed: it may have been charged")
	f.payment.Status = payments.StatusNeedsReview
	for as, says := range map[string]string{"unknown": "Stripe's records are read again", "failed": "as not charged", "canceled": "as not charged"} {
		f.run(true, "n\n", "payments", "resolve", id.String(), "--as", as, "--reason", "R").says(t, exitFailed, "", says)
	}
	f.payment.InDoubt = false
	f.run(true, "n\n", "payments", "resolve", id.String(), "--as", "waiting", "--reason", "R").says(t, exitFailed, "", "it is sent to Stripe again")
	if len(f.asked) != asked {
		t.Errorf("%q", f.asked[asked:])
	}
}

// TestResolveOfAPart: how much was captured can be said, and is shown before it is asked for.
func TestResolveOfAPart(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "order-1")
	f := &fakeOperators{payment: payments.Payment{Intent: payments.Intent{TenantID: "acme", Amount: 1_234_500, Currency: "usd"}, ID: id, Status: payments.StatusRequiresCapture, StripePaymentIntent: "pi_1"}}
	line := []string{"payments", "resolve", id.String(), "--as", "succeeded", "--reason", "captured a part there", "--actor", "ann"}
	f.run(false, "", append(line, "--amount-captured", "0")...).says(t, exitUsage, "", "--amount-captured: must be at least 1")
	f.run(true, "", append(line, "--amount-captured", "1234501")...).says(t, exitFailed, "", "--amount-captured: must be in minor units, from 1 to 1234500")
	line = append(line, "--amount-captured", "100000")
	f.run(true, "y\n", line...).says(t, exitOK, " is succeeded", "as paid: 1,000.00 USD of 12,345.00 USD captured by pi_1; Stripe is not asked")
	if want := (payments.Decision{As: payments.StatusSucceeded, AmountCaptured: 100000}); f.decision != want {
		t.Errorf("%+v", f.decision)
	}
}

// TestResolveOfAnotherRefund: how much a refund gave back is said where Stripe has another amount, and is shown before it is asked for.
func TestResolveOfAnotherRefund(t *testing.T) {
	t.Parallel()
	charge, id := payments.NewID("acme", "order-1"), payments.NewID("acme", "refund-1")
	f := &fakeOperators{payment: payments.Payment{
		Intent: payments.Intent{TenantID: "acme", Kind: payments.KindRefund, PaymentID: charge.String(), Amount: 1000, Currency: "usd"}, ID: id,
		Status: payments.StatusNeedsReview, Reason: payments.ReasonDisagrees + ": amount", InDoubt: true, StripePaymentIntent: "pi_1",
	}}
	line := []string{"payments", "resolve", id.Format(payments.KindRefund), "--as", "succeeded", "--reason", "seen there", "--actor", "ann"}
	f.run(true, "", line...).says(t, exitFailed, "", "--amount-refunded: is required: Stripe's refund has another amount than 1000")
	f.run(false, "", append(line, "--amount-refunded", "0")...).says(t, exitUsage, "", "--amount-refunded: must be at least 1")
	f.run(true, "", append(line, "--amount-refunded", "1", "--as", "failed")...).says(t, exitFailed, "", "--amount-refunded: goes with succeeded alone")
	f.run(true, "y\n", append(line, "--amount-refunded", "300")...).says(t, exitOK, " is succeeded", "3.00 USD count as refunded of "+charge.String())
	if want := (payments.Decision{As: payments.StatusSucceeded, AmountRefunded: 300}); f.decision != want {
		t.Errorf("%+v", f.decision)
	}
}

// TestNobodyHasLooked: whoever ends a payment that was never looked for is told so, and where to look.
func TestNobodyHasLooked(t *testing.T) {
	t.Parallel()
	p := payments.Payment{Intent: payments.Intent{TenantID: "acme", Amount: 1, Currency: "usd"}, ID: payments.NewID("acme", "order-1"), Status: payments.StatusNeedsReview, Reason: payments.ReasonAccountUnclear, InDoubt: true}
	for name, c := range map[string]struct {
		tenants []postgres.Tenant
		where   string
	}{
		"none of its own":    {[]postgres.Tenant{{ID: "acme"}, {ID: "other", StripeAccount: "acct_9"}}, "on the installation's own account (that of ONCEPAY_STRIPE_KEY)"},
		"connected":          {[]postgres.Tenant{{ID: "acme", StripeAccount: "acct_2"}}, "on its tenant's account acct_2"},
		"by a key":           {[]postgres.Tenant{{ID: "acme", StripeKeyRef: "file:/k", Account: payments.Account{ID: "acct_3"}}}, "on its tenant's account acct_3"},
		"by a key, not read": {[]postgres.Tenant{{ID: "acme", StripeKeyRef: "file:/k"}}, "on the account of its tenant's own key (file:/k)"},
	} {
		f := &fakeOperators{payment: p, tenants: c.tenants}
		look := "nobody has looked for it: " + c.where + `, and on every other that its tenant has had, search for the metadata oncepay_payment:"` + p.ID.String() + `"`
		held, err := hold(t.Context(), f, p)
		if err != nil || len(held) != 1 || held[0][0] != "look first" || !strings.Contains(held[0][1], look) || !strings.Contains(remedyOf(p), "nobody has looked") {
			t.Errorf("%s: shown: %q, %q, %v", name, held, remedyOf(p), err)
		}
		f.run(true, "n\n", "payments", "resolve", p.ID.String(), "--as", "canceled", "--reason", "R").says(t, exitFailed, "", look)
	}
	p.Reason = payments.ReasonTaken + ": by pay_1"
	f := &fakeOperators{payment: p}
	f.run(true, "n\n", "payments", "resolve", p.ID.String(), "--as", "unknown", "--reason", "R").says(t, exitFailed, "", "given to another payment by a person")
}

func TestAudit(t *testing.T) {
	t.Parallel()
	f := &fakeOperators{entries: []payments.AuditEntry{{ID: 7, At: time.Unix(0, 0), Actor: "ann\x1b[2J", Action: "dlq replay", Target: "rpl_1", Reason: "mended", Filter: []byte(`{"reason":"invalid"}`), Result: []byte(`{"count":3}`)}}, next: "c2"}
	r := f.words("audit --actor ann --tenant acme --target rpl_1 --since 1h --until 2099-01-01T00:00:00Z")
	r.says(t, exitOK, `dlq replay  rpl_1   -       mended  {"reason":"invalid"}  {"count":3}`, "more: --cursor c2\n")
	if strings.Contains(r.out, "\x1b") || f.filter.Actor != "ann" || f.filter.TenantID != "acme" || f.filter.Target != "rpl_1" || f.filter.Since.IsZero() || f.filter.Until.Year() != 2099 {
		t.Errorf("%+v, %s", f.filter, r.out)
	}
	d := oneDocument(t, f.run(false, "", "audit", "--action", "dlq replay", "--json").out)
	if e := list(t, d)[0].(map[string]any); e["result"].(map[string]any)["count"] != 3.0 || e["id"] != 7.0 || f.filter.Action != "dlq replay" {
		t.Errorf("%v", d)
	}
}

// TestHeld: a payment that is held back says by whom, and one that was given up how to take it up again.
func TestHeld(t *testing.T) {
	t.Parallel()
	p := payments.Payment{Intent: payments.Intent{TenantID: "acme"}, ID: payments.NewID("acme", "k"), Status: payments.StatusReceived, Reason: payments.ReasonPaused, StripeAccount: "acct_1"}
	f := &fakeOperators{letter: payments.DeadLetter{ID: "dl_1", Reason: payments.ReasonAttemptsExhausted}, pauses: []payments.Pause{
		{TenantID: "acme", Actor: "ann", Reason: "fraud"}, {TenantID: "other", Actor: "bob"}, {AccountID: "acct_2", Actor: "bob"}, {Actor: "eve", Reason: "fire", Until: time.Unix(0, 0)}}}
	text := func(p payments.Payment) string {
		lines, err := hold(t.Context(), f, p)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(l[0] + ": " + l[1] + "\n")
		}
		return b.String()
	}
	want := "paused: tenant acme, until it is resumed, by ann: fraud\nwhat to do: `oncepay resume --tenant acme --reason R` lets it go on\n" +
		"paused: everything, until 1970-01-01 00:00:00 UTC, by eve: fire\nwhat to do: `oncepay resume --reason R` lets it go on\n"
	if got := text(p); got != want {
		t.Errorf("%s", got)
	}
	p.Status, p.Reason = payments.StatusStalled, payments.ReasonNotSent
	if got := text(p); !strings.Contains(got, "dead letter: dl_1: attempts_exhausted\n") || !strings.Contains(got, "`oncepay dlq replay dl_1`") {
		t.Errorf("%s", got)
	}
	p.Status = payments.StatusSucceeded
	if got := text(p); got != "" {
		t.Errorf("%s", got)
	}
	p.Status, p.Reason = payments.StatusNeedsReview, payments.ReasonDisagrees+": amount"
	if got := remedyOf(p); !strings.Contains(got, "not what was asked for") || !strings.HasSuffix(got, "`oncepay payments resolve "+p.ID.String()+" --as STATUS --reason R`") {
		t.Errorf("%s", got)
	}
}
