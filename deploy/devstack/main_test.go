package devstack

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// parentMode makes the test binary act as a program that starts services and is
// then killed: "wait", "panic", "exit", or "once" (start, say so, close).
const parentMode = "ONCEPAY_DEVSTACK_PARENT"

func TestMain(m *testing.M) {
	if mode := os.Getenv(parentMode); mode != "" {
		actAsParent(mode)
		return
	}
	home, err := os.MkdirTemp("/tmp", "oncepay-relocated-")
	if err != nil {
		panic(err)
	}
	if err := os.Chmod(home, 0o711); err != nil {
		panic(err)
	}
	relocated = home
	code := m.Run()
	for range 10 { // as devstacktest.Run, which cannot be used here
		if err = goleak.Find(); err == nil {
			break
		}
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.RemoveAll(home)
	os.Exit(code)
}

// actAsParent starts both services, prints "<pid> <data dir> <socket dir> <store>"
// and ends, or waits to be ended, with nothing cleaned up.
func actAsParent(mode string) {
	fmt.Println("begin")
	dataDir := os.Getenv("ONCEPAY_DEVSTACK_DIR")
	p, err := StartPostgres(context.Background(), PostgresOptions{DataDir: dataDir, FastUnsafe: true})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	n, err := StartNATS(NATSOptions{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	store := strings.TrimSuffix(n.options.StoreDir, "/")
	fmt.Println("ready", p.Pid(), p.watch.Pid(), p.DataDir(), p.sockets, store)
	switch mode {
	case "wait":
		select {}
	case "panic":
		panic("as a test would")
	case "exit":
		os.Exit(3)
	case "once":
		if err := p.Close(); err != nil {
			fmt.Println("error", err)
		}
		if err := n.Close(); err != nil {
			fmt.Println("error", err)
		}
	}
}
