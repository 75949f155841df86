package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// RecordFollowUp implements payments.FollowUps: it writes the outcome of a follow-up as Record does, and in the same transaction what that does to its
// charge and what Stripe calls its refund. A follow-up that no longer holds up those behind it makes the next of them due at once. It is not coalesced.
// CodeTicketLost; CodeTargetMoved, and whatever else Transition.Target returns; CodeInternal for a transition that the state machine does not have.
func (s *Store) RecordFollowUp(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	if r.Transition.ThenSend {
		return payments.Recorded{}, payments.Errorf(payments.CodeInternal, "a transition that sends at once is not recorded")
	}
	k := claimKey(&r.Claim)
	charge, err := payments.ParseID(r.Claim.Payment.PaymentID)
	if err != nil || !r.Claim.Payment.Kind.FollowUp() {
		return payments.Recorded{}, payments.Errorf(payments.CodeInternal, "%s is no capture, cancel or refund of a payment", k.id.Hex())
	}
	e := &followUpEnd{s: s, key: k, charge: key{k.tenant, charge}, token: r.Claim.Token, chargeToken: s.newToken()}
	e.judge = func(own row, now time.Time) (payments.Transition, time.Time, time.Time, error) {
		if !own.holds(r.Claim.Token) && !payments.SabotageNoTokenCheck {
			return payments.Transition{}, now, now, ticketLost(k.id)
		}
		if !own.payment.Status.CanMove(r.Transition.Status) && !payments.SabotageNoTokenCheck {
			return payments.Transition{}, now, now, impossible(own.payment, r.Transition)
		}
		at := r.At
		if at.IsZero() {
			at = now
		}
		return r.Transition, at, now.Add(r.Delay), nil
	}
	e.moves, e.wakes, e.quiet = r.Transition.Target != nil, !slices.Contains(holdsUp, r.Transition.Status), r.Transition.Quiet(r.Claim.Payment)
	return e.run(ctx)
}

// followUpEnd is the writing of a follow-up's outcome.
type followUpEnd struct {
	s           *Store
	key, charge key
	token       payments.Token // stored with the follow-up: who comes again with it has been here
	chargeToken payments.Token // and with the charge
	// judge is told the follow-up as it is locked, and the store's time: the transition, its time, and when the ticket is due again.
	judge func(own row, now time.Time) (t payments.Transition, at, due time.Time, err error)
	moves bool // the charge may be changed and is locked, too
	wakes bool // those behind it may go on
	quiet bool // nothing is told of it
	beside

	moved payments.Transition // of the charge
	taken bool                // by which it adopts what a person has given to another payment: owner's
	owner string

	done     payments.Recorded
	messages []payments.OutboxItem
}

func (e *followUpEnd) run(ctx context.Context) (payments.Recorded, error) {
	s := e.s
	err := s.write(ctx, e.attempt)
	if violates(err, intentTaken) {
		owner, failed := s.takenFrom(ctx, e.charge, e.moved)
		if failed != nil {
			return payments.Recorded{}, failed
		}
		e.taken, e.owner = true, owner
		err = s.write(ctx, e.attempt)
	}
	if err != nil {
		return payments.Recorded{}, err
	}
	s.committed(e.messages)
	return e.done, nil
}

func (e *followUpEnd) attempt(ctx context.Context) error {
	e.messages = nil
	return e.s.transact(ctx, func(tx *transaction) error { return e.write(ctx, tx) })
}

// write locks tickets before payments, each sorted: the follow-up's, the charge's, and the next follow-up's.
func (e *followUpEnd) write(ctx context.Context, tx *transaction) error {
	s := e.s
	if e.first != nil {
		if err := e.first(ctx, tx); err != nil {
			return err
		}
	}
	behind, now, err := e.next(ctx, tx)
	if err != nil {
		return err
	}
	keys := append([]key{e.key}, behind[e.key]...)
	if e.moves {
		keys = append(keys, e.charge)
	}
	rows, err := s.lockEach(ctx, tx, keys)
	if err != nil {
		return err
	}
	own, there := rows[e.key]
	switch {
	case !there:
		return ticketLost(e.key.id)
	case !e.token.IsZero() && own.lastToken == e.token: // an earlier attempt was committed
		e.done = payments.Recorded{Payment: own.payment, Sequence: own.payment.Sequence}
		if e.quiet {
			e.done.Sequence = 0
		}
		return nil
	}
	t, at, due, err := e.judge(own, now)
	if err != nil {
		return err
	}
	c, err := s.newChange(own.naming(t.Refund), t, e.token, at, due)
	if err != nil {
		return err
	}
	e.done = *recorded(c)
	changes := []*change{c}
	var given int64
	if t.Target != nil {
		charge, there := rows[e.charge]
		if !there {
			return payments.Errorf(payments.CodeInternal, "the payment %s of %s is not there", e.charge.id, e.key.id.Hex())
		}
		moved, refunded, err := e.move(charge, t.Target, now)
		if err != nil {
			return err
		}
		if given = refunded; moved != nil {
			changes = append(changes, moved)
		}
	}
	return e.commit(ctx, tx, t, changes, given, behind, rows, now)
}

