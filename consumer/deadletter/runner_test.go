package deadletter

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

// TestReplayOfPayments: a stalled payment goes on under its ticket, one with an outcome only has it told, and one that is looked up is due now.
func TestReplayOfPayments(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	ctx := context.Background()
	stalled, stalledID := w.stall("stalled")
	done, doneID := w.stall("done")
	if _, err := w.Evidence(ctx, "acme", doneID, func(p payments.Payment) (payments.Transition, error) { return succeed(p), nil }); err != nil {
		t.Fatal(err)
	}
	c := w.claim("unknown")
	if err := w.BuryPayment(ctx, c, payments.DeadLetter{Reason: payments.ReasonWorkerKilled, Message: "m"}, 24*time.Hour); err != nil {
		t.Fatal(err)
	}
	unknown := w.letterOf(c.Payment.ID).ID
	r := w.replay(payments.NewReplay{})
	run := w.runner()
	if !w.once(run) {
		t.Fatal("nothing is open")
	}
	if i := w.item(r.ID, done); i.Result != payments.ReplayAlreadySettled || i.Status != payments.StatusSucceeded || *i.PaymentID != doneID {
		t.Errorf("settled: %+v", i)
	}
	for _, letter := range []string{stalled, done, unknown} {
		if d := w.letter(letter); d.State != payments.DeadLetterReplayed || d.Replays != 1 {
			t.Errorf("%s: %s, %d replays", letter, d.State, d.Replays)
		}
	}
	p, err := w.Find(ctx, "acme", stalledID)
	if err != nil || p.Reason != payments.ReasonReplayed || p.Tries != 0 {
		t.Errorf("taken up: %+v, %v", p, err)
	}
	if p, _ := w.Find(ctx, "acme", c.Payment.ID); p.Status != payments.StatusUnknown || p.NextAttemptAt.After(w.Now()) {
		t.Errorf("the unknown one is due at %s", p.NextAttemptAt)
	}
	seen := map[payments.Status]int{}
	if n := w.work(func(p payments.Payment) payments.Transition {
		seen[payments.Status(payments.Next(p, w.Now()))]++
		return succeed(p)
	}); n != 2 {
		t.Errorf("%d tickets, want 2", n)
	}
	if !maps.Equal(seen, map[payments.Status]int{payments.Status(payments.ActionSend): 1, payments.Status(payments.ActionLook): 1}) {
		t.Errorf("what owners do: %v", seen)
	}
	w.once(run)
	got := w.state(r.ID)
	if got.State != payments.ReplayCompleted || !maps.Equal(got.Results, map[payments.ReplayResult]int{payments.ReplaySucceeded: 2, payments.ReplayAlreadySettled: 1}) {
		t.Errorf("%+v", got)
	}
	lines, _, err := w.Audit(ctx, payments.AuditFilter{Target: r.ID, Action: "dlq replay completed"}, 0, "")
	if err != nil || len(lines) != 1 || lines[0].Actor != ann.Actor || !strings.Contains(string(lines[0].Result), `"succeeded" : 2`) {
		t.Errorf("audit: %+v, %v", lines, err)
	}
	if w.once(run) {
		t.Error("something is open after the end")
	}
}

// TestDeadAgain: one that is given up once more is the same dead letter, open, counted, and told.
func TestDeadAgain(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	letter, _ := w.stall("k")
	run := w.runner()
	for n := 1; n <= 2; n++ {
		r := w.replay(payments.NewReplay{Filter: payments.LetterFilter{ID: letter}})
		w.once(run)
		if taken := w.work(stallAgain); taken != 1 {
			t.Fatalf("%d tickets", taken)
		}
		w.once(run)
		if i := w.item(r.ID, letter); i.Result != payments.ReplayFailedAgain || i.Status != payments.StatusStalled || !strings.Contains(i.Detail, "attempts_exhausted") {
			t.Errorf("%+v", i)
		}
		if d := w.letter(letter); d.State != payments.DeadLetterOpen || d.Replays != n {
			t.Errorf("%s, %d replays, want open, %d", d.State, d.Replays, n)
		}
	}
	if taken := w.work(succeed); taken != 0 {
		t.Errorf("%d tickets by themselves", taken)
	}
}

