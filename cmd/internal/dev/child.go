package dev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// workerCommand is the hidden command of a worker process.
const workerCommand = "worker-process"

// child is one worker process. It shares our process group and holds the read end of a pipe whose write end only we have: when we die, however
// we die, the pipe ends and so does the child.
type child struct {
	command *exec.Cmd
	pipe    io.Closer
	ready   chan listeners
	exited  chan struct{}
	err     error
}

// listeners are where a child serves health and metrics; "" where it does not.
type listeners struct{ http, admin string }

// startChild starts a worker process with the environment; its log goes to logs.
func startChild(env map[string]string, logs io.Writer) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.Command(program, workerCommand), ready: make(chan listeners, 1), exited: make(chan struct{})}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "ONCEPAY_") || name == "ONCEPAY_SABOTAGE" {
			c.command.Env = append(c.command.Env, pair)
		}
	}
	for name, value := range env {
		c.command.Env = append(c.command.Env, name+"="+value)
	}
	c.command.Stderr = logs
	if c.pipe, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				http, admin, _ := strings.Cut(at, " ")
				c.ready <- listeners{http, admin}
			}
		}
		c.err = c.command.Wait()
		close(c.exited)
	}()
	return c, nil
}

// waitReady returns once the child works.
func (c *child) waitReady(ctx context.Context) (listeners, error) {
	select {
	case at := <-c.ready:
		return at, nil
	case <-c.exited:
		return listeners{}, fmt.Errorf("a worker process ended while it started: %w", errors.Join(c.err, errors.New("its log says why")))
	case <-ctx.Done():
		return listeners{}, ctx.Err()
	}
}

// kill ends the child as a crash would.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.exited
}

// stop lets the child drain, and kills it when it takes too long.
func (c *child) stop(within time.Duration) {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(within):
		c.kill()
	}
	_ = c.pipe.Close()
}
