package stripesim

import "net/http"

// execute applies the operation: one line in the ledger file, then the change
// in memory, then the stored answer. Whoever lists afterwards sees the change.
func (s *Server) execute(a *attempt, op operation, target *slot, entry *keyEntry) reply {
	b := &s.book
	b.mu.Lock()
	now := b.now()
	b.tick(now)
	e := env{ids: s.ids, seq: a.entry.Seq, now: now, created: a.account.created(now), key: a.entry.IdempotencyKey, settle: b.settle, saved: a.account.saved}
	var current *intent
	if target != nil {
		_, of := a.account.place(op.target())
		current, e.refunded, e.refundCreated = target.current, target.refunded, a.account.refundCreated(now)
		if of != nil {
			e.refund = of.current
		}
	}
	eff := op.apply(e, current)
	sent, keep := eff.answer, entry != nil
	switch a.fault.kind {
	case FaultCommitThen500:
		sent = answer{err: serverError(http.StatusInternalServerError)}
	case FaultCommitThen503:
		sent, keep = answer{err: serverError(http.StatusServiceUnavailable)}, false
	}
	before := a.entry
	a.entry.Executed = true
	a.entry.Status = a.fault.sent(sent.status())
	if a.fault.late() {
		a.entry.Fault = a.fault.name()
	}
	a.entry.PaymentIntent = eff.about()
	rec := &record{Account: a.account.id, Request: &a.entry, Intent: eff.intent, Changed: eff.changed, Charge: eff.charge, Refund: eff.refund, Saved: eff.saved, At: now.UnixNano()}
	if keep {
		rec.Stored = &storedNote{Print: entry.print[:], Status: sent.status(), Error: sent.err, Shows: sent.err != nil && sent.err.showIntent}
	}
	if err := b.journal.append(rec); err != nil {
		b.mu.Unlock()
		a.entry = before
		s.opts.Logger.Error("ledger file cannot be written: nothing was executed", "error", err)
		return refusal(serverError(http.StatusInternalServerError))
	}
	a.recorded = true
	if eff.changed {
		b.apply(a.account, eff.intent, eff.charge, causeOf(&a.entry), now.UTC())
	}
	if eff.refunded { // of what is locked, and so is there
		_ = b.applyRefund(a.account, eff.refund, causeOf(&a.entry), now.UTC())
	}
	a.account.save(eff.saved)
	b.mu.Unlock()
	rep := reply{answer: sent, late: true}
	if entry != nil {
		rep.original = entry.seq
		if keep {
			a.account.keys.finish(entry, sent)
		}
	}
	s.committed(a, eff)
	return rep
}

func (s *Server) committed(a *attempt, eff effect) {
	if s.opts.OnCommit == nil {
		return
	}
	s.opts.OnCommit(Commit{Seq: a.entry.Seq, Path: a.entry.Path, IdempotencyKey: a.entry.IdempotencyKey,
		PaymentIntent: a.entry.PaymentIntent, Status: eff.status(), Charged: eff.charge != nil, Refunded: eff.refunded})
}

// note appends an attempt that executed nothing.
func (b *book) note(a *attempt) error {
	if b.journal == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.journal.append(&record{Account: a.account.id, Request: &a.entry})
}
