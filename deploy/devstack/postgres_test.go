package devstack

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func startFast(t *testing.T, options PostgresOptions) *Postgres {
	t.Helper()
	options.FastUnsafe = true
	p, err := StartPostgres(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func query(t *testing.T, p *Postgres, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var answer string
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func ping(t *testing.T, p *Postgres) {
	t.Helper()
	if got := query(t, p, "SELECT 'pong'"); got != "pong" {
		t.Fatalf("got %q", got)
	}
}

func exec1(t *testing.T, p *Postgres, sql string) {
	t.Helper()
	if err := p.admin(t.Context(), "exec", sql); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := startFast(t, PostgresOptions{Port: port, Settings: map[string]string{"work_mem": "7MB", "max_connections": "50"}})
	for setting, want := range map[string]string{
		"server_encoding": "UTF8", "lc_messages": "C", "fsync": "off", "synchronous_commit": "on",
		"autovacuum": "on", "work_mem": "7MB", "max_connections": "50", "port": strconv.Itoa(port),
		"listen_addresses": "127.0.0.1", "TimeZone": "UTC", "data_directory": p.DataDir(),
	} {
		if got := query(t, p, "SHOW "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if len(p.sockets) >= 100 {
		t.Errorf("socket directory %s is too long", p.sockets)
	}
	info, err := os.Stat(p.sockets)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket directory: %v %v", info.Mode(), err)
	}
}

func TestPostgresNeedsThePassword(t *testing.T) {
	t.Parallel()
	p := startFast(t, PostgresOptions{})
	dsn := strings.Replace(p.DSN(""), p.password, "guess", 1)
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		conn.Close(t.Context())
		t.Fatal("a wrong password was accepted")
	}
	if !strings.Contains(err.Error(), "28P01") {
		t.Fatal(err)
	}
}

func TestPostgresRunsUnprivileged(t *testing.T) {
	t.Parallel()
	p := startFast(t, PostgresOptions{})
	info, err := os.Stat(p.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 || int(owner) != p.as.uid {
		t.Fatalf("data directory belongs to %d", owner)
	}
	if os.Geteuid() == 0 != p.as.drop {
		t.Fatalf("account %+v for uid %d", p.as, os.Geteuid())
	}
}

func TestCommittedRowsSurviveKill(t *testing.T) {
	t.Parallel()
	p := startFast(t, PostgresOptions{})
	port, dsn := p.Port(), p.DSN("")
	exec1(t, p, "CREATE TABLE kept (n int)")
	for n, end := range []func(context.Context) error{p.Kill, p.Stop, func(context.Context) error { return nil }} {
		exec1(t, p, "INSERT INTO kept VALUES ("+strconv.Itoa(n)+")")
		pid, exited := p.Pid(), p.Exited()
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			<-exited
			if p.Pid() != 0 {
				t.Fatal("a stopped server has a pid")
			}
			if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
				conn.Close(t.Context())
				t.Fatal("a stopped server answers")
			}
		}
		if err := p.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.Pid() == pid || p.Pid() == 0 || p.Port() != port || p.DSN("") != dsn {
			t.Fatalf("pid %d -> %d, port %d -> %d", pid, p.Pid(), port, p.Port())
		}
		if got := query(t, p, "SELECT count(*)::text FROM kept"); got != strconv.Itoa(n+1) {
			t.Fatalf("%s rows after %d inserts", got, n+1)
		}
	}
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	p := startFast(t, PostgresOptions{})
	ctx := t.Context()
	const odd = `An "odd" name`
	if err := p.CreateDatabase(ctx, odd); err != nil {
		t.Fatal(err)
	}
	if err := p.CreateDatabase(ctx, odd); err == nil || !strings.Contains(err.Error(), "42P04") {
		t.Fatalf("a name was given twice: %v", err)
	}
	conn, err := pgx.Connect(ctx, p.DSN(odd))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "CREATE TABLE t AS SELECT 42 AS n"); err != nil {
		t.Fatal(err)
	}
	if err := p.DropDatabase(ctx, odd); err != nil { // while connected
		t.Fatal(err)
	}
	if err := p.DropDatabase(ctx, odd); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil {
		t.Fatal("a dropped database answers")
	}
}

func TestNamedDirectoryKeepsDataAndPassword(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "deep", "er", "data")
	var first string
	for round := range 2 {
		p, err := StartPostgres(t.Context(), PostgresOptions{DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if got := query(t, p, "SHOW fsync"); got != "on" {
			t.Errorf("fsync is %s", got)
		}
		if got := query(t, p, "SELECT left(rolpassword, 13) FROM pg_authid WHERE rolname = current_user"); got != "SCRAM-SHA-256" {
			t.Errorf("password is kept as %s", got)
		}
		if round == 0 {
			first = p.password
			exec1(t, p, "CREATE TABLE kept AS SELECT 'yes' AS answer")
		} else if got := query(t, p, "SELECT answer FROM kept"); got != "yes" || p.password != first {
			t.Errorf("answer %q, same password: %t", got, p.password == first)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatalf("second Close: %v", err)
		}
		if err := p.Restart(t.Context()); err == nil {
			t.Fatal("a closed server restarted")
		}
		if !gone(p.sockets) || gone(dir) {
			t.Fatal("Close removed the wrong things")
		}
	}
}

// An earlier PostgreSQL that nobody owns any more still runs on the directory.
func TestRunningServerIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	p := startFast(t, PostgresOptions{DataDir: dir})
	exec1(t, p, "CREATE TABLE kept AS SELECT 'yes' AS answer")
	argv := p.argv()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command(argv[0], append(argv[1:], "-c", "unix_socket_directories=")...)
	orphan.Dir = p.DataDir()
	orphan.SysProcAttr = p.as.attr(0)
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = orphan.Wait() })
	defer wait.Wait()
	defer orphan.Process.Kill()
	pidFile := filepath.Join(dir, "postmaster.pid")
	eventually(t, "the orphan is up", func() bool {
		content, err := os.ReadFile(pidFile)
		return err == nil && strings.Contains(string(content), "ready")
	})
	again := startFast(t, PostgresOptions{DataDir: dir})
	if got := query(t, again, "SELECT answer FROM kept"); got != "yes" {
		t.Fatal(got)
	}
	if isPostgresOn(t.Context(), orphan.Process.Pid, dir) {
		t.Fatal("both run")
	}
}

