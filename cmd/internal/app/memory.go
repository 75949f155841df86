package app

import (
	"os"
	"runtime/debug"
)

// gcPercent is how far the heap may grow before it is collected, in percent of what is in use: little is, and at Go's 100 a fifth of a busy
// worker's time went into collecting it. A worker with 512 payments in flight stays under 300 MB.
const gcPercent = 300

// tuneMemory trades memory for time, unless the operator has set GOGC.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
