package devstack

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// child is a process under the eyes of a watcher.
type child struct {
	pid    int
	exited chan struct{} // closed when the process is gone and err is set
	err    error
}

// childSpec says how to start a child.
type childSpec struct {
	kind  string // "init" or "run", as the watcher understands it
	as    account
	dir   string
	argv  []string
	out   io.Writer // *os.File, or collected
	death syscall.Signal
}

// start starts the process from a goroutine that keeps its thread until the
// process is gone, because Linux ties the parent-death signal to that thread.
func (w *watcher) start(spec childSpec) (*child, error) {
	pipe, err := w.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", reportScript, spec.kind}, spec.argv...)...)
	cmd.Dir = spec.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Stdout, cmd.Stderr = spec.out, spec.out
	cmd.SysProcAttr = spec.as.attr(spec.death)

	c := &child{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := cmd.Start()
		if err == nil {
			c.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		_ = w.Tell("done") // a closed watcher needs no word
		close(c.exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// alive reports whether the process has not been waited for yet.
func (c *child) alive() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}
