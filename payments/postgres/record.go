package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// Record implements payments.Store: it writes an outcome with its timeline entry and its event, if the claim's token is still in the ticket.
// Concurrent calls share their commits. CodeTicketLost; CodeInternal for a transition that the state machine does not have.
func (s *Store) Record(ctx context.Context, r payments.Recording) (payments.Recorded, error) {
	if r.Transition.ThenSend {
		return payments.Recorded{}, payments.Errorf(payments.CodeInternal, "a transition that sends at once is not recorded")
	}
	done, err := s.records.Do(ctx, &r) // by pointer: a Recording is large, and is handed on often
	if violates(err, intentTaken) {
		done, err = s.recordTaken(ctx, r)
	}
	if err != nil {
		return payments.Recorded{}, translate(err)
	}
	return *done, nil
}

// recordTaken leaves to a person a payment whose PaymentIntent a person has given to another one.
func (s *Store) recordTaken(ctx context.Context, r payments.Recording) (*payments.Recorded, error) {
	owner, err := s.takenFrom(ctx, claimKey(&r.Claim), r.Transition)
	if err != nil {
		return nil, err
	}
	r.Transition = r.Transition.Taken(owner)
	return s.records.Do(ctx, &r)
}

// takenFrom tells loudly who has the PaymentIntent of a payment, and returns the owner if that is of the same tenant.
func (s *Store) takenFrom(ctx context.Context, k key, t payments.Transition) (same string, err error) {
	owner, _, err := s.intentOwner(ctx, t.Object.ID)
	if err != nil {
		return "", err
	}
	s.opts.Logger.Error("a person has given the PaymentIntent of a payment to another one: one charge would pay for both, and a person must look at them",
		"payment", k.id.String(), "tenant", k.tenant, "payment_intent", t.Object.ID, "other_payment", owner.id.String(), "other_tenant", owner.tenant)
	if owner.tenant == k.tenant {
		same = owner.id.String()
	}
	return same, nil
}

// recording is what one flush of Record knows.
type recording struct {
	batch   []*payments.Recording
	ends    []*change // for recordings that end their tickets, made beforehand: those are deleted as they are found
	now     time.Time
	named   bool                   // a person has named a PaymentIntent, at some time
	held    map[key]payments.Token // the claims' tokens that stood in their tickets, which are locked or deleted
	rows    map[key]*row           // the payments of the other claims, as they are now
	changes []*change
	results []coalesce.Result[*payments.Recorded]
}

func (s *Store) flushRecord(ctx context.Context, batch []*payments.Recording) ([]coalesce.Result[*payments.Recorded], error) {
	f := &recording{batch: batch, held: make(map[key]payments.Token, len(batch)), results: make([]coalesce.Result[*payments.Recorded], len(batch))}
	s.decideEnds(f)
	var messages []payments.OutboxItem
	err := s.transact(ctx, func(tx *transaction) error {
		if err := s.claimTickets(ctx, tx, f); err != nil {
			return err
		}
		if err := s.readOthers(ctx, tx, f); err != nil {
			return err
		}
		s.decideRecords(f)
		b := tx.batch()
		if len(f.changes) > 0 {
			slices.SortFunc(f.changes, func(a, b *change) int { return a.key().compare(b.key()) })
			if err := s.queueChanges(b, f.changes, f.now, &messages); err != nil {
				return err
			}
		}
		s.reached("record")
		return tx.commit(ctx, b)
	})
	if err != nil {
		return nil, err
	}
	s.committed(messages)
	return f.results, nil
}

func claimKey(c *payments.Claim) key { return key{c.Payment.TenantID, c.Payment.ID} }

// decideEnds makes the changes that end their tickets. They depend on nothing but the claim, as long as its token stands (see standing).
func (s *Store) decideEnds(f *recording) {
	f.ends = make([]*change, len(f.batch))
	for i, r := range f.batch {
		if r.Transition.Status.HasTicket() || r.At.IsZero() || r.Claim.Token.IsZero() || payments.SabotageNoTokenCheck {
			continue
		}
		if c, err := s.recordChange(standing(&r.Claim), r, r.At); err == nil {
			c.ended = true
			f.ends[i] = c
		}
	}
}

// claimTickets deletes or locks the tickets that hold the claims' tokens. Their payments need not be read: while a token stands nobody but its
// owner has changed the payment, so the owner knows it (see standing).
func (s *Store) claimTickets(ctx context.Context, tx *transaction, f *recording) error {
	ending, staying := owned{}, owned{}
	for _, i := range f.order() {
		if f.ends[i] != nil {
			ending.add(&f.batch[i].Claim)
		} else {
			staying.add(&f.batch[i].Claim)
		}
	}
	b := tx.batch()
	if len(ending.ids) > 0 {
		b.Queue(query("end_tickets"), ending.tenants, ending.ids, ending.tokens).Query(f.found)
	}
	if len(staying.ids) > 0 {
		b.Queue(query("lock_tickets"), staying.tenants, staying.ids, staying.tokens, payments.SabotageNoTokenCheck).Query(f.found)
	}
	b.Queue(query("record_clock"), s.now()).QueryRow(func(r pgx.Row) error { return r.Scan(&f.now, &f.named) })
	err := tx.send(ctx, b)
	f.now = f.now.UTC()
	return err
}

