package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ReadyLine is the first word of the line by which a process says on standard output that it works.
const ReadyLine = "ready"

// Spec says how to start a process. It has to print ReadyLine once it works, and to end when its standard input does.
type Spec struct {
	Name string
	Argv []string
	Env  []string
	Logs io.Writer
}

// Process is one process that can be killed, stopped and started again. Its methods may be called from any goroutine.
type Process struct {
	spec   Spec
	keeper *Keeper

	mu      sync.Mutex
	run     *run // nil before the first start
	stopped bool
	closed  bool
	own     []error // ends that nobody here asked for
}

// run is one life of a process.
type run struct {
	command *exec.Cmd
	pipe    io.Closer
	ready   chan struct{}
	exited  chan struct{}
	asked   bool // guarded by Process.mu: its end is wanted
	err     error
}

// NewProcess describes a process; Start starts it.
func NewProcess(spec Spec, keeper *Keeper) *Process { return &Process{spec: spec, keeper: keeper} }

// Name is the name it was given.
func (p *Process) Name() string { return p.spec.Name }

// ErrEnded is the error of a Start during which the process was ended: by whoever else acts on it, or by itself (OwnEnds).
var ErrEnded = errors.New("ended while it started")

// Start starts the process unless it runs, and returns once it is ready. One that ends by itself meanwhile is started again, as whatever looks
// after it in production would; OwnEnds tells.
func (p *Process) Start(ctx context.Context) error {
	for {
		r, err := p.launch()
		if err != nil {
			return err
		}
		select {
		case <-r.ready:
			return nil
		case <-r.exited:
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w", p.spec.Name, ctx.Err())
		}
		p.mu.Lock()
		asked := r.asked
		p.mu.Unlock()
		if asked {
			return fmt.Errorf("%s: %w", p.spec.Name, ErrEnded)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s does not start: %w", p.spec.Name, errors.Join(r.err, ctx.Err()))
		}
	}
}

// Launch starts the process unless it runs, and does not wait for it.
func (p *Process) Launch() error {
	_, err := p.launch()
	return err
}

func (p *Process) launch() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%s is closed", p.spec.Name)
	}
	if p.run != nil && p.run.alive() {
		return p.run, nil
	}
	r := &run{command: exec.Command(p.spec.Argv[0], p.spec.Argv[1:]...), ready: make(chan struct{}), exited: make(chan struct{})}
	r.command.Env, r.command.Stderr = p.spec.Env, p.spec.Logs
	var err error
	if r.pipe, err = r.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	p.run, p.stopped = r, false
	go p.attend(r, out)
	return r, nil
}

// attend reads what a process says until its end.
func (p *Process) attend(r *run, out io.Reader) {
	said := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if first, _, _ := strings.Cut(lines.Text(), " "); first == ReadyLine && !said {
			said = true
			close(r.ready)
		}
	}
	err := r.command.Wait()
	p.mu.Lock()
	r.err = err
	if !r.asked {
		p.own = append(p.own, fmt.Errorf("%s ended by itself: %s", p.spec.Name, r.command.ProcessState))
	}
	p.mu.Unlock()
	_ = r.pipe.Close()
	close(r.exited)
}

func (r *run) alive() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

// OwnEnds lists the times that the process ended although nobody here ended it.
func (p *Process) OwnEnds() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own
}

// Pid is the process id, 0 while it does not run.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.alive() {
		return 0
	}
	return p.run.command.Process.Pid
}

// Exited is closed once the present life of the process has ended; nil before the first.
func (p *Process) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.exited
}

// end signals the process, as wanted; nil when it does not run.
func (p *Process) end(s syscall.Signal) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.alive() {
		return nil
	}
	p.run.asked = true
	_ = p.run.command.Process.Signal(s)
	return p.run
}

// Kill ends the process with SIGKILL, and returns when it is gone.
func (p *Process) Kill() {
	if r := p.end(syscall.SIGKILL); r != nil {
		<-r.exited
		p.goesOn()
	}
}

// Terminate lets the process end in order, and kills it when that takes too long; it reports whether it did end in order.
func (p *Process) Terminate(within time.Duration) bool {
	p.Continue()
	r := p.end(syscall.SIGTERM)
	if r == nil {
		return true
	}
	select {
	case <-r.exited:
		return r.err == nil
	case <-time.After(within):
		p.Kill()
		return false
	}
}

// Stop stops the process with SIGSTOP, until Continue.
func (p *Process) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !p.run.alive() {
		return fmt.Errorf("%s does not run", p.spec.Name)
	}
	pid := p.run.command.Process.Pid
	if err := p.keeper.guard.Tell(fmt.Sprint("stopped ", pid)); err != nil {
		return err
	}
	p.stopped = true
	return p.run.command.Process.Signal(syscall.SIGSTOP)
}

// Continue lets a stopped process go on.
func (p *Process) Continue() {
	p.mu.Lock()
	running := p.run != nil && p.run.alive() && p.stopped
	if running {
		_ = p.run.command.Process.Signal(syscall.SIGCONT)
	}
	p.mu.Unlock()
	if running {
		p.goesOn()
	}
}

// goesOn tells the keeper that it need not see to the process any more.
func (p *Process) goesOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		p.stopped = false
		_ = p.keeper.guard.Tell(fmt.Sprint("going ", p.run.command.Process.Pid))
	}
}

// Close ends the process for good.
func (p *Process) Close(within time.Duration) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Terminate(within)
}

// UntilParentEnds ends this process as soon as its standard input does: its parent has died, however it died.
func UntilParentEnds() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}
