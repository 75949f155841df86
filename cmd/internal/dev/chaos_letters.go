package dev

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// judgeLetters wants one dead letter for each message that must become one, and none that nobody expects. It returns how many messages are lost.
func (c *chaosRun) judgeLetters(e evidence, p *ChaosProof) (lost int) {
	rows, settled := map[string]oracle.Payment{}, e.settled()
	for _, row := range e.Payments {
		rows[row.Key] = row
	}
	found := map[place]payments.DeadLetter{}
	for _, l := range e.letters {
		at := place{l.Origin.Stream, l.Origin.Sequence}
		if _, twice := found[at]; twice && at.stream != "" {
			p.find("message %d of %s has two dead letters", at.sequence, at.stream)
		}
		found[at] = l
		m := c.book.stored[at]
		switch {
		case givenUp(l) && settled[l.IdempotencyKey]:
			p.GivenUp++
		case at.stream == "":
			p.find("%s %s was given up as %s, and is %s after %d replays", l.TenantID, l.IdempotencyKey, l.Reason, l.State, l.Replays)
		case m == nil && c.book.attempted[l.PayloadSHA256] > 0: // it was stored, and its PubAck was not heard
			c.book.attempted[l.PayloadSHA256]--
		case m == nil:
			p.find("message %d of %s (%s) is a dead letter %s that nobody expects", at.sequence, at.stream, l.IdempotencyKey, l.Reason)
		case m.reason != l.Reason:
			p.find("%s is a dead letter %s, want %s", m.key, l.Reason, m.reason)
		}
	}
	for at, m := range c.book.stored {
		if m.money != nil && rows[m.key].Money == *m.money {
			continue // it is the one that won
		}
		if _, stored := e.followUps[m.key]; m.ask != nil && stored {
			continue // there was room for it
		}
		if _, ok := found[at]; !ok {
			p.find("message %d of %s (%s) was acknowledged, and is no dead letter %s", at.sequence, at.stream, m.key, m.reason)
			lost++
		}
	}
	return lost
}

// givenUp reports whether a dead letter is the work of workers that died, and has been seen to: replayed, or settled by what came meanwhile.
func givenUp(l payments.DeadLetter) bool {
	worker := l.Reason == payments.ReasonWorkerKilled || l.Reason == payments.ReasonAttemptsExhausted
	return worker && (l.State == payments.DeadLetterReplayed || l.State == payments.DeadLetterDiscarded)
}

