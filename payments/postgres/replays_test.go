package postgres

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

var ann = payments.Operation{Actor: "ann@ops", Reason: "the card network is back"}

// stall gives a payment up, without a send that could have charged.
func (b *bench) stall(key string) payments.DeadLetter {
	b.t.Helper()
	c := b.claim(key)
	b.record(c, payments.Transition{Status: payments.StatusStalled, Reason: payments.ReasonNotSent, ClearSubmit: true, CountTry: true, DeadLetter: payments.ReasonAttemptsExhausted}, 0)
	return b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{PaymentID: &c.Payment.ID}})[0]
}

// message buries a message of acme.
func (b *bench) message(id, key, payload string, reason payments.Reason, seq uint64) {
	b.t.Helper()
	b.bury(payments.DeadLetter{ID: id, TenantID: "acme", IdempotencyKey: key, Reason: reason, Message: "m", Origin: b.origin(seq), Payload: []byte(payload)})
}

func (b *bench) newReplay(n payments.NewReplay) payments.Replay {
	b.t.Helper()
	if n.Actor == "" {
		n.Operation = ann
	}
	r, err := b.CreateReplay(context.Background(), n)
	if err != nil {
		b.t.Fatalf("CreateReplay: %v", err)
	}
	return r
}

func (b *bench) items(replay string) map[string]payments.ReplayItem {
	b.t.Helper()
	list, _, err := b.ReplayItems(context.Background(), replay, "", 1000, "")
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]payments.ReplayItem{}
	for _, i := range list {
		found[i.LetterID] = i
	}
	return found
}

func (b *bench) audited(action string) []payments.AuditEntry {
	b.t.Helper()
	list, _, err := b.Audit(context.Background(), payments.AuditFilter{Action: action}, 0, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// TestLettersOfABatch: by its id or its key, its own letters and those of its payments, and no others.
func TestLettersOfABatch(t *testing.T) {
	t.Parallel()
	b := open(t)
	for i, key := range []string{"B", "B::0", "B::17", "B2", "B2::0", "C::B", ""} {
		b.message(fmt.Sprintf("dl_%d", i), key, "{}", payments.ReasonInvalid, uint64(i+1))
	}
	id := payments.NewID("acme", "B").Format(payments.KindBatch)
	for batch, want := range map[string]string{"B": "dl_2 dl_1 dl_0", id: "dl_2 dl_1 dl_0", "B2": "dl_4 dl_3", "b": "", "bat_00": "", payments.NewID("acme", "B").String(): ""} {
		var got []string
		for _, d := range b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{Batch: batch}}) {
			got = append(got, d.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", batch, got, want)
		}
	}
}

// TestPreviewAndCreate: a replay is of what its preview told, money included; it is one line of the audit.
func TestPreviewAndCreate(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	stalled := b.stall("k1")
	// A payment of an open letter that has its outcome by now.
	settledLetter := b.stall("k2")
	if _, err := b.Evidence(ctx, "acme", *settledLetter.PaymentID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil }); err != nil {
		t.Fatal(err)
	}
	b.message("dl_a", "m1", `{"amount":100,"currency":"EUR","colour":"red"}`, payments.ReasonInvalid, 1)
	b.message("dl_b", "m2", `{"payments":[{"amount":1,"currency":"usd"},{"amount":2,"currency":"eur"}]}`, payments.ReasonInvalid, 2)
	b.message("dl_c", "m3", `\xff`, payments.ReasonUndecodable, 3)
	b.message("dl_d", "m4", `{"amount":1.5,"currency":"usd"}`, payments.ReasonInvalid, 4)
	b.message("dl_card", "", ``, payments.ReasonCardNumber, 5)
	b.message("dl_x", "k2", `{"amount":7,"currency":"usd"}`, payments.ReasonKeyReused, 6)
	b.message("dl_gone", "m5", `{}`, payments.ReasonInvalid, 7)
	if _, err := b.pool.Exec(ctx, "UPDATE dead_letters SET state = 'discarded' WHERE id = 'dl_gone'"); err != nil {
		t.Fatal(err)
	}
	v, err := b.PreviewReplay(ctx, payments.NewReplay{})
	if err != nil || v.Count != 7 || v.Payments != 6 || v.Unpriced != 0 || v.Settled != 1 || v.Conflict != 1 || v.Refused != 4 || v.Skipped != 1 || !maps.Equal(v.Amount, map[string]int64{"usd": 9900}) ||
		v.ByReason[payments.ReasonAttemptsExhausted] != 2 || v.ByReason[payments.ReasonInvalid] != 3 {
		t.Errorf("preview: %+v, %v", v, err)
	}
	b.clock.Advance(time.Second)
	filter := payments.LetterFilter{State: payments.DeadLetterOpen, Until: b.clock.Now()}
	r := b.newReplay(payments.NewReplay{Filter: filter, Rate: 2.5})
	if r.State != payments.ReplayRunning || r.Total != 8 || r.Rate != 2.5 || !maps.Equal(r.Amount, v.Amount) || r.Filter != filter || r.Actor != ann.Actor || r.Reason != ann.Reason ||
		!maps.Equal(r.Results, map[payments.ReplayResult]int{payments.ReplaySkipped: 1}) || r.Issued != 1 || !strings.HasPrefix(r.ID, "rpl_") {
		t.Errorf("replay: %+v", r)
	}
	items := b.items(r.ID)
	if len(items) != 8 || items["dl_card"].Result != payments.ReplaySkipped || items["dl_card"].Detail == "" || items[stalled.ID].Result != "" {
		t.Errorf("items: %+v", items)
	}
	lines := b.audited("dlq replay")
	if len(lines) != 1 || lines[0].Actor != ann.Actor || lines[0].Target != r.ID || !strings.Contains(string(lines[0].Filter), `"open"`) ||
		!strings.Contains(string(lines[0].Result), `"usd":9900`) || !lines[0].At.Equal(b.clock.Now()) {
		t.Errorf("audit: %+v", lines)
	}
	// What it has is not chosen again.
	if v, err := b.PreviewReplay(ctx, payments.NewReplay{}); err != nil || v.Count != 0 || v.PassedOver != 7 || v.Skipped != 1 {
		t.Errorf("another preview: %+v, %v", v, err)
	}
	second := b.newReplay(payments.NewReplay{Filter: payments.LetterFilter{Reason: payments.ReasonInvalid}})
	if second.Total != 0 || second.PassedOver != 3 || second.State != payments.ReplayCompleted || second.FinishedAt.IsZero() {
		t.Errorf("another replay: %+v", second)
	}
	if page, next, err := b.Replays(ctx, 1, ""); err != nil || len(page) != 1 || next == "" {
		t.Errorf("list: %+v, %q, %v", page, next, err)
	} else if rest, next, err := b.Replays(ctx, 1, next); err != nil || len(rest) != 1 || next != "" || rest[0].ID == page[0].ID {
		t.Errorf("second page: %+v, %q, %v", rest, next, err)
	}
}

