package doctor

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// TimeoutDefault is for how long everything together is asked unless Options say otherwise.
const TimeoutDefault = 20 * time.Second

const (
	// askLimit bounds a connection, and a question that a server which is well answers at once. It is never more than a quarter of all the time,
	// so that what waits for one that is away still has its turn.
	askLimit = 5 * time.Second
	// grace is for how long a check may go on when its time is over, to say so itself, and for how long connections may take to close.
	grace = time.Second
)

// limited bounds one question.
func (x *examination) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(askLimit, x.timeout/4))
}

// Options say what is examined.
type Options struct {
	Settings app.Settings
	Timeout  time.Duration  // of everything together; 0: TimeoutDefault
	Clock    payments.Clock // this machine's; nil: the system's
}

// check is one line of the table of checks.
type check struct {
	name string
	// needs are checks that leave nothing to ask here when they fail; after are checks that are only waited for.
	needs, after []string
	run          func(context.Context, *examination) verdict
}

// slot is a check on its way; done is closed when its verdict stands.
type slot struct {
	check
	done    chan struct{}
	verdict verdict
}

// Run makes every check and returns when all have ended, or Options.Timeout and a second later at the latest.
func Run(ctx context.Context, o Options) Report {
	if o.Timeout <= 0 {
		o.Timeout = TimeoutDefault
	}
	if o.Clock == nil {
		o.Clock = app.SystemClock{}
	}
	return run(ctx, newExamination(o), table)
}

func run(ctx context.Context, x *examination, checks []check) Report {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer x.close()
	defer cancel()
	slots := make(map[string]*slot, len(checks))
	for _, c := range checks {
		slots[c.name] = &slot{check: c, done: make(chan struct{})}
	}
	for _, s := range slots {
		go s.run(ctx, x, slots)
	}
	report := Report{OK: true}
	for _, c := range checks {
		s := slots[c.name]
		<-s.done
		v := s.verdict
		report.Checks = append(report.Checks, Check{Name: c.name, Result: v.result, Found: app.OneLine(v.found), Remedy: app.OneLine(v.remedy)})
		report.OK = report.OK && v.result != Failed
	}
	return report
}

func (s *slot) run(ctx context.Context, x *examination, slots map[string]*slot) {
	defer close(s.done)
	for _, name := range append(s.after[:len(s.after):len(s.after)], s.needs...) {
		<-slots[name].done
	}
	for _, name := range s.needs {
		if v := slots[name].verdict; v.result.stopped() {
			if v.result == NotChecked {
				name = v.cause
			}
			s.verdict = skipped(name)
			return
		}
	}
	s.verdict = s.ask(ctx, x)
}

// ask makes the check, and does not wait for one that ignores the end of its time: it is then left behind, and none is begun after it.
func (s *slot) ask(ctx context.Context, x *examination) verdict {
	late := bad(longer, "no answer within %s", x.timeout)
	if ctx.Err() != nil {
		return late
	}
	answer := make(chan verdict, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				answer <- bad("report this as a bug, with these lines", "the check itself broke: %v, %s", p, debug.Stack())
			}
		}()
		answer <- s.check.run(ctx, x)
	}()
	select {
	case v := <-answer:
		return v
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case v := <-answer:
		return v
	case <-timer.C:
		return late
	}
}

const longer = "look at why it does not answer, or give it longer with --timeout"
