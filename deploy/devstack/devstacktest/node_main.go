package devstacktest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// orderReload is the one order; the end of the orders is the order to stop.
const orderReload = "reload"

// NodeMain runs a server and never returns, in a process that StartNode started; in all others it does nothing. Run calls it; a TestMain without
// Run calls it first.
func NodeMain() {
	config := os.Getenv(nodeVariable)
	if config == "" {
		return
	}
	if err := runNode(config, json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runNode(config string, answers *json.Encoder) error {
	options, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	options.NoSigs = true
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.SetLoggerV2(nodeLog{}, false, false, false)
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(startLimit) {
		return errors.New("the server does not answer")
	}
	a := answer{Name: s.Name(), ClientURL: s.ClientURL()}
	if m := s.MonitorAddr(); m != nil {
		a.MonitorURL = "http://" + m.String()
	}
	if err := answers.Encode(a); err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		a.Error = ""
		if err := s.Reload(); err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return orders.Err()
}

// nodeLog writes what a server complains of to standard error. A fatal complaint ends the process, as it does a real server's.
type nodeLog struct{}

func (nodeLog) Noticef(string, ...any)         {}
func (nodeLog) Debugf(string, ...any)          {}
func (nodeLog) Tracef(string, ...any)          {}
func (nodeLog) Warnf(format string, v ...any)  { nodeLog{}.write("warning", format, v) }
func (nodeLog) Errorf(format string, v ...any) { nodeLog{}.write("error", format, v) }

func (nodeLog) Fatalf(format string, v ...any) {
	nodeLog{}.write("fatal", format, v)
	os.Exit(1)
}

func (nodeLog) write(level, format string, v []any) {
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format(time.TimeOnly), level, fmt.Sprintf(format, v...))
}
