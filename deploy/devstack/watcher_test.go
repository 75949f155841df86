package devstack

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The watcher alone, without the kernel's parent-death signal: closing its pipe
// with a child still running is what the end of the parent looks like to it.
func TestWatcherStopsWhatStillRuns(t *testing.T) {
	t.Parallel()
	self := account{uid: os.Geteuid(), gid: os.Getegid()}
	for name, test := range map[string]struct {
		kind, stop, script string
		want               syscall.Signal
	}{
		"orderly":         {"run", "INT", "echo up; exec sleep 600", syscall.SIGINT},
		"at once":         {"run", "QUIT", "echo up; exec sleep 600", syscall.SIGQUIT},
		"deaf to INT":     {"run", "INT", "trap '' INT; echo up; exec sleep 600", syscall.SIGQUIT},
		"deaf to all":     {"run", "QUIT", "trap '' INT QUIT TERM; echo up; exec sleep 600", syscall.SIGKILL},
		"initdb's family": {"init", "INT", "sleep 600 & echo up; sleep 600", syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := startWatcher(test.stop)
			if err != nil {
				t.Fatal(err)
			}
			parent := filepath.Join(t.TempDir(), "with a space, 'quotes' and $HOME")
			if err := os.Mkdir(parent, 0o700); err != nil {
				t.Fatal(err)
			}
			var dirs []string
			for range 2 {
				dir, err := w.TempDir(parent, "x-")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				dirs = append(dirs, dir)
			}
			ended, err := w.start(childSpec{kind: "run", as: self, dir: "/", argv: []string{"/bin/sh", "-c", "exit 7"}})
			if err != nil {
				t.Fatal(err)
			}
			<-ended.exited
			heard, said, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer heard.Close()
			c, err := w.start(childSpec{kind: test.kind, as: self, dir: "/", argv: []string{"/bin/sh", "-c", test.script}, out: said})
			said.Close()
			if err != nil {
				t.Fatal(err)
			}
			if !c.alive() || ended.alive() {
				t.Fatal("alive is wrong")
			}
			if _, err := heard.Read(make([]byte, 8)); err != nil { // its traps are set
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.exited:
			case <-time.After(2 * time.Minute):
				_ = syscall.Kill(-c.pid, syscall.SIGKILL)
				t.Fatal("it still runs")
			}
			var exit *exec.ExitError
			if !errors.As(c.err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != test.want {
				t.Errorf("ended by %v, want %v", c.err, test.want)
			}
			eventually(t, "its process group is gone", func() bool { return errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH) })
			for _, dir := range dirs {
				if !gone(dir) {
					t.Errorf("%s is still there", dir)
				}
			}
			if gone(parent) {
				t.Error("too much was removed")
			}
			if err := w.Tell("done"); err == nil {
				t.Error("a closed watcher listens")
			}
		})
	}
}