// TestReplayOfMessages: each message goes the way of a delivered one, and its dead letter says what became of it.
func TestReplayOfMessages(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	ctx := context.Background()
	first := w.claim("taken") // 9900 usd
	w.record(first, succeed(first.Payment))
	w.bury("dl_tenant", "globex", "g1", payments.ReasonTenantUnknown, message("g1", 5))
	w.bury("dl_header", "globex", "g2", payments.ReasonTenantUnknown, `{"amount":6,"currency":"usd","payment_method":"pm_1"}`, "Idempotency-Key: g2")
	w.bury("dl_batch", "globex", "B", payments.ReasonTenantUnknown, `{"idempotency_key":"B","payments":[{"amount":60,"currency":"usd","payment_method":"pm_1"}]}`)
	w.bury("dl_nobody", "nobody", "n1", payments.ReasonTenantUnknown, message("n1", 5))
	w.bury("dl_invalid", "acme", "bad", payments.ReasonInvalid, message("bad", -1))
	w.bury("dl_garbage", "acme", "", payments.ReasonUndecodable, "\xff\x00")
	w.bury("dl_conflict", "acme", "taken", payments.ReasonInvalid, message("taken", 1))
	w.bury("dl_repeat", "acme", "taken", payments.ReasonHandlerPanic, `{"idempotency_key":"taken","amount":9900,"currency":"usd","payment_method":"pm_card_visa"}`)
	w.bury("dl_card", "acme", "", payments.ReasonCardNumber, "x")
	w.tenant("globex")
	if _, err := w.Exec("UPDATE dead_letters SET subject = 'payments.batch.globex' WHERE id = 'dl_batch'"); err != nil {
		t.Fatal(err)
	}
	r := w.replay(payments.NewReplay{})
	run := w.runner()
	w.once(run)
	w.work(succeed)
	w.once(run)
	type end struct {
		result  payments.ReplayResult
		state   payments.DeadLetterState
		reason  payments.Reason
		replays int
	}
	for letter, want := range map[string]end{
		"dl_tenant":   {payments.ReplaySucceeded, payments.DeadLetterReplayed, payments.ReasonTenantUnknown, 1},
		"dl_header":   {payments.ReplaySucceeded, payments.DeadLetterReplayed, payments.ReasonTenantUnknown, 1},
		"dl_batch":    {payments.ReplaySucceeded, payments.DeadLetterReplayed, payments.ReasonTenantUnknown, 1},
		"dl_nobody":   {payments.ReplayFailedAgain, payments.DeadLetterOpen, payments.ReasonTenantUnknown, 1},
		"dl_invalid":  {payments.ReplayFailedAgain, payments.DeadLetterOpen, payments.ReasonInvalid, 1},
		"dl_garbage":  {payments.ReplayFailedAgain, payments.DeadLetterOpen, payments.ReasonUndecodable, 1},
		"dl_conflict": {payments.ReplayConflict, payments.DeadLetterOpen, payments.ReasonKeyReused, 1},
		"dl_repeat":   {payments.ReplayAlreadySettled, payments.DeadLetterReplayed, payments.ReasonHandlerPanic, 1},
		"dl_card":     {payments.ReplaySkipped, payments.DeadLetterOpen, payments.ReasonCardNumber, 0},
	} {
		i, d := w.item(r.ID, letter), w.letter(letter)
		if got := (end{i.Result, d.State, d.Reason, d.Replays}); got != want {
			t.Errorf("%s: %+v, want %+v (%s)", letter, got, want, i.Detail)
		}
	}
	if got := w.state(r.ID); got.State != payments.ReplayCompleted {
		t.Errorf("%+v", got)
	}
	// The key is the producer's, and so is what was asked for.
	if p, err := w.FindByKey(ctx, "globex", "g2"); err != nil || p.Amount != 6 || p.Status != payments.StatusSucceeded || p.Lane != payments.LaneBulk {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := w.FindByKey(ctx, "acme", "taken"); err != nil || p.Amount != 9900 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestEditAndReplay: members are changed of messages that never claimed a row, and of no others.
func TestEditAndReplay(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	stored := w.claim("stored")
	w.record(stored, succeed(stored.Payment))
	stalled, _ := w.stall("stalled")
	w.bury("dl_new", "acme", "new", payments.ReasonInvalid, `{"idempotency_key":"new","amount":"x","currency":"usd","payment_method":"pm_1","description":null}`)
	w.bury("dl_stored", "acme", "stored", payments.ReasonHandlerPanic, message("stored", 9900))
	w.bury("dl_garbage", "acme", "", payments.ReasonUndecodable, "garbage")
	r := w.replay(payments.NewReplay{Set: map[string]string{"amount": "700", "description": "as agreed"}})
	run := w.runner()
	w.once(run)
	w.work(succeed)
	w.once(run)
	for letter, want := range map[string]payments.ReplayResult{
		"dl_new": payments.ReplaySucceeded, "dl_stored": payments.ReplaySkipped, "dl_garbage": payments.ReplayFailedAgain, stalled: payments.ReplaySkipped,
	} {
		if i := w.item(r.ID, letter); i.Result != want || want != payments.ReplaySucceeded && i.Detail == "" {
			t.Errorf("%s: %+v, want %s", letter, i, want)
		}
	}
	if p, err := w.FindByKey(context.Background(), "acme", "new"); err != nil || p.Amount != 700 || p.Description != "as agreed" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := w.FindByKey(context.Background(), "acme", "stored"); err != nil || p.Amount != 9900 || p.Description != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if d := w.letter("dl_new"); !strings.Contains(string(d.Payload), `"amount":"x"`) {
		t.Errorf("the dead letter does not keep what was sent: %s", d.Payload)
	}
}

// TestCrash: whoever runs a replay may end at any step; each item ends as it would have, once. A message that was begun and stored nothing is dead
// again, and no runner begins it a second time.
func TestCrash(t *testing.T) {
	t.Parallel()
	for _, step := range []Step{StepClaimed, StepIssued, StepStarted, StepRead, StepAdmitted, StepFinished} {
		for _, ofMessage := range []bool{true, false} {
			if ofMessage == (step == StepIssued) || !ofMessage && step != StepClaimed && step != StepIssued {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", step, ofMessage), func(t *testing.T) {
				t.Parallel()
				w := newWard(t)
				letter, id := "dl_m", payments.NewID("acme", "m")
				if ofMessage {
					w.bury(letter, "acme", "m", payments.ReasonHandlerPanic, message("m", 9900))
				} else {
					letter, id = w.stall("p")
				}
				r := w.replay(payments.NewReplay{})
				w.crash(step, letter)
				run := w.runner()
				w.once(run)
				if i := w.item(r.ID, letter); step == StepClaimed && i.Result != "" {
					t.Errorf("it is not held: %+v", i)
				}
				w.advance(31 * time.Second)
				w.once(run)
				if step == StepStarted || step == StepRead {
					if i, d := w.item(r.ID, letter), w.letter(letter); i.Result != payments.ReplayFailedAgain || d.State != payments.DeadLetterOpen ||
						d.Reason != payments.ReasonWorkerKilled || d.Replays != 1 || w.work(succeed) != 0 {
						t.Errorf("%+v, %+v", i, d)
					}
					return
				}
				if n := w.work(succeed); n != 1 {
					t.Errorf("%d tickets", n)
				}
				w.once(run)
				if i, d := w.item(r.ID, letter), w.letter(letter); i.Result != payments.ReplaySucceeded || d.State != payments.DeadLetterReplayed || d.Replays != 1 {
					t.Errorf("%+v, %+v", i, d)
				}
				if p, err := w.Find(context.Background(), "acme", id); err != nil || p.Status != payments.StatusSucceeded {
					t.Errorf("%+v, %v", p, err)
				}
				if got := w.state(r.ID); got.State != payments.ReplayCompleted {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// TestPanic: a message that makes the worker panic is dead again, once, counted; the next one goes on.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.bury("dl_a", "acme", "a", payments.ReasonInvalid, message("a", 60))
	w.bury("dl_b", "acme", "b", payments.ReasonInvalid, message("b", 60))
	r := w.replay(payments.NewReplay{})
	run := w.runner(func(c *Config) {
		c.OnStep = func(s Step, id string) {
			if s == StepRead && id == "dl_a" {
				panic("4242424242424242")
			}
		}
	})
	w.once(run)
	w.work(succeed)
	w.once(run)
	if i, d := w.item(r.ID, "dl_a"), w.letter("dl_a"); i.Result != payments.ReplayFailedAgain || d.Reason != payments.ReasonHandlerPanic || d.Replays != 1 ||
		d.State != payments.DeadLetterOpen || strings.Contains(d.Message+i.Detail, "4242") {
		t.Errorf("%+v, %+v", i, d)
	}
	if i := w.item(r.ID, "dl_b"); i.Result != payments.ReplaySucceeded {
		t.Errorf("%+v", i)
	}
}

// TestThousand: a thousand payments at a rate, by two runners, paused, resumed, crashed on the way: each is taken up once.
func TestThousand(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	const n = 1000
	var all sync.WaitGroup
	keys := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range keys {
				c := w.claim(fmt.Sprintf("k%d", i))
				w.record(c, stallAgain(c.Payment))
			}
		})
	}
	for i := range n {
		keys <- i
	}
	close(keys)
	all.Wait()
	ctx := context.Background()
	r := w.replay(payments.NewReplay{Rate: 200})
	if r.Total != n || r.Amount["usd"] != n*9900 {
		t.Fatalf("%+v", r)
	}
	both := func() {
		var two sync.WaitGroup
		for range 2 {
			two.Go(func() {
				run := w.runner()
				for range 8 {
					if _, err := run.RunOnce(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		two.Wait()
	}
	both()
	if got := w.state(r.ID).Issued; got != 1 {
		t.Errorf("%d are issued at once, want 1", got)
	}
	w.advance(time.Second)
	both()
	if got := w.state(r.ID).Issued; got < 150 || got > 202 {
		t.Errorf("%d are issued after a second at 200/s", got)
	}
	if _, err := w.PauseReplay(ctx, r.ID, ann); err != nil {
		t.Fatal(err)
	}
	before := w.state(r.ID).Issued
	w.advance(time.Minute)
	both()
	if got := w.state(r.ID).Issued; got != before {
		t.Errorf("%d were issued while it was paused", got-before)
	}
	if _, err := w.ResumeReplay(ctx, r.ID, ann); err != nil {
		t.Fatal(err)
	}
	// One process ends while it holds some.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := w.ClaimReplayItems(ctx, 40, 10*time.Second)
		if err != nil {
			t.Error(err)
		}
	}()
	<-ended
	for range 40 {
		w.advance(time.Second)
		both()
		w.work(succeed)
	}
	w.once(w.runner())
	got := w.state(r.ID)
	if got.State != payments.ReplayCompleted || got.Results[payments.ReplaySucceeded] != n {
		t.Errorf("%+v", got)
	}
	var again int
	if err := w.QueryRow("SELECT count(*) FROM payment_events WHERE reason = 'replayed'", &again); err != nil || again != n {
		t.Errorf("%d were taken up, want %d, %v", again, n, err)
	}
}

// TestCancel: what was not issued is skipped, and what was gets its result.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	for i := range 10 {
		w.stall(fmt.Sprintf("k%d", i))
	}
	ctx := context.Background()
	r := w.replay(payments.NewReplay{})
	w.once(w.runner(func(c *Config) { c.AtOnce = 3 }))
	held, err := w.ClaimReplayItems(ctx, 2, 10*time.Second)
	if err != nil || len(held.Work) != 2 {
		t.Fatalf("%+v, %v", held, err)
	}
	if _, err := w.CancelReplay(ctx, r.ID, ann); err != nil {
		t.Fatal(err)
	}
	if err := w.IssueReplayed(ctx, held.Work[:1]); err != nil { // by whoever holds it, and comes too late
		t.Fatal(err)
	}
	w.advance(11 * time.Second)
	if n := w.work(succeed); n != 3 {
		t.Errorf("%d tickets, want 3", n)
	}
	w.once(w.runner())
	got := w.state(r.ID)
	if got.State != payments.ReplayCanceled || !maps.Equal(got.Results, map[payments.ReplayResult]int{payments.ReplaySucceeded: 3, payments.ReplaySkipped: 7}) {
		t.Errorf("%+v", got)
	}
	if again := w.replay(payments.NewReplay{}); again.Total != 7 {
		t.Errorf("%d of the others can be replayed again, want 7", again.Total)
	}
}

// TestRun: it sees a replay that is made while it runs, and ends with its context.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	letter, _ := w.stall("k")
	issued := make(chan string, 1)
	run := w.runner(func(c *Config) {
		c.Idle, c.Poll = 10*time.Millisecond, 10*time.Millisecond
		c.OnStep = func(s Step, id string) {
			if s == StepIssued {
				issued <- id
			}
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- run.Run(ctx) }()
	w.replay(payments.NewReplay{})
	if got := <-issued; got != letter {
		t.Errorf("issued %s, want %s", got, letter)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
