package cli

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments/stripesim"
)

// lines is a log that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) await(t *testing.T, word string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !strings.Contains(l.String(), word); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say %q: %s", word, l.String())
		}
	}
}

// TestSignals: a process that is told to stop, again and again, records the charge that Stripe is still answering, and exits with 0.
func TestSignals(t *testing.T) {
	t.Parallel()
	charged, answer := make(chan struct{}), make(chan struct{})
	sim, err := stripesim.New(stripesim.Options{OnCommit: func(c stripesim.Commit) {
		if c.Charged {
			close(charged)
			<-answer
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stripe := httptest.NewServer(sim)
	t.Cleanup(func() {
		_ = sim.Close()
		stripe.Close()
	})
	b := newBench(t, migrate)
	b.json("tenants", "create", "demo")
	var log lines
	c := exec.Command(os.Args[0], append([]string{"serve", "--stripe-key=sk_test_simulated", "--stripe-url=" + stripe.URL, "--http-addr=off", "--lease=45s", "--drain=50s"}, b.flags...)...)
	c.Env, c.Stderr = []string{programEnv + "=1", "PATH=" + os.Getenv("PATH")}, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	log.await(t, "oncepay works")
	if r := b.run(intentFlags("order-1")...); r.code != exitOK {
		t.Fatalf("publish: %+v", r)
	}
	<-charged
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT, syscall.SIGTERM} {
		if err := c.Process.Signal(signal); err != nil {
			t.Errorf("it is gone already: %v", err)
		}
	}
	if d := b.json("payments", "show", "--tenant", "demo", "--key", "order-1"); d["status"] != "processing" {
		t.Errorf("meanwhile it is %v", d["status"])
	}
	close(answer)
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, log.String())
	}
	if d := b.json("payments", "show", "--tenant", "demo", "--key", "order-1"); d["status"] != "succeeded" {
		t.Errorf("afterwards it is %v", d["status"])
	}
	if !strings.Contains(log.String(), "oncepay stopped") || strings.Contains(log.String(), "sk_test") {
		t.Errorf("log: %s", log.String())
	}
}
