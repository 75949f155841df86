package chaos_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/chaos"
	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
)

// actEnv makes this test binary a process that is looked after ("work", "brief" for one that ends by itself at its first start), or a program that
// starts some and is then killed ("parent").
const actEnv = "ONCEPAY_CHAOS_TEST_ACT"

func TestMain(m *testing.M) {
	switch what := os.Getenv(actEnv); what {
	case "":
		devstacktest.Run(m)
	case "parent":
		actAsParent()
	default:
		work(what)
	}
}

// work is ready and then waits for its end: in order at SIGTERM, at once with its parent.
func work(what string) {
	chaos.UntilParentEnds()
	if mark := os.Getenv("ONCEPAY_CHAOS_TEST_MARK"); what == "brief" {
		if _, err := os.Stat(mark); err != nil {
			_ = os.WriteFile(mark, nil, 0o600)
			os.Exit(3)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println(chaos.ReadyLine, "now")
	<-ctx.Done()
}

// actAsParent starts two processes, stops one, prints their ids and its directory, and waits to be killed.
func actAsParent() {
	keeper, err := chaos.NewKeeper()
	if err != nil {
		panic(err)
	}
	dir, err := keeper.TempDir("oncepay-chaos-test-")
	if err != nil {
		panic(err)
	}
	one, two := worker(keeper, "work"), worker(keeper, "work")
	for _, p := range []*chaos.Process{one, two} {
		if err := p.Start(context.Background()); err != nil {
			panic(err)
		}
	}
	if err := two.Stop(); err != nil {
		panic(err)
	}
	fmt.Println(one.Pid(), two.Pid(), dir)
	select {}
}

func worker(keeper *chaos.Keeper, what string, env ...string) *chaos.Process {
	env = append(append(os.Environ(), actEnv+"="+what), env...)
	return chaos.NewProcess(chaos.Spec{Name: what, Argv: []string{os.Args[0]}, Env: env, Logs: os.Stderr}, keeper)
}

func newKeeper(t *testing.T) *chaos.Keeper {
	t.Helper()
	k, err := chaos.NewKeeper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func started(t *testing.T, what string, env ...string) *chaos.Process {
	t.Helper()
	p := worker(newKeeper(t), what, env...)
	t.Cleanup(func() { p.Close(patience) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return p
}

// state is a process's letter in /proc: T when it is stopped, "" when it is gone.
func state(t *testing.T, pid int) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	if s := rest[:1]; s != "Z" && s != "X" {
		return s
	}
	return ""
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal(what)
		}
	}
}

func TestProcessIsKilledAndStartedAgain(t *testing.T) {
	t.Parallel()
	p := started(t, "work")
	first := p.Pid()
	p.Kill()
	if p.Pid() != 0 || state(t, first) != "" {
		t.Error("it runs on")
	}
	if err := p.Start(t.Context()); err != nil || p.Pid() == 0 || p.Pid() == first {
		t.Errorf("started again: %v, %d after %d", err, p.Pid(), first)
	}
	if !p.Terminate(patience) || len(p.OwnEnds()) > 0 {
		t.Errorf("it was to end in order: %v", p.OwnEnds())
	}
}

func TestProcessIsStopped(t *testing.T) {
	t.Parallel()
	p := started(t, "work")
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "it is not stopped", func() bool { return state(t, p.Pid()) == "T" })
	p.Continue()
	until(t, "it does not go on", func() bool { return state(t, p.Pid()) != "T" })
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if !p.Terminate(patience) { // it goes on, to end in order
		t.Error("one that was stopped did not end in order")
	}
	if p.Stop() == nil {
		t.Error("one that does not run was stopped")
	}
}

// One that ends by itself is started again, and told of.
func TestProcessEndsByItself(t *testing.T) {
	t.Parallel()
	p := started(t, "brief", "ONCEPAY_CHAOS_TEST_MARK="+filepath.Join(t.TempDir(), "mark"))
	if p.Pid() == 0 || len(p.OwnEnds()) != 1 {
		t.Errorf("%d, %v", p.Pid(), p.OwnEnds())
	}
}

// However the parent ends, nothing is left of what it started, not even what was stopped, nor its directory.
func TestNothingOutlivesAKilledParent(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), actEnv+"=parent", "TMPDIR="+t.TempDir())
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var one, two int
	var dir string
	_, err = fmt.Fscan(out, &one, &two, &dir)
	killed := command.Process.Kill()
	_ = command.Wait()
	if err != nil || killed != nil {
		t.Fatal(err, killed)
	}
	until(t, "something is left: "+strconv.Itoa(one)+" "+strconv.Itoa(two)+" "+dir, func() bool {
		_, err := os.Stat(dir)
		return state(t, one) == "" && state(t, two) == "" && os.IsNotExist(err)
	})
}