// A pid file that names somebody else's process must harm neither.
func TestStalePidFileOfAnInnocentProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	p := startFast(t, PostgresOptions{DataDir: dir})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	innocent := exec.Command("/bin/sleep", "60")
	innocent.SysProcAttr = p.as.attr(0)
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = innocent.Wait(); close(ended) }()
	defer func() { _ = innocent.Process.Kill(); <-ended }()
	content := strconv.Itoa(innocent.Process.Pid) + "\n" + p.DataDir() + "\n1\n5432\n/tmp\n127.0.0.1\n1 1\nready\n"
	if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.as.own(filepath.Join(dir, "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
	ping(t, startFast(t, PostgresOptions{DataDir: dir}))
	select {
	case <-ended:
		t.Fatal("an innocent process was stopped")
	default:
	}
}

func TestDirectoryInAPrivateHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir() // below a 0700 directory of the running user
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "data")
	for round := range 2 {
		p := startFast(t, PostgresOptions{DataDir: dir})
		if round == 0 {
			exec1(t, p, "CREATE TABLE kept AS SELECT 'yes' AS answer")
		} else if got := query(t, p, "SELECT answer FROM kept"); got != "yes" {
			t.Fatal(got)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		t.Fatal(err)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	strange := openDir(t)
	if err := os.WriteFile(filepath.Join(strange, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	old := openDir(t)
	if err := os.WriteFile(filepath.Join(old, "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(old, "PG_VERSION"), 65534, -1); err != nil && os.Geteuid() == 0 {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for name, test := range map[string]struct {
		options PostgresOptions
		want    string
	}{
		"somebody's files":   {PostgresOptions{DataDir: strange}, "neither empty nor a PostgreSQL data directory"},
		"another version":    {PostgresOptions{DataDir: old}, "PostgreSQL 9, which is not installed"},
		"a wrong setting":    {PostgresOptions{FastUnsafe: true, Settings: map[string]string{"no_such": "1"}}, "no_such"},
		"an impossible port": {PostgresOptions{FastUnsafe: true, Port: 70000}, "between 1 and 65535"},
		"a taken port":       {PostgresOptions{FastUnsafe: true, Port: taken.Addr().(*net.TCPAddr).Port}, "is in use: choose another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := StartPostgres(t.Context(), test.options)
			if err == nil {
				p.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%v does not say %q", err, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(strange, "letter.txt")); err != nil {
		t.Fatal(err)
	}
}

func TestStartStopsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, 20 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		p, err := StartPostgres(ctx, PostgresOptions{FastUnsafe: true})
		if err == nil {
			p.Close()
			t.Fatalf("started within %v", limit)
		}
		if ctx.Err() == nil {
			t.Fatal(err)
		}
	}
}

func TestManyMayStopAtOnce(t *testing.T) {
	t.Parallel()
	p := startFast(t, PostgresOptions{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := p.Kill(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := p.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ping(t, p)
}

func TestOneOfTwoGetsANewDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	started := make([]*Postgres, 2)
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range started {
		wg.Go(func() {
			started[i], errs[i] = StartPostgres(t.Context(), PostgresOptions{DataDir: dir, FastUnsafe: true})
		})
	}
	wg.Wait()
	running := 0
	for i, p := range started {
		if errs[i] != nil {
			if !strings.Contains(errs[i].Error(), "in use") {
				t.Error(errs[i])
			}
			continue
		}
		running++
		ping(t, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if running != 1 {
		t.Fatalf("%d servers on one directory: %v", running, errs)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Fatalf("left beside it: %v %v", entries, err)
	}
}
