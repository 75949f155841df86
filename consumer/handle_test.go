package consumer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// buffer is a log that a test reads while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func logTo(b *buffer) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(b, nil)) }
}

func TestAckOnlyAfterRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	msg := newMsg("k", 1)
	msg.onAck = func() {
		if r.store.outcomes() != 1 {
			t.Error("acked before the outcome was recorded")
		}
	}
	r.handle(context.Background(), r.from, msg)
	want := []payments.Step{
		payments.StepBeforeAdmit, payments.StepAfterAdmit, payments.StepBeforeSubmit, payments.StepAfterSubmit, payments.StepBeforeRecord,
		payments.StepAfterRecord, payments.StepBeforeAck, payments.StepAfterAck,
	}
	if msg.acks() != 1 || !slices.Equal(r.steps, want) || r.store.status(testIntent("k").ID()) != payments.StatusSucceeded {
		t.Errorf("%d acks, steps %v", msg.acks(), r.steps)
	}
}

func TestRedeliveryFindsItsRow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for deliveries := range uint64(5) {
		msg := newMsg("k", deliveries+1)
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 1 {
			t.Errorf("delivery %d: %d acks", deliveries+1, msg.acks())
		}
	}
	if calls, _ := r.gateway.calls(); calls != 1 || r.store.outcomes() != 1 || r.store.count("suspect") != 0 || len(r.store.open()) != 0 {
		t.Errorf("%d calls, %d outcomes", calls, r.store.outcomes())
	}
	if r.store.count("find") != 3 {
		t.Errorf("%d looks for a row; only a message that was delivered often needs one", r.store.count("find"))
	}
	for _, d := range r.dues {
		if len(d.wake) != 0 {
			t.Error("a repeat of a finished payment asked for due tickets")
		}
	}
}

func TestNudgeWakesTake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.insert(testIntent("accepted"), payments.LaneInteractive, 0)
	later := r.store.insert(testIntent("later"), payments.LaneInteractive, 0)
	r.store.rows[later].due = time.Now().Add(time.Hour)
	msg := newMsg("later", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.dues[0].wake) != 0 {
		t.Error("a payment that waits was woken")
	}
	msg = newMsg("accepted", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.dues[0].wake) != 1 || len(r.dues[1].wake) != 0 {
		t.Error("a payment that is due was not")
	}
	if calls, _ := r.gateway.calls(); calls != 0 {
		t.Error("a nudge submitted")
	}
}

func TestMessagesThatAreBuried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		subject, body string
		reason        payments.Reason
		says          string
	}{
		"conflict":       {"payments.intent.acme", strings.Replace(string(intentJSON("k")), "9900", "9901", 1), payments.ReasonKeyReused, "differs: amount"},
		"tenant unknown": {"payments.intent.nobody", string(intentJSON("k")), payments.ReasonTenantUnknown, "tenants create"},
		"child":          {"payments.bulk.acme", string(intentJSON("b::7")), payments.ReasonKeyInvalid, "batch"},
		"invalid":        {"payments.intent.acme", strings.Replace(string(intentJSON("new")), "9900", "0", 1), payments.ReasonInvalid, "amount"},
		"undecodable":    {"payments.intent.acme", "?", payments.ReasonUndecodable, ""},
	} {
		r := newRig(t)
		r.handle(context.Background(), r.from, newMsg("k", 1))
		msg := newMsg("k", 2)
		msg.subject, msg.data, msg.sequence = c.subject, []byte(c.body), 8
		msg.onAck = func() {
			if len(r.store.open()) != 1 {
				t.Errorf("%s: acked before the dead letter was committed", name)
			}
		}
		r.handle(context.Background(), r.from, msg)
		letters := r.store.open()
		if msg.acks() != 1 || len(letters) != 1 {
			t.Errorf("%s: %d acks, letters %+v", name, msg.acks(), letters)
			continue
		}
		l := letters[0]
		if l.Reason != c.reason || !strings.Contains(l.Message, c.says) || string(l.Payload) != c.body || l.Origin.Sequence != 8 || l.Origin.Subject != c.subject ||
			l.Tries != 2 || !l.Origin.StreamCreated.Equal(r.from.created) || l.State != payments.DeadLetterOpen {
			t.Errorf("%s: %+v", name, l)
		}
		if calls, _ := r.gateway.calls(); calls != 1 {
			t.Errorf("%s: %d calls", name, calls)
		}
	}
}

