package tidy

// Exception lets one file mention one banned function.
type Exception struct {
	File   string // relative to the module root
	Call   string // as it is written there, "time.Now"
	Reason string
}

// Exceptions are the places inside the edges that may do so, with the reason.
var Exceptions = []Exception{
	{"payments/sabotage_on.go", "os.Getenv", "only in builds with the tag sabotage, which exist to be caught by the oracle"},
	{"payments/transition.go", "rand.Int64N", "the default of an argument; spreads retries"},
	{"payments/coalesce/commit.go", "context.Background", "a flush runs on its own context, never on a waiter's, and carries no values of one"},
	{"payments/coalesce/options.go", "time.Now", "the default of an option; measures durations only"},
	{"payments/coalesce/options.go", "rand.N", "the default of an option; spreads retries"},
	{"payments/stripe/options.go", "time.Now", "the default of an option"},
	{"payments/postgres/options.go", "time.Now", "the default of an option: the wall clock that leases count from"},
	{"payments/postgres/plans.go", "context.Background", "plans are made anew for everybody, not for the call that was slow; Close waits for it, bounded by itself"},
	{"producer/publisher.go", "context.Background", "Close has no caller's context; every group that it waits for bounds itself"},
	{"producer/publisher.go", "rand.N", "the default of a field; spreads retries"},
	{"producer/relay_options.go", "time.Now", "the default of an option; measures ages only"},
	{"producer/relay_options.go", "rand.N", "the default of an option; spreads retries"},
	{"consumer/lane.go", "context.Background", "one check shared by all messages of a pull, on its own bounded context"},
	{"consumer/config.go", "rand.Int64N", "the default of a setting; spreads looks of several workers"},
	{"consumer/worker.go", "context.Background", "the value until Run sets its own"},
	{"payments/stripesim/options.go", "time.Now", "the default of an option"},
	{"payments/stripesim/server.go", "context.Background", "a fault takes its time although the client has gone away; Close ends it"},
}
