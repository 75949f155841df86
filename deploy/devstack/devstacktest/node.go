package devstacktest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// nodeVariable names the configuration file, in a process that is to be a server.
const nodeVariable = "ONCEPAY_TEST_NATS_NODE"

// Node is a NATS server in a process of its own: servers of a cluster share variables when they share a process, which no real ones do, and
// what the race detector then finds is theirs. One goroutine uses a node at a time.
type Node struct {
	Name       string
	ClientURL  string
	MonitorURL string // "" without monitoring

	cmd        *exec.Cmd
	orders     io.WriteCloser
	answers    *json.Decoder
	complaints *complaints
}

// answer is what a node says once it has started, and to each order.
type answer struct {
	Name, ClientURL, MonitorURL, Error string
}

// StartNode starts a server with a configuration file and returns when it answers. Stop ends it; so does the end of this process, however it ends.
// The binary's TestMain has to call Run or NodeMain.
func StartNode(config string) (*Node, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &Node{cmd: exec.Command(binary), complaints: &complaints{}}
	n.cmd.Env = append(os.Environ(), nodeVariable+"="+config, "GORACE=exitcode=0")
	n.cmd.Stderr = n.complaints
	if n.orders, err = n.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.answers = json.NewDecoder(bufio.NewReader(answers))
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	first, err := n.hear()
	if err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	n.Name, n.ClientURL, n.MonitorURL = first.Name, first.ClientURL, first.MonitorURL
	return n, nil
}

// Reload lets the server read its configuration again, as SIGHUP does, and returns when that is done.
func (n *Node) Reload() error {
	if _, err := io.WriteString(n.orders, orderReload+"\n"); err != nil {
		return n.explain(err)
	}
	_, err := n.hear()
	return err
}

// Stop shuts the server down and waits for its end. It may be called again.
func (n *Node) Stop() error {
	if n.cmd.ProcessState != nil {
		return nil
	}
	n.orders.Close()
	timer := time.AfterFunc(startLimit, func() { _ = n.cmd.Process.Kill() })
	defer timer.Stop()
	return n.explain(n.cmd.Wait())
}

// hear waits for one answer.
func (n *Node) hear() (a answer, err error) {
	timer := time.AfterFunc(startLimit, func() { _ = n.cmd.Process.Kill() })
	defer timer.Stop()
	if err := n.answers.Decode(&a); err != nil {
		return a, n.explain(fmt.Errorf("it does not answer: %w", err))
	}
	if a.Error != "" {
		return a, n.explain(errors.New(a.Error))
	}
	return a, nil
}

// explain adds what the server complained of.
func (n *Node) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("nats node %s: %w\n%s", n.Name, err, n.complaints)
}

// complaints keeps the first of what a server writes.
type complaints struct {
	mu   sync.Mutex
	text []byte
}

const complaintsMax = 64 << 10

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p[:min(len(p), complaintsMax-len(c.text))]...)
	return len(p), nil
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.text)
}