// next finds what may go on once this one has ended, and the store's time.
func (e *followUpEnd) next(ctx context.Context, tx *transaction) (behind map[key][]key, now time.Time, err error) {
	b := tx.batch()
	b.Queue(query("clock"), e.s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&now) })
	behind = map[key][]key{}
	if e.wakes {
		queueNext(b, e.key, behind)
	}
	err = tx.send(ctx, b)
	return behind, now.UTC(), err
}

// queueNext finds what may go on once a follow-up has ended.
func queueNext(b *pgx.Batch, k key, behind map[key][]key) {
	b.Queue(query("next_follow_up"), k.tenant, k.id[:]).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			next, id := key{tenant: k.tenant}, []byte(nil)
			if err := rows.Scan(&id); err != nil {
				return err
			}
			copy(next.id[:], id)
			behind[k] = append(behind[k], next)
		}
		return rows.Err()
	})
}

// nextFollowUps finds, for those of the keys that are follow-ups, what may go on once they have ended.
func (s *Store) nextFollowUps(ctx context.Context, tx *transaction, keys []key) (map[key][]key, error) {
	behind := map[key][]key{}
	if len(keys) == 0 {
		return behind, nil
	}
	b := tx.batch()
	for _, k := range keys {
		queueNext(b, k, behind)
	}
	return behind, tx.send(ctx, b)
}

// queueWake makes due at once what waited behind those that have ended, where nobody has it.
func queueWake(b *pgx.Batch, ended []*change, behind map[key][]key, rows map[key]row, now time.Time) {
	var woken []key
	for _, c := range ended {
		for _, next := range behind[c.key()] {
			if rows[next].ticket != nil && !slices.ContainsFunc(ended, func(c *change) bool { return c.key() == next }) {
				woken = append(woken, next)
			}
		}
	}
	if len(woken) > 0 {
		slices.SortFunc(woken, key.compare)
		tenants, ids := keyArrays(slices.Compact(woken))
		b.Queue(query("due_now"), tenants, ids, now)
	}
}

// move is what the end of the follow-up does to its charge: a change, or none, and how much was given back.
func (e *followUpEnd) move(charge row, of payments.TargetChange, now time.Time) (c *change, refunded int64, err error) {
	p := charge.payment
	if charge.ticket != nil {
		p.NextAttemptAt = charge.ticket.DueAt // also of one that somebody has: until then it is that worker's
	}
	t, err := of(p)
	if err != nil {
		return nil, 0, err
	}
	e.moved, refunded = t, t.Refunded
	if e.taken && t.Object != nil { // its PaymentIntent is another's, as a person has said
		if p.Status.Final() {
			return nil, refunded, nil
		}
		t = t.Taken(e.owner)
	}
	if t.Quiet(p) { // nothing but what was given back: the charge's ticket, should there be one, stays its owner's
		return nil, refunded, nil
	}
	c, _, err = e.s.judge(charge, now, e.chargeToken, func(payments.Payment, time.Time) (payments.Transition, error) { return t, nil })
	return c, refunded, err
}

func (e *followUpEnd) commit(ctx context.Context, tx *transaction, t payments.Transition, changes []*change, given int64, behind map[key][]key, rows map[key]row, now time.Time) error {
	s := e.s
	slices.SortFunc(changes, func(a, b *change) int { return a.key().compare(b.key()) })
	b := tx.batch()
	if err := s.queueChanges(b, changes, now, &e.messages); err != nil {
		return err
	}
	if given > 0 {
		b.Queue(query("add_refunded"), e.charge.tenant, e.charge.id[:], given, now)
	}
	if t.Refund != nil && t.Refund.ID != "" {
		b.Queue(query("name_refund"), e.key.tenant, e.key.id[:], sanitised(t.Refund.ID, nameMax))
	}
	queueWake(b, changes, behind, rows, now)
	if e.also != nil {
		e.also(b, e.done)
	}
	s.reached("record_follow_up")
	return tx.commit(ctx, b)
}
