package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// tenThousand is what a bad night leaves behind.
func tenThousand() *fakeOperators {
	job := payments.Replay{ID: "rpl_1", State: payments.ReplayRunning, Actor: "ann", Total: 10_000, CreatedAt: time.Now().Add(-10 * time.Second), UpdatedAt: time.Now()}
	half, whole := job, job
	half.Issued, half.Results = 6000, map[payments.ReplayResult]int{payments.ReplaySucceeded: 5000}
	whole.State, whole.FinishedAt, whole.Issued = payments.ReplayCompleted, time.Now(), 10_000
	whole.Results = map[payments.ReplayResult]int{payments.ReplaySucceeded: 9950, payments.ReplayAlreadySettled: 30, payments.ReplayFailedAgain: 20}
	return &fakeOperators{
		preview: payments.ReplayPreview{Count: 10_000, Payments: 9_900, Amount: map[string]int64{"usd": 98_010_000, "eur": 1_250_000}, Unpriced: 12, Settled: 37, Review: 1, Conflict: 5, Refused: 6, Skipped: 4, PassedOver: 3,
			ByReason: map[payments.Reason]int{payments.ReasonAttemptsExhausted: 9988, payments.ReasonInvalid: 12}},
		looks: []look{{job: job}, {job: half}, {job: whole}},
	}
}

// TestReplayShowsFirst: what a replay would do is told before it is asked for, by a dry run too, and nothing is done without a yes.
func TestReplayShowsFirst(t *testing.T) {
	t.Parallel()
	const preview = "10,004 dead letters of 9,900 payments to replay: at most 12,500.00 EUR + 980,100.00 USD is charged, and 12 payments whose amount nobody can tell\n" +
		"  37 payments have their outcome already: Stripe is not asked\n" +
		"  1 payment waits for a person: nothing is sent, `oncepay payments resolve` decides\n" +
		"  5 dead letters name another request under a used key: nothing is sent for them\n" +
		"  6 dead letters can be no payments as they are: they will be dead again\n" +
		"  4 dead letters are skipped: nothing of a card number's message is kept\n" +
		"  3 more are in another replay, and are left to it\n" +
		"\nREASON              DEAD LETTERS\nattempts_exhausted  9,988\ninvalid             12\n"
	f := tenThousand()
	if r := f.words("dlq replay --reason attempts_exhausted --dry-run"); r.code != exitOK || r.out != preview || r.err != "" || f.count("create") > 0 {
		t.Errorf("%+v, %q", r, f.asked)
	}
	if r := f.words("dlq replay --all --dry-run --json"); r.code != exitOK || oneDocument(t, r.out)["count"] != 10_000.0 || oneDocument(t, r.out)["dry_run"] != true || f.count("create") > 0 {
		t.Errorf("%+v, %q", r, f.asked)
	}
	for _, answer := range []string{"n\n", "\n", "", "maybe\n"} {
		r := f.run(true, answer, "dlq", "replay", "--all")
		if r.code != exitFailed || !strings.HasPrefix(r.err, preview) || !strings.Contains(r.err, "replay 10,004 dead letters? [y/N] ") || !strings.HasSuffix(r.err, "oncepay: nothing was replayed\n") || r.out != "" || f.count("create") > 0 {
			t.Errorf("%q: %+v, %q", answer, r, f.asked)
		}
	}
	r := f.words("dlq replay --all")
	if r.code != exitUsage || !strings.HasSuffix(r.err, "oncepay: --yes: is required where there is no terminal to ask on; nothing was replayed\n") || f.count("create") > 0 {
		t.Errorf("%+v, %q", r, f.asked)
	}
	r = f.run(true, "y\n", "dlq", "replay", "--tenant", "acme", "--rate", "2.5", "--limit", "7", "--note", "key was mended", "--actor", "ann", "--set", "description=Order 17", "--set", "metadata.a=b=c", "--detach")
	r.says(t, exitOK, "rpl_1\n", "`oncepay replays show rpl_1 --follow` follows it")
	if m := f.made; r.out != "rpl_1\n" || m.Filter.TenantID != "acme" || m.Filter.State != payments.DeadLetterOpen || m.Rate != 2.5 || m.Limit != 7 || m.Actor != "ann" || m.Reason != "key was mended" ||
		len(m.Set) != 2 || m.Set["description"] != "Order 17" || m.Set["metadata.a"] != "b=c" || f.count("create") != 1 || f.seen > 0 {
		t.Errorf("%+v, %q", m, f.asked)
	}
	if r := f.words("dlq replay --all --yes --detach --json"); r.code != exitOK || oneDocument(t, r.out)["id"] != "rpl_1" || !strings.HasPrefix(r.err, preview) {
		t.Errorf("%+v", r)
	}
}

