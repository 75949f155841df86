// Package guard runs a small shell that outlives this process by as long as it takes to clean up after it, however it ended: the shell reads what
// it is told from a pipe, and the end of the pipe tells it that we are no more.
package guard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// closeMax bounds Close.
const closeMax = time.Minute

// Guard is the shell. Its methods may be called from any goroutine.
type Guard struct {
	name string
	mu   sync.Mutex
	pipe *os.File // nil once closed
	cmd  *exec.Cmd
}

// Start starts a guard under a name that ps shows. Its script reads lines until the pipe closes and has args as $1 and so on. It has to ignore the
// terminal's signals itself, to know the line "temp PATH", and to remove PATH at its end.
func Start(name, script string, args ...string) (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, name}, args...)...)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.Env = []string{"PATH=" + toolPath(), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &Guard{name: name, pipe: w, cmd: cmd}, nil
}

// toolPath is where rm, sleep and ps are, also when PATH is empty.
func toolPath() string {
	path := "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	if own := os.Getenv("PATH"); own != "" {
		path += ":" + own
	}
	return path
}

// Pid is the shell's.
func (g *Guard) Pid() int { return g.cmd.Process.Pid }

// Pipe is our end, for a child that is to tell the guard of itself: os.ErrClosed once the guard is closed.
func (g *Guard) Pipe() (*os.File, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return nil, os.ErrClosed
	}
	return g.pipe, nil
}

// Tell writes a line.
func (g *Guard) Tell(line string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return errors.New(g.name + " is closed")
	}
	_, err := g.pipe.WriteString(line + "\n")
	return err
}

// TempDir makes a directory in parent that is gone when the guard is. The guard learns the name first; it is random enough to be nobody else's.
func (g *Guard) TempDir(parent, prefix string) (string, error) {
	if strings.Contains(parent, "\n") {
		return "", fmt.Errorf("directory %q: a line break in the name is not supported", parent)
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Join(parent, prefix+hex.EncodeToString(b[:])))
	if err != nil {
		return "", err
	}
	if err := g.Tell("temp " + dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// Close ends the guard and waits for it: temporary directories are gone then. It may be called again.
func (g *Guard) Close() error {
	g.mu.Lock()
	pipe := g.pipe
	g.pipe = nil
	g.mu.Unlock()
	if pipe == nil {
		return nil
	}
	pipe.Close()
	timer := time.AfterFunc(closeMax, func() { _ = g.cmd.Process.Kill() })
	defer timer.Stop()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	return nil
}