// order is that in which everybody locks, among those whose tickets end and among those whose tickets stay. Two flushes that hold the same tokens and
// disagree about which end can lock in a circle; PostgreSQL ends one, which is repeated and finds what the other wrote.
func (f *recording) order() []int {
	order := make([]int, len(f.batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return claimKey(&f.batch[i].Claim).compare(claimKey(&f.batch[j].Claim)) })
	return order
}

// owned are the columns by which claims' tickets are found.
type owned struct {
	tenants     []string
	ids, tokens [][]byte
}

func (o *owned) add(c *payments.Claim) {
	var token []byte // null: nobody's, which no ticket holds
	if !c.Token.IsZero() {
		token = c.Token[:]
	}
	o.tenants, o.ids, o.tokens = append(o.tenants, c.Payment.TenantID), append(o.ids, c.Payment.ID[:]), append(o.tokens, token)
}

// found takes up the tickets that hold their claims' tokens.
func (f *recording) found(rows pgx.Rows) error {
	for rows.Next() {
		var k key
		var id, token []byte
		if err := rows.Scan(&k.tenant, &id, &token); err != nil {
			return err
		}
		copy(k.id[:], id)
		var held payments.Token
		copy(held[:], token)
		f.held[k] = held
	}
	return rows.Err()
}

// readOthers reads, with a newer snapshot, the payments whose tickets hold other tokens or are gone: an earlier attempt of ours may have been
// committed.
func (s *Store) readOthers(ctx context.Context, tx *transaction, f *recording) error {
	var keys []key
	for _, r := range f.batch {
		if k := claimKey(&r.Claim); !f.holds(&r.Claim) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.SortFunc(keys, key.compare)
	tenants, ids := keyArrays(slices.Compact(keys))
	var rows []row
	b := tx.batch()
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&rows))
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	f.rows = make(map[key]*row, len(rows))
	for i := range rows {
		f.rows[rows[i].key()] = &rows[i]
	}
	return nil
}

// holds reports whether the claim's token stood in its ticket, which is locked or deleted then.
func (f *recording) holds(c *payments.Claim) bool {
	token, held := f.held[claimKey(c)]
	return held && token == c.Token
}

// decideRecords settles each recording by the row that is there.
func (s *Store) decideRecords(f *recording) {
	writer := map[key]int{} // of two recordings of one payment only the first writes
	for i, r := range f.batch {
		k := claimKey(&r.Claim)
		stored, there := f.rows[k]
		first, taken := writer[k]
		switch {
		case taken && f.batch[first].Claim.Token == r.Claim.Token:
			f.results[i] = f.results[first]
		case !taken && f.holds(&r.Claim), !taken && there && payments.SabotageNoTokenCheck:
			c, err := s.changeOf(f, i)
			if err != nil {
				f.results[i].Err = err
				continue
			}
			writer[k] = i
			c.adopts = c.adopts && f.named
			f.changes = append(f.changes, c)
			f.results[i].Value = recorded(c)
		case there && !r.Claim.Token.IsZero() && stored.lastToken == r.Claim.Token:
			// Our own commit, whose answer was lost.
			f.results[i].Value = &payments.Recorded{Payment: stored.payment, Sequence: stored.payment.Sequence}
			if r.Transition.Quiet(r.Claim.Payment) {
				f.results[i].Value.Sequence = 0
			}
		default:
			f.results[i].Err = ticketLost(k.id)
		}
	}
}

// changeOf is the change that one recording makes.
func (s *Store) changeOf(f *recording, i int) (*change, error) {
	r := f.batch[i]
	if c := f.ends[i]; c != nil {
		return c, nil
	}
	if stored, there := f.rows[claimKey(&r.Claim)]; there { // read for somebody without the token, who is in this flush, too
		return s.recordChange(stored.payment, r, f.now)
	}
	return s.recordChange(standing(&r.Claim), r, f.now)
}

func (s *Store) recordChange(p payments.Payment, r *payments.Recording, now time.Time) (*change, error) {
	t := r.Transition
	if !p.Status.CanMove(t.Status) && !payments.SabotageNoTokenCheck {
		return nil, impossible(p, t)
	}
	at := r.At
	if at.IsZero() {
		at = now
	}
	return s.newChange(row{payment: p}, t, r.Claim.Token, at, now.Add(r.Delay))
}

// standing is the payment as its row has it while the claim's token stands in the ticket: as it was claimed, with what giving the token wrote,
// which is nothing while its account is not known.
// Take and Evidence put another token or none into the ticket, and what changes a payment without one does so while no ticket stands.
func standing(c *payments.Claim) payments.Payment {
	p := c.Payment
	if p.StripeAccount != "" && !p.InDoubt && p.Status != payments.StatusUnknown && p.Status != payments.StatusPending {
		p.InDoubt, p.FirstSubmitAt, p.LastSubmitAt = true, c.ClaimedAt, c.ClaimedAt
	}
	return p
}

// recorded is the answer that a change gives.
func recorded(c *change) *payments.Recorded {
	r := &payments.Recorded{Payment: c.after}
	if len(c.events) > 0 {
		r.Sequence = c.after.Sequence
	}
	return r
}

func ticketLost(id payments.ID) error {
	return payments.Errorf(payments.CodeTicketLost, "somebody else owns the payment %s by now; nothing was written", id)
}

func impossible(p payments.Payment, t payments.Transition) error {
	return payments.Errorf(payments.CodeInternal, "the payment %s cannot go from %s to %s", p.ID, p.Status, t.Status)
}
