package doctor

import "fmt"

// Result is how a check ended.
type Result string

// The results of a check.
const (
	OK         Result = "ok"
	Warning    Result = "warning"     // work goes on; somebody should look
	Failed     Result = "failed"      // money or messages are in danger, or work stands still
	NotChecked Result = "not_checked" // what it needs has failed
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Found  string `json:"found"`  // one line
	Remedy string `json:"remedy"` // one line; "" when there is nothing to do
}

// Report is all that was looked at, always in the same order.
type Report struct {
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"` // nothing failed
}

// Count is how many checks ended so.
func (r Report) Count(result Result) (n int) {
	for _, c := range r.Checks {
		if c.Result == result {
			n++
		}
	}
	return n
}

// verdict is a check's answer.
type verdict struct {
	result        Result
	found, remedy string
	cause         string // of not_checked: the check that failed
}

func good(format string, a ...any) verdict {
	return verdict{result: OK, found: fmt.Sprintf(format, a...)}
}

func warn(remedy, format string, a ...any) verdict {
	return verdict{result: Warning, found: fmt.Sprintf(format, a...), remedy: remedy}
}

func bad(remedy, format string, a ...any) verdict {
	return verdict{result: Failed, found: fmt.Sprintf(format, a...), remedy: remedy}
}

// skipped is the answer of a check that another one leaves without what it needs.
func skipped(cause string) verdict {
	return verdict{result: NotChecked, cause: cause, found: "not checked because " + cause + " failed", remedy: "mend " + cause + " first"}
}

// stopped reports whether a check with this result leaves nothing to those that need it.
func (r Result) stopped() bool { return r == Failed || r == NotChecked }