// readReplays reads all replays with their items.
func (c *chaosRun) readReplays(ctx context.Context) (all []payments.Replay, items map[string][]payments.ReplayItem, err error) {
	items = map[string][]payments.ReplayItem{}
	if all, err = c.replays(ctx); err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		for cursor := ""; ; {
			page, next, err := c.store.ReplayItems(ctx, r.ID, "", payments.LimitMax, cursor)
			if err != nil {
				return nil, nil, err
			}
			for _, i := range page {
				items[i.LetterID] = append(items[i.LetterID], i)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return all, items, nil
}

// judgeReplays wants that each replay of a dead letter is counted once, and that what is wrong with its message is so each time: it is open again.
func (c *chaosRun) judgeReplays(e evidence, p *ChaosProof) {
	for _, r := range e.replays {
		sum := 0
		for _, n := range r.Results {
			sum += n
		}
		if sum != r.Total {
			p.find("replay %s of %d dead letters is %s, with results %v", r.ID, r.Total, r.State, r.Results)
		}
	}
	for _, l := range e.letters {
		replayed := 0
		for _, i := range e.items[l.ID] {
			if i.Result != payments.ReplaySkipped {
				replayed++
			}
		}
		what := fmt.Sprintf("the dead letter %s (%s, %s)", l.ID, l.IdempotencyKey, l.Reason)
		gone := givenUp(l)
		switch {
		case len(e.items[l.ID]) == 0 && !gone:
			p.find("%s was in none of %d replays", what, len(e.replays))
		case l.Replays != replayed && !(gone && l.Replays < replayed): // what settled by itself between choice and issue is not counted
			p.find("%s was replayed %d times, and counts %d", what, replayed, l.Replays)
		case l.Reason == payments.ReasonCardNumber && replayed > 0:
			p.find("%s was replayed, and nothing of it may be kept", what)
		case !gone && l.State != payments.DeadLetterOpen:
			p.find("%s is %s after %d replays, and can never be a payment", what, l.State, l.Replays)
		}
		if gone {
			continue
		}
		for _, i := range e.items[l.ID] {
			if want := replayResult(l.Reason); i.Result != want && i.Result != payments.ReplaySkipped {
				p.find("%s came to %s in %s, want %s", what, i.Result, i.ReplayID, want)
			}
		}
	}
}

// replayResult is what replaying a message of such a dead letter comes to.
func replayResult(r payments.Reason) payments.ReplayResult {
	switch r {
	case payments.ReasonCardNumber:
		return payments.ReplaySkipped
	case payments.ReasonKeyReused:
		return payments.ReplayConflict
	}
	return payments.ReplayFailedAgain
}

// deadCopy is a copy of a dead letter as it was found in the stream.
type deadCopy struct {
	schema.DeadLetter
	subject string
}

// readCopies reads the stream of dead letters from its beginning.
func readCopies(ctx context.Context, js jetstream.JetStream, subjects schema.Subjects) (map[string][]deadCopy, error) {
	copies := map[string][]deadCopy{}
	err := readStream(ctx, js, subjects.StreamDead(), func(m jetstream.Msg) error {
		one := deadCopy{subject: m.Subject()}
		if err := json.Unmarshal(m.Data(), &one.DeadLetter); err != nil {
			return fmt.Errorf("the copy of a dead letter cannot be read: %w", err)
		}
		copies[one.ID] = append(copies[one.ID], one)
		return nil
	})
	return copies, err
}

// judgeCopies wants a copy of each dead letter, one more each time that it was open again, and none of anything else. Copies are at least once.
func judgeCopies(e evidence, p *ChaosProof) {
	known := map[string]bool{}
	for _, l := range e.letters {
		known[l.ID] = true
		copies, least := e.copies[l.ID], 1
		if l.State == payments.DeadLetterOpen {
			least += l.Replays
		}
		if len(copies) < least {
			p.find("the dead letter %s (%s) after %d replays has %d copies in its stream", l.ID, l.IdempotencyKey, l.Replays, len(copies))
			continue
		}
		last := slices.MaxFunc(copies, func(a, b deadCopy) int { return a.Replays - b.Replays })
		if l.State == payments.DeadLetterOpen && (last.Replays != l.Replays || last.Reason != string(l.Reason)) {
			p.find("the dead letter %s is %s after %d replays, and its last copy says %s after %d", l.ID, l.Reason, l.Replays, last.Reason, last.Replays)
		}
		for _, one := range copies {
			if wrong := one.unlike(l); wrong != "" {
				p.find("the copy of the dead letter %s (%s) on %s: %s", l.ID, l.IdempotencyKey, one.subject, wrong)
				break
			}
		}
	}
	for id, copies := range e.copies {
		if !known[id] {
			p.find("the stream has a copy of %s (%s), which is no dead letter", id, copies[0].Reason)
		}
	}
}

// unlike says in what a copy differs from its dead letter.
func (one deadCopy) unlike(l payments.DeadLetter) string {
	switch {
	case one.TenantID != nil && *one.TenantID != l.TenantID || one.IdempotencyKey != nil && *one.IdempotencyKey != l.IdempotencyKey:
		return "another tenant or key"
	case l.Reason == payments.ReasonCardNumber && one.PayloadBase64 != nil:
		return "it has the payload, which held a card number"
	case one.PayloadBase64 == nil:
		return ""
	}
	payload, err := base64.StdEncoding.DecodeString(*one.PayloadBase64)
	if err != nil || sha256.Sum256(payload) != l.PayloadSHA256 {
		return "another payload"
	}
	return ""
}

// judgeHolds wants that nothing was sent for payments that came while an operator had been told that everybody is held back.
func (c *chaosRun) judgeHolds(ctx context.Context, e evidence, p *ChaosProof) error {
	keys, came := map[string]string{}, map[string]time.Time{}
	for _, row := range e.Payments {
		keys[payments.StripeKey(c.settings.Namespace, payments.KindCharge, demoTenant, row.Key)] = row.Key
	}
	for key, f := range e.followUps {
		keys[payments.StripeKey(c.settings.Namespace, f.Kind, demoTenant, key)], came[key] = key, f.CreatedAt
	}
	for _, r := range e.ledger.Requests {
		key := keys[r.IdempotencyKey]
		if key == "" {
			continue
		}
		for _, s := range c.operated.spans {
			if r.At.Before(s.from) || r.At.After(s.to) {
				continue
			}
			if came[key].IsZero() {
				row, err := c.store.Find(ctx, demoTenant, payments.NewID(demoTenant, key))
				if err != nil {
					return err
				}
				came[key] = row.CreatedAt
			}
			if came[key].After(s.from) {
				p.find("%s came at %s and was sent at %s, and all was held back from %s to %s", key, came[key], r.At, s.from, s.to)
			}
		}
	}
	return nil
}
