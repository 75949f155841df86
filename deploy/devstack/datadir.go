package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	superuser    = "oncepay"
	passwordFile = "oncepay.password"
	logFile      = "oncepay.log"
	// maxSocketDir keeps "<dir>/.s.PGSQL.32000" below the 104 bytes of a socket address.
	maxSocketDir = 85
)

// relocated is where root keeps data directories whose own place the unprivileged
// account cannot reach; they are linked from there. Tests set another place.
var relocated = "/var/lib/oncepay"

// tempParent is the first usable place for temporary directories: reachable by
// the account, and short enough for a unix socket below it. What may be lost with
// the machine goes to memory where that is possible and TMPDIR does not forbid it.
func tempParent(as account, fast bool) (string, error) {
	places := []string{os.TempDir(), "/tmp", "/var/tmp"}
	if fast && os.Getenv("TMPDIR") == "" {
		places = append([]string{ramDir()}, places...)
	}
	for _, dir := range places {
		if dir != "" && len(dir)+len("/oncepay-pg-0123456789abcdef") <= maxSocketDir && as.reaches(dir) {
			return dir, nil
		}
	}
	return "", errors.New("no usable temporary directory: set TMPDIR to a short path that every user can enter")
}

// resolveDataDir finds the real place of a named data directory: itself, or what
// it links to. Its parent exists afterwards.
func resolveDataDir(named string) (string, error) {
	abs, err := filepath.Abs(named)
	if err != nil {
		return "", err
	}
	if target, err := os.Readlink(abs); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(abs), target)
		}
		abs = target
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o755); err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(parent, filepath.Base(abs)), nil
}

// relocate links a data directory that the account cannot reach (root's 0700
// home) to a new place that it can.
func relocate(dir string, as account) (string, error) {
	if as.reaches(filepath.Dir(dir)) {
		return dir, nil
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("data directory %s cannot be reached by the user PostgreSQL runs as, and cannot be moved: %w", dir, err)
	}
	if err := os.MkdirAll(relocated, 0o755); err != nil {
		return "", err
	}
	if !as.reaches(relocated) {
		return "", fmt.Errorf("data directory %s cannot be reached by the user PostgreSQL runs as: name one outside private home directories", dir)
	}
	name, err := randomHex(8)
	if err != nil {
		return "", err
	}
	real := filepath.Join(relocated, "postgres-"+name)
	return real, os.Symlink(real, dir)
}

func randomHex(n int) (string, error) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// isDataDir tells a PostgreSQL data directory from a missing or empty one;
// anything else is an error, since initdb would refuse it.
func isDataDir(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err == nil {
		return true, nil
	}
	if len(entries) > 0 {
		return false, fmt.Errorf("directory %s is neither empty nor a PostgreSQL data directory: name another one", dir)
	}
	return false, nil
}

// initialise creates the cluster beside dir and renames it into place, so that
// dir is either absent, empty or complete.
func initialise(ctx context.Context, w *watcher, bin binaries, as account, dir string, fast bool) error {
	staging, err := w.TempDir(filepath.Dir(dir), ".oncepay-init-")
	if err != nil {
		return err
	}
	if err := as.own(staging); err != nil {
		return err
	}
	password, err := randomHex(16)
	if err != nil {
		return err
	}
	secret := staging + ".password"
	if err := w.Tell("temp " + secret); err != nil {
		return err
	}
	if err := writePrivate(secret, password, as); err != nil {
		return err
	}
	defer os.Remove(secret)
	if err := runInitdb(ctx, w, bin, as, staging, secret, fast); err != nil {
		return err
	}
	if err := writePrivate(filepath.Join(staging, passwordFile), password, as); err != nil {
		return err
	}
	if err := os.Rename(staging, dir); err != nil {
		if done, _ := isDataDir(dir); done {
			return nil // somebody else was faster; the lock tells who may use it
		}
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func writePrivate(path, content string, as account) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content + "\n")
	return errors.Join(err, f.Sync(), f.Close(), as.own(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func runInitdb(ctx context.Context, w *watcher, bin binaries, as account, dir, secret string, fast bool) error {
	// Sockets lie in a private directory, so the local method needs no password.
	// Tests open thousands of connections: md5 of a random 128-bit password costs
	// a hundredth of scram's 4,096 rounds and guards a server that lives minutes.
	host := "scram-sha-256"
	if fast {
		host = "md5"
	}
	argv := []string{filepath.Join(bin.dir, "initdb"), "-D", dir, "-U", superuser,
		"--locale=C", "--encoding=UTF8", "--auth-local=trust", "--auth-host=" + host,
		"--pwfile=" + secret, "--no-instructions"}
	if fast {
		argv = append(argv, "--no-sync")
	}
	var out bytes.Buffer
	c, err := w.start(childSpec{kind: "init", as: as, dir: dir, argv: argv, out: &out, death: syscall.SIGKILL})
	if err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	select {
	case <-c.exited:
	case <-ctx.Done():
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		<-c.exited
		return ctx.Err()
	}
	if c.err != nil {
		return fmt.Errorf("initdb: %w: %s", c.err, strings.TrimSpace(out.String()))
	}
	return nil
}
