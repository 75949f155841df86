package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// fakeRewinds answers what a rewind is asked.
type fakeRewinds struct {
	*fakeOperators
	state    payments.MarkState
	job      payments.Rewind
	running  bool
	since    time.Time
	looks    []payments.Rewind // one after another, the last one for ever
	away     error             // what Rewind answers instead
	accepted int64
	result   []byte

	copied *payments.Mark
	order  []string
}

func (f *fakeRewinds) Mark(context.Context) (payments.MarkState, error) { return f.state, nil }

func (f *fakeRewinds) BeginRewind(_ context.Context, since time.Time, op payments.Operation) (payments.Rewind, bool, error) {
	f.did("begin")
	f.since, f.op = since, op
	return f.job, !f.running, f.refusal
}

func (f *fakeRewinds) Rewind(context.Context, int64) (payments.Rewind, error) {
	if f.away != nil {
		return payments.Rewind{}, f.away
	}
	job := f.looks[0]
	if len(f.looks) > 1 {
		f.looks = f.looks[1:]
	}
	return job, nil
}

func (f *fakeRewinds) AcceptMark(_ context.Context, counter int64, op payments.Operation, result []byte) error {
	f.order = append(f.order, "database")
	f.accepted, f.op, f.result = counter, op, result
	return f.refusal
}

func (f *fakeRewinds) Read(context.Context) (*payments.Mark, error) { return f.copied, nil }

func (f *fakeRewinds) Accept(_ context.Context, m payments.Mark) (*payments.Mark, error) {
	f.order = append(f.order, "copy")
	m.Counter += 100
	return &m, nil
}

func (f *fakeRewinds) call(terminal bool, in string, args ...string) result {
	var out, err bytes.Buffer
	s := &shared{out: &out, err: &err, operators: f, copied: f, every: time.Millisecond, asks: terminals(terminal)}
	code := s.run(args, strings.NewReader(in))
	return result{code, out.String(), err.String()}
}

func newFakeRewinds() *fakeRewinds {
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	job := payments.Rewind{ID: 7, State: payments.RewindRunning, Since: at, Actor: "ann", CreatedAt: at, UpdatedAt: at, Progress: payments.RewindProgress{Step: payments.RewindSettle}}
	listing, done := job, job
	listing.Progress = payments.RewindProgress{Step: payments.RewindStripe, Objects: 1200}
	listing.Detail, listing.UpdatedAt = "Stripe is away", at.Add(time.Second)
	done.State, done.FinishedAt = payments.RewindCompleted, at.Add(time.Minute)
	done.Progress = payments.RewindProgress{Step: payments.RewindAccept, Objects: 1200, Restored: 100, Doubted: 3, Unknown: []string{"globex"}}
	return &fakeRewinds{fakeOperators: &fakeOperators{}, job: job, looks: []payments.Rewind{job, listing, done}}
}

