package batch

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The environment of a test binary that is a run of its own, to be killed.
const (
	childEnv  = "TEST_BINARY_RUNS"
	childURL  = "TEST_RUN_URL"
	childFile = "TEST_RUN_FILE"
)

// childMain runs a file, as a program would.
func childMain() int {
	source := func() (io.Reader, error) { return os.Open(os.Getenv(childFile)) }
	ctx := context.Background()
	plan, err := Check(ctx, source, FileOptions{Run: "run", Format: CSV})
	if err != nil {
		return 3
	}
	door, err := NewClient(ClientOptions{URL: os.Getenv(childURL), APIKey: testKey})
	if err != nil {
		return 4
	}
	patience := Patience{Now: time.Now, Random: rand.Int64N, Wait: Pause, GiveUp: 2 * time.Minute}
	if _, err = Publish(ctx, plan, door, PublishOptions{Concurrency: 8, Patience: patience}); err != nil {
		return 5
	}
	return 0
}

// TestKilledAndRunAgain: a run that is killed at any point, again and again, ends with every chunk once, under its key, with its bytes.
func TestKilledAndRunAgain(t *testing.T) {
	t.Parallel()
	f := newFakeAPI(t)
	data := csvOf(6000)
	name := t.TempDir() + "/payments.csv"
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var left int64 // to be accepted before the run is killed
	var running chan *os.Process
	f.tell(func(string) { // nobody else is answered until the run is dead
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			_ = (<-running).Kill()
		}
	})
	start := func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), childEnv+"=1", childURL+"="+f.url, childFile+"="+name)
		return c
	}
	for _, n := range []int64{1, 5, 17, 40} {
		c := start()
		mu.Lock()
		left, running = n, make(chan *os.Process, 1)
		mu.Unlock()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running <- c.Process
		if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("it was not killed: %v", err)
		}
		f.settle()
	}
	if n, _ := f.counts(); n >= 60 {
		t.Errorf("%d batches before the last run", n)
	}
	if out, err := start().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.holds(planOf(t, "run", data))
}