// TestReplayFollowed: the exit code is 0 when the replay completed, whatever became of its dead letters.
func TestReplayFollowed(t *testing.T) {
	t.Parallel()
	f := tenThousand()
	r := f.words("dlq replay --all --yes")
	r.says(t, exitOK, "succeeded        9,950", "replay rpl_1\n")
	if !strings.Contains(r.out, "failed_again     20") || !strings.Contains(r.err, "with a result     10000/10000 dead letters") || strings.ContainsAny(r.err, "\r\x1b") ||
		!strings.Contains(r.err, "why: oncepay replays show rpl_1 --items --result failed_again\n") || strings.Contains(r.err, "result conflict") {
		t.Errorf("%+v", r)
	}
	if actor := f.made.Actor; !strings.Contains(actor, "@") {
		t.Errorf("by %q", actor)
	}
	f = tenThousand()
	if r := f.words("dlq replay --all --yes --json"); r.code != exitOK || oneDocument(t, r.out)["finished"] != 10_000.0 || oneDocument(t, r.out)["state"] != "completed" {
		t.Errorf("%+v", r)
	}
	f = tenThousand()
	f.looks[2].job.State, f.looks[2].job.Results = payments.ReplayCanceled, map[payments.ReplayResult]int{payments.ReplaySucceeded: 3, payments.ReplaySkipped: 9997}
	f.looks[2].job.NotBegun = 9996
	f.looks = append(f.looks[:1], look{err: payments.Errorf(payments.CodeUnavailable, "PostgreSQL cannot be reached")}, f.looks[2])
	r = f.words("replays show rpl_1 --follow")
	r.says(t, exitFailed, "skipped    1 ", "trying again: PostgreSQL cannot be reached\n")
	r.says(t, exitFailed, "", "oncepay: replay rpl_1 was canceled with 4 of 10,000 dead letters done, 9,996 not begun\n")
	r.says(t, exitFailed, "not begun  9,996 ", "")
	f.words("replays list").says(t, exitOK, "rpl_1  canceled  10,000        4  ", "")
	f.words("replays show rpl_1").says(t, exitOK, "done            4\nnot begun       9,996 (canceled)\n", "")
	f.looks = f.looks[2:]
	f.words("replays cancel rpl_1").says(t, exitOK, "rpl_1 canceled: 4 of 10,000 dead letters done, 9,996 not begun\n", "")
	f = tenThousand()
	f.looks = append(f.looks[:1], look{err: payments.Errorf(payments.CodeInternal, "broken")})
	f.words("dlq replay --all --yes").says(t, exitFailed, "", "oncepay: broken; the replay goes on: `oncepay replays show rpl_1 --follow` follows it again\n")
}

// TestPreviewWords: what --set does is told, and where nothing can be charged no sum is.
func TestPreviewWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preview payments.ReplayPreview
		args    string
		want    string
	}{
		"copies": {payments.ReplayPreview{Count: 6, Payments: 2, Settled: 1, Amount: map[string]int64{"usd": 100_000}}, "--all",
			"6 dead letters of 2 payments to replay: at most 1,000.00 USD is charged\n  1 payment has its outcome already: Stripe is not asked\n"},
		"a used key": {payments.ReplayPreview{Count: 1, Payments: 1, Conflict: 1}, "--all",
			"1 dead letter of 1 payment to replay: nothing is charged\n  1 dead letter names another request under a used key: nothing is sent for it\n"},
		"changed": {payments.ReplayPreview{Count: 1, Payments: 1, Skipped: 2, Amount: map[string]int64{"usd": 500}}, "--all --set currency=usd",
			"3 dead letters of 1 payment to replay: at most 5.00 USD is charged\n  1 message is changed by --set before it is read\n" +
				"  2 dead letters are skipped: --set changes no stored payment and no batch, or nothing of a card number's message is kept\n"},
		"unpriced": {payments.ReplayPreview{Count: 1, Payments: 1, Unpriced: 1}, "--all",
			"1 dead letter of 1 payment to replay: at most 1 payment whose amount nobody can tell can be charged\n"},
		"a refund": {payments.ReplayPreview{Count: 1, Payments: 1, Operations: 1, Amount: map[string]int64{"usd": 500}}, "--all",
			"1 dead letter of 1 operation to replay: at most 5.00 USD is captured or given back\n"},
		"an unpriced refund": {payments.ReplayPreview{Count: 1, Payments: 1, Operations: 1, Unpriced: 1}, "--all",
			"1 dead letter of 1 operation to replay: at most 1 capture or refund whose amount nobody can tell can be captured or given back\n"},
		"a cancel": {payments.ReplayPreview{Count: 1, Payments: 1, Operations: 1}, "--all", "1 dead letter of 1 operation to replay: nothing is captured or given back\n"},
		"a refund among payments": {payments.ReplayPreview{Count: 3, Payments: 3, Operations: 1, Unpriced: 2, Amount: map[string]int64{"usd": 500}}, "--all",
			"3 dead letters of 3 payments (1 capture, cancel or refund among them) to replay: at most 5.00 USD is charged, captured or given back, and 2 payments, captures and refunds whose amount nobody can tell\n"},
		"skipped alone": {payments.ReplayPreview{Skipped: 1}, "dl_1 --set currency=usd",
			"no open dead letter that can be replayed matches\n  1 dead letter is skipped: --set changes no stored payment and no batch, or"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeOperators{preview: c.preview}
			f.words("dlq replay "+c.args+" --dry-run").says(t, exitOK, c.want, "")
		})
	}
}