// TestRewindCommand: it says what it will do, asks, follows the steps, and ends as the rewind does.
func TestRewindCommand(t *testing.T) {
	t.Parallel()
	f := newFakeRewinds()
	r := f.call(true, "n\n", "rewind", "--since", "2h")
	r.says(t, exitFailed, "", "nothing is sent to Stripe until it is completed")
	if f.count("begin") != 0 || !strings.Contains(r.err, "begin the rewind? [y/N] oncepay: nothing was begun\n") {
		t.Errorf("%+v, %q", r, f.asked)
	}
	f.call(false, "", "rewind", "--since", "2h").says(t, exitUsage, "", "--yes: is required where there is no terminal to ask on; nothing was begun")

	r = f.call(true, "y\n", "rewind", "--since", "2026-01-31T03:00:00Z", "--reason", "restored", "--actor", "ann")
	for _, want := range []string{"rewind 7: waiting until nobody can be sending any more", "rewind 7: listing what Stripe has (1,200 PaymentIntents at Stripe", "trying again: Stripe is away\n",
		"tenant globex is not in the database", "rewind 7 is completed: payments are sent again\n"} {
		r.says(t, exitOK, "1,200  PaymentIntents that Stripe has\n", want)
	}
	if f.op != (payments.Operation{Actor: "ann", Reason: "restored"}) || !f.since.Equal(time.Date(2026, 1, 31, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v since %s", f.op, f.since)
	}

	f = newFakeRewinds()
	d := oneDocument(t, f.call(false, "", "rewind", "--since", "2h", "--yes", "--json").out)
	if d["id"] != 7.0 || d["state"] != "completed" || d["restored"] != 100.0 || d["unknown_tenants"].([]any)[0] != "globex" {
		t.Errorf("%v", d)
	}
	f = newFakeRewinds()
	if r := f.call(false, "", "rewind", "--since", "2h", "--yes", "--detach"); r.code != exitOK || r.out != "7\n" {
		t.Errorf("%+v", r)
	}
	if d := oneDocument(t, f.call(false, "", "rewind", "--since", "2h", "--yes", "--detach", "--json").out); d["state"] != "running" || d["step"] != "settle" || d["finished_at"] != nil {
		t.Errorf("%v", d)
	}

	f = newFakeRewinds()
	f.looks[2].State, f.looks[2].Detail = payments.RewindFailed, "Stripe refuses the key"
	f.call(false, "", "rewind", "--since", "2h", "--yes").says(t, exitFailed, "1,200  PaymentIntents", "oncepay: rewind 7 failed: Stripe refuses the key; nothing is sent before another one completes\n")
}

// TestRewindThatRunsAlready: it is followed without a question, and does not count for what it does not reach.
func TestRewindThatRunsAlready(t *testing.T) {
	t.Parallel()
	f := newFakeRewinds()
	f.running, f.state.Rewind = true, 7
	r := f.call(false, "", "rewind", "--since", "2030-02-01T00:00:00Z")
	if r.code != exitUsage || !strings.Contains(r.err, "--since: lies in the future") {
		t.Fatalf("the tests are run in the year 2030: %+v", r)
	}
	f.job.Since = time.Now().Add(-3 * time.Hour)
	f.call(false, "", "rewind", "--since", "2h").says(t, exitOK, "", "rewind 7 of ann from ")
	f.call(false, "", "rewind", "--since", "4h").says(t, exitFailed, "", "which is not as far as --since: begin another when it has ended\n")
}

func TestRewindUsage(t *testing.T) {
	t.Parallel()
	f := newFakeRewinds()
	for line, want := range map[string]string{
		"rewind": "--since: is required", "rewind --since yesterday": "--since: must be an RFC 3339 time", "rewind --since -2h": "--since: must be",
		"doctor --reason R": "--reason: goes with --accept-mark alone", "doctor --yes": "--yes: goes with --accept-mark alone", "doctor --accept-mark --yes": "--reason: is required",
	} {
		if r := f.call(false, "", strings.Fields(line)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// TestFollowingARewind: whoever watches is told why nothing moves, and that Ctrl-C ends the watching alone.
func TestFollowingARewind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away error
		want string
	}{
		"nobody runs it": {nil, "nothing moves: no server takes it up"},
		"away":           {payments.Errorf(payments.CodeUnavailable, "PostgreSQL cannot be reached"), "trying again: PostgreSQL cannot be reached\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeRewinds()
			f.looks, f.away = []payments.Rewind{f.job}, c.away
			var log bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := (&shared{out: &bytes.Buffer{}, err: &log}).followRewind(ctx, f, f.job)
			var coded *exitError
			if !errors.As(err, &coded) || coded.code != exitFailed || !strings.Contains(coded.text, "not followed any more; rewind 7 goes on: the same command follows it again") {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Count(log.String(), c.want) != 1 {
				t.Errorf("%s: %q", name, log.String())
			}
		})
	}
}

// TestAcceptMark: the copy is written before the database, the reason is kept, and nothing is done without a yes.
func TestAcceptMark(t *testing.T) {
	t.Parallel()
	f := newFakeRewinds()
	f.state = payments.MarkState{Mark: payments.Mark{SystemID: "1", Timeline: 1, Counter: 5}, Counted: true}
	f.copied = &payments.Mark{SystemID: "1", Timeline: 1, Counter: 9}
	run := func(terminal bool, in string, more ...string) result {
		return f.call(terminal, in, append([]string{"doctor", "--database-url", "postgres://127.0.0.1:1/d", "--accept-mark", "--reason", "nothing was sent", "--actor", "ann"}, more...)...)
	}
	run(true, "n\n").says(t, exitFailed, "", "the database is behind its mark: it was restored from a backup")
	if len(f.order) > 0 {
		t.Fatalf("%q", f.order)
	}
	run(false, "").says(t, exitUsage, "", "--yes: is required")
	run(true, "y\n").says(t, exitOK, "accepted; the mark stands at 105\n", "they may be charged again")
	if got := strings.Join(f.order, " "); got != "copy database" || f.accepted != 105 || f.op != (payments.Operation{Actor: "ann", Reason: "nothing was sent"}) ||
		string(f.result) != `{"found":"behind","system_id":"1","timeline":1,"counter":105}` {
		t.Errorf("%s, %d, %+v, %s", got, f.accepted, f.op, f.result)
	}
	if d := oneDocument(t, run(false, "", "--yes", "--json").out); d["found"] != "behind" || d["counter"] != 105.0 {
		t.Errorf("%v", d)
	}
	f.copied.Counter = 5
	run(false, "", "--yes").says(t, exitOK, "accepted", "the database fits the copy of its mark\n")
	f.state.Rewind, f.order = 7, nil
	run(false, "", "--yes").says(t, exitFailed, "", "rewind 7 is running, and accepts the mark when it is completed")
	if len(f.order) > 0 {
		t.Errorf("%q", f.order)
	}
}
