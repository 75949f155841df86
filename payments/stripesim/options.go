package stripesim

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// DefaultAccount is the Stripe account that API keys belong to when
// Options.Account is empty.
const DefaultAccount = "acct_1OncepaySimulator"

// Defaults of the simulator's slow processes, in simulator time.
const (
	keyLifetime        = 24 * time.Hour       // Stripe may prune keys after this
	captureLifetime    = 7 * 24 * time.Hour   // uncaptured PaymentIntents are cancelled
	defaultDebitSettle = 4 * 24 * time.Hour   // bank debits take up to four business days
	maxLatency         = 10 * time.Minute     // a bound on what a typo can do
	maxAdvance         = 366 * 24 * time.Hour // one step of the clock
)

// Key is one API key that the simulator accepts.
type Key struct {
	Secret    string   // sk_test_… or rk_test_…
	Account   string   // the account it belongs to; Options.Account if empty
	Connected []string // accounts that Stripe-Account may name; nil: any
	Expired   bool     // answered 401 api_key_expired
	Deny      []string // routes answered 403, as "GET /v1/account" or "POST /v1/payment_intents/{id}/confirm"
}

// Options configure New. The zero value is a simulator in memory that accepts
// any test key and answers at once.
type Options struct {
	Path        string           // ledger file; empty keeps everything in memory
	Sync        bool             // fsync every line: survives the machine's death, not only the process's
	Account     string           // account of the keys; DefaultAccount if empty
	Keys        []Key            // accepted keys; none means any test key, see the package comment
	Clock       func() time.Time // time.Now if nil; AdvanceClock adds to it
	Latency     time.Duration    // between validation and execution, in whole milliseconds
	DebitSettle time.Duration    // time until a bank debit settles, and a refund that is pending or will fail; 4 days if 0
	Seed        uint64           // of ids and of rules with a rate; random if 0
	Logger      *slog.Logger     // discards if nil; never sees keys or bodies
	// OnCommit, if set, is called after each executed POST, when it is in the
	// ledger file and before its answer or its fault. It runs on the request's
	// goroutine without locks: while it blocks, the answer waits.
	OnCommit func(Commit)
}

// Commit tells Options.OnCommit what was just executed.
type Commit struct {
	Seq            uint64 // the request's place in order of arrival
	Path           string
	IdempotencyKey string
	PaymentIntent  string // id; empty if the request touched none
	Status         int    // of the true answer, whatever the fault does to it
	Charged        bool   // money moved or was authorised
	Refunded       bool   // a refund was made or changed
}

func (o Options) withDefaults() (Options, error) {
	if o.Account == "" {
		o.Account = DefaultAccount
	}
	if !validAccount(o.Account) {
		return o, fmt.Errorf("stripesim: Account %q is no account id: use acct_ and letters or digits", o.Account)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.DebitSettle == 0 {
		o.DebitSettle = defaultDebitSettle
	}
	if o.DebitSettle < 0 {
		return o, fmt.Errorf("stripesim: DebitSettle is %v: it may not be negative", o.DebitSettle)
	}
	if o.Latency < 0 || o.Latency > maxLatency {
		return o, fmt.Errorf("stripesim: Latency is %v: use 0 to %v", o.Latency, maxLatency)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if o.Seed == 0 {
		var b [8]byte
		if _, err := rand.Read(b[:]); err != nil {
			return o, fmt.Errorf("stripesim: no randomness for ids: %w", err)
		}
		o.Seed = binary.LittleEndian.Uint64(b[:]) | 1
	}
	if err := checkKeys(o.Keys); err != nil {
		return o, err
	}
	return o, nil
}

func checkKeys(keys []Key) error {
	for i, k := range keys {
		if !testKey(k.Secret) {
			return fmt.Errorf("stripesim: Keys[%d].Secret is no test key: it must begin with sk_test_ or rk_test_", i)
		}
		if k.Account != "" && !validAccount(k.Account) {
			return fmt.Errorf("stripesim: Keys[%d].Account %q is no account id", i, k.Account)
		}
		for _, c := range k.Connected {
			if !validAccount(c) {
				return fmt.Errorf("stripesim: Keys[%d].Connected has %q, which is no account id", i, c)
			}
		}
		for _, d := range k.Deny {
			if !knownRoute(d) {
				return fmt.Errorf("stripesim: Keys[%d].Deny has %q, which is no route of the simulator", i, d)
			}
		}
	}
	return nil
}

func validAccount(id string) bool {
	rest, ok := strings.CutPrefix(id, "acct_")
	return ok && rest != "" && len(rest) <= 64 && strings.Trim(rest, base62+"_") == ""
}

// sleep waits for d or until stop closes, and says whether the time passed.
func sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
