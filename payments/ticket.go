package payments

import (
	"encoding/hex"
	"time"
)

// Lane separates what somebody waits for from what runs in the background. Lower lanes are served first.
type Lane int16

// The lanes; each has a stream of its own.
const (
	LaneInteractive Lane = 1
	LaneBulk        Lane = 2
)

// String returns the lane's name in logs and metrics.
func (l Lane) String() string {
	if l == LaneBulk {
		return "bulk"
	}
	return "interactive"
}

// Token is 128 random bits that stand in a payment's ticket while one caller owns it. Whoever's token is not in the ticket owns nothing,
// and nothing that it writes has an effect.
type Token [16]byte

// IsZero reports whether no token is there.
func (t Token) IsZero() bool { return t == Token{} }

// String returns the token's first 4 bytes in hex: enough to follow an owner through logs.
func (t Token) String() string { return hex.EncodeToString(t[:4]) }

// Ticket is the row that says somebody must still act on a payment: exactly one stands for every payment that is received, waiting, unknown
// or pending (invariant I2).
type Ticket struct {
	Lane      Lane
	DueAt     time.Time // when it may next be taken
	Token     Token     // who has it now; zero: nobody
	Abandoned int       // how many owners vanished without recording anything
}

// Abandoned tickets: from AbandonedAlone on a payment is worked on alone in its process, so that a payment that kills its worker takes no
// bystander with it; at AbandonedMax it is dead-lettered as worker_killed.
const (
	AbandonedAlone = 3
	AbandonedMax   = 6
)

// Claim is the right to work on one payment: its state as it stood before this owner came, the owner's token, and until when it is good.
type Claim struct {
	Payment Payment
	Token   Token
	Lane    Lane
	// LeaseUntil is a wall-clock time of this process, counted from before the token was committed, so that it never ends later than the
	// ticket's due time does.
	LeaseUntil time.Time
	Abandoned  int
	// ClaimedAt is the store's time at which the token was committed.
	ClaimedAt time.Time
}

// WindowStart is the time from which the re-send window counts: the first send while one is in doubt, and else this owner's own, since what
// was sent before is known not to have been executed.
func (c Claim) WindowStart() time.Time {
	if c.Payment.InDoubt {
		return c.Payment.FirstSubmitAt
	}
	return c.ClaimedAt
}
