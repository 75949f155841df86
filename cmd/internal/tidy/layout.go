package tidy

// The libraries that may be imported directly. A new one gets a line here, a line in the folders that
// use it, and a decision record.
const (
	pgx        = "github.com/jackc/pgx/v5"
	nats       = "github.com/nats-io/nats.go"
	batches    = "github.com/synadia-io/orbit.go/jetstreamext"
	stripe     = "github.com/stripe/stripe-go/v76"
	goose      = "github.com/pressly/goose/v3"
	cobra      = "github.com/spf13/cobra"
	runGroup   = "github.com/oklog/run"
	prometheus = "github.com/prometheus/client_golang"
	strictJSON = "github.com/go-json-experiment/json"
	progress   = "github.com/schollz/progressbar/v3"
	rate       = "golang.org/x/time/rate"
	xsync      = "golang.org/x/sync"
	xterm      = "golang.org/x/term"
	breaker    = "github.com/failsafe-go/failsafe-go"

	// Of the development stack, never of the production program.
	natsServer       = "github.com/nats-io/nats-server/v2"
	embeddedPostgres = "github.com/fergusstrange/embedded-postgres"

	// Of tests.
	rapid  = "pgregory.net/rapid"
	goleak = "go.uber.org/goleak"
	// Holds answers against the OpenAPI document.
	jsonSchema = "github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	production  = []string{pgx, nats, batches, stripe, goose, cobra, runGroup, prometheus, strictJSON, progress, rate, xsync, xterm, breaker}
	development = append([]string{natsServer, embeddedPostgres}, production...)
	inTests     = append([]string{rapid, goleak, jsonSchema}, development...)
)

// folder is one line of the import table: what the files of dir that are not tests may import beside
// the standard library. Folders are relative to the module; /... includes those below.
type folder struct {
	dir    string
	own    []string // our packages
	except []string // of own, those that are not allowed after all
	third  []string // libraries
}

// adapters is what an adapter of the domain may know of our own: payments/document is the one mapping between the domain and the wire.
var adapters = []string{"payments", "payments/coalesce", "payments/document", "schema"}

// layout is the import table. The first line that matches a folder counts; every folder needs one.
var layout = []folder{
	{dir: "payments"},
	{dir: "payments/coalesce"},
	{dir: "payments/stripesim/..."},
	{dir: "schema/provision", own: []string{"schema"}, third: []string{nats}}, // puts schema's streams on a server; for cmd and deploy
	{dir: "schema", third: []string{strictJSON}},

	{dir: "payments/document", own: adapters, third: []string{strictJSON}},
	{dir: "payments/postgres/...", own: append([]string{"payments/postgres/...", "migrations"}, adapters...), third: []string{pgx}},
	{dir: "payments/stripe/...", own: append([]string{"payments/stripe/..."}, adapters...), third: []string{stripe, strictJSON}},
	{dir: "payments/guard/...", own: append([]string{"payments/guard/..."}, adapters...)},
	{dir: "payments/paymentstest/...", own: append([]string{"payments/paymentstest/...", "payments/stripesim"}, adapters...), third: []string{pgx, rapid, goleak}},
	{dir: "migrations", third: []string{goose, pgx}},

	{dir: "producer/...", own: append([]string{"producer/..."}, adapters...), third: []string{nats, batches, strictJSON, rate, xsync}},
	{dir: "consumer/...", own: append([]string{"consumer/..."}, adapters...), third: []string{nats, batches, strictJSON, rate, xsync, breaker}},

	{dir: "ingress/apidoc/apidoctest", own: []string{"ingress/apidoc"}, third: []string{jsonSchema}},
	{dir: "ingress/...", own: append([]string{"ingress/..."}, adapters...), third: []string{strictJSON, rate, xsync}},
	{dir: "batch/...", own: append([]string{"batch/..."}, adapters...), third: []string{strictJSON, rate, xsync}},

	{dir: "examples/..."}, // what a newcomer copies knows the standard library alone

	{dir: "deploy/devstack/devstacktest", own: []string{"deploy/devstack/..."}, third: inTests},
	{dir: "deploy/...", own: []string{"deploy/...", "payments/...", "schema/...", "migrations"}, third: []string{pgx, nats, natsServer, embeddedPostgres, xsync}},

	{dir: "cmd/internal/crashtest/...", own: []string{"..."}, third: inTests}, // what the crash tests run in
	{dir: "cmd/oncepay-dev/...", own: []string{"..."}, except: onlyTests, third: development},
	{dir: "cmd/internal/dev/...", own: []string{"..."}, except: onlyTests, third: development},
	{dir: "cmd/...", own: []string{"..."}, except: onlyDevelopment, third: production},
}

// onlyTests are our packages that no program may know.
var onlyTests = []string{"cmd/internal/crashtest/..."}

// onlyDevelopment are our packages that the production program must not know.
var onlyDevelopment = append([]string{"payments/stripesim/...", "payments/paymentstest/...", "deploy/...", "cmd/internal/dev/...", "cmd/oncepay-dev/..."}, onlyTests...)

// link is one line of the table of what must not be reached from a folder through any number of imports.
type link struct {
	dir       string
	forbidden []string // import paths and all below them
	remedy    string
}

var links = []link{
	{
		dir:       "cmd/oncepay",
		forbidden: []string{natsServer, embeddedPostgres, rapid, goleak, jsonSchema, "testing", "net/http/httptest", Module + "/payments/stripesim", Module + "/payments/paymentstest", Module + "/deploy", Module + "/cmd/internal/crashtest"},
		remedy:    "the production program links nothing of tests and the development stack; move it to cmd/oncepay-dev or a test",
	},
	{
		dir:       "cmd/oncepay-dev",
		forbidden: []string{Module + "/cmd/internal/crashtest", goleak},
		remedy:    "what the crash tests run in is for tests alone; move what the program needs of it to cmd/internal/dev",
	},
	{
		dir:       "producer/...",
		forbidden: []string{pgx, "database/sql", stripe, Module + "/consumer", Module + "/payments/postgres", Module + "/payments/stripe"},
		remedy:    "a producer knows neither the database, Stripe nor the consumer; depend on a port of payments",
	},
	{
		dir:       "consumer/...",
		forbidden: []string{pgx, "database/sql", stripe, Module + "/producer", Module + "/payments/postgres", Module + "/payments/stripe"},
		remedy:    "a consumer knows neither the database, Stripe nor the producer; depend on a port of payments",
	},
	{
		dir:       "ingress/...",
		forbidden: []string{pgx, "database/sql", stripe, nats, Module + "/consumer", Module + "/producer", Module + "/payments/postgres", Module + "/payments/stripe"},
		remedy:    "the HTTP door knows neither the database, NATS nor Stripe; depend on a port of payments",
	},
	{
		dir:       "batch/...",
		forbidden: []string{pgx, "database/sql", stripe, nats, Module + "/consumer", Module + "/producer", Module + "/ingress", Module + "/payments/postgres", Module + "/payments/stripe"},
		remedy:    "a batch of a file goes through the HTTP door like anybody's; it knows nothing of what is behind it",
	},
}
