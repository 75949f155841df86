package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stack is what oncepay-dev up runs.
type stack struct {
	api, stripe, key string
}

// startStack builds oncepay-dev, runs it until the test ends, and returns once it is up.
func startStack(t *testing.T) stack {
	t.Helper()
	program := filepath.Join(t.TempDir(), "oncepay-dev")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/oncepay-dev")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/oncepay-dev: %v\n%s", err, out)
	}
	envFile := filepath.Join(t.TempDir(), "env")
	up := exec.Command(program, "up", "--env-file", envFile)
	up.SysProcAttr = endWithParent()
	up.Stderr = os.Stderr
	up.Env = append(os.Environ(), "ONCEPAY_STRIPE_RATE=0")
	output, err := up.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	isUp, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "Oncepay is up") {
				close(isUp)
			}
		}
		_ = up.Wait() // its output has ended
	}()
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Error("oncepay-dev up did not end within two minutes of SIGINT")
			_ = up.Process.Kill()
			<-ended
		}
	})
	select {
	case <-isUp:
	case <-ended:
		t.Fatal("oncepay-dev up ended before it was up")
	case <-time.After(3 * time.Minute):
		t.Fatal("oncepay-dev up was not up after three minutes")
	}
	settings := readEnv(t, envFile)
	return stack{api: settings["ONCEPAY_API_URL"], stripe: settings["ONCEPAY_STRIPE_URL"], key: settings["ONCEPAY_API_KEY"]}
}

// readEnv reads the file as a shell would.
func readEnv(t *testing.T, name string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `set -a; . "$0"; exec env`, name).Output()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		name, value, _ := strings.Cut(line, "=")
		settings[name] = value
	}
	for _, name := range []string{"ONCEPAY_API_URL", "ONCEPAY_STRIPE_URL", "ONCEPAY_API_KEY"} {
		if settings[name] == "" {
			t.Fatalf("the env file has no %s", name)
		}
	}
	return settings
}

// read decodes the JSON that url answers with.
func (s stack) read(ctx context.Context, t *testing.T, url string, to any) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(url, s.api) {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", url, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(to); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
}
