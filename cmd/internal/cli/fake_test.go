package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// fakeOperators remembers what commands ask for, and answers what it is given.
type fakeOperators struct {
	operators // whatever a test has not said must not be asked

	asked   []string
	preview payments.ReplayPreview
	made    payments.NewReplay
	letter  payments.DeadLetter
	op      payments.Operation

	decision payments.Decision

	looks []look // what Replay answers, one after another; the last one for ever
	seen  int
	next  string

	items   []payments.ReplayItem
	gone    payments.DiscardPreview
	discard payments.DiscardResult
	payment payments.Payment
	refusal error
	pause   payments.Pause
	pauses  []payments.Pause
	tenants []postgres.Tenant
	entries []payments.AuditEntry
	filter  payments.AuditFilter
}

// look is one answer about a replay.
type look struct {
	job payments.Replay
	err error
}

func (f *fakeOperators) did(what string) { f.asked = append(f.asked, what) }

func (f *fakeOperators) PreviewReplay(_ context.Context, n payments.NewReplay) (payments.ReplayPreview, error) {
	f.did("preview")
	f.made = n
	return f.preview, nil
}

func (f *fakeOperators) CreateReplay(_ context.Context, n payments.NewReplay) (payments.Replay, error) {
	f.did("create")
	f.made = n
	return f.looks[0].job, nil
}

func (f *fakeOperators) DeadLetter(context.Context, string) (payments.DeadLetter, error) {
	if f.letter.ID == "" {
		return f.letter, payments.Errorf(payments.CodeNotFound, "there is no such dead letter")
	}
	return f.letter, nil
}

func (f *fakeOperators) DeadLetters(context.Context, postgres.DeadLettersRequest) ([]payments.DeadLetter, string, error) {
	return []payments.DeadLetter{f.letter}, "", nil
}

func (f *fakeOperators) Replay(_ context.Context, id string) (payments.Replay, error) {
	f.did("look " + id)
	l := f.looks[min(f.seen, len(f.looks)-1)]
	f.seen++
	return l.job, l.err
}

func (f *fakeOperators) Replays(context.Context, int, string) ([]payments.Replay, string, error) {
	var page []payments.Replay
	for _, l := range f.looks {
		page = append(page, l.job)
	}
	return page, f.next, nil
}

func (f *fakeOperators) ReplayItems(_ context.Context, id string, result payments.ReplayResult, _ int, _ string) ([]payments.ReplayItem, string, error) {
	f.did("items " + id + " " + string(result))
	return f.items, f.next, nil
}

func (f *fakeOperators) change(what, id string, op payments.Operation) (payments.Replay, error) {
	f.did(what + " " + id)
	f.op = op
	return f.looks[0].job, f.refusal
}

func (f *fakeOperators) PauseReplay(_ context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return f.change("pause", id, op)
}

func (f *fakeOperators) ResumeReplay(_ context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return f.change("resume", id, op)
}

func (f *fakeOperators) CancelReplay(_ context.Context, id string, op payments.Operation) (payments.Replay, error) {
	return f.change("cancel", id, op)
}

func (f *fakeOperators) PreviewDiscard(_ context.Context, filter payments.LetterFilter, limit int) (payments.DiscardPreview, error) {
	f.did("preview")
	f.made = payments.NewReplay{Filter: filter, Limit: limit}
	return f.gone, nil
}

func (f *fakeOperators) Discard(_ context.Context, filter payments.LetterFilter, limit int, op payments.Operation) (payments.DiscardResult, error) {
	f.did("discard")
	f.made, f.op = payments.NewReplay{Filter: filter, Limit: limit}, op
	return f.discard, f.refusal
}

func (f *fakeOperators) FindAnywhere(context.Context, payments.ID) (payments.Payment, error) {
	return f.payment, nil
}

func (f *fakeOperators) Find(_ context.Context, tenant string, _ payments.ID) (payments.Payment, error) {
	if tenant != f.payment.TenantID {
		return payments.Payment{}, payments.Errorf(payments.CodeNotFound, "the tenant has no such payment")
	}
	return f.payment, nil
}

func (f *fakeOperators) Resolve(_ context.Context, tenant string, id payments.ID, d payments.Decision, op payments.Operation) (payments.Recorded, error) {
	f.did(strings.TrimSpace("resolve " + tenant + " " + id.String() + " " + string(d.As) + " " + d.PaymentIntent))
	f.op, f.decision = op, d
	p := f.payment
	p.Status = d.As
	return payments.Recorded{Payment: p}, f.refusal
}

func (f *fakeOperators) Pause(_ context.Context, p payments.Pause) (payments.Pause, error) {
	f.did("pause")
	f.pause = p
	return p, nil
}

func (f *fakeOperators) Resume(_ context.Context, scope payments.Pause, op payments.Operation) (bool, error) {
	f.did("resume " + whom(scope))
	f.op = op
	for _, p := range f.pauses {
		if whom(p) == whom(scope) {
			return true, f.refusal
		}
	}
	return false, f.refusal
}

func (f *fakeOperators) Tenants(context.Context) ([]postgres.Tenant, error) { return f.tenants, nil }

func (f *fakeOperators) StripeAccounts(context.Context) (list []string, err error) {
	for _, t := range f.tenants {
		list = append(list, t.Account.ID)
	}
	return list, nil
}

func (f *fakeOperators) Pauses(context.Context) ([]payments.Pause, error) { return f.pauses, nil }

func (f *fakeOperators) Audit(_ context.Context, filter payments.AuditFilter, _ int, _ string) ([]payments.AuditEntry, string, error) {
	f.filter = filter
	return f.entries, f.next, nil
}

// run runs the program on the fake; on a terminal somebody types in.
func (f *fakeOperators) run(terminal bool, in string, args ...string) result {
	var out, err bytes.Buffer
	s := &shared{out: &out, err: &err, operators: f, every: time.Millisecond, asks: terminals(terminal)}
	code := s.run(args, strings.NewReader(in))
	return result{code, out.String(), err.String()}
}

// terminals says for every input whether somebody can be asked.
func terminals(yes bool) func(io.Reader) bool { return func(io.Reader) bool { return yes } }

// words runs a command line without spaces in its arguments and without a terminal.
func (f *fakeOperators) words(line string) result { return f.run(false, "", strings.Fields(line)...) }

// count is how often something was done.
func (f *fakeOperators) count(what string) (n int) {
	for _, a := range f.asked {
		if a == what {
			n++
		}
	}
	return n
}

// says checks an exit code and what both outputs say.
func (r result) says(t *testing.T, code int, out, err string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, err) {
		t.Errorf("code %d, want %d\nout %q, want %q\nerr %q, want %q", r.code, code, r.out, out, r.err, err)
	}
}