// A conflict is decided before what is wrong by the rules of business.
func TestConflictRanksAboveInvalid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(context.Background(), r.from, newMsg("k", 1))
	msg := newMsg("k", 1)
	msg.data = bytes.Replace(msg.data, []byte("9900"), []byte("-5"), 1)
	r.handle(context.Background(), r.from, msg)
	if l := r.store.open(); len(l) != 1 || l[0].Reason != payments.ReasonKeyReused {
		t.Errorf("%+v", l)
	}
}

// Where nothing could be committed nothing is said.
func TestNothingCommittedNothingSaid(t *testing.T) {
	t.Parallel()
	for verb, body := range map[string]string{"admit": string(intentJSON("k")), "bury message": "?", "find": string(intentJSON("k")), "suspect": string(intentJSON("k"))} {
		for _, err := range []error{errAway, payments.Errorf(payments.CodeInternal, "bug")} {
			r := newRig(t)
			r.store.before = func(v string, _ payments.ID) error {
				if v == verb {
					return err
				}
				return nil
			}
			msg := newMsg("k", 3)
			msg.data = []byte(body)
			if verb == "admit" {
				msg.deliveries = 1
			}
			r.handle(context.Background(), r.from, msg)
			if msg.acks() != 0 || r.store.outcomes() != 0 || r.storeAway.Load() != payments.Retryable(err) || !r.sawFate(fateUnavailable) {
				t.Errorf("%s, %v: %d acks, away %v, fates %v", verb, err, msg.acks(), r.storeAway.Load(), r.fates)
			}
			if calls, _ := r.gateway.calls(); calls != 0 {
				t.Errorf("%s: charged", verb)
			}
			if len(r.starting) != 0 {
				t.Error("the turn of suspects was kept")
			}
		}
	}
}

// What the store says can never be kept is a dead letter, not a message that comes back for ever.
func TestUnfitIsBuried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.before = func(v string, _ payments.ID) error {
		if v == "admit" {
			return &payments.Error{Code: payments.CodeInvalid, Field: "description", Message: "must be text"}
		}
		return nil
	}
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if l := r.store.open(); msg.acks() != 1 || len(l) != 1 || l[0].Reason != payments.ReasonInvalid || l[0].Message != "description: must be text" {
		t.Errorf("%d acks, %+v", msg.acks(), l)
	}
}

func TestUnrecordedIsNotAcked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.before = func(v string, _ payments.ID) error {
		if v == "record" {
			return payments.Errorf(payments.CodeInternal, "bug")
		}
		return nil
	}
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 0 {
		t.Error("acked without an outcome")
	}
	r.store.setBefore(nil)
	msg = newMsg("k", 2)
	r.handle(context.Background(), r.from, msg)
	if calls, _ := r.gateway.calls(); msg.acks() != 1 || calls != 1 {
		t.Errorf("%d acks, %d calls: the ticket carries the work", msg.acks(), calls)
	}
}

// Another owner has taken the payment over: it records the outcome, and nothing of ours changes it.
func TestLostIsAcked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := testIntent("k").ID()
	r.gateway.submit = func(context.Context, payments.Payment) {
		r.store.mu.Lock()
		defer r.store.mu.Unlock()
		r.store.rows[id].token = payments.Token{99}
	}
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || r.store.outcomes() != 0 || r.store.status(id) != payments.StatusReceived {
		t.Errorf("%d acks, %d outcomes", msg.acks(), r.store.outcomes())
	}
}

