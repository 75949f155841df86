package devstack

import (
	"os"
	"syscall"
	"testing"
)

// Without a watcher the kernel's parent-death signal still ends PostgreSQL.
func TestPostgresDiesWithItsParentWithoutWatcher(t *testing.T) {
	t.Parallel()
	p := startParent(t, self(t), "wait", nil, nil)
	p.awaitReady(t)
	t.Cleanup(func() { // nobody else is left to remove them
		for _, path := range p.paths {
			os.RemoveAll(path)
		}
	})
	if err := syscall.Kill(p.watcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PostgreSQL is gone", func() bool { return !isPostgresOn(t.Context(), p.pid, p.paths[0]) })
}
