package doctor

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/app"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/stripe"
)

// table is every check, in the order in which they are shown.
var table = []check{
	{name: "settings", run: checkSettings},

	{name: "postgres", run: checkPostgres},
	{name: "postgres_encoding", needs: []string{"postgres"}, run: checkEncoding},
	{name: "postgres_durability", needs: []string{"postgres"}, run: checkDurability},
	{name: "postgres_standby", needs: []string{"postgres"}, after: []string{"stripe_account"}, run: checkStandby},
	{name: "postgres_connections", needs: []string{"postgres"}, run: checkConnections},
	{name: "stripe_rate", needs: []string{"postgres"}, run: checkRates},
	{name: "postgres_vacuum", needs: []string{"postgres"}, run: checkVacuum},
	{name: "schema", needs: []string{"postgres"}, run: checkSchema},
	{name: "postgres_permissions", needs: []string{"schema"}, run: checkPrivileges},
	{name: "namespace", needs: []string{"schema"}, run: checkNamespace},
	{name: "tickets", needs: []string{"schema"}, run: checkTickets},
	{name: "due", needs: []string{"schema"}, run: checkDue},
	{name: "outbox", needs: []string{"schema"}, run: checkOutbox},
	{name: "unpublished", needs: []string{"schema"}, run: checkUnpublished},
	{name: "attention", needs: []string{"schema"}, run: checkAttention},
	{name: "review", needs: []string{"schema"}, run: checkReview},
	{name: "pauses", needs: []string{"schema"}, after: []string{"stripe_account"}, run: checkPauses},
	{name: "replays", needs: []string{"schema"}, run: checkReplays},
	{name: "mark", needs: []string{"schema", "jetstream"}, after: []string{"nats_permissions"}, run: checkMark},

	{name: "nats", run: checkNATS},
	{name: "nats_versions", needs: []string{"nats"}, after: []string{"nats_monitor"}, run: checkVersions},
	{name: "nats_monitor", run: checkMonitors},
	{name: "nats_sync", needs: []string{"nats"}, after: []string{"nats_monitor", "stripe_account"}, run: checkSync},
	{name: "nats_permissions", needs: []string{"nats"}, run: checkPermissions},
	{name: "jetstream", needs: []string{"nats"}, after: []string{"nats_permissions"}, run: checkJetStream},
	{name: "streams", needs: []string{"jetstream"}, run: checkStreams},
	{name: "consumers", needs: []string{"jetstream"}, run: checkConsumers},
	{name: "replicas", needs: []string{"jetstream"}, after: []string{"streams", "consumers", "stripe_account"}, run: checkReplicas},
	{name: "stream_space", needs: []string{"jetstream"}, after: []string{"streams", "consumers", "nats_permissions"}, run: checkSpace},
	{name: "consumer_lag", needs: []string{"jetstream"}, after: []string{"streams", "consumers"}, run: checkLag},

	{name: "stripe", run: checkStripe},
	{name: "stripe_account", needs: []string{"stripe"}, run: checkAccount},
	{name: "stripe_tenants", needs: []string{"stripe_account", "schema"}, run: checkTenants},
	{name: "stripe_rights", needs: []string{"stripe_account"}, after: []string{"stripe_tenants"}, run: checkRights},

	{name: "clock_postgres", needs: []string{"postgres"}, run: checkPostgresClock},
	{name: "clock_nats", needs: []string{"nats"}, after: []string{"nats_monitor", "nats_permissions", "streams"}, run: checkNATSClock},
	{name: "clock_stripe", needs: []string{"stripe"}, run: checkStripeClock},
}

// examination is what the checks of one run share. A field is written by the check that is named beside it, and read by those that wait for it.
type examination struct {
	settings app.Settings
	timeout  time.Duration
	clock    payments.Clock
	secrets  secrets

	pool *pgxpool.Pool // postgres

	nc          *nats.Conn          // nats
	js          jetstream.JetStream // nats
	violations  *violations         // nats
	permissions *userInfo           // nats_permissions; nil: cannot be seen
	denied      map[string]bool     // nats_permissions: subjects that may not be asked
	monitors    []monitor           // nats_monitor

	streams   []streamFacts             // streams: those that are there
	consumers []*jetstream.ConsumerInfo // consumers: those that are there

	stripeNow reading          // stripe
	account   payments.Account // stripe_account
	accounts  *stripe.Accounts // stripe_account; nil: there is no key
	ways      *knownWays       // stripe_account makes it, stripe_tenants fills it

	mu      sync.Mutex
	closers []func()
	closed  bool
}

func newExamination(o Options) *examination {
	return &examination{settings: o.Settings, timeout: o.Timeout, clock: o.Clock, secrets: secretsOf(o.Settings)}
}

// live reports whether real money moves. Only checks that wait for stripe_account may ask.
func (x *examination) live() bool { return x.settings.Live() || x.account.Livemode }

// onClose has f called at the end; at once if that is past, since the check that opened something came too late.
func (x *examination) onClose(f func()) {
	x.mu.Lock()
	late := x.closed
	if !late {
		x.closers = append(x.closers, f)
	}
	x.mu.Unlock()
	if late {
		f()
	}
}

// close ends what was opened; what does not end by itself is left behind.
func (x *examination) close() {
	x.mu.Lock()
	x.closed = true
	closers := x.closers
	x.mu.Unlock()
	var wg sync.WaitGroup
	for _, f := range closers {
		wg.Go(f)
	}
	all := make(chan struct{})
	go func() { defer close(all); wg.Wait() }()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	}
}