// While PostgreSQL is away an answer of Stripe is kept and recorded once it is back, also when that is after the lease.
func TestAnswersOutliveAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, answersOutliveAnOutage)
}

func answersOutliveAnOutage(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Lease, c.Processor.CallTimeout = 20*time.Millisecond, time.Millisecond })
	started := time.Now()
	r.store.before = func(v string, _ payments.ID) error {
		if v == "record" && time.Since(started) < 10*r.Lease {
			return errAway
		}
		return nil
	}
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if calls, _ := r.gateway.calls(); msg.acks() != 1 || calls != 1 || r.store.outcomes() != 1 {
		t.Errorf("%d acks, %d calls, %d outcomes", msg.acks(), calls, r.store.outcomes())
	}
}

func TestPanicsWhileSettling(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	r := newRig(t, logTo(log))
	r.gateway.submit = func(context.Context, payments.Payment) { panic("secret-" + card) }
	panicked := 0
	r.Observer.Panicked = func() { panicked++ }
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.store.buried) != 1 || r.store.buried[0].Reason != payments.ReasonHandlerPanic || panicked != 1 {
		t.Fatalf("%d acks, %+v", msg.acks(), r.store.buried)
	}
	if l := r.store.buried[0]; l.PaymentID == nil || *l.PaymentID != testIntent("k").ID() || l.IdempotencyKey != "k" {
		t.Errorf("%+v", l)
	}
	if strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "panicked") {
		t.Errorf("logged %s", log)
	}
	// The dead letter cannot be stored either: nothing is said.
	r.store.before = func(v string, _ payments.ID) error {
		if v == "bury payment" {
			return errAway
		}
		return nil
	}
	msg = newMsg("k2", 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 0 || len(r.store.buried) != 1 {
		t.Errorf("%d acks", msg.acks())
	}
}

// A panic outside settling, even one while its dead letter is stored, never ends the process, nor keeps a place, a lock or a slot.
func TestPanicsAnywhereElse(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"admit", "find", "suspect", "bury message"} {
		r := newRig(t)
		r.store.before = func(v string, _ payments.ID) error {
			if v == verb {
				panic("bug")
			}
			return nil
		}
		msg := newMsg("k", 3)
		if verb == "bury message" {
			msg.data = []byte("?")
		}
		r.handle(context.Background(), r.from, msg)
		if verb == "bury message" {
			if msg.acks() != 0 {
				t.Error("acked without a dead letter")
			}
		} else if l := r.store.open(); msg.acks() != 1 || len(l) != 1 || l[0].Reason != payments.ReasonHandlerPanic || !bytes.Equal(l[0].Payload, msg.data) {
			t.Errorf("%s: %d acks, %+v", verb, msg.acks(), l)
		}
		if len(r.starting) != 0 || r.gate.inside != 0 {
			t.Errorf("%s: a place or a turn was kept", verb)
		}
	}
}

