package devstack

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parent is the test binary running as a program of its own (see actAsParent).
type parent struct {
	cmd     *exec.Cmd
	out     *bufio.Reader
	pid     int // of PostgreSQL
	watcher int
	paths   []string // data directory, sockets, NATS store
}

// startParent runs the binary with exactly this environment, so PATH and LANG are
// empty, in a process group of its own. Signals that the tests were started to
// ignore, as nohup does, are not ignored there: what is handled here is the default
// in whatever is started meanwhile.
func startParent(t *testing.T, binary, mode string, env []string, as *syscall.Credential) *parent {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append([]string{parentMode + "=" + mode}, env...)
	cmd.Dir = "/"
	if as == nil {
		cmd.Dir = t.TempDir() // private: nobody else may even enter it
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: as}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP, syscall.SIGINT)
	err = cmd.Start()
	signal.Stop(handled)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ends whatever a failed test left
		_ = cmd.Wait()
	})
	p := &parent{cmd: cmd, out: bufio.NewReader(out)}
	if line := p.line(t); line != "begin" {
		t.Fatalf("parent says %q", line)
	}
	return p
}

func (p *parent) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("parent ended early: %v", err)
	}
	return strings.TrimSpace(line)
}

func (p *parent) awaitReady(t *testing.T) {
	t.Helper()
	line := p.line(t)
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[0] != "ready" {
		t.Fatalf("parent says %q", line)
	}
	var err error
	if p.pid, err = strconv.Atoi(fields[1]); err != nil {
		t.Fatal(err)
	}
	if p.watcher, err = strconv.Atoi(fields[2]); err != nil {
		t.Fatal(err)
	}
	p.paths = fields[3:]
	if !isPostgresOn(t.Context(), p.pid, p.paths[0]) {
		t.Fatalf("pid %d is no postgres on %s", p.pid, p.paths[0])
	}
	for _, path := range p.paths {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually polls: nobody signals the end of a process that is not our child.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("still not so: %s", what)
		}
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// openDir is a temporary directory that every user can walk through, as
// t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "oncepay-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestNothingIsLeftHoweverTheParentEnds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode string
		end  func(p *parent) error
	}{
		"kill -9":          {"wait", func(p *parent) error { return p.cmd.Process.Kill() }},
		"Ctrl-C to all":    {"wait", func(p *parent) error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT) }},
		"group killed":     {"wait", func(p *parent) error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }},
		"panic":            {"panic", func(*parent) error { return nil }},
		"os.Exit":          {"exit", func(*parent) error { return nil }},
		"closed in order":  {"once", func(*parent) error { return nil }},
		"terminal is gone": {"wait", func(p *parent) error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGHUP) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startParent(t, self(t), test.mode, nil, nil)
			line := p.line(t)
			fields := strings.Fields(line)
			if len(fields) != 6 || fields[0] != "ready" {
				t.Fatalf("parent says %q", line)
			}
			if err := test.end(p); err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "PostgreSQL is gone", func() bool { return len(commandLine(t.Context(), pid)) == 0 })
			for _, path := range fields[3:] {
				eventually(t, path+" is gone", func() bool { return gone(path) })
			}
		})
	}
}

func TestNothingIsLeftWhenKilledWhileStarting(t *testing.T) {
	t.Parallel()
	// From before initdb to after the start, whatever a moment falls on.
	for _, after := range []time.Duration{0, 20, 60, 150, 300, 500, 800, 1200} {
		after *= time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			tmp := openDir(t)
			p := startParent(t, self(t), "wait", []string{"TMPDIR=" + tmp}, nil)
			<-time.After(after) // the moment is what is tested
			if err := p.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, tmp+" is empty", func() bool {
				entries, err := os.ReadDir(tmp)
				return err == nil && len(entries) == 0
			})
			eventually(t, "no process names "+tmp, func() bool { return !strings.Contains(processes(t), tmp) })
		})
	}
}

func processes(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("ps", "-axww", "-o", "command=").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestNamedDirectorySurvivesKillAndIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "a named directory")
	env := []string{"ONCEPAY_DEVSTACK_DIR=" + dir}
	p := startParent(t, self(t), "wait", env, nil)
	line := p.line(t)
	if !strings.HasPrefix(line, "ready ") {
		t.Fatalf("parent says %q", line)
	}
	if _, err := StartPostgres(t.Context(), PostgresOptions{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("a living owner was robbed: %v", err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // for its own end, which is the end of its lock
	// At once: its PostgreSQL may still be running, its watcher at work.
	pg, err := StartPostgres(t.Context(), PostgresOptions{DataDir: dir, FastUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	ping(t, pg)
	if err := pg.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		t.Fatal(err)
	}
}

func TestRunsAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	var as *syscall.Credential
	if os.Geteuid() == 0 {
		as = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	binary := filepath.Join(dir, "parent")
	copyFile(t, self(t), binary)
	home := filepath.Join(dir, "home") // private, as a clone in a 0700 home
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if as != nil {
		if err := os.Chown(home, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	p := startParent(t, binary, "once", []string{"ONCEPAY_DEVSTACK_DIR=" + filepath.Join(home, "data")}, as)
	if line := p.line(t); !strings.HasPrefix(line, "ready ") {
		t.Fatalf("parent says %q", line)
	}
	rest, err := io.ReadAll(p.out)
	if err != nil || len(rest) > 0 {
		t.Fatalf("parent says %q, %v", rest, err)
	}
	if _, err := os.Stat(filepath.Join(home, "data", "PG_VERSION")); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
