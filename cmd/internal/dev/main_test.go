package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// programEnv makes this test binary the program oncepay-dev. Worker processes inherit it.
const programEnv = "TEST_BINARY_IS_ONCEPAY_DEV"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	devstacktest.Run(m)
}

// patience is how long anything may take on a busy machine: a package that takes longer fails anyhow.
const patience = 4 * time.Minute

// output is what a program says, readable while it does.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// program is a run of oncepay-dev in a process of its own.
type program struct {
	t        *testing.T
	command  *exec.Cmd
	out, err output
	ended    chan struct{}
}

// start starts oncepay-dev, or the program at path, in a process group of its own and with a temporary directory that the test looks after.
func start(t *testing.T, path, tmp string, env []string, args ...string) *program {
	t.Helper()
	if path == "" {
		path = os.Args[0]
	}
	p := &program{t: t, command: exec.Command(path, args...), ended: make(chan struct{})}
	p.command.Env = append([]string{programEnv + "=1", "TMPDIR=" + tmp, "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.err
	p.command.SysProcAttr = ownGroup()
	p.command.WaitDelay = patience // of a pipe that something left behind keeps open
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.command.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = killGroup(p.command.Process.Pid)
		<-p.ended
	})
	return p
}

// wait returns the exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.command.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("does not end: %s", p.err.String())
		return -1
	}
}

// run runs oncepay-dev to its end.
func run(t *testing.T, args ...string) *program {
	t.Helper()
	p := start(t, "", temporary(t), nil, args...)
	p.wait()
	return p
}

func (p *program) code() int { return p.command.ProcessState.ExitCode() }

// document reads the one document on standard output.
func (p *program) document() (d map[string]any) {
	p.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(p.out.String()))
	if err := decoder.Decode(&d); err != nil {
		p.t.Fatalf("no document: %v in %q; %s", err, p.out.String(), p.err.String())
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		p.t.Fatalf("something follows the document: %q", p.out.String())
	}
	return d
}

// until polls a real service until it does what it should.
func until(t *testing.T, what func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		missing := what()
		if missing == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", patience, missing)
		}
	}
}

// temporary is a directory that PostgreSQL's own user can enter, and whose name is short enough for its socket.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "oncepay-t-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// left lists what a run left in its temporary directory.
func left(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
