package console

import (
	"fmt"
	"time"
)

// rateAfter is how long something must have been going on before its rate says anything.
const rateAfter = time.Second

// leftMax is how far a guess of what is left reaches.
const leftMax = 1000 * time.Hour

// rate is how fast it goes and how long it will take, as "200/s, 48s left"; "" while that cannot be told.
func (b *Bar) rate(now time.Time) string {
	took, done := now.Sub(b.began), b.at-b.base
	if took < rateAfter || done <= 0 {
		return ""
	}
	perSecond := float64(done) / took.Seconds()
	text := fmt.Sprintf("%.0f/s", perSecond)
	switch {
	case b.unit == Bytes:
		text = fmt.Sprintf("%.1f MB/s", perSecond/1e6)
	case perSecond < 1:
		text = fmt.Sprintf("%.0f/min", 60*perSecond)
	}
	if left := float64(b.total-b.at) / perSecond; b.at < b.total && left < leftMax.Seconds() {
		text += ", " + (time.Duration(left) * time.Second).String() + " left"
	}
	return text
}