// TestReplayAtOnce: of operators who replay the same letters at once, each letter goes to one.
func TestReplayAtOnce(t *testing.T) {
	t.Parallel()
	b := open(t)
	const letters, operators = 40, 6
	for i := range letters {
		b.message(fmt.Sprintf("dl_%02d", i), fmt.Sprintf("m%d", i), `{"amount":1,"currency":"usd"}`, payments.ReasonHandlerPanic, uint64(i+1))
	}
	var all sync.WaitGroup
	replays := make([]payments.Replay, operators)
	for i := range replays {
		all.Go(func() { replays[i] = b.newReplay(payments.NewReplay{}) })
	}
	all.Wait()
	total, seen := 0, map[string]bool{}
	for _, r := range replays {
		total += r.Total
		if r.Total+r.PassedOver != letters || r.Amount["usd"] != int64(r.Total) {
			t.Errorf("%+v", r)
		}
		for id := range b.items(r.ID) {
			if seen[id] {
				t.Errorf("%s twice", id)
			}
			seen[id] = true
		}
	}
	if total != letters {
		t.Errorf("%d of %d", total, letters)
	}
}

func TestNewReplayRefuses(t *testing.T) {
	t.Parallel()
	b := open(t)
	for field, n := range map[string]payments.NewReplay{
		"actor": {Operation: payments.Operation{}},
		"rate":  {Operation: ann, Rate: -1},
		"limit": {Operation: ann, Limit: -1},
		"set":   {Operation: ann, Set: map[string]string{"idempotency_key": "x"}},
		"state": {Operation: ann, Filter: payments.LetterFilter{State: payments.DeadLetterDiscarded}},
		"text":  {Operation: ann, Filter: payments.LetterFilter{Text: "\xff"}},
	} {
		_, err := b.CreateReplay(context.Background(), n)
		if payments.ErrorCode(err) != payments.CodeInvalid || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := b.CreateReplay(context.Background(), payments.NewReplay{Operation: ann, Set: map[string]string{"description": "4242 4242 4242 4242"}}); err == nil || strings.Contains(err.Error(), "4242") {
		t.Errorf("a card number: %v", err)
	}
}

// TestMoveReplay: pause, resume and cancel, each an audit line, and none of a replay that has ended.
func TestMoveReplay(t *testing.T) {
	t.Parallel()
	b := open(t)
	ctx := context.Background()
	for i := range 3 {
		b.message(fmt.Sprintf("dl_%d", i), fmt.Sprintf("m%d", i), `{}`, payments.ReasonInvalid, uint64(i+1))
	}
	r := b.newReplay(payments.NewReplay{Limit: 2})
	if r.Total != 2 {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct {
		move func(context.Context, string, payments.Operation) (payments.Replay, error)
		want payments.ReplayState
	}{
		{b.PauseReplay, payments.ReplayPaused}, {b.PauseReplay, payments.ReplayPaused}, {b.ResumeReplay, payments.ReplayRunning}, {b.CancelReplay, payments.ReplayCanceled},
	} {
		if got, err := c.move(ctx, r.ID, ann); err != nil || got.State != c.want {
			t.Errorf("%+v, %v, want %s", got, err, c.want)
		}
	}
	got, err := b.Replay(ctx, r.ID)
	if err != nil || got.Results[payments.ReplaySkipped] != 2 || got.NotBegun != 2 || got.FinishedAt.IsZero() {
		t.Errorf("canceled: %+v, %v", got, err)
	}
	if list := b.letters(DeadLettersRequest{LetterFilter: payments.LetterFilter{State: payments.DeadLetterOpen}}); len(list) != 3 {
		t.Errorf("%d letters are open, want 3", len(list))
	}
	if _, err := b.ResumeReplay(ctx, r.ID, ann); payments.ErrorCode(err) != payments.CodeInvalid {
		t.Errorf("resume of a canceled one: %v", err)
	}
	if _, err := b.PauseReplay(ctx, "rpl_x", ann); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("pause of none: %v", err)
	}
	for action, want := range map[string]int{"replays pause": 1, "replays resume": 1, "replays cancel": 1} {
		if lines := b.audited(action); len(lines) != want || lines[0].Target != r.ID {
			t.Errorf("%s: %+v", action, lines)
		}
	}
	if page, next, err := b.Audit(ctx, payments.AuditFilter{Target: r.ID}, 3, ""); err != nil || len(page) != 3 || next == "" || page[0].Action != "replays cancel" {
		t.Errorf("audit: %+v, %q, %v", page, next, err)
	}
}
