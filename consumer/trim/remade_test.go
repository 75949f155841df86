package trim

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tap puts f before every request of the rig's trimmer; one that fails is not sent.
func (r *rig) tap(f func(subject string) error) {
	send := r.lanes[0].api.request
	r.lanes[0].api.request = func(ctx context.Context, subject string, body []byte) ([]byte, error) {
		if err := f(subject); err != nil {
			return nil, err
		}
		return send(ctx, subject, body)
	}
}

// remake deletes the stream and makes it again with its durable and n messages that nobody has read.
func (r *rig) remake(n int) {
	r.t.Helper()
	r.deleteStream()
	r.makeStream()
	r.consumer(work)
	r.publish(n, percent)
}

func TestAStreamMadeAnewBetweenRoundsBeginsAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	r.once()
	r.remake(95)
	r.once()
	r.wantFirst(1)
	if r.log.with("level=ERROR") != 0 {
		t.Errorf("an alarm though nothing was lost: %s", r.log.text.String())
	}
	r.ack(r.take(work, 3)...)
	r.once()
	r.wantFirst(4)
}

// The floors were read from the old stream: nothing may be purged by them.
func TestAStreamMadeAnewAfterItsFloorsWereReadIsNotPurged(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	listed, purges := false, 0
	r.tap(func(subject string) error {
		switch {
		case strings.Contains(subject, "CONSUMER.LIST"):
			listed = true
		case listed && strings.Contains(subject, "STREAM.INFO"):
			listed = false
			r.remake(95)
		case strings.Contains(subject, "PURGE"):
			purges++
		}
		return nil
	})
	if err := r.RunOnce(r.ctx); !errors.Is(err, errRemade) {
		t.Errorf("RunOnce: %v, want that the stream was made anew", err)
	}
	r.wantFirst(1)
	if purges != 0 || r.log.with("level=ERROR") != 0 {
		t.Errorf("%d purges were sent: %s", purges, r.log.text.String())
	}
}

// What cannot be closed is told: the purge has no precondition.
func TestAStreamMadeAnewAroundAPurgeIsToldLoudly(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	remade := false
	r.tap(func(subject string) error {
		if strings.Contains(subject, "PURGE") && !remade {
			remade = true
			r.remake(20)
		}
		return nil
	})
	if err := r.RunOnce(r.ctx); !errors.Is(err, errRemade) {
		t.Errorf("RunOnce: %v, want that the stream was made anew", err)
	}
	if r.seen.heldBy(HeldRemade) != 1 || r.log.with("level=ERROR", "may be gone unread", "stream="+r.stream) != 1 {
		t.Errorf("held %v: %s", r.seen.held, r.log.text.String())
	}
}

func TestAPurgeWhoseAnswerWasLostIsInDoubtUntilTheNextLook(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	lost := errors.New("the answer was lost")
	fail := true
	r.tap(func(subject string) error {
		if strings.Contains(subject, "PURGE") && fail {
			return lost
		}
		return nil
	})
	if err := r.RunOnce(r.ctx); !errors.Is(err, lost) {
		t.Errorf("RunOnce: %v", err)
	}
	if r.lanes[0].doubt == 0 {
		t.Error("no doubt about a purge without an answer")
	}
	r.remake(10)
	r.once()
	if r.log.with("level=ERROR", "may be gone unread") != 1 {
		t.Errorf("nothing told: %s", r.log.text.String())
	}
	fail = false
	r.publish(70, percent)
	r.ack(r.take(work, 80)...)
	r.once()
	if s := r.state(); s.Bytes > mib/2 {
		t.Errorf("%d bytes are left", s.Bytes)
	}
}

// A process that was stopped between its questions and the purge must not send it: consumers may have been made or set back since.
func TestWhatWasReadTooLongAgoIsNotPurgedBy(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"CONSUMER.LIST", "STREAM.INFO"} {
		for _, by := range []time.Duration{freshFor + time.Millisecond, -time.Minute} { // a clock set back says nothing of how long it took
			r := newRig(t, mib)
			r.fill()
			r.ack(r.take(work, 80)...)
			purges, asked, listed := 0, false, false
			r.tap(func(subject string) error {
				if listed = listed || strings.Contains(subject, "CONSUMER.LIST"); listed && strings.Contains(subject, at) && !asked {
					asked = true
					r.clock.move(by)
				}
				if strings.Contains(subject, "PURGE") {
					purges++
				}
				return nil
			})
			if err := r.RunOnce(r.ctx); !errors.Is(err, errSlow) || purges != 0 {
				t.Errorf("RunOnce after %v at %s: %v, %d purges", by, at, err, purges)
			}
			r.wantFirst(1)
			r.once()
			if s := r.state(); s.Bytes > mib/2 {
				t.Errorf("%d bytes are left", s.Bytes)
			}
		}
	}
}

func TestAPurgeUpToNothingIsNotSent(t *testing.T) {
	t.Parallel()
	a := &api{request: func(context.Context, string, []byte) ([]byte, error) {
		t.Error("a purge that empties the stream was sent")
		return nil, nil
	}}
	if _, err := a.purge(t.Context(), "S", 0); err == nil {
		t.Error("a purge up to 0 is no error")
	}
}

func TestTroubleIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	var away atomic.Bool
	away.Store(true)
	r.tap(func(subject string) error {
		if away.Load() && strings.Contains(subject, "CONSUMER.LIST") {
			return errors.New("no leader")
		}
		return nil
	})
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.Run(ctx) }()
	r.until(func() bool { return r.seen.heldBy(HeldError) >= 2 })
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("tried again after %v", took)
	}
	r.wantFirst(1)
	if n := r.log.with("level=WARN", "no leader", "tried again"); n != 1 {
		t.Errorf("told %d times, want once", n)
	}
	if err := r.Run(ctx); err == nil {
		t.Error("it ran twice at once")
	}
	away.Store(false)
	r.until(func() bool { return r.state().Bytes <= mib/2 })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// until polls for what no signal tells.
func (r *rig) until(done func() bool) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			r.t.Fatalf("it does not come to that: %s", r.log.text.String())
		}
	}
}

func TestRunEndsInTheMiddleOfARound(t *testing.T) {
	t.Parallel()
	r := newRig(t, mib)
	r.fill()
	r.ack(r.take(work, 80)...)
	ctx, stop := context.WithCancel(r.ctx)
	r.tap(func(subject string) error {
		if strings.Contains(subject, "PURGE") {
			stop()
		}
		return nil
	})
	if err := r.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	if len(r.seen.held) != 0 || r.log.with("level=WARN") != 0 {
		t.Errorf("an end was told as trouble: %v %s", r.seen.held, r.log.text.String())
	}
}
