package devstacktest

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestProxyCutsAndHeals(t *testing.T) {
	t.Parallel()
	dsn := Database(t)
	proxy := NewProxy(t, dsn) // a URL is understood
	via := Via(t, dsn, proxy.Addr())
	conn := open(t, via)
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if err := conn.Ping(t.Context()); err == nil {
		t.Fatal("a cut connection answers")
	}
	if again, err := pgx.Connect(t.Context(), via); err == nil {
		again.Close(t.Context())
		t.Fatal("a cut proxy lets a connection through")
	}
	proxy.Heal()
	if err := open(t, via).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The three fates of a COMMIT, seen from a client that cannot tell the latter two apart.
func TestProxyAndCommit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		action    Action
		answered  bool
		committed int
	}{
		"forwarded":               {Forward, true, 1},
		"forwarded, never answer": {ForwardThenCut, false, 1},
		"never arrives":           {Cut, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := Database(t, migrate)
			proxy := NewProxy(t, dsn)
			proxy.OnClientData(func(chunk []byte) Action {
				if bytes.Contains(bytes.ToLower(chunk), []byte("commit")) {
					return test.action
				}
				return Forward
			})
			conn := open(t, Via(t, dsn, proxy.Addr()))
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "INSERT INTO items VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); (err == nil) != test.answered {
				t.Fatalf("commit says %v", err)
			}
			direct := open(t, dsn)
			// The server may still be at it when the client already knows its loss; it
			// is done once the session is gone.
			if !test.answered {
				awaitAlone(t, direct)
			}
			if n := count(t, direct); n != test.committed {
				t.Fatalf("%d rows, want %d", n, test.committed)
			}
		})
	}
}

// awaitAlone polls until no other session uses the database.
func awaitAlone(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		var others int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&others); err != nil {
			t.Fatal(err)
		}
		if others == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the cut session still lives")
		}
	}
}

func TestProxyCarriesBytesAndHalfCloses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() { // sends everything back once the client has finished
		conn, err := listener.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		all, err := io.ReadAll(conn)
		if err == nil {
			_, err = conn.Write(all)
		}
		served <- err
	}()
	conn, err := net.Dial("tcp", NewProxy(t, listener.Addr().String()).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(sent), err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestProxyWithoutTarget(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", NewProxy(t, "127.0.0.1:1").Addr()) // a port of nobody, and not one that was free a moment ago
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Fatal("nobody answered")
	}
}
