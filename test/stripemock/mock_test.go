package stripemock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	mockPackage = "github.com/stripe/stripe-mock" // as go.mod pins it
	apiVersion  = "2023-10-16"
)

// mock is the address of the stripe-mock that all tests share.
var mock struct{ http, https string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	runtime.LockOSThread() // the kernel ends stripe-mock with the thread that started it: this one, which lasts as long as the tests do
	dir, err := os.MkdirTemp("", "stripemock")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	stop, err := startMock(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stripe-mock does not run, and without it nothing is proved:", err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stripe-mock:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// startMock builds stripe-mock and starts it. stop ends it; it reports an error when it had ended before.
func startMock(dir string) (stop func() error, err error) {
	binary := filepath.Join(dir, "stripe-mock")
	if out, err := exec.Command("go", "build", "-o", binary, mockPackage).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build %s: %w\n%s", mockPackage, err, out)
	}
	// One listener alone would open the other on all addresses of the machine. Port 0: the system chooses, and the program says which.
	cmd := exec.Command(binary, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0", "-strict-version-check")
	cmd.Env = []string{} // PORT would be heeded
	cmd.SysProcAttr = endWithParent()
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	drained := make(chan struct{})
	// It writes a line for each request, and would stop when nobody reads.
	drain := func() { _, _ = io.Copy(io.Discard, lines); close(drained) }
	stop = func() error {
		_ = cmd.Process.Kill() // fails when it has ended already, which Wait tells
		<-drained
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
			return fmt.Errorf("it ended by itself, %v: %s", err, stderr)
		}
		return nil
	}
	timeout := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	mock.http, err = readAddress(lines, "HTTP")
	if err == nil {
		mock.https, err = readAddress(lines, "HTTPS")
	}
	go drain()
	if err != nil {
		_ = stop()
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	return stop, nil
}

var listening = regexp.MustCompile(`^Listening for (HTTPS?) at address: (\S+)\s*$`)

// readAddress waits for the line that says where the protocol is served.
func readAddress(lines *bufio.Reader, protocol string) (string, error) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("it ended before it listened for %s", protocol)
		}
		if m := listening.FindStringSubmatch(line); m != nil && m[1] == protocol {
			return m[2], nil
		}
	}
}

// Both listeners are loopback's alone, and both are there.
func TestMockIsOnLoopback(t *testing.T) {
	t.Parallel()
	for protocol, address := range map[string]string{"http": mock.http, "https": mock.https} {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			t.Errorf("%s is served at %q", protocol, address)
		}
		var d net.Dialer
		conn, err := d.DialContext(context.Background(), "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", protocol, err)
			continue
		}
		conn.Close()
	}
}
