package devstacktest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// sloppyMode makes this test binary one whose only test leaves a goroutine.
const sloppyMode = "ONCEPAY_DEVSTACKTEST_SLOPPY"

func TestMain(m *testing.M) { Run(m) }

var migrations atomic.Int32

func migrate(ctx context.Context, dsn string) error {
	migrations.Add(1)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE TABLE items (id int PRIMARY KEY)")
	return err
}

func open(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func count(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM items").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDatabasesAreApartAndMigratedOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	names := map[string]bool{}
	t.Run("at once", func(t *testing.T) {
		for range 12 {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				dsn := Database(t, migrate)
				conn := open(t, dsn)
				if n := count(t, conn); n != 0 {
					t.Errorf("%d rows of another test", n)
				}
				if _, err := conn.Exec(t.Context(), "INSERT INTO items VALUES (1)"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				names[conn.Config().Database] = true
			})
		}
	})
	if len(names) != 12 || migrations.Load() != 1 {
		t.Fatalf("%d databases, %d migrations", len(names), migrations.Load())
	}
	conn := open(t, Postgres(t).DSN(""))
	rows, err := conn.Query(t.Context(), "SELECT datname FROM pg_database")
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if names[name] {
			t.Errorf("database %s was not dropped", name)
		}
	}
}

func TestDatabaseWithoutMigrationIsEmpty(t *testing.T) {
	t.Parallel()
	conn := open(t, Database(t))
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").Scan(&n); err != nil || n != 0 {
		t.Fatalf("%d relations, %v", n, err)
	}
}

func TestPrefixFitsEverywhere(t *testing.T) {
	t.Parallel()
	a, b := Prefix(t), Prefix(t)
	if a == b || !regexp.MustCompile(`^[a-z][a-z0-9]{16}$`).MatchString(a) {
		t.Fatalf("%q, %q", a, b)
	}
}

func TestNATSIsShared(t *testing.T) {
	t.Parallel()
	for range 3 {
		t.Run("one", func(t *testing.T) {
			t.Parallel()
			conn, err := nats.Connect(NATS(t).URL(), nats.Timeout(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			js, err := jetstream.New(conn)
			if err != nil {
				t.Fatal(err)
			}
			name := Prefix(t)
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}}); err != nil {
				t.Fatal(err)
			}
			ack, err := js.Publish(t.Context(), name+".a", nil)
			if err != nil || ack.Stream != name || ack.Sequence != 1 {
				t.Fatalf("%+v %v", ack, err)
			}
		})
	}
}

// fatalTB notes that a test was failed instead of ending it.
type fatalTB struct {
	testing.TB
	failed string
}

func (*fatalTB) Helper() {}

func (f *fatalTB) Fatalf(format string, args ...any) {
	f.failed = format
	panic(f)
}

type brokenService struct{}

func (brokenService) Close() error { return errors.New("closed though never started") }

func TestServiceThatDoesNotStartFailsEveryTest(t *testing.T) {
	t.Parallel()
	var broken lazy[brokenService]
	starts := 0
	for range 2 {
		tb := &fatalTB{TB: t}
		func() {
			defer func() { _ = recover() }()
			broken.get(tb, func() (brokenService, error) { starts++; return brokenService{}, errors.New("no") })
		}()
		if tb.failed == "" {
			t.Fatal("the test went on")
		}
	}
	if err := broken.stop(); err != nil || starts != 1 {
		t.Fatalf("%v after %d starts", err, starts)
	}
}

// The binary itself must fail when a passing test leaves a goroutine behind.
func TestRunFindsLeaks(t *testing.T) {
	t.Parallel()
	if os.Getenv(sloppyMode) == "goroutine" {
		NATS(t)
		go func() { <-make(chan int) }()
		return
	}
	for mode, leaks := range map[string]bool{"goroutine": true, "none": false} {
		if os.Getenv(sloppyMode) != "" {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(ctx, self, "-test.run=^TestRunFindsLeaks$", "-test.v")
		cmd.Env = append(os.Environ(), sloppyMode+"="+mode)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), "--- PASS: TestRunFindsLeaks") {
			t.Fatalf("%s: %s", mode, out)
		}
		if (err != nil) != leaks || strings.Contains(string(out), "found unexpected goroutines") != leaks {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
