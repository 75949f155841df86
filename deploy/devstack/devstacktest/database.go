package devstacktest

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack"
)

// databaseLimit bounds every step of making and dropping a database.
const databaseLimit = 2 * time.Minute

// Migrate brings an empty database to a schema. It must close its connections
// before it returns: PostgreSQL copies no database that somebody is connected to.
type Migrate func(ctx context.Context, dsn string) error

// template is a database that one Migrate has been run on.
type template struct {
	once sync.Once
	name string
	err  error
}

var templates sync.Map // code pointer of the Migrate -> *template

// Database gives the test a database of its own and returns its DSN; it is dropped
// at cleanup, whoever is still connected. With a migration (at most one) it is a
// copy of a template on which the migration ran once in this test binary.
// Migrations are told apart by their code: pass a named function, not closures
// that differ only in what they capture.
func Database(tb testing.TB, migrate ...Migrate) string {
	tb.Helper()
	server := Postgres(tb)
	ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
	defer cancel()
	name := Prefix(tb)
	var err error
	switch len(migrate) {
	case 0:
		err = server.CreateDatabase(ctx, name)
	case 1:
		found, _ := templates.LoadOrStore(reflect.ValueOf(migrate[0]).Pointer(), &template{name: "template_" + Prefix(tb)})
		source := found.(*template)
		source.once.Do(func() { source.err = source.build(ctx, server, migrate[0]) })
		if err = source.err; err == nil {
			err = server.CopyDatabase(ctx, name, source.name)
		}
	default:
		tb.Fatalf("devstacktest: Database takes one migration, not %d", len(migrate))
	}
	if err != nil {
		tb.Fatalf("devstacktest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseLimit)
		defer cancel()
		if err := server.DropDatabase(ctx, name); err != nil {
			tb.Errorf("devstacktest: %v", err)
		}
	})
	return server.DSN(name)
}

func (t *template) build(ctx context.Context, server *devstack.Postgres, migrate Migrate) error {
	if err := server.CreateDatabase(ctx, t.name); err != nil {
		return err
	}
	if err := migrate(ctx, server.DSN(t.name)); err != nil {
		return fmt.Errorf("migrate the template: %w", err)
	}
	return nil
}

// Via is the DSN, or any other URL, with addr as its host and port: the same
// database behind a Proxy.
func Via(tb testing.TB, dsn, addr string) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		tb.Fatalf("devstacktest: Via needs a URL with a host")
	}
	u.Host = addr
	return u.String()
}
