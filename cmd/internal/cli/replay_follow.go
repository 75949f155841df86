package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
)

const (
	followEvery = 500 * time.Millisecond
	// followGiveUp is for how long PostgreSQL may be away while a replay is followed.
	followGiveUp = 10 * time.Minute
	// stillAfter is when somebody who watches wants to know why nothing moves.
	stillAfter = 15 * time.Second
)

// following is somebody watching a replay.
type following struct {
	*shared
	store operators
	job   payments.Replay
	bar   *console.Bar

	moved  time.Time // when it last went on
	seen   time.Time // when it could last be read
	noted  map[string]bool
	before [2]int // issued and finished, as last seen
}

// followReplay watches a replay until it ends. It ends as the replay does: nil when it completed.
func (s *shared) followReplay(ctx context.Context, store operators, job payments.Replay) error {
	every := s.every
	if every == 0 {
		every = followEvery
	}
	fmt.Fprintf(s.err, "replay %s\n", job.ID)
	now := time.Now()
	f := following{shared: s, store: store, job: job, bar: console.NewBar(s.err, "with a result", int64(job.Total), "dead letters"), moved: now, seen: now, noted: map[string]bool{}}
	f.bar.Before(int64(done(job)))
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !ended(f.job) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.bar.Abandon()
			return NewExit(exitFailed, "oncepay: not followed any more; the replay goes on: `oncepay replays show "+job.ID+" --follow` follows it again, `oncepay replays cancel "+job.ID+"` stops it")
		}
		if err := f.look(ctx); err != nil {
			f.bar.Abandon()
			return err
		}
	}
	if f.job.State == payments.ReplayCompleted {
		f.bar.Done(int64(done(f.job)))
	} else {
		f.bar.Abandon()
	}
	return s.printEnded(f.job)
}

// look reads the replay once, and tells what somebody who watches should know.
func (f *following) look(ctx context.Context) error {
	job, err := f.store.Replay(ctx, f.job.ID)
	now := time.Now()
	switch {
	case ctx.Err() != nil:
		return nil // the caller sees it
	case payments.Retryable(err) && now.Sub(f.seen) < followGiveUp:
		f.note("trying again: " + err.Error())
		return nil
	case err != nil:
		return NewExit(exitFailed, "oncepay: "+err.Error()+"; the replay goes on: `oncepay replays show "+f.job.ID+" --follow` follows it again")
	}
	f.seen, f.job = now, job
	f.bar.Set(int64(done(job)))
	if at := [2]int{job.Issued, finished(job)}; at != f.before {
		f.before, f.moved = at, now
	}
	switch {
	case job.State == payments.ReplayPaused:
		f.moved = now
		f.note("paused: `oncepay replays resume " + job.ID + "` lets it go on")
	case job.State != payments.ReplayRunning || now.Sub(f.moved) < stillAfter:
	case job.Issued > finished(job):
		f.note(fmt.Sprintf("nothing moves: %s taken up and without an outcome; `oncepay doctor` says what holds payments back", console.Grouped(plural(int64(job.Issued-finished(job)), "dead letter is", "dead letters are"))))
	default:
		f.note("nothing moves: no server takes it up; replays are run by `oncepay serve` with the role worker")
	}
	return nil
}

// note tells a thing once.
func (f *following) note(line string) {
	if line = errorLine(line); !f.noted[line] && len(f.noted) < troublesMax {
		f.noted[line] = true
		f.bar.Note(line)
	}
}

func finished(r payments.Replay) (n int) {
	for _, count := range r.Results {
		n += count
	}
	return n
}

// done counts what has a result, without what nobody had begun when the replay was canceled.
func done(r payments.Replay) int { return finished(r) - r.NotBegun }

// progress is how far a replay is.
func progress(r payments.Replay) string {
	text := console.Grouped(fmt.Sprint(done(r))) + " of " + console.Grouped(plural(int64(r.Total), "dead letter", "dead letters")) + " done"
	if r.NotBegun > 0 {
		text += ", " + console.Grouped(fmt.Sprint(r.NotBegun)) + " not begun"
	}
	return text
}

func ended(r payments.Replay) bool {
	return r.State == payments.ReplayCompleted || r.State == payments.ReplayCanceled
}

// printEnded shows what became of a replay, and fails when it was canceled.
func (s *shared) printEnded(r payments.Replay) error {
	if s.json {
		if err := console.JSON(s.out, document.Replay(r)); err != nil {
			return err
		}
	} else if err := s.printResults(r); err != nil {
		return err
	}
	if r.PassedOver > 0 {
		fmt.Fprintf(s.err, "%s left to another replay\n", console.Grouped(plural(int64(r.PassedOver), "dead letter was", "dead letters were")))
	}
	for _, result := range []payments.ReplayResult{payments.ReplayFailedAgain, payments.ReplayConflict, payments.ReplaySkipped} {
		if n := r.Results[result]; n > 0 && !(result == payments.ReplaySkipped && n == r.NotBegun) {
			fmt.Fprintf(s.err, "why: oncepay replays show %s --items --result %s\n", r.ID, result)
		}
	}
	if r.State == payments.ReplayCanceled {
		return NewExit(exitFailed, fmt.Sprintf("oncepay: replay %s was canceled with %s", r.ID, progress(r)))
	}
	return nil
}

// replayResults are all results, in the order in which they are shown.
var replayResults = []payments.ReplayResult{payments.ReplaySucceeded, payments.ReplayAlreadySettled, payments.ReplayFailedAgain, payments.ReplayConflict, payments.ReplaySkipped}

// printResults shows how many dead letters came to what.
func (s *shared) printResults(r payments.Replay) error {
	var rows [][]string
	for _, result := range replayResults {
		n := r.Results[result]
		if result == payments.ReplaySkipped {
			n -= r.NotBegun
		}
		if n > 0 {
			rows = append(rows, []string{string(result), console.Grouped(fmt.Sprint(n)), resultMeaning[result]})
		}
	}
	if r.NotBegun > 0 {
		rows = append(rows, []string{"not begun", console.Grouped(fmt.Sprint(r.NotBegun)), "the replay was canceled before, and they are open as they were"})
	}
	if open := r.Total - finished(r); open > 0 {
		rows = append(rows, []string{"none yet", console.Grouped(fmt.Sprint(open)), console.Grouped(plural(int64(r.Issued-finished(r)), "of them is", "of them are")) + " taken up"})
	}
	if len(rows) == 0 {
		return nil
	}
	return s.table(s.out, []console.Column{{Head: "RESULT"}, {Head: "DEAD LETTERS"}, {Head: "MEANING", Goes: 1, Below: true}}, rows)
}

// resultMeaning says what a result is.
var resultMeaning = map[payments.ReplayResult]string{
	payments.ReplaySucceeded:      "charged, held, or with its customer or bank",
	payments.ReplayAlreadySettled: "has its outcome, from before or by another of these; nothing was charged for this one",
	payments.ReplayFailedAgain:    "declined, refused, expired, for review, or dead again",
	payments.ReplayConflict:       "its key names another request",
	payments.ReplaySkipped:        "cannot be replayed or changed, or was discarded meanwhile",
}

// checkResult checks a result that somebody asks for.
func checkResult(text string) bool {
	return text == "" || slices.Contains(replayResults, payments.ReplayResult(text))
}
