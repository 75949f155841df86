package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/console"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/producer"
)

// waitFor reads the payment until nobody has to act on it any more.
func (s *shared) waitFor(ctx context.Context, store *postgres.Store, intent payments.Intent, sent producer.Result, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	told := ""
	for {
		p, err := store.FindByKey(ctx, intent.TenantID, intent.IdempotencyKey)
		switch {
		case err == nil && payments.Fingerprint(p.Intent) != payments.Fingerprint(intent.Normalized()):
			return NewExit(exitFailed, "oncepay: the key already names another request; differs: "+strings.Join(payments.Differs(p.Intent, intent.Normalized()), ", "))
		case err == nil && (!p.Status.HasTicket() || p.Status == payments.StatusPending):
			return s.printOutcome(ctx, store, p)
		case err == nil && p.Reason == payments.ReasonPaused:
			told = s.tellPaused(ctx, store, p, told)
		case err != nil && payments.ErrorCode(err) != payments.CodeNotFound && ctx.Err() == nil:
			return err
		case err != nil && ctx.Err() == nil:
			if letter, found := letterOf(ctx, store, intent, sent); found {
				return NewExit(exitFailed, "oncepay: dead letter "+letter.ID+": "+letter.Message)
			}
		}
		timer := time.NewTimer(waitEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			ended := "no outcome within " + within.String()
			if errors.Is(ctx.Err(), context.Canceled) {
				ended = "interrupted before its outcome"
			}
			return NewExit(exitFailed, "oncepay: published, but "+ended+"; `oncepay payments show` tells more, and publishing again is safe")
		case <-timer.C:
		}
	}
}

// knownBefore is the payment that the intent's key names already: the intent is a repeat then. Another request under the key is no repeat, but a
// conflict, which waitFor tells; nil: neither.
func knownBefore(ctx context.Context, store *postgres.Store, intent payments.Intent) (*payments.Payment, error) {
	if refusal(intent) != nil {
		return nil, nil // it is not sent
	}
	p, err := store.FindByKey(ctx, intent.TenantID, intent.IdempotencyKey)
	switch {
	case payments.ErrorCode(err) == payments.CodeNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case payments.Fingerprint(p.Intent) != payments.Fingerprint(intent.Normalized()):
		return nil, nil
	}
	return &p, nil
}

// repeated says that an intent was a repeat, and of what.
func repeated(p payments.Payment) string {
	what, done := "payment", "charged"
	if p.Kind.FollowUp() {
		what, done = string(p.Kind), "executed"
	}
	return "a repeat: this key has named this " + what + " since " + utc(p.CreatedAt) + ", and nothing is " + done + " a second time; it is " + string(p.ShownStatus())
}

// tellPaused says what holds a payment, unless that is what was told last, and returns it.
func (s *shared) tellPaused(ctx context.Context, store operators, p payments.Payment, told string) string {
	lines, err := hold(ctx, store, p)
	if err != nil {
		return told // it is looked at again
	}
	if len(lines) == 0 { // the pause of an account that is not known here to be the payment's, or one that has just ended
		if now, err := store.Find(ctx, p.TenantID, p.ID); err != nil || now.Reason != payments.ReasonPaused {
			return told
		}
		lines = [][2]string{{"", "`oncepay doctor` says by whom"}}
	}
	var texts []string
	for _, l := range lines {
		texts = append(texts, l[1])
	}
	now := "it is accepted and waits, paused: " + strings.Join(texts, "; ")
	if now != told {
		fmt.Fprintln(s.err, errorLine("oncepay: "+now))
	}
	return now
}

// waitEvery is how often --wait looks.
const waitEvery = 100 * time.Millisecond

// letterOf finds the dead letter of the very message that was published: an older one of the same key says nothing about it.
func letterOf(ctx context.Context, store *postgres.Store, intent payments.Intent, sent producer.Result) (payments.DeadLetter, bool) {
	letters, _, err := store.DeadLetters(ctx, postgres.DeadLettersRequest{LetterFilter: payments.LetterFilter{TenantID: intent.TenantID, IdempotencyKey: intent.IdempotencyKey}})
	if err != nil {
		return payments.DeadLetter{}, false // it is asked again
	}
	i := slices.IndexFunc(letters, func(d payments.DeadLetter) bool {
		return d.Origin.Stream == sent.Stream && d.Origin.Sequence == sent.Sequence
	})
	if i < 0 {
		return payments.DeadLetter{}, false
	}
	return letters[i], true
}

func (s *shared) printOutcome(ctx context.Context, store *postgres.Store, p payments.Payment) error {
	f, err := followUpOf(ctx, store, p)
	switch {
	case err != nil:
		return err
	case s.json && p.Kind.FollowUp():
		err = console.JSON(s.out, document.FollowUp(f))
	case s.json:
		err = console.JSON(s.out, document.Payment(p))
	default:
		err = s.printWithTimeline(ctx, store, p, f, nil)
	}
	if err != nil {
		return err
	}
	if p.Status != payments.StatusSucceeded {
		return NewExit(exitFailed, "")
	}
	return nil
}
