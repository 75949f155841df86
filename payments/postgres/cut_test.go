package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// cut is a Store whose one connection goes through a proxy that can be cut at the run of a statement.
type cut struct {
	*bench
	far    *Store // through the proxy
	farDSN string
	proxy  *devstacktest.Proxy
	cuts   atomic.Int32
}

func openCut(t *testing.T) *cut {
	b := open(t)
	c := &cut{bench: b, proxy: devstacktest.NewProxy(t, b.dsn)}
	c.farDSN = devstacktest.Via(t, b.dsn, c.proxy.Addr())
	c.far = b.via(c.farDSN, Options{Clock: b.clock, PoolSize: 1, Committed: b.sent.add})
	return c
}

// at arms the proxy: the next run of the statement meets the action, once.
func (c *cut) at(statement string, action devstacktest.Action) {
	// pgx names a prepared statement by its text; in a Bind message the name stands behind the empty name of the portal.
	sum := sha256.Sum256([]byte(statement))
	bind := []byte("\x00stmtcache_" + hex.EncodeToString(sum[:24]) + "\x00")
	var armed atomic.Bool
	armed.Store(true)
	c.proxy.OnClientData(func(chunk []byte) devstacktest.Action {
		if bytes.Contains(chunk, bind) && armed.CompareAndSwap(true, false) {
			c.cuts.Add(1)
			return action
		}
		return devstacktest.Forward
	})
}

// actions are the two ways in which the answer to a statement gets lost.
var actions = map[string]devstacktest.Action{"committed": devstacktest.ForwardThenCut, "not committed": devstacktest.Cut}

// TestCommitAnswerLost cuts the connection at the COMMIT of each verb, before and after PostgreSQL has got it. The caller learns what is really
// stored, everything is there once, and the connection that comes next is good.
func TestCommitAnswerLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		t.Run("admit "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.at("commit", action)
			r := c.claiming(intent("acme", "k", 100))
			a, err := c.far.Admit(ctx, r)
			if err != nil || a.Verdict != payments.VerdictClaimed || a.Claim.Token != r.Token || a.Claim.Payment.InDoubt {
				t.Fatalf("Admit: %+v, %v", a, err)
			}
			if a.Claim.LeaseUntil.After(c.clock.Now().Add(r.Lease)) {
				t.Errorf("the lease %v outlasts the ticket", a.Claim.LeaseUntil)
			}
			c.end(a.Claim, 1)
		})
		t.Run("record "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			claim := c.claim("k")
			c.at("commit", action)
			done, err := c.far.Record(ctx, payments.Recording{Claim: claim, Transition: succeeded(claim.Payment), At: c.clock.Now()})
			if err != nil || done.Sequence != 1 || done.Payment.Status != payments.StatusSucceeded {
				t.Fatalf("Record: %+v, %v", done, err)
			}
			c.once(claim, 1)
		})
		t.Run("record waiting "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			claim := c.claim("k")
			c.at("commit", action)
			done, err := c.far.Record(ctx, payments.Recording{Claim: claim, Transition: waiting("locked"), At: c.clock.Now()})
			if err != nil || done.Sequence != 1 || done.Payment.Tries != 1 || c.find(claim).Tries != 1 {
				t.Fatalf("Record: %+v, %v", done, err)
			}
			c.end(c.take(payments.TakeRequest{Limit: 1})[0], 2)
		})
		t.Run("evidence "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			claim := c.claim("k")
			c.at("commit", action)
			done, err := c.far.Evidence(ctx, "acme", claim.Payment.ID, func(p payments.Payment) (payments.Transition, error) { return succeeded(p), nil })
			if err != nil || done.Sequence != 1 {
				t.Fatalf("Evidence: %+v, %v", done, err)
			}
			c.once(claim, 1)
		})
		t.Run("bury "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			claim := c.claim("k")
			c.at("commit", action)
			if err := c.far.BuryPayment(ctx, claim, payments.DeadLetter{Reason: payments.ReasonWorkerKilled}, 0); err != nil {
				t.Fatal(err)
			}
			if p := c.find(claim); p.Status != payments.StatusUnknown || p.Sequence != 2 {
				t.Errorf("stored: %+v", p)
			}
			c.end(c.take(payments.TakeRequest{Limit: 1})[0], 3)
		})
		t.Run("bury message "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.at("commit", action)
			if err := c.far.BuryMessage(ctx, payments.DeadLetter{Reason: payments.ReasonInvalid, Origin: c.origin(1)}); err != nil {
				t.Fatal(err)
			}
			if n, err := c.OutboxDepth(ctx); n != 1 || err != nil || len(c.letters(DeadLettersRequest{})) != 1 || c.cuts.Load() != 1 {
				t.Errorf("outbox %d, %v, %d cuts", n, err, c.cuts.Load())
			}
		})
		t.Run("extend "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			claim := c.claim("k")
			c.at(query("extend_submitting"), action)
			c.clock.Advance(time.Second)
			next, err := c.far.Extend(ctx, claim, time.Minute, true)
			if err != nil || !c.find(claim).LastSubmitAt.Equal(c.clock.Now()) {
				t.Fatalf("Extend: %+v, %v", next, err)
			}
			c.end(next, 1)
		})
		t.Run("take "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			c.store("acme", "k", payments.LaneInteractive)
			c.at(query("take"), action)
			taking, err := c.far.Take(ctx, payments.TakeRequest{Lane: 1, Limit: 1, Lease: time.Minute, Account: account})
			if err != nil {
				t.Fatal(err)
			}
			got := taking.Claims
			if len(got) == 0 { // it was committed, or soon will be: nobody has it until the lease is over
				c.until("the ticket is given", func() bool { return c.rows("queue WHERE token IS NOT NULL") == 1 })
				c.clock.Advance(2 * time.Minute)
				got = c.take(payments.TakeRequest{Limit: 1})
			}
			if len(got) != 1 {
				t.Fatalf("Take: %+v", got)
			}
			c.end(got[0], 1)
		})
	}
}

