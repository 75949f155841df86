package paymentstest

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Database is a Store under test, empty but for its tenants, on a clock that the suite moves. No rate is set: its budgets have room.
type Database struct {
	Store  payments.Store
	Outbox payments.Outbox
	// Batches and Reader show the same data; Intents is the outbox of one lane's intents.
	Batches payments.Batches
	Reader  payments.Reader
	Intents func(payments.Lane) payments.Outbox
	// FollowUps keeps captures, cancels and refunds of the same charges.
	FollowUps FollowUpStore
	// Another opens one more Store on the same data, as another process would; it is closed with the test.
	Another func() payments.Store
	Now     func() time.Time
	Advance func(time.Duration)
	// Tenants are three that exist.
	Tenants [3]string
	// Violations lists what breaks invariant I2: payments without the ticket that their status asks for, and tickets left over.
	Violations func() []string
}

// stripeAccount is where all payments of the suite go.
var stripeAccount = payments.Account{ID: "acct_1Conformance", Livemode: true}

const lease = time.Minute

// Store runs the conformance suite of payments.Store, payments.Batches and what payments.Reader shows of batches, of payments.FollowUps, and of each
// payments.Outbox that they fill. open is called once for each part of it; what
// it opens is its own to close, with t.Cleanup.
func Store(t *testing.T, open func(t *testing.T) Database) {
	for _, part := range slices.Concat(storeParts, followUpParts) {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			b := &storeBench{Database: open(t), t: t, ctx: t.Context()}
			part.run(b)
			for _, v := range b.Violations() {
				t.Errorf("a ticket is missing or left over: %s", v)
			}
		})
	}
}

// storePart is one part of the suite.
type storePart struct {
	name string
	run  func(*storeBench)
}

var (
	storeParts = []storePart{
		{"AdmitClaims", (*storeBench).admitClaims},
		{"AdmitStores", (*storeBench).admitStores},
		{"AdmitDuplicates", (*storeBench).admitDuplicates},
		{"AdmitConflict", (*storeBench).admitConflict},
		{"AdmitRefused", (*storeBench).admitRefused},
		{"AdmitExistingOnly", (*storeBench).admitExistingOnly},
		{"AdmitTenants", (*storeBench).admitTenants},
		{"AdmitClaimsOnceAmongMany", (*storeBench).admitOnce},
		{"AdmitConflictAmongMany", (*storeBench).admitConflictAtOnce},
		{"AdmitInOppositeOrders", (*storeBench).admitOppositeOrders},
		{"AdmitAgainWithTheSameToken", (*storeBench).admitAgain},
		{"CallsThatEndMidway", (*storeBench).endMidway},
		{"TakeGivesDueTickets", (*storeBench).takeDue},
		{"TakeOneLane", (*storeBench).takeLane},
		{"TakeTenantsInTurn", (*storeBench).takeTurns},
		{"TakeAmongMany", (*storeBench).takeRace},
		{"TakeoverCountsAbandoned", (*storeBench).takeover},
		{"TakeKeepsThePinnedAccount", (*storeBench).takeKeepsAccount},
		{"TakeACancellation", (*storeBench).takeCancellation},
		{"Throttle", (*storeBench).throttle},
		{"RecordOutcome", (*storeBench).recordOutcome},
		{"RecordWithAStaleToken", (*storeBench).recordStale},
		{"RecordAgain", (*storeBench).recordAgain},
		{"RecordQuiet", (*storeBench).recordQuiet},
		{"RecordClearsTheSend", (*storeBench).recordClearSubmit},
		{"RecordImpossible", (*storeBench).recordImpossible},
		{"RecordGivesUp", (*storeBench).recordGivesUp},
		{"Extend", (*storeBench).extend},
		{"EvidenceTearsUpTheTicket", (*storeBench).evidenceTearsUp},
		{"EvidenceReplacesTheTicket", (*storeBench).evidenceReplaces},
		{"EvidenceCorrects", (*storeBench).evidenceCorrects},
		{"EvidenceErrors", (*storeBench).evidenceErrors},
		{"BuryPayment", (*storeBench).buryPayment},
		{"BuryMessage", (*storeBench).buryMessage},
		{"Suspect", (*storeBench).suspect},
		{"Find", (*storeBench).find},
		{"Outbox", (*storeBench).outbox},
		{"Announce", (*storeBench).announce},
		{"AnnouncedOutbox", (*storeBench).announcedOutbox},
		{"BatchStores", (*storeBench).batchStores},
		{"BatchConflict", (*storeBench).batchConflict},
		{"BatchRefused", (*storeBench).batchRefused},
		{"BatchExistingOnly", (*storeBench).batchExistingOnly},
		{"BatchMeetsItsChildren", (*storeBench).batchMeetsChildren},
		{"BatchClearsTheSuspect", (*storeBench).batchSuspect},
		{"BatchAmongMany", (*storeBench).batchAtOnce},
		{"BatchCompletes", (*storeBench).batchCompletes},
		{"BatchCompletesOnceAmongMany", (*storeBench).batchCompletesOnce},
		{"BatchesAreListed", (*storeBench).batchesAreListed},
	}
	followUpParts = []storePart{
		{"FollowUpStores", (*storeBench).followUpStores},
		{"FollowUpConflict", (*storeBench).followUpConflict},
		{"FollowUpRefused", (*storeBench).followUpRefused},
		{"FollowUpClearsTheSuspect", (*storeBench).followUpSuspect},
		{"FollowUpsAreRead", (*storeBench).followUpsAreRead},
		{"RefundRecords", (*storeBench).refundRecords},
		{"RefundFails", (*storeBench).refundFails},
		{"CaptureRecords", (*storeBench).captureRecords},
		{"FollowUpsRunInTurn", (*storeBench).followUpsRunInTurn},
		{"RecordFollowUpWithAStaleToken", (*storeBench).recordFollowUpStale},
		{"RecordFollowUpAgain", (*storeBench).recordFollowUpAgain},
		{"FollowUpTargetMoved", (*storeBench).followUpTargetMoved},
		{"CancelOfAnUnsentCharge", (*storeBench).cancelUnsent},
		{"FollowUpGivesUp", (*storeBench).followUpGivesUp},
		{"RefundsAmongMany", (*storeBench).refundsAmongMany},
		{"FollowUpOnceAmongMany", (*storeBench).followUpOnceAmongMany},
		{"FollowUpKeyAmongMany", (*storeBench).followUpKeyAmongMany},
		{"CancelRacesTake", (*storeBench).cancelRaces},
	}
)

