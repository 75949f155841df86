package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
)

// examine runs a table of checks that ask nobody.
func examine(timeout time.Duration, checks ...check) Report {
	return run(context.Background(), newExamination(Options{Timeout: timeout, Clock: app.SystemClock{}}), checks)
}

func answers(v verdict) func(context.Context, *examination) verdict {
	return func(context.Context, *examination) verdict { return v }
}

// TestOrderAndCauses: the order is the table's however long each check takes, and what is left out names the first that failed.
func TestOrderAndCauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := func(d time.Duration, v verdict) func(context.Context, *examination) verdict {
			return func(context.Context, *examination) verdict { time.Sleep(d); return v }
		}
		begun := time.Now()
		r := examine(time.Minute,
			check{name: "slow", run: late(5*time.Second, good("a"))},
			check{name: "grandchild", needs: []string{"child"}, run: answers(good("never"))},
			check{name: "child", needs: []string{"slow", "broken"}, run: answers(good("never"))},
			check{name: "broken", run: late(time.Second, bad("do", "no"))},
			check{name: "shaky", run: late(2*time.Second, warn("look", "well"))},
			check{name: "waits", needs: []string{"shaky"}, after: []string{"broken"}, run: answers(good("yes"))},
			check{name: "wordy", run: answers(bad("line\nbreaks", "are \x09 taken\r\nout"))},
		)
		want := []Check{
			{"slow", OK, "a", ""},
			{"grandchild", NotChecked, "not checked because broken failed", "mend broken first"},
			{"child", NotChecked, "not checked because broken failed", "mend broken first"},
			{"broken", Failed, "no", "do"},
			{"shaky", Warning, "well", "look"},
			{"waits", OK, "yes", ""},
			{"wordy", Failed, "are taken out", "line breaks"},
		}
		if !slices.Equal(r.Checks, want) || r.OK {
			t.Errorf("got %+v", r)
		}
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("took %s: checks that need nothing of each other run side by side", took)
		}
		if r.Count(NotChecked) != 2 || r.Count(Failed) != 2 {
			t.Errorf("counts: %+v", r)
		}
	})
}

// TestHangingAndBrokenChecks: neither a check that ignores its time nor one that panics keeps the others from answering.
func TestHangingAndBrokenChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		closed := make(chan string, 2)
		begun := time.Now()
		r := examine(10*time.Second,
			check{name: "obedient", run: func(ctx context.Context, x *examination) verdict {
				x.onClose(func() { closed <- "in time" })
				<-ctx.Done()
				return warn("a", "ended in time")
			}},
			check{name: "deaf", run: func(_ context.Context, x *examination) verdict {
				<-hang
				x.onClose(func() { closed <- "late" })
				return good("never heard")
			}},
			check{name: "heir", needs: []string{"deaf"}, run: answers(good("never"))},
			check{name: "panics", run: func(context.Context, *examination) verdict { panic("oh") }},
		)
		if took := time.Since(begun); took != 10*time.Second+grace {
			t.Errorf("took %s", took)
		}
		for i, want := range []Result{Warning, Failed, NotChecked, Failed} {
			if r.Checks[i].Result != want {
				t.Errorf("%+v, want %s", r.Checks[i], want)
			}
		}
		if c := r.Checks[1]; c.Found != "no answer within 10s" || c.Remedy != longer {
			t.Errorf("%+v", c)
		}
		if c := r.Checks[3]; !strings.Contains(c.Found, "oh") || !strings.Contains(c.Found, "run_test.go") || strings.Contains(c.Found, "\n") {
			t.Errorf("%+v", c)
		}
		if first := <-closed; first != "in time" {
			t.Errorf("closed %s", first)
		}
		close(hang)
		if second := <-closed; second != "late" {
			t.Errorf("closed %s", second)
		}
	})
}

// TestTable: a check waits only for checks that there are, none for itself, and names are words of one form.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]check{}
	for _, c := range table {
		if _, twice := names[c.name]; twice || strings.Trim(c.name, "abcdefghijklmnopqrstuvwxyz_") != "" || c.run == nil {
			t.Errorf("%q", c.name)
		}
		names[c.name] = c
	}
	var visit func(c check, path []string)
	visit = func(c check, path []string) {
		if slices.Contains(path, c.name) {
			t.Fatalf("%v waits for itself", append(path, c.name))
		}
		for _, name := range slices.Concat(c.needs, c.after) {
			next, ok := names[name]
			if !ok {
				t.Fatalf("%s waits for %q, which there is not", c.name, name)
			}
			visit(next, append(slices.Clone(path), c.name))
		}
	}
	for _, c := range table {
		visit(c, nil)
	}
}

// TestStopped: a caller that gives up is not kept waiting.
func TestStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		run(ctx, newExamination(Options{Timeout: time.Hour, Clock: app.SystemClock{}}), []check{{name: "a", run: func(ctx context.Context, _ *examination) verdict {
			<-ctx.Done()
			return good("stopped")
		}}})
		if took := time.Since(begun); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}
