package trim

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Trimmer trims the streams of its lanes. Any number may run, in one process or many.
type Trimmer struct {
	lanes   []*lane
	running atomic.Bool
}

// New returns a Trimmer; Run starts it. It asks nothing of JetStream yet.
func New(c Config) (*Trimmer, error) {
	c.setDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := &Trimmer{}
	for _, one := range c.Lanes {
		l := &lane{Config: c, Lane: one, api: newAPI(c.JetStream)}
		client, _ := c.JetStream.Conn().GetClientID() // 0 while away; it only makes two trimmers differ
		name := fnv.New64a()
		_, _ = name.Write([]byte(one.Stream))
		l.random = rand.New(rand.NewPCG(uint64(c.Clock.Now().UnixNano()), client^name.Sum64()))
		t.lanes = append(t.lanes, l)
	}
	return t, nil
}

// Run trims until ctx ends, and returns nil. What fails is told and tried again: no trouble of JetStream ends it. Only one Run at a time.
func (t *Trimmer) Run(ctx context.Context) error {
	if !t.running.CompareAndSwap(false, true) {
		return errors.New("trim: is already running")
	}
	defer t.running.Store(false)
	var all sync.WaitGroup
	for _, l := range t.lanes {
		all.Go(func() { l.run(ctx) })
	}
	all.Wait()
	return nil
}

// RunOnce looks at each stream once, trims what there is to trim, and returns what failed, joined. It may be called beside Run.
func (t *Trimmer) RunOnce(ctx context.Context) error {
	var errs []error
	for _, l := range t.lanes {
		_, err := l.round(ctx, true)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lane trims one stream.
type lane struct {
	Config
	Lane
	api    *api
	random *rand.Rand

	mu   sync.Mutex // held for a round
	pace pace
	held holding

	created time.Time // the stream's, at the last look
	doubt   uint64    // the sequence of a purge that no look has followed yet, or 0

	aged     time.Time // when the last look for what has aged began
	looked   time.Time // the last look
	lookedAt uint64    // the last sequence then
}

// run goes on until ctx ends. It looks at once, since the stream may be full already; then each pause is shortened by some part of a quarter, so
// that workers that were started together do not look together.
func (l *lane) run(ctx context.Context) {
	failures, pause := 0, time.Duration(0)
	for wait(ctx, pause) {
		if l.Held != nil && l.Held() {
			pause = time.Second
			continue
		}
		var err error
		if pause, err = l.round(ctx, false); err != nil {
			failures++
			pause = max(pause, min(time.Duration(failures)*250*time.Millisecond, 5*time.Second))
		} else {
			failures = 0
		}
		pause -= time.Duration(l.random.Float64() * float64(pause) / 4)
	}
}

// round looks at the stream, trims what there is to trim, tells of what keeps it from that, and returns how long the next look may wait. It
// looks for what has aged only once a minute, unless it is told to.
func (l *lane) round(ctx context.Context, aged bool) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.look(ctx)
	rate, held := 0.0, false
	if err == nil {
		rate = l.rate(s)
		cutoff := time.Time{}
		if now := l.Clock.Now(); aged || l.aged.IsZero() || now.Sub(l.aged) >= lookCalm || now.Before(l.aged) {
			l.aged, cutoff = now, now.Add(-l.KeepFor)
		}
		if s, held, err = l.trim(ctx, s, cutoff); err == nil {
			if !held && (!cutoff.IsZero() || !l.held.aged) {
				l.release()
			}
			return lookAgain(s, rate, held), nil
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	l.failed(err)
	return lookAgain(s, rate, held), err
}

// rate is how fast the stream grew since the last round, in bytes a second; what was trimmed does not count.
func (l *lane) rate(s streamState) float64 {
	now := l.Clock.Now()
	since := now.Sub(l.looked).Seconds()
	rate := 0.0
	if !l.looked.IsZero() && since > 0 && s.last > l.lookedAt {
		rate = float64(s.last-l.lookedAt) * float64(s.messageBytes()) / since
	}
	l.looked, l.lookedAt = now, s.last
	return rate
}

// failed counts and tells what ended a round.
func (l *lane) failed(err error) {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if l.hold(HeldNoStream) {
			l.Log.Warn("there is no stream to trim; starting oncepay serve makes it", "stream", l.Stream)
		}
	case errors.Is(err, errNoDurable):
		if l.hold(HeldNoDurable) {
			l.Log.Warn("nothing is trimmed: the workers' durable consumer is missing, so nobody knows what is done, and a full stream refuses new "+
				"intents; starting oncepay serve makes it", "stream", l.Stream, "consumer", l.Durable)
		}
	case errors.Is(err, errAhead):
		if l.hold(HeldAhead) {
			l.Log.Error("nothing is trimmed: the workers' durable consumer has acked more than the stream holds, as after the stream alone was "+
				"restored or lost its newest messages, and will not be given what is published up to its floor; delete the consumer (nats "+
				"consumer rm STREAM CONSUMER) and start oncepay serve, which makes it anew: what was done already changes nothing",
				"stream", l.Stream, "consumer", l.Durable)
		}
	case errors.Is(err, errRemade):
		l.Log.Info("the stream was deleted and made again; it is looked at anew", "stream", l.Stream)
	default:
		if l.hold(HeldError) {
			l.Log.Warn("the stream could not be trimmed; it is tried again", "stream", l.Stream, "error", err)
		}
	}
}

// wait sleeps for d and reports whether ctx still stands.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
