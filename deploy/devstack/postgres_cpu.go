package devstack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU times in /proc: USER_HZ, 100 a second on all that
// Linux runs on.
const clockTick = time.Second / 100

// CPU is the CPU time that the server and all its processes have used since its
// start, in steps of 10 ms; 0 where there is no /proc to read it from.
func (p *Postgres) CPU() (used time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return 0
	}
	server := strconv.Itoa(p.proc.pid)
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range processes {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended; its time is the server's now
		}
		// proc(5): the name stands in parentheses, may contain anything, and is
		// followed by the state, the parent, and as fields 14 to 17 user and system
		// time, of the process itself and of its children that have ended.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if len(fields) < 15 {
			continue
		}
		times := fields[11:13]
		if path == "/proc/"+server+"/stat" {
			times = fields[11:15]
		} else if fields[1] != server {
			continue
		}
		for _, ticks := range times {
			n, _ := strconv.ParseInt(ticks, 10, 64)
			used += time.Duration(n) * clockTick
		}
	}
	return used
}
