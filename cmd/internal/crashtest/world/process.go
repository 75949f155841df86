package world

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
	"time"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
)

// processEnv makes this test binary a worker process. Its value is a script, the rest of its settings are those of production.
const processEnv = "ONCEPAY_CRASHTEST_PROCESS"

// Script says what a worker process does beside its work.
type Script struct {
	Step payments.Step `json:"step"`
	// IDs are the payments that it is about; a Take has none, and then any will do.
	IDs []string `json:"ids"`
	// Kill: at the step the process ends itself with SIGKILL. Else it says "at" and waits until it is told to go on.
	Kill bool `json:"kill"`
}

// says are the lines of a worker process: "ready <its HTTP address>", "at <step> <id>", and "step <step> <id>" for whatever follows.
const (
	saysReady = "ready"
	SaysAt    = "at"
	SaysStep  = "step"
)

// workerProcess is the whole life of a worker process: it serves as production does until its standard input ends.
func workerProcess() int {
	settings, err := app.Load(app.Environment)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var s Script
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
func (s Script) onStep(goOn <-chan struct{}) func(payments.Step, payments.ID) {
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
				fmt.Println(SaysStep, step, id)
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
			fmt.Println(SaysAt, step, id)
			<-goOn
		}
	}
}

// Process is a worker process seen from its parent.
type Process struct {
	World   *World
	Command *exec.Cmd
	Pipe    io.WriteCloser
	Exited  chan struct{}
	Err     error

	mu    sync.Mutex
	lines []string
}

// Spawn starts a worker process in the world, with settings of its own beside the world's; it ends with the test, however that ends.
func (w *World) Spawn(s Script, settings ...string) *Process {
	w.Helper()
	program, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		w.Fatal(err)
	}
	p := &Process{World: w, Command: exec.Command(program), Exited: make(chan struct{})}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "ONCEPAY_") || name == SabotageEnv {
			p.Command.Env = append(p.Command.Env, pair)
		}
	}
	p.Command.Env = append(p.Command.Env, processEnv+"="+string(text),
		"ONCEPAY_DATABASE_URL="+w.DSN, "ONCEPAY_NATS_URL="+w.NATSURL, "ONCEPAY_SUBJECT_PREFIX="+w.Subjects.Prefix,
		"ONCEPAY_STRIPE_KEY="+StripeKey, "ONCEPAY_STRIPE_URL="+w.SimURL, "ONCEPAY_NAMESPACE="+Namespace,
		"ONCEPAY_STRIPE_TIMEOUT="+w.Times.Call.String(), "ONCEPAY_LEASE="+max(w.Times.Lease, time.Second).String(), "ONCEPAY_ACK_WAIT="+w.Times.AckWait.String(),
		"ONCEPAY_RETRY_FIRST="+w.Times.Backoff.First.String(), "ONCEPAY_RETRY_MAX="+w.Times.Backoff.Max.String(), "ONCEPAY_LOOK_WITHIN="+w.Times.Backoff.SoonMax.String(),
		"ONCEPAY_STREAM_MAX_BYTES="+fmt.Sprint(w.streamSettings().StreamMaxBytes), "ONCEPAY_HTTP_ADDR=off", "ONCEPAY_CONCURRENCY=64",
		"ONCEPAY_DRAIN=2s", "ONCEPAY_LOG_LEVEL=warn", "ONCEPAY_STRIPE_RATE=0")
	p.Command.Env = append(p.Command.Env, settings...)
	p.Command.Stderr = w.Logs
	if p.Pipe, err = p.Command.StdinPipe(); err != nil {
		w.Fatal(err)
	}
	out, err := p.Command.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := p.Command.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
		p.Err = p.Command.Wait()
		close(p.Exited)
	}()
	w.Cleanup(func() {
		_ = p.Command.Process.Kill()
		_ = p.Pipe.Close()
		<-p.Exited
	})
	return p
}

// Says reports whether the process has said a line that begins so.
func (p *Process) Says(start string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// AwaitLine waits until the process has said a line that begins so.
func (p *Process) AwaitLine(start string) {
	p.World.Helper()
	p.World.Await("the line "+start, func() (bool, string) {
		select {
		case <-p.Exited:
			return p.Says(start), fmt.Sprintf("the process ended: %v", p.Err)
		default:
		}
		return p.Says(start), "not yet said"
	})
}

// LetGo lets a process that waits at its step go on, and returns once it has drained: what it had in hand is done, in one way or another.
func (p *Process) LetGo() {
	p.World.Helper()
	if _, err := p.Pipe.Write([]byte("go\n")); err != nil {
		p.World.Fatal(err)
	}
	if err := p.Pipe.Close(); err != nil {
		p.World.Fatal(err)
	}
	<-p.Exited
}

// Signal sends the process a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.World.Helper()
	if err := p.Command.Process.Signal(s); err != nil {
		p.World.Fatal(err)
	}
}

// SabotageEnv chooses the protection that a build with the tag sabotage lacks; FindingEnv is the file to which a test of such a build writes
// what it has found, where it would otherwise judge.
const (
	SabotageEnv = "ONCEPAY_SABOTAGE"
	FindingEnv  = "ONCEPAY_CRASHTEST_FINDING"
)
