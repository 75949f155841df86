package dev

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/cli"
)

// oncepay runs the program for production with the settings of an env file.
func oncepay(t *testing.T, envFile string, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(append([]string{"--config", envFile}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

// waitUp waits until the env file is there, and checks that it was written for its owner alone.
func (p *program) waitUp(envFile string) {
	p.t.Helper()
	until(p.t, func() string {
		select {
		case <-p.ended:
			p.t.Fatalf("up ended: %s%s", p.out.String(), p.err.String())
		default:
		}
		info, err := os.Stat(envFile)
		if text, unread := os.ReadFile(envFile); err != nil || unread != nil || bytes.Contains(text, []byte("stale")) {
			return "no env file"
		}
		if info.Mode().Perm() != 0o600 {
			p.t.Fatalf("the env file has mode %s", info.Mode())
		}
		return ""
	})
}

// TestUp goes up with three workers, works, and leaves nothing when the terminal sends SIGINT.
func TestUp(t *testing.T) {
	t.Parallel()
	tmp, envFile := temporary(t), filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(envFile, []byte("ONCEPAY_DATABASE_URL='stale'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, "", tmp, nil, "up", "--env-file", envFile, "--workers", "3")
	p.waitUp(envFile)
	all := family(t, p.command.Process.Pid)
	if n := count(all, workerCommand); n != 3 {
		t.Errorf("%d workers: %v", n, all)
	}
	if code, out := oncepay(t, envFile, "publish", "--tenant", "demo", "--key", "order-1", "--amount", "9900", "--currency", "usd", "--payment-method", "pm_card_visa", "--wait"); code != 0 || !strings.Contains(out, "succeeded") {
		t.Errorf("publish: %d %s", code, out)
	}
	c := exec.Command("sh", "-c", `set -eu; set -a; . "$0"; set +a; echo "$ONCEPAY_HTTP_ADDR"; echo "$ONCEPAY_ADMIN_ADDR"; echo "$ONCEPAY_DEV_API_KEY"; env | grep -c ^ONCEPAY_`, envFile)
	c.Env = []string{"PATH=" + os.Getenv("PATH")}
	sourced, err := c.CombinedOutput()
	lines := strings.Fields(string(sourced))
	if err != nil || len(lines) != 4 || len(lines[2]) < 32 {
		t.Fatalf("sourced: %v %q", err, sourced)
	}
	for _, addr := range lines[:2] {
		until(t, func() string { // a look that takes longer than two seconds is one that says no
			response, err := http.Get("http://" + addr + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != 200 {
				return addr + "/readyz: " + response.Status
			}
			return ""
		})
	}
	http.DefaultClient.CloseIdleConnections()
	if !strings.Contains(p.out.String(), "Oncepay is up") || !strings.Contains(p.out.String(), envFile) {
		t.Errorf("it says: %s", p.out.String())
	}
	if err := syscall.Kill(-p.command.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
	until(t, func() string { return alive(all) })
	if names := left(t, tmp); names != "" {
		t.Errorf("left in the temporary directory: %s", names)
	}
}

// TestUpKilled: kill -9 leaves neither workers nor PostgreSQL behind, and the next up takes the data directory over with the payments in it.
// The limits of the API and of Stripe can be tried with up; addresses and secrets of an earlier up are not taken over.
func TestLimitsOfTheCaller(t *testing.T) {
	t.Parallel()
	asked := map[string]string{"ONCEPAY_API_RATE": "5", "ONCEPAY_UNPUBLISHED_MAX": "10", "ONCEPAY_STRIPE_RATE": "7", "ONCEPAY_DATABASE_URL": "postgres://elsewhere"}
	env := map[string]string{"ONCEPAY_API_RATE": "0", "ONCEPAY_STRIPE_RATE": "0", "ONCEPAY_DATABASE_URL": "postgres://here"}
	tryLimits(env, func(name string) string { return asked[name] })
	want := map[string]string{"ONCEPAY_API_RATE": "5", "ONCEPAY_UNPUBLISHED_MAX": "10", "ONCEPAY_STRIPE_RATE": "7", "ONCEPAY_DATABASE_URL": "postgres://here"}
	if !maps.Equal(env, want) {
		t.Errorf("%v, want %v", env, want)
	}
	tryLimits(env, func(string) string { return "" })
	if !maps.Equal(env, want) {
		t.Errorf("nothing asked for: %v", env)
	}
}

func TestUpKilled(t *testing.T) {
	t.Parallel()
	tmp := temporary(t)
	data, envFile := filepath.Join(tmp, "data"), filepath.Join(t.TempDir(), "env")
	t.Cleanup(func() { // root's PostgreSQL runs as another user, whose files stand elsewhere, behind a link
		if real, err := filepath.EvalSymlinks(filepath.Join(data, "postgres")); err == nil {
			_ = os.RemoveAll(real)
		}
	})
	p := start(t, "", tmp, nil, "up", "--data-dir", data, "--env-file", envFile)
	p.waitUp(envFile)
	if code, out := oncepay(t, envFile, "publish", "--tenant", "demo", "--key", "order-1", "--amount", "9900", "--currency", "usd", "--payment-method", "pm_card_visa", "--wait"); code != 0 {
		t.Fatalf("publish: %d %s", code, out)
	}
	all := family(t, p.command.Process.Pid)
	if count(all, workerCommand) != 1 || count(all, "postgres") == 0 {
		t.Fatalf("what runs: %v", all)
	}
	if err := syscall.Kill(p.command.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	until(t, func() string { return alive(all) })
	t.Logf("all gone %s after kill -9", time.Since(killed).Round(time.Millisecond))
	p.wait()

	if err := os.Remove(envFile); err != nil {
		t.Fatal(err)
	}
	p = start(t, "", tmp, nil, "up", "--data-dir", data, "--env-file", envFile)
	p.waitUp(envFile)
	if code, out := oncepay(t, envFile, "payments", "show", "--tenant", "demo", "--key", "order-1"); code != 0 || !strings.Contains(out, "succeeded") {
		t.Errorf("after the takeover: %d %s", code, out)
	}
	if code, out := oncepay(t, envFile, "publish", "--tenant", "demo", "--key", "order-2", "--amount", "9900", "--currency", "usd", "--payment-method", "pm_card_visa", "--wait"); code != 0 {
		t.Errorf("publish: %d %s", code, out)
	}
	all = family(t, p.command.Process.Pid)
	if err := syscall.Kill(p.command.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
	until(t, func() string { return alive(all) })
}

// TestUsage: what is wrong with a flag is one line and exit code 2, before anything starts.
func TestUsage(t *testing.T) {
	t.Parallel()
	taken := taken(t)
	for _, c := range []struct{ args, want string }{
		{"bogus", `unknown command "bogus"; there are demo, up, bench, chaos, stripe`},
		{"demo extra", "wrong number of arguments"},
		{"demo --intents 0", "--intents: must be from 1"},
		{"demo --intents x", "--intents: must be a whole number"},
		{"demo --seed -1", "--seed: must be a whole number, not negative"},
		{"demo --faults earthquake", "--faults: must be all, none or a list of reset_before,"},
		{"up --workers 0", "--workers: must be from 1 to 64"},
		{"up --nats 10.0.0.1:4222", "--nats: must be 127.0.0.1:port"},
		{"up --nats 4222", "--nats: must be 127.0.0.1:port"},
		{"up --postgres-port 65536", "--postgres-port: must be from 0 to 65535"},
		{"up --stripe nowhere", "--stripe: "},
		{"up --stripe " + taken, "--stripe: listen tcp " + taken},
		{"up --http " + taken, "--http: listen tcp " + taken},
		{"up --nats " + taken, "--nats: listen tcp " + taken},
		{"up --http nowhere", "--http: must be host:port"},
		{"up --admin 0.0.0.0:0", "--admin: must be on this machine"},
		{"up --env-file /nowhere/env", "--env-file: "},
		{"bench speed", "the benchmarks are throughput, publish and http"},
		{"bench --intents 0", "--intents: must be from 1"},
		{"bench --duplicates NaN", "--duplicates: must be from 0"},
		{"bench --concurrency 0", "--concurrency: must be a whole number from"},
		{"bench --stripe-url nowhere", "--stripe-url: must be an http or https URL"},
		{"bench --postgres postgres://u:hunter2@h:x/d", "--postgres: must be a PostgreSQL URL"},
		{"stripe --addr " + taken, "--addr: listen tcp " + taken},
		{"stripe --data /nowhere/ledger", "--data: "},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			tmp := temporary(t)
			p := start(t, "", tmp, nil, strings.Fields(c.args)...)
			if code := p.wait(); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(p.err.String(), c.want) || strings.Count(p.err.String(), "\n") != 1 || p.out.String() != "" || strings.Contains(p.err.String(), "hunter2") {
				t.Errorf("%q, %q; want %q", p.out.String(), p.err.String(), c.want)
			}
			if names := left(t, tmp); names != "" {
				t.Errorf("left: %s", names)
			}
		})
	}
}

// TestWorkerProcess: it says what it lacks, and it ends as soon as nobody holds its standard input, even while it still waits for PostgreSQL.
func TestWorkerProcess(t *testing.T) {
	t.Parallel()
	worker := func(env ...string) (c *exec.Cmd, said *output, parent io.WriteCloser) {
		c, said = exec.Command(os.Args[0], workerCommand), &output{}
		c.Env, c.Stderr = append(env, programEnv+"=1", "PATH="+os.Getenv("PATH")), said
		parent, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c, said, parent
	}
	lacking, said, _ := worker()
	if _ = lacking.Wait(); lacking.ProcessState.ExitCode() != 2 || said.String() != "oncepay-dev: ONCEPAY_DATABASE_URL: is required, for example postgres://oncepay@127.0.0.1:5432/oncepay\n" {
		t.Errorf("exit code %d: %q", lacking.ProcessState.ExitCode(), said.String())
	}
	orphan, said, parent := worker("ONCEPAY_DATABASE_URL=postgres://127.0.0.1:1/none", "ONCEPAY_STRIPE_KEY=sk_test_simulated", "ONCEPAY_HTTP_ADDR=off")
	until(t, func() string {
		if strings.Contains(said.String(), "PostgreSQL is not reachable yet") {
			return ""
		}
		return "it waits for PostgreSQL"
	})
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if _ = orphan.Wait(); orphan.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d: %q", orphan.ProcessState.ExitCode(), said.String())
	}
}

// TestSimulatorAlone: it says where it is, keeps its ledger in the file, and ends with SIGTERM.
func TestSimulatorAlone(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger")
	for want := range 2 {
		p := start(t, "", temporary(t), nil, "stripe", "--addr", "127.0.0.1:0", "--data", ledger)
		var url string
		until(t, func() string {
			if _, rest, ok := strings.Cut(p.out.String(), "Stripe simulator on "); ok && strings.Contains(rest, "/_sim/faults\n") {
				url, _, _ = strings.Cut(rest, "\n")
				return ""
			}
			return "it says where it is"
		})
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(url + "/_sim/ledger")
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Charges []any }
		err = json.NewDecoder(response.Body).Decode(&document)
		if _ = response.Body.Close(); err != nil || len(document.Charges) != want {
			t.Errorf("%d charges, want %d; %v", len(document.Charges), want, err)
		}
		form := strings.NewReader("amount=100&currency=usd&payment_method=pm_card_visa&confirm=true&off_session=true&automatic_payment_methods[enabled]=true&automatic_payment_methods[allow_redirects]=never")
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/payment_intents", form)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer sk_test_1")
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Idempotency-Key", fmt.Sprint("key-", want))
		if response, err = client.Do(request); err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != 200 {
			t.Errorf("a payment: %d", response.StatusCode)
		}
		if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(); code != 0 || p.err.String() != "" {
			t.Errorf("exit code %d: %s", code, p.err.String())
		}
	}
}

// TestUpEndsEarly: whatever ends it before its time, in whatever order, it leaves nothing running.
func TestUpEndsEarly(t *testing.T) {
	t.Parallel()
	// What is ignored here, as under nohup, would be ignored by the programs that are started; what is caught is not.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	for name, c := range map[string]struct {
		end  func(t *testing.T, p *program, envFile string) (seen []process)
		code int
		want string
	}{
		"interrupted while it starts": {func(t *testing.T, p *program, _ string) (seen []process) {
			until(t, func() string {
				if seen = family(t, p.command.Process.Pid); len(seen) > 1 {
					return ""
				}
				return "something started"
			})
			defer func() { seen = append(seen, family(t, p.command.Process.Pid)...) }()
			_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGINT)
			return seen
		}, 0, ""},
		"its terminal is closed": {func(t *testing.T, p *program, envFile string) []process {
			p.waitUp(envFile)
			seen := family(t, p.command.Process.Pid)
			_ = syscall.Kill(-p.command.Process.Pid, syscall.SIGHUP)
			return seen
		}, 0, ""},
		"a worker dies": {func(t *testing.T, p *program, envFile string) []process {
			p.waitUp(envFile)
			seen := family(t, p.command.Process.Pid)
			for _, one := range seen {
				if strings.Contains(one.command, workerCommand) {
					_ = syscall.Kill(one.pid, syscall.SIGKILL)
					return seen
				}
			}
			t.Error("no worker")
			return seen
		}, 1, "a worker process ended, and with it everything: signal: killed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp, envFile := temporary(t), filepath.Join(t.TempDir(), "env")
			p := start(t, "", tmp, nil, "up", "--env-file", envFile, "--workers", "2")
			all := c.end(t, p, envFile)
			if code := p.wait(); code != c.code || !strings.HasSuffix(p.err.String(), c.want) {
				t.Errorf("exit code %d: %q", code, p.err.String())
			}
			until(t, func() string { return alive(all) })
			if names := left(t, tmp); names != "" {
				t.Errorf("left: %s", names)
			}
		})
	}
}
