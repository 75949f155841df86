package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Node is one server of a NATS cluster on this machine, as it is told to the process that runs it.
type Node struct {
	Name   string `json:"name"`
	Port   int    `json:"port"`   // of clients
	Route  int    `json:"route"`  // of the other servers
	Routes []int  `json:"routes"` // of all servers
	Store  string `json:"store"`
}

// natsReady bounds one start, the recovery of the store included. It is longer than whoever starts a node waits for it: a node that gives up is one
// that ended by itself.
const natsReady = 5 * time.Minute

// Run runs the node, every write synced to disk, until ctx ends; ready is called once it answers. Clients are not told of other servers: they
// know the links that they were given, and nothing goes round them.
func (n Node) Run(ctx context.Context, log server.Logger, ready func()) error {
	options := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, NoSigs: true, MaxPayload: 1 << 20,
		JetStream: true, StoreDir: n.Store, SyncAlways: true, JetStreamMaxStore: 8 << 30, DisableJetStreamBanner: true,
		Cluster: server.ClusterOpts{Name: "oncepay-chaos", Host: "127.0.0.1", Port: n.Route, NoAdvertise: true},
	}
	for _, port := range n.Routes {
		if port != n.Route {
			options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", fmt.Sprint(port))})
		}
	}
	s, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	deadline := time.Now().Add(natsReady)
	for !s.ReadyForConnections(100 * time.Millisecond) {
		if ctx.Err() != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("nats: the server does not answer")
		}
	}
	ready()
	<-ctx.Done()
	return nil
}
