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
		e.Charges = append(e.Charges, oracle.Charge{ID: charge.ID, Money: oracle.Money{Amount: charge.Amount, Currency: charge.Currency, Customer: charge.Customer}})
	}
	if err := readPayments(ctx, c.store, &e.Run); err != nil {
		return e, err
	}
	if e.letters, err = readLetters(ctx, c.store, &e.Run); err != nil {
		return e, err
	}
	subjects, _ := c.settings.Streams()
	_, e.complete, err = readEvents(ctx, c.js, subjects, &e.Run)
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
	lost := c.judgeLetters(e, p)
	p.Lost += lost
	c.judgeBatches(e, p)
	p.Findings = append(p.Findings, c.book.findings...)
	for _, process := range c.processes {
		for _, end := range process.OwnEnds() {
			p.Findings = append(p.Findings, end.Error())
		}
	}
	if c.o.KeysOff && e.summary.Posts != len(e.Payments) {
		p.Findings = append(p.Findings, fmt.Sprintf("Stripe was asked %d times for %d payments", e.summary.Posts, len(e.Payments)))
	}
	p.Holds = v.Good() && len(p.Findings) == 0
	if !p.Holds {
		p.Offender, p.Timeline = c.offender(ctx, e, p.Findings)
	}
	return p, nil
}

// judgeLetters wants one dead letter for each message that must become one, and none that nobody expects. It returns how many messages are lost.
func (c *chaosRun) judgeLetters(e evidence, p *ChaosProof) (lost int) {
	rows := map[string]oracle.Money{}
	for _, row := range e.Payments {
		rows[row.Key] = row.Money
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
		case at.stream == "":
			p.find("%s %s was given up as %s", l.TenantID, l.IdempotencyKey, l.Reason)
		case m == nil && c.book.attempted[l.PayloadSHA256] > 0: // it was stored, and its PubAck was not heard
			c.book.attempted[l.PayloadSHA256]--
		case m == nil:
			p.find("message %d of %s (%s) is a dead letter %s that nobody expects", at.sequence, at.stream, l.IdempotencyKey, l.Reason)
		case m.reason != l.Reason:
			p.find("%s is a dead letter %s, want %s", m.key, l.Reason, m.reason)
		}
	}
	for at, m := range c.book.stored {
		if m.money != nil && rows[m.key] == *m.money {
			continue // it is the one that won
		}
		if _, ok := found[at]; !ok {
			p.find("message %d of %s (%s) was acknowledged, and is no dead letter %s", at.sequence, at.stream, m.key, m.reason)
			lost++
		}
	}
	return lost
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
