package crashtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// processEnv makes this test binary a worker process. Its value is a script, the rest of its settings are those of production.
const processEnv = "ONCEPAY_CRASHTEST_PROCESS"

// script says what a worker process does beside its work.
type script struct {
	Step payments.Step `json:"step"`
	// IDs are the payments that it is about; a Take has none, and then any will do.
	IDs []string `json:"ids"`
	// Kill: at the step the process ends itself with SIGKILL. Else it says "at" and waits until it is told to go on.
	Kill bool `json:"kill"`
}

// says are the lines of a worker process: "ready <its HTTP address>", "at <step> <id>", and "step <step> <id>" for whatever follows.
const (
	saysReady = "ready"
	saysAt    = "at"
	saysStep  = "step"
)

// workerProcess is the whole life of a worker process: it serves as production does until its standard input ends.
func workerProcess() int {
	settings, err := app.Load(app.Environment)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var s script
	if err := json.Unmarshal([]byte(os.Getenv(processEnv)), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	goOn := make(chan struct{})
	go func() { // the parent's pipe: a line lets go of what waits, its end ends the process
		lines := bufio.NewScanner(os.Stdin)
		if lines.Scan() {
			close(goOn)
		}
		for lines.Scan() {
		}
		stop()
	}()
	err = app.Serve(ctx, settings, app.NewLog(os.Stderr, settings.LogLevel), app.ServeOptions{
		Ready:  func(http, _ string) { fmt.Println(saysReady, http) },
		OnStep: s.onStep(goOn),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// onStep is the hook of a worker process.
func (s script) onStep(goOn <-chan struct{}) func(payments.Step, payments.ID) {
	var mu sync.Mutex
	concerned := map[payments.ID]bool{{}: true}
	for _, text := range s.IDs {
		if id, err := payments.ParseID(text); err == nil {
			concerned[id] = true
		}
	}
	arrived := map[payments.ID]bool{}
	return func(step payments.Step, id payments.ID) {
		if !concerned[id] || s.Step == "" {
			return
		}
		if step != s.Step {
			if !s.Kill && id != (payments.ID{}) {
				fmt.Println(saysStep, step, id)
			}
			return
		}
		if s.Kill {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
		mu.Lock()
		first := !arrived[id]
		arrived[id] = true
		mu.Unlock()
		if first {
			fmt.Println(saysAt, step, id)
			<-goOn
		}
	}
}

// process is a worker process seen from its parent.
type process struct {
	world   *world
	command *exec.Cmd
	pipe    io.WriteCloser
	exited  chan struct{}
	err     error

	mu    sync.Mutex
	lines []string
}

// spawn starts a worker process in the world, with settings of its own beside the world's; it ends with the test, however that ends.
func (w *world) spawn(s script, settings ...string) *process {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		w.Fatal(err)
	}
	p := &process{world: w, command: exec.Command(program), exited: make(chan struct{})}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "ONCEPAY_") || name == sabotageEnv {
			p.command.Env = append(p.command.Env, pair)
		}
	}
	p.command.Env = append(p.command.Env, processEnv+"="+string(text),
		"ONCEPAY_DATABASE_URL="+w.dsn, "ONCEPAY_NATS_URL="+w.natsURL, "ONCEPAY_SUBJECT_PREFIX="+w.subjects.Prefix,
		"ONCEPAY_STRIPE_KEY="+stripeKey, "ONCEPAY_STRIPE_URL="+w.simURL, "ONCEPAY_NAMESPACE="+namespace,
		"ONCEPAY_STRIPE_TIMEOUT="+w.times.call.String(), "ONCEPAY_LEASE="+max(w.times.lease, time.Second).String(), "ONCEPAY_ACK_WAIT="+w.times.ackWait.String(),
		"ONCEPAY_RETRY_FIRST="+w.times.backoff.First.String(), "ONCEPAY_RETRY_MAX="+w.times.backoff.Max.String(), "ONCEPAY_LOOK_WITHIN="+w.times.backoff.SoonMax.String(),
		"ONCEPAY_STREAM_MAX_BYTES="+fmt.Sprint(w.streamSettings().StreamMaxBytes), "ONCEPAY_HTTP_ADDR=off", "ONCEPAY_CONCURRENCY=64",
		"ONCEPAY_DRAIN=2s", "ONCEPAY_LOG_LEVEL=warn", "ONCEPAY_STRIPE_RATE=0")
	p.command.Env = append(p.command.Env, settings...)
	p.command.Stderr = w.logs
	if p.pipe, err = p.command.StdinPipe(); err != nil {
		w.Fatal(err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
		p.err = p.command.Wait()
		close(p.exited)
	}()
	w.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.pipe.Close()
		<-p.exited
	})
	return p
}

// says reports whether the process has said a line that begins so.
func (p *process) says(start string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// awaitLine waits until the process has said a line that begins so.
func (p *process) awaitLine(start string) {
	p.world.Helper()
	p.world.await("the line "+start, func() (bool, string) {
		select {
		case <-p.exited:
			return p.says(start), fmt.Sprintf("the process ended: %v", p.err)
		default:
		}
		return p.says(start), "not yet said"
	})
}

func (p *process) signal(s syscall.Signal) {
	p.world.Helper()
	if err := p.command.Process.Signal(s); err != nil {
		p.world.Fatal(err)
	}
}

// killFaults are what happens to the submissions of processes that are killed.
var killFaults = []string{"", "commit_then_503", "commit_then_reset"}

// TestKilledProcess ends a real worker process with SIGKILL at each step, for payments whose answer arrives and for such whose answer is lost;
// then a healthy worker finishes.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for _, step := range payments.Steps() {
		for _, fault := range killFaults {
			name := fault
			if name == "" {
				name = "none"
			}
			t.Run(string(step)+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				o, charges := w.order("order-1"), 1
				if step == payments.StepBeforeCancel || step == payments.StepAfterCancel {
					o.method, o.Declines, o.present, charges = "pm_card_visa_chargeDeclined", true, true, 0
				}
				if fault != "" {
					w.fault(o, fault, 1)
				}
				if step == payments.StepAfterTake {
					w.storeUnowned(map[string]order{"": o})
				}
				w.publish(o)
				p := w.spawn(script{Step: step, IDs: []string{o.id().String()}, Kill: true})
				select {
				case <-p.exited:
				case <-time.After(restLimit):
					t.Fatal("the process did not come to its step")
				}
				status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
				if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
					t.Fatalf("the process ended otherwise than by SIGKILL: %v", p.err)
				}
				w.start(workerOptions{name: "healthy"})
				a := w.mustBeGood(0)
				if len(a.Charges) != charges {
					t.Errorf("%d charges, want %d", len(a.Charges), charges)
				}
				if o.Declines {
					w.mustBeCanceled(t, a, o)
				}
			})
		}
	}
}
