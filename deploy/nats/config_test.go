package nats_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestConfiguration reads the shipped files, and the passwords that the script makes for them, as a server does.
func TestConfiguration(t *testing.T) {
	c := &cluster{dir: t.TempDir()}
	if err := os.CopyFS(filepath.Join(c.dir, "conf"), os.DirFS("conf")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NATS_SERVER_NAME", "nats-7")
	t.Setenv("NATS_MAX_FILE_STORE", "10GB")
	o, err := server.ProcessConfigFile(filepath.Join(c.dir, "conf", "server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if o.ServerName != "nats-7" || o.JetStreamMaxStore != 10<<30 {
		t.Errorf("the node is %q with %d bytes", o.ServerName, o.JetStreamMaxStore)
	}
	if !o.JetStream || !o.SyncAlways || o.StoreDir != "/data" {
		t.Errorf("jetstream %t, sync always %t, in %q", o.JetStream, o.SyncAlways, o.StoreDir)
	}
	if o.NoAuthUser != "" || o.SystemAccount != "SYSTEM" {
		t.Errorf("a user for nobody %q, system account %q", o.NoAuthUser, o.SystemAccount)
	}
	passwords := map[string]string{o.Cluster.Password: "ROUTE"}
	if o.Cluster.Username != "ROUTE" || !o.Cluster.NoAdvertise || len(o.Routes) != 3 {
		t.Errorf("the cluster has user %q, advertises %t and %d routes", o.Cluster.Username, !o.Cluster.NoAdvertise, len(o.Routes))
	}
	for _, route := range o.Routes {
		if p, _ := route.User.Password(); p != o.Cluster.Password || route.User.Username() != "ROUTE" || !strings.HasPrefix(route.Host, "nats-") {
			t.Errorf("a route to %s that its node refuses", route.Host)
		}
	}
	if len(o.Users) != 3 || len(o.Nkeys) != 0 {
		t.Errorf("%d users and %d keys", len(o.Users), len(o.Nkeys))
	}
	for _, u := range o.Users {
		passwords[u.Password] = u.Username
		if len(u.Password) != 48 {
			t.Errorf("%s has a password of %d characters", u.Username, len(u.Password))
		}
		if u.Username == "SYSTEM" {
			continue
		}
		if u.Permissions == nil || u.Permissions.Publish == nil || len(u.Permissions.Publish.Allow) == 0 || u.Permissions.Subscribe == nil || len(u.Permissions.Subscribe.Allow) == 0 {
			t.Errorf("%s may do anything in its account", u.Username)
		}
	}
	if len(passwords) != 4 {
		t.Errorf("passwords are shared: %d of 4 differ", len(passwords))
	}
}