// storeBench is one part of the suite at work.
type storeBench struct {
	Database
	t   *testing.T
	ctx context.Context
}

// intent is a charge of 99.00 USD by the first tenant.
func (b *storeBench) intent(key string, change ...func(*payments.Intent)) payments.Intent {
	i := payments.Intent{
		TenantID: b.Tenants[0], IdempotencyKey: key, Kind: payments.KindCharge, Amount: 9900, Currency: "usd", Customer: "cus_1",
		PaymentMethod: "pm_card_visa", CaptureMethod: payments.CaptureAutomatic, OffSession: true,
	}
	for _, f := range change {
		f(&i)
	}
	return i
}

func newToken() (t payments.Token) {
	_, _ = rand.Read(t[:]) // never fails: it ends the program instead
	return t
}

// claiming is a request that wants the ticket.
func (b *storeBench) claiming(i payments.Intent) payments.AdmitRequest {
	return payments.AdmitRequest{Intent: i, Lane: payments.LaneInteractive, Claim: true, Token: newToken(), Lease: lease, Account: stripeAccount}
}

// admit wants the verdict.
func (b *storeBench) admit(r payments.AdmitRequest, want payments.Verdict) payments.Admission {
	b.t.Helper()
	a, err := b.Store.Admit(b.ctx, r)
	if err != nil {
		b.t.Fatalf("Admit: %v", err)
	}
	if a.Verdict != want {
		b.t.Fatalf("Admit of %s: %s, want %s", r.Intent.IdempotencyKey, a.Verdict, want)
	}
	return a
}

// claim admits a new payment and returns the claim on it.
func (b *storeBench) claim(key string) payments.Claim {
	b.t.Helper()
	return b.admit(b.claiming(b.intent(key)), payments.VerdictClaimed).Claim
}

// store admits a payment of the tenant whose ticket is due now, and nobody's.
func (b *storeBench) store(tenant, key string, lane payments.Lane) {
	b.t.Helper()
	i := b.intent(key, func(i *payments.Intent) { i.TenantID = tenant })
	b.admit(payments.AdmitRequest{Intent: i, Lane: lane}, payments.VerdictStored)
}

// take takes up to limit interactive tickets.
func (b *storeBench) take(limit int) []payments.Claim {
	b.t.Helper()
	return b.takeFrom(b.Store, payments.LaneInteractive, limit)
}