// end records the outcome through the store whose connection was cut, and looks whether all is there once.
func (c *cut) end(claim payments.Claim, sequence int64) {
	c.t.Helper()
	done, err := c.far.Record(context.Background(), payments.Recording{Claim: claim, Transition: succeeded(claim.Payment), At: c.clock.Now()})
	if err != nil || done.Sequence != sequence {
		c.t.Errorf("the record after it: %+v, %v", done, err)
	}
	c.once(claim, sequence)
}

func (c *cut) once(claim payments.Claim, sequence int64) {
	c.t.Helper()
	if n := c.cuts.Load(); n != 1 {
		c.t.Errorf("the connection was cut %d times, want once", n)
	}
	p := c.find(claim)
	entries, err := c.Timeline(context.Background(), p.TenantID, p.ID)
	if err != nil || p.Status != payments.StatusSucceeded || p.Sequence != sequence || len(entries) != int(sequence)+1 {
		c.t.Errorf("stored: %+v, timeline %+v, %v", p, entries, err)
	}
}

// TestPostgresAway: while PostgreSQL is away calls end with CodeUnavailable, within their time, and once it is back they succeed.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	c := openCut(t)
	ctx := context.Background()
	claim := c.claim("k")
	c.proxy.Cut()
	r := c.claiming(intent("acme", "other", 1))
	_, err1 := c.far.Admit(ctx, r)
	_, err2 := c.far.Record(ctx, payments.Recording{Claim: claim, Transition: succeeded(claim.Payment), At: c.clock.Now()})
	_, err3 := c.far.Take(ctx, payments.TakeRequest{Lane: 1, Limit: 1, Lease: time.Minute})
	_, err4 := c.far.Extend(ctx, claim, time.Minute, false)
	_, err5 := c.far.Find(ctx, "acme", claim.Payment.ID)
	_, err6 := c.far.Suspect(ctx, payments.DeadLetter{Origin: c.origin(1)})
	_, err7 := c.far.Pending(ctx, 1, time.Second)
	err8 := c.far.BuryMessage(ctx, payments.DeadLetter{Reason: payments.ReasonInvalid, Origin: c.origin(1)})
	_, err9 := c.far.AdmitBatch(ctx, batchOf("b", 2))
	_, err10 := c.far.CompleteBatches(ctx, []payments.BatchRef{refOf(batchOf("b", 2))})
	_, err11 := c.far.OpenBatches(ctx, payments.BatchRef{}, 1)
	_, err12 := c.far.Batch(ctx, "acme", batchOf("b", 2).ID())
	_, _, err13 := c.far.Batches(ctx, payments.BatchListRequest{TenantID: "acme"})
	_, err14 := c.far.FindMany(ctx, []string{"acme"}, []payments.ID{claim.Payment.ID})
	_, err15 := c.far.Intents(payments.LaneBulk).Pending(ctx, 1, time.Second)
	_, err16 := c.far.Unpublished(ctx)
	_, err17 := c.far.APIKeyBySecret(ctx, "opk_x")
	_, err18 := c.far.AdmitFollowUp(ctx, asking(payments.KindRefund, claim.Payment, "r", 1))
	ofCharge := claim
	ofCharge.Payment.Kind, ofCharge.Payment.PaymentID = payments.KindRefund, claim.Payment.ID.String()
	_, err19 := c.far.RecordFollowUp(ctx, payments.Recording{Claim: ofCharge, Transition: refunded(claim.Payment), At: c.clock.Now()})
	_, err20 := c.far.FollowUpState(ctx, claim.Payment)
	_, err21 := c.far.FindFollowUp(ctx, "acme", claim.Payment.ID)
	_, err22 := c.far.FollowUpsOf(ctx, "acme", claim.Payment.ID, "")
	_, err23 := c.far.CancelOpen(ctx, claim.Payment)
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, err13, err14, err15, err16, err17, err18, err19, err20, err21, err22, err23} {
		if !payments.Retryable(err) {
			t.Errorf("call %d: %v, want %s", i+1, err, payments.CodeUnavailable)
		}
	}
	c.proxy.Heal()
	if a, err := c.far.Admit(ctx, r); err != nil || a.Verdict != payments.VerdictClaimed {
		t.Errorf("back: %+v, %v", a, err)
	}
	if _, err := c.far.Record(ctx, payments.Recording{Claim: claim, Transition: succeeded(claim.Payment), At: c.clock.Now()}); err != nil {
		t.Errorf("back: %v", err)
	}
}

