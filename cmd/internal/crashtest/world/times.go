package world

import (
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Times are the settings that say how fast a world lives.
type Times struct {
	Lease, Call, AckWait time.Duration
	Backoff              payments.Backoff
	Hold                 time.Duration // of outbox items
}

// Short times: a lost owner is replaced within a second or two.
var Short = Times{
	Lease: slow * 900 * time.Millisecond, Call: slow * 300 * time.Millisecond, AckWait: slow * time.Second,
	Backoff: payments.Backoff{First: 20 * time.Millisecond, Max: 150 * time.Millisecond, SoonMax: 60 * time.Millisecond},
	Hold:    500 * time.Millisecond,
}

// OutageTimes leave room for hundreds of payments at once, and are still shorter than the outages.
var OutageTimes = Times{
	Lease: 3 * time.Second, Call: 1500 * time.Millisecond, AckWait: 2 * time.Second, Hold: time.Second,
	Backoff: payments.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond, SoonMax: 100 * time.Millisecond},
}

// DrillTimes leave Stripe time to hold 500 payments at once on a slow machine.
var DrillTimes = Times{
	Lease: slow*6*time.Second + 3*time.Second, Call: slow*6*time.Second + 2*time.Second, AckWait: 6 * time.Second, Hold: time.Second, Backoff: OutageTimes.Backoff,
}

// BreakerTimes let a payment spend three tries within a second, and have a probe every 400 ms.
var BreakerTimes = Times{
	Lease: 3 * time.Second, Call: time.Second, AckWait: 2 * time.Second, Hold: time.Second,
	Backoff: payments.Backoff{First: 50 * time.Millisecond, Max: 400 * time.Millisecond, SoonMax: 100 * time.Millisecond},
}

// Unhurried times: no lease ends and no call times out in a run without faults.
var Unhurried = Times{
	Lease: 20 * time.Second, Call: 10 * time.Second, AckWait: 30 * time.Second, Backoff: Short.Backoff, Hold: Short.Hold,
}

// DeathTimes are for tests that count deaths: on a slow machine, too, an owner or a message comes back because its worker died, and for no other reason.
var DeathTimes = Times{
	Lease: 20 * time.Second, Call: 10 * time.Second, AckWait: slow * 3 * time.Second, Backoff: Short.Backoff, Hold: Short.Hold,
}