func (b *storeBench) takeFrom(s payments.Store, lane payments.Lane, limit int) []payments.Claim {
	b.t.Helper()
	taking, err := s.Take(b.ctx, payments.TakeRequest{Lane: lane, Limit: limit, Lease: lease, Account: stripeAccount})
	if err != nil {
		b.t.Fatalf("Take: %v", err)
	}
	if len(taking.Claims) > limit {
		b.t.Fatalf("%d taken, at most %d were asked for", len(taking.Claims), limit)
	}
	return taking.Claims
}

// takeOne takes the one ticket that must be due.
func (b *storeBench) takeOne() payments.Claim {
	b.t.Helper()
	claims := b.take(10)
	if len(claims) != 1 {
		b.t.Fatalf("%d tickets are due, want 1", len(claims))
	}
	return claims[0]
}

// takeAlone takes the one ticket that must be due and worked on alone.
func (b *storeBench) takeAlone() payments.Claim {
	b.t.Helper()
	r := payments.TakeRequest{Lane: payments.LaneInteractive, Limit: 10, Lease: lease, Account: stripeAccount}
	taking, err := b.Store.Take(b.ctx, r)
	if err != nil || len(taking.Claims) != 0 || !taking.Alone {
		b.t.Fatalf("a ticket that must be worked on alone: %+v, %v", taking, err)
	}
	r.Alone = true
	taking, err = b.Store.Take(b.ctx, r)
	if err != nil || len(taking.Claims) != 1 || taking.Alone {
		b.t.Fatalf("the last ticket that must be worked on alone: %+v, %v", taking, err)
	}
	return taking.Claims[0]
}

// nothingDue wants no interactive ticket to be due.
func (b *storeBench) nothingDue(when string) {
	b.t.Helper()
	for _, c := range b.take(10) {
		b.t.Errorf("%s the ticket of %s is due", when, c.Payment.IdempotencyKey)
	}
}

func (b *storeBench) record(c payments.Claim, t payments.Transition, delay time.Duration) payments.Recorded {
	b.t.Helper()
	done, err := b.Store.Record(b.ctx, b.recording(c, t, delay))
	if err != nil {
		b.t.Fatalf("Record %s: %v", t.Status, err)
	}
	return done
}

func (b *storeBench) recording(c payments.Claim, t payments.Transition, delay time.Duration) payments.Recording {
	return payments.Recording{Claim: c, Transition: t, Delay: delay, At: b.Now()}
}

// stored is the payment as it stands.
func (b *storeBench) stored(p payments.Payment) payments.Payment {
	b.t.Helper()
	found, err := b.Store.Find(b.ctx, p.TenantID, p.ID)
	if err != nil {
		b.t.Fatalf("Find: %v", err)
	}
	return found
}

// lost wants the error of somebody who owns nothing.
func (b *storeBench) lost(what string, err error) {
	b.t.Helper()
	if !payments.TicketLost(err) {
		b.t.Errorf("%s: %v, want %s", what, err, payments.CodeTicketLost)
	}
}

// sent empties the outbox and returns what was in it.
func (b *storeBench) sent() []payments.OutboxItem {
	b.t.Helper()
	items, err := b.Outbox.Pending(b.ctx, 1000, time.Hour)
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	var ids []int64
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	if err := b.Outbox.Sent(b.ctx, ids); err != nil {
		b.t.Fatalf("Sent: %v", err)
	}
	return items
}

func charged(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusSucceeded, Object: &payments.PaymentIntent{
		ID: "pi_" + p.ID.Hex()[:24], Status: payments.StripeSucceeded, Amount: p.Amount, AmountReceived: p.Amount, Currency: p.Currency,
		Customer: p.Customer, LatestCharge: "ch_" + p.ID.Hex()[:24], Livemode: true,
	}}
}

func waits(reason string) payments.Transition {
	return payments.Transition{Status: payments.StatusWaiting, Reason: reason, CountTry: true, Rounds: 1}
}

func inDoubt(reason string) payments.Transition {
	return payments.Transition{Status: payments.StatusUnknown, Reason: reason, InDoubt: true, Rounds: 1}
}

func processing(p payments.Payment) payments.Transition {
	return payments.Transition{Status: payments.StatusPending, Reason: payments.ReasonProcessing, Object: charged(p).Object, Rounds: 1}
}

func numbered(prefix string, n int) string { return prefix + strconv.Itoa(n) }
