package cli

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// awaited is a standard error that tells when a text has been written to it.
type awaited struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	text string
	seen chan struct{}
}

func await(text string) *awaited { return &awaited{text: text, seen: make(chan struct{})} }

func (a *awaited) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := strings.Contains(a.buf.String(), a.text)
	a.buf.Write(b)
	if !before && strings.Contains(a.buf.String(), a.text) {
		close(a.seen)
	}
	return len(b), nil
}

func (a *awaited) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.buf.String()
}

// TestPublishSaysWhatItKnows: whoever waits is told, once and beside the outcome, that a pause holds it, and that a repeat is one.
func TestPublishSaysWhatItKnows(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	sim := b.serve()
	b.run("pause", "--tenant", "demo", "--reason", "fraud?", "--actor", "ann").says(t, exitOK, "paused tenant demo", "")
	paused := "oncepay: it is accepted and waits, paused: tenant demo, until it is resumed, by ann: fraud?; `oncepay resume --tenant demo --reason R` lets it go on\n"
	log := await(paused)
	ended := make(chan result, 1)
	go func() {
		var out bytes.Buffer
		code := Main(append(slices.Clone(b.flags), intentFlags("order-1", "--wait", "--within", "5m", "--json")...), strings.NewReader(""), &out, log)
		ended <- result{code, out.String(), log.String()}
	}()
	select {
	case <-log.seen:
	case r := <-ended:
		t.Fatalf("nothing of the pause is said: %+v", r)
	case <-time.After(patience):
		t.Fatalf("nothing of the pause is said: %q", log)
	}
	b.run("resume", "--tenant", "demo", "--reason", "it was a test").says(t, exitOK, "resumed tenant demo", "")
	select {
	case r := <-ended:
		if d := oneDocument(t, r.out); r.code != exitOK || d["status"] != "succeeded" || r.err != paused {
			t.Errorf("%+v", r)
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}

	again := b.run(intentFlags("order-1", "--wait", "--json")...)
	d := oneDocument(t, again.out)
	created, err := time.Parse(time.RFC3339Nano, d["created_at"].(string))
	want := "oncepay: a repeat: this key has named this payment since " + utc(created) + ", and nothing is charged a second time; it is succeeded\n"
	if err != nil || again.code != exitOK || d["id"] != payments.NewID("demo", "order-1").String() || again.err != want || len(sim.Ledger().Charges) != 1 {
		t.Errorf("%+v, %v, want %q", again, err, want)
	}
	b.fails(b.run(append(intentFlags("order-1", "--wait"), "--amount", "1")...), exitFailed, "the key already names another request; differs: amount")
}

// TestPauseThatHasJustEnded: between the look at a payment and the one at the pauses somebody may resume it. Then nothing is said of a pause.
func TestPauseThatHasJustEnded(t *testing.T) {
	t.Parallel()
	paused := payments.Payment{Intent: payments.Intent{TenantID: "acme"}, ID: payments.NewID("acme", "k"), Status: payments.StatusReceived, Reason: payments.ReasonPaused}
	for reason, want := range map[string]string{"": "", payments.ReasonPaused: "oncepay: it is accepted and waits, paused: `oncepay doctor` says by whom\n"} {
		var log bytes.Buffer
		now := paused
		now.Reason = reason
		if told := (&shared{err: &log}).tellPaused(t.Context(), &fakeOperators{payment: now}, paused, "before"); log.String() != want || (told == "before") != (want == "") {
			t.Errorf("%q: %q, told %q", reason, log.String(), told)
		}
	}
}
