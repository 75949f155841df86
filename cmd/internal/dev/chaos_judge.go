package dev

import (
	"context"
	"fmt"
	"slices"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/stripesim"
)

// evidence is all that is known of a run at rest.
type evidence struct {
	oracle.Run
	ledger   stripesim.Ledger
	summary  stripesim.Summary
	letters  []payments.DeadLetter
	complete map[string][]string // ids of the events that say that a batch is complete
	replays  []payments.Replay
	items    map[string][]payments.ReplayItem // of all replays, by dead letter
	copies   map[string][]deadCopy            // of dead letters, by id
	// followUps are the captures, cancels and refunds that are stored, by key.
	followUps map[string]payments.FollowUp
}

// collect reads the accounts of Stripe and ours.
func (c *chaosRun) collect(ctx context.Context) (e evidence, err error) {
	if err := c.sim.call(ctx, "GET", "/_sim/ledger", nil, &e.ledger); err != nil {
		return e, err
	}
	if err := c.sim.call(ctx, "GET", "/_sim/summary", nil, &e.summary); err != nil {
		return e, err
	}
	for i, intent := range c.work.intents {
		intent.Acknowledged = c.book.acknowledged[i]
		e.Intents = append(e.Intents, intent)
	}
	for _, charge := range e.ledger.Charges {
		e.Charges = append(e.Charges, oracle.Charge{
			ID: charge.ID, Money: oracle.Money{Amount: charge.Amount, Currency: charge.Currency, Customer: charge.Customer},
			Held: !charge.Captured, Captured: charge.AmountCaptured,
		})
	}
	if err := readPayments(ctx, c.store, &e.Run); err != nil {
		return e, err
	}
	if e.letters, err = readLetters(ctx, c.store, &e.Run); err != nil {
		return e, err
	}
	subjects, _ := c.settings.Streams()
	if _, e.complete, err = readEvents(ctx, c.js, subjects, &e.Run); err != nil {
		return e, err
	}
	if err := c.collectFollowUps(ctx, &e); err != nil {
		return e, err
	}
	if e.copies, err = readCopies(ctx, c.js, subjects); err != nil {
		return e, err
	}
	e.replays, e.items, err = c.readReplays(ctx)
	return e, err
}

// prove holds the producers' book against Stripe's ledger, the payments, the dead letters and the events.
func (c *chaosRun) prove(ctx context.Context) (*ChaosProof, error) {
	e, err := c.collect(ctx)
	if err != nil {
		return nil, err
	}
	violations, err := c.store.TicketViolations(ctx)
	if err != nil {
		return nil, err
	}
	v := oracle.Judge(e.Run)
	p := c.proof(e, v)
	p.Findings = append(p.Findings, v.Findings...)
	for _, broken := range violations {
		p.Findings = append(p.Findings, fmt.Sprintf("ticket and status disagree: %s for %s %s", broken.What, broken.ID, broken.Status))
	}
	p.Lost += c.judgeLetters(e, p)
	c.judgeReplays(e, p)
	judgeCopies(e, p)
	c.judgeBatches(e, p)
	if err := c.judgeHolds(ctx, e, p); err != nil {
		return nil, err
	}
	p.Findings = append(p.Findings, c.book.findings...)
	for _, process := range c.processes {
		for _, end := range process.OwnEnds() {
			p.Findings = append(p.Findings, end.Error())
		}
	}
	if c.o.KeysOff {
		c.judgeRequests(e, p)
	}
	p.Holds = v.Good() && len(p.Findings) == 0
	if !p.Holds {
		p.Offender, p.Timeline = c.offender(ctx, e, p.Findings)
	}
	return p, nil
}

// judgeBatches wants that each batch that was acknowledged is told to be complete, once.
func (c *chaosRun) judgeBatches(e evidence, p *ChaosProof) {
	for key, children := range c.work.batches {
		if !c.book.batches[key] {
			continue
		}
		id := payments.NewID(demoTenant, key).Format(payments.KindBatch)
		ids := slices.Clone(e.complete[id])
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != 1 {
			p.find("batch %s of %d payments has %d events that say it is complete", key, len(children), n)
		}
	}
}