// TestReplayOfNothing: a dead letter that is named and not open is a failure; a filter that matches nothing is not.
func TestReplayOfNothing(t *testing.T) {
	t.Parallel()
	f := &fakeOperators{looks: []look{{job: payments.Replay{ID: "rpl_0", State: payments.ReplayCompleted}}}}
	f.words("dlq replay dl_nosuch --yes").says(t, exitFailed, "", "oncepay: there is no such dead letter\n")
	f.words("dlq replay --id dl_nosuch --dry-run").says(t, exitFailed, "", "there is no such dead letter")
	f.letter = payments.DeadLetter{ID: "dl_1", State: payments.DeadLetterReplayed}
	f.words("dlq replay dl_1 --yes").says(t, exitFailed, "", "oncepay: the dead letter is replayed, and only open ones are taken")
	if len(f.asked) != f.count("preview") {
		t.Errorf("%q", f.asked)
	}
	f.words("dlq replay --tenant acme --dry-run").says(t, exitOK, "no open dead letter that can be replayed matches\n", "")
	f.words("dlq replay --tenant acme").says(t, exitOK, "", "no open dead letter that can be replayed matches\n")
	if r := f.words("dlq replay --tenant acme --json"); r.code != exitOK || oneDocument(t, r.out)["total"] != 0.0 {
		t.Errorf("%+v", r)
	}
}

// TestDiscard: who names one need not be asked where nobody can be; a refusal of that one is a failure, and of many it is told.
func TestDiscard(t *testing.T) {
	t.Parallel()
	f := tenThousand()
	f.gone = payments.DiscardPreview{Count: 10_004, Settled: 37, Canceled: 1, Refused: slices.Repeat([]payments.RefusedLetter{{LetterID: "dl_7", Why: "the payment may have been charged"}}, 1200), Unpriced: 12, Amount: f.preview.Amount}
	f.discard = payments.DiscardResult{Discarded: 9999, Canceled: 1, Refused: []payments.RefusedLetter{{LetterID: "dl_7", Why: "the payment may have been charged"}}}
	f.words("dlq discard --tenant acme").says(t, exitUsage, "", "--yes: is required")
	// A dry run asks nobody, and changes nothing.
	dry := f.words("dlq discard --tenant acme --limit 3 --dry-run")
	dry.says(t, exitOK, "10,004 dead letters to discard: 12,500.00 EUR + 980,100.00 USD and 12 whose amount nobody can tell\n  37 of them have the outcome already", "")
	if strings.Count(dry.out, "would be refused: dl_7: the payment may have been charged\n") != refusedShown || !strings.HasSuffix(dry.out, "and 1,180 more\n") || dry.err != "" || f.made.Limit != 3 {
		t.Errorf("%+v, %+v", dry, f.made)
	}
	alone := &fakeOperators{gone: payments.DiscardPreview{Count: 1, Unpriced: 1}}
	alone.words("dlq discard dl_1 --dry-run").says(t, exitOK, "1 dead letter to discard: of an amount that nobody can tell\n", "")
	if d := oneDocument(t, f.words("dlq discard --all --dry-run --yes --json").out); d["dry_run"] != true || d["count"] != 10_004.0 || d["settled"] != 37.0 || len(d["refused"].([]any)) != 1200 || d["amount"].(map[string]any)["usd"] != 98010000.0 {
		t.Errorf("%v", d)
	}
	if f.count("discard") > 0 {
		t.Errorf("%q", f.asked)
	}
	f.run(true, "n\n", "dlq", "discard", "--tenant", "acme").says(t, exitFailed, "", "  37 of them have the outcome already, and keep it: the dead letter goes\n"+
		"  1 of them has a stalled payment, which is canceled\n  1,200 of them are refused: what may have been charged or goes on, or a replay has it\ndiscard 10,004 dead letters, 12,500.00 EUR + 980,100.00 USD and 12 whose amount nobody can tell? [y/N] oncepay: nothing was discarded")
	if f.count("discard") > 0 {
		t.Errorf("%q", f.asked)
	}
	f.words("dlq discard --tenant acme --yes --note junk --actor ann --limit 3").says(t, exitOK, "9,999 dead letters discarded, 1 payment canceled\n", "refused: dl_7: the payment may have been charged\n")
	if f.op.Actor != "ann" || f.op.Reason != "junk" || f.made.Limit != 3 || f.made.Filter.State != payments.DeadLetterOpen {
		t.Errorf("%+v, %+v", f.op, f.made)
	}
	if d := oneDocument(t, f.words("dlq discard --all --yes --json").out); d["discarded"] != 9999.0 || len(d["refused"].([]any)) != 1 {
		t.Errorf("%v", d)
	}
	f.words("dlq discard dl_7").says(t, exitFailed, "", "oncepay: refused: the payment may have been charged\n")
	f.run(true, "", "dlq", "discard", "dl_7").says(t, exitFailed, "", "nothing was discarded")
}
