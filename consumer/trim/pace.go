package trim

import "time"

// A purge holds up the stream's publishers while it runs. Measured with every write synced: 350 messages 1.3 ms, 2,500 2.8 ms, 5,000 9 ms, 10,000
// 41 ms, 50,000 166 ms; publishing at the side has its p99 at 2.5, 5, 44, 95 and 161 ms. So steps grow only as long as one takes less than
// stepTarget, and while nobody is in danger of being refused all steps together take a tenth of the time, which still is 90,000 messages a second.
// In that danger the pauses go, not the size of the steps: large ones are slower by the message.
const (
	stepMin    = 350
	stepFirst  = 500
	stepUrgent = 2500 // at least, where a step costs the same whatever its size
	stepMax    = 10_000
	stepTarget = 10 * time.Millisecond
	restMin    = 20 * time.Millisecond
	restMax    = time.Second
)

// pace chooses the size of the next step from how long the last ones took.
type pace struct{ size uint64 }

func (p *pace) next(urgent bool) uint64 {
	if p.size == 0 {
		p.size = stepFirst
	}
	if urgent {
		return max(p.size, stepUrgent)
	}
	return p.size
}

// took learns that n sequences took d.
func (p *pace) took(n uint64, d time.Duration) {
	switch {
	case d > 2*stepTarget:
		p.size = max(min(p.size, n)/2, stepMin)
	case d < stepTarget/2 && n >= p.size:
		p.size = min(2*p.size, stepMax)
	}
}

// rest is the pause after a step that took d.
func rest(d time.Duration, urgent bool) time.Duration {
	if urgent {
		return min(d, restMax)
	}
	return min(max(9*d, restMin), restMax)
}

// The time between two looks at a stream. Three tenths of it are free at a look that finds nothing to do. 60,000 intents of 500 bytes a second are
// 30 MB/s, which take ten seconds for that with 1 GiB and a hundred with the default of 10 GiB; a burst of large ones goes as fast as the disk, say
// fillRate. So a look comes twice within the time that what is free lasts at fillRate, or four times within the time that it lasts at the rate that
// was seen, if that is less. While a floor holds the stream, room comes only with acks, and they are waited for without haste.
const (
	fillRate  = 256 << 20 // bytes a second
	lookMax   = time.Second
	lookHeld  = 100 * time.Millisecond // at least, while a floor holds the stream
	lookMin   = 5 * time.Millisecond
	lookCalm  = time.Minute // between two looks for what has aged
	perSecond = float64(time.Second)
)

// lookAgain is how long the next look may wait; rate is in bytes a second, 0 where it is not known.
func lookAgain(s streamState, rate float64, held bool) time.Duration {
	if s.maxBytes <= 0 {
		return lookMax
	}
	free := max(0, float64(s.maxBytes)-float64(s.bytes))
	pause := time.Duration(min(free, float64(s.share(100-highPercent))) / fillRate / 2 * perSecond)
	if rate > 0 {
		pause = min(pause, time.Duration(free/rate/4*perSecond))
	}
	if held {
		pause = max(pause, lookHeld)
	}
	return min(max(pause, lookMin), lookMax)
}