// TestReadCutAfterTheInsert cuts the connection between the commit of what is new and the reading of what is not. Everybody gets the true answer: who was
// given the token has it, who repeats finds the row, and what was announced is in the outbox once.
func TestReadCutAfterTheInsert(t *testing.T) {
	t.Parallel()
	c := openCut(t)
	ctx := context.Background()
	c.claim("there")
	c.at(query("admit_read"), devstacktest.Cut)
	var batch []*admission
	for _, r := range []payments.AdmitRequest{
		c.claiming(intent("acme", "fresh", 100)), announced("announced", payments.LaneInteractive), c.claiming(intent("acme", "there", 9900)),
	} {
		a, _, err := prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, a)
	}
	results := c.far.admits.DoAll(ctx, batch)
	for i, want := range []payments.Verdict{payments.VerdictClaimed, payments.VerdictExists, payments.VerdictExists} {
		if r := results[i]; r.Err != nil || r.Value.Verdict != want {
			t.Errorf("%d: %+v, %v, want %s", i, r.Value, r.Err, want)
		}
	}
	if c.cuts.Load() != 1 {
		t.Errorf("the connection was cut %d times", c.cuts.Load())
	}
	if n, err := c.Unpublished(ctx); err != nil || n != 1 {
		t.Errorf("%d rows are announced, %v", n, err)
	}
}
