package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// claimed makes a replay of one dead letter, and holds its item.
func (c *cut) claimed(letter string) payments.ReplayWork {
	c.t.Helper()
	r := c.newReplay(payments.NewReplay{Filter: payments.LetterFilter{ID: letter}})
	claims, err := c.ClaimReplayItems(context.Background(), 10, time.Minute)
	if err != nil || len(claims.Work) != 1 || claims.Work[0].ReplayID != r.ID || claims.Work[0].Letter.ID != letter {
		c.t.Fatalf("claimed: %+v, %v", claims, err)
	}
	return claims.Work[0]
}

// TestReplayCommitAnswerLost cuts the connection at the COMMIT with which an item is issued or finished, before and after PostgreSQL has got it. The
// payment, its dead letter, the item and the copy for the outbox are changed once, and nobody issues it again.
func TestReplayCommitAnswerLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, action := range actions {
		t.Run("issue "+name, func(t *testing.T) {
			t.Parallel()
			c := openCut(t)
			letter := c.stall("k")
			w := c.claimed(letter.ID)
			c.at("commit", action)
			if err := c.far.IssueReplayed(ctx, []payments.ReplayWork{w}); err != nil {
				t.Fatal(err)
			}
			item := c.items(w.ReplayID)[letter.ID]
			if item.Result != "" || item.PaymentID == nil || *item.PaymentID != *letter.PaymentID || item.Status != payments.StatusWaiting {
				t.Errorf("the item: %+v", item)
			}
			c.letter(letter.ID, payments.DeadLetterReplayed)
			// Whoever holds it still changes nothing, and nobody gets it again.
			if err := c.IssueReplayed(ctx, []payments.ReplayWork{w}); err != nil {
				t.Error(err)
			}
			if claims, err := c.ClaimReplayItems(ctx, 10, time.Minute); err != nil || len(claims.Work) != 0 {
				t.Errorf("issued again: %+v, %v", claims, err)
			}
			c.end(c.take(payments.TakeRequest{Limit: 1})[0], 4) // stalled, its dead letter, replayed, succeeded
		})
		for result, want := range map[payments.ReplayResult]payments.DeadLetterState{
			payments.ReplaySucceeded: payments.DeadLetterReplayed, payments.ReplayFailedAgain: payments.DeadLetterOpen,
		} {
			t.Run("finish "+string(result)+" "+name, func(t *testing.T) {
				t.Parallel()
				c := openCut(t)
				c.message("dl_m", "m", "{}", payments.ReasonInvalid, 1)
				copies := c.depth()
				w := c.claimed("dl_m")
				c.at("commit", action)
				outcome := payments.ReplayOutcome{Result: result, Detail: "so it is"}
				if result == payments.ReplayFailedAgain {
					outcome.Reason, outcome.Message = payments.ReasonInvalid, "amount: is required"
					copies++ // it is told again
				}
				if err := c.far.FinishReplayed(ctx, w, outcome); err != nil {
					t.Fatal(err)
				}
				if err := c.FinishReplayed(ctx, w, outcome); err != nil {
					t.Errorf("once more: %v", err)
				}
				if item := c.items(w.ReplayID)["dl_m"]; item.Result != result || item.Detail != "so it is" {
					t.Errorf("the item: %+v", item)
				}
				c.letter("dl_m", want)
				if n := c.depth(); n != copies || c.cuts.Load() != 1 {
					t.Errorf("%d rows in the outbox, want %d; %d cuts", n, copies, c.cuts.Load())
				}
			})
		}
	}
}

// letter looks whether a dead letter that was replayed once stands where it should.
func (c *cut) letter(id string, want payments.DeadLetterState) {
	c.t.Helper()
	if d, err := c.DeadLetter(context.Background(), id); err != nil || d.State != want || d.Replays != 1 {
		c.t.Errorf("the dead letter: %+v, %v, want %s, replayed once", d, err, want)
	}
}

func (c *cut) depth() int64 {
	c.t.Helper()
	n, err := c.OutboxDepth(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