// Of a stream that was made anew nothing is filed or erased under the old one's name.
func TestOriginIsConfirmed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.from.confirm = func() error { return errRemade }
	for _, deliveries := range []uint64{1, 3} {
		for _, body := range []string{"?", string(intentJSON("k")), `{"card":"` + card + `"}`} {
			msg := newMsg("k", deliveries)
			msg.data = []byte(body)
			r.handle(context.Background(), r.from, msg)
			if ok := deliveries == 1 && strings.Contains(body, "amount"); (msg.acks() == 1) != ok {
				t.Errorf("delivery %d of %s: %d acks", deliveries, body, msg.acks())
			}
		}
		delete(r.store.rows, testIntent("k").ID())
	}
	if len(r.store.open()) != 0 {
		t.Errorf("%+v", r.store.open())
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// A bystander clears itself.
	msg := newMsg("bystander", payments.SuspectFrom)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.store.open()) != 0 || r.store.status(testIntent("bystander").ID()) != payments.StatusSucceeded {
		t.Errorf("%d acks, %+v", msg.acks(), r.store.open())
	}
	// One that ends its worker each time: the bytes are there before it starts; after three unfinished starts it is not begun again.
	died := errors.New("the process ended here")
	for start := 1; start <= payments.SuspectStartsMax; start++ {
		r.store.before = func(v string, _ payments.ID) error {
			if v != "admit" {
				return nil
			}
			if l := r.store.open(); len(l) != 1 || l[0].State != payments.DeadLetterSuspect || !bytes.Equal(l[0].Payload, intentJSON("poison")) {
				t.Errorf("start %d: %+v", start, l)
			}
			return died
		}
		msg := newMsg("poison", uint64(payments.SuspectFrom+start-1))
		msg.sequence = 70
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 0 {
			t.Errorf("start %d: acked", start)
		}
	}
	r.store.before = func(v string, _ payments.ID) error {
		if v == "admit" {
			t.Error("begun a fourth time")
		}
		return nil
	}
	msg = newMsg("poison", 6)
	msg.sequence = 70
	r.handle(context.Background(), r.from, msg)
	if l := r.store.open(); msg.acks() != 1 || len(l) != 1 || l[0].State != payments.DeadLetterOpen || l[0].Reason != payments.ReasonWorkerKilled {
		t.Errorf("%d acks, %+v", msg.acks(), l)
	}
}

// A start that was counted and met an outage is seen through: it did not end the worker.
func TestSuspectOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	tries := 0
	r.store.before = func(v string, _ payments.ID) error {
		if v == "admit" {
			if tries++; tries < 3 {
				return errAway
			}
		}
		return nil
	}
	msg := newMsg("k", 4)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || tries != 3 || r.store.count("suspect") != 1 || len(r.store.open()) != 0 {
		t.Errorf("%d acks, %d tries", msg.acks(), tries)
	}
}

func TestSuspectsStartOneAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inside := make(chan struct{}, 1)
	r.store.before = func(v string, _ payments.ID) error {
		switch v {
		case "suspect":
			select {
			case inside <- struct{}{}:
			default:
				t.Error("two suspects at once")
			}
		case "admit":
			<-inside
		}
		return nil
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			msg := newMsg(string(rune('a'+i)), 3)
			msg.sequence = uint64(i)
			r.handle(context.Background(), r.from, msg)
			if msg.acks() != 1 {
				t.Errorf("%d: %d acks", i, msg.acks())
			}
		})
	}
	all.Wait()
	if r.store.outcomes() != 12 {
		t.Errorf("%d outcomes", r.store.outcomes())
	}
}

// A suspect that waits for its turn for long gives its slot to others.
func TestSuspectsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.starting <- struct{}{} // another one's start takes long
		msg := newMsg("k", 3)
		started := time.Now()
		r.handle(context.Background(), r.from, msg)
		if d := time.Since(started); d != suspectPatience || msg.acks() != 0 || r.store.count("suspect") != 0 || r.store.count("admit") != 0 {
			t.Errorf("after %v: %d acks, calls %v", d, msg.acks(), r.store.calls)
		}
		<-r.starting
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 1 {
			t.Error("not acked in its turn")
		}
	})
}

// A worker that drains stores what it has pulled and does not start it.
func TestDrainingAdmitsUnclaimed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stopping.Store(true)
	msg := newMsg("k", 1)
	r.handle(context.Background(), r.from, msg)
	row := r.store.rows[testIntent("k").ID()]
	if calls, _ := r.gateway.calls(); msg.acks() != 1 || calls != 0 || row == nil || !row.ticket || !row.token.IsZero() {
		t.Errorf("%d acks, %d calls, %+v", msg.acks(), calls, row)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*Config){
		"consumer":    func(c *Config) { c.Store = nil },
		"concurrency": func(c *Config) { c.Concurrency = 1 },
		"lease":       func(c *Config) { c.Lease = c.Processor.CallTimeout },
		"subjects":    func(c *Config) { c.Subjects.Prefix = "Nope" },
	} {
		c := newRig(t).Config
		change(&c)
		_, err := New(c)
		var e *payments.Error
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
