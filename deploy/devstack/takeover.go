package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// takeOver stops a PostgreSQL that an earlier, killed process left running on
// dir, and removes its pid file. The caller holds the lock on dir, so nobody
// living owns that server.
func takeOver(ctx context.Context, dir string) error {
	pidFile := filepath.Join(dir, "postmaster.pid")
	content, err := os.ReadFile(pidFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !isPostgresOn(ctx, pid, dir) {
		return removeStale(pidFile)
	}
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 6 * time.Second}, {syscall.SIGKILL, 5 * time.Second}} {
		if err := syscall.Kill(pid, step.sig); errors.Is(err, syscall.ESRCH) {
			return removeStale(pidFile)
		} else if err != nil {
			return fmt.Errorf("PostgreSQL (pid %d) still runs on %s and cannot be stopped: %w", pid, dir, err)
		}
		if gone, err := awaitGone(ctx, pid, dir, step.wait); err != nil {
			return err
		} else if gone {
			return removeStale(pidFile)
		}
	}
	return fmt.Errorf("PostgreSQL (pid %d) still runs on %s and does not stop: end it and start again", pid, dir)
}

func removeStale(pidFile string) error {
	if err := os.Remove(pidFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// awaitGone polls, since only a process's parent is told of its end.
func awaitGone(ctx context.Context, pid int, dir string, limit time.Duration) (bool, error) {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for isPostgresOn(ctx, pid, dir) {
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

// isPostgresOn reports whether pid really is a postmaster of dir: a pid file may
// outlive its process, and the number may be somebody else's by now.
func isPostgresOn(ctx context.Context, pid int, dir string) bool {
	args := commandLine(ctx, pid)
	if len(args) == 0 {
		return false
	}
	if name := filepath.Base(args[0]); name != "postgres" && name != "postmaster" {
		return false
	}
	for i, arg := range args {
		if arg == "-D" && i+1 < len(args) && sameDir(args[i+1], dir) {
			return true
		}
		if rest, ok := strings.CutPrefix(arg, "-D"); ok && rest != "" && sameDir(rest, dir) {
			return true
		}
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && sameDir(cwd, dir)
}

func sameDir(a, b string) bool {
	ai, errA := os.Stat(a)
	bi, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ai, bi)
}

// commandLine reads a process's arguments, from /proc or, without one, from ps.
// It is empty for a process that is gone or a zombie.
func commandLine(ctx context.Context, pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil {
		if raw = bytes.TrimRight(raw, "\x00"); len(raw) == 0 {
			return nil
		}
		return strings.Split(string(raw), "\x00")
	}
	if _, procErr := os.Stat("/proc/self"); procErr == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid))
	cmd.Path = "/bin/ps"
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}
