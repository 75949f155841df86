package doctor

import (
	"fmt"
	"strings"
	"time"
)

const (
	// skewMax is how far our clock may be from PostgreSQL's and Stripe's: beyond it `serve` does not start.
	skewMax = time.Minute
	// skewWarn is more than clocks that are set by NTP are ever apart, and more than an HTTP date's whole seconds.
	skewWarn = 5 * time.Second
)

// judgeClock compares this machine's clock with another one; beyond a minute the result is worst.
func judgeClock(whose string, r reading, worst Result) verdict {
	skew := r.ours.Sub(r.theirs)
	direction := "ahead of"
	if skew < 0 {
		direction = "behind"
	}
	found := fmt.Sprintf("this machine is %s %s %s", age(skew.Abs()), direction, whose)
	remedy := "set the clocks of both machines (NTP)"
	switch {
	case skew.Abs() > skewMax && worst == Failed:
		return bad(remedy+"; until then `oncepay serve` refuses to start", "%s", found)
	case skew.Abs() > skewWarn:
		return warn(remedy, "%s", found)
	}
	return good("%s", found)
}

// age is a duration for people.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// count is a number and its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listed is how many names a line shows.
const listed = 3

// join lists the first few of the names.
func join(names []string) string {
	if len(names) <= listed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:listed], ", "), len(names)-listed)
}
