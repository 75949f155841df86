package dev

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

// process is one that was seen running; started tells it from a later one with the same number.
type process struct {
	pid, parent int
	started     string
	command     string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.command) }

// look reads a process from /proc; false when it is gone, or only waits to be reaped.
func look(pid int) (p process, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, false
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, ppid, … starttime is the 20th
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return p, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return process{pid, parent, fields[19], strings.ReplaceAll(string(command), "\x00", " ")}, true
}

// family lists a process and all that descend from it.
func family(t *testing.T, root int) (list []process) {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]process{}
	for _, e := range entries {
		pid, _ := strconv.Atoi(filepath.Base(e))
		if p, ok := look(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	if p, ok := look(root); ok {
		list = append(list, p)
	}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i].pid]...)
	}
	return list
}

// alive lists those of the processes that still run.
func alive(list []process) string {
	var still []string
	for _, p := range list {
		if now, ok := look(p.pid); ok && now.started == p.started {
			still = append(still, p.String())
		}
	}
	return strings.Join(still, "; ")
}

// count counts the processes whose command contains a word.
func count(list []process, word string) (n int) {
	for _, p := range list {
		if strings.Contains(p.command, word) {
			n++
		}
	}
	return n
}
