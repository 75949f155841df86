package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/coalesce"
)

// admitting is what one flush of Admit knows.
type admitting struct {
	batch   []*admission
	missing map[string]bool    // tenants that do not exist
	first   map[key]*admission // for each key, the one request of the flush that inserts
	rows    map[key]*row       // what is there now
	now     map[key]time.Time  // the store's time at which that was read or written
	fresh   map[key]bool       // inserted by this attempt
	short   map[key]bool       // and given no token for want of budget

	allNew   bool // inserted without a look for what is there
	refused  bool // for what was there, so that it is not inserted so again, whatever the clock says meanwhile
	restored bool // accept found that a rewind knows of PaymentIntents, and inserted nothing

	messages []payments.OutboxItem // of rows that this attempt inserted and that are to be announced

	paying  []payments.Account          // sorted: whose budgets this flush debits; none without a rate
	held    map[key]time.Duration       // requests that get no token, since their account is known to have no room for that long
	budgets map[payments.Account]budget // what is left
}

// flushAdmit answers one batch: insert what is new and, in a separate statement with a newer snapshot, read the rest. Of equal keys in one
// batch the first that may insert does; the others meet its row, like everybody else.
func (s *Store) flushAdmit(ctx context.Context, batch []*admission) ([]coalesce.Result[*payments.Admission], error) {
	f := &admitting{
		batch: batch, first: map[key]*admission{}, rows: make(map[key]*row, len(batch)), now: make(map[key]time.Time, len(batch)), fresh: map[key]bool{},
		short: map[key]bool{},
	}
	began := s.wall()
	tenants := make([]string, len(batch))
	for i, a := range batch {
		tenants[i] = a.Intent.TenantID
		if a.leaseFrom.IsZero() {
			a.leaseFrom = began
		}
	}
	var err error
	if f.missing, err = s.missingTenants(ctx, tenants); err != nil {
		return nil, err
	}
	for _, a := range batch {
		if k := a.key(); a.inserts() && !f.missing[a.Intent.TenantID] && f.first[k] == nil {
			f.first[k] = a
		}
	}
	if err := s.pace(ctx, f, began); err != nil {
		return nil, err
	}
	if err := s.transact(ctx, func(tx *transaction) error { return s.admit(ctx, tx, f) }); err != nil {
		s.noteLocked(f, err)
		return nil, err
	}
	s.noteBudgets(f)
	s.committed(f.messages)
	results, answers := make([]coalesce.Result[*payments.Admission], len(batch)), make([]payments.Admission, len(batch))
	for i, a := range batch {
		results[i].Value = &answers[i]
		f.answer(a, &answers[i])
		if c := &answers[i].Claim; answers[i].Verdict == payments.VerdictClaimed {
			c.LeaseUntil = s.leaseEnd(a.leaseFrom, c.LeaseUntil.Sub(a.leaseFrom), f.now[a.key()])
		}
	}
	return results, nil
}

// admit inserts and commits in one round trip, since most requests are new, and reads what is not in a second one, after the commit: its snapshot must
// be newer than the insert's, and rows stay.
func (s *Store) admit(ctx context.Context, tx *transaction, f *admitting) error {
	if len(f.first) > 0 || f.suspects() {
		err := s.insert(ctx, tx, f)
		if s.met(f, err) {
			if err = tx.again(ctx); err == nil {
				err = s.insert(ctx, tx, f)
			}
		}
		if err == nil && f.restored { // nothing was inserted: the other statements know how these payments begin
			s.restored.Store(true)
			tx.begun = false
			err = s.insert(ctx, tx, f)
		}
		if err != nil {
			return err
		}
	}
	others := f.unread()
	if len(others) == 0 {
		return nil
	}
	tenants, ids := keyArrays(others)
	rows, err := tx.conn.Query(ctx, query("admit_read"), tenants, ids, s.now())
	if err != nil {
		return err // the flush is repeated, and what it has committed is known by its tokens
	}
	defer rows.Close()
	return f.read(rows)
}

// insert stores what is new, debits its budgets, leaves what is to be announced in the outbox, and clears suspects, in one transaction.
func (s *Store) insert(ctx context.Context, tx *transaction, f *admitting) error {
	b := tx.batch()
	f.messages = nil
	if len(f.first) > 0 {
		s.queueInserts(b, f)
		if payments.SabotageNoTicket {
			tenants, ids := keyArrays(slices.Collect(maps.Keys(f.first)))
			b.Queue(query("delete_tickets"), tenants, ids)
		}
	}
	if paced := len(f.paying) > 0; paced || s.hooked() {
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		b = tx.batch()
		if paced {
			s.queueAnnounce(b, f)
		}
	}
	queueClearSuspects(b, f.batch)
	s.reached("admit")
	return tx.commit(ctx, b)
}

// suspects reports whether a request clears a suspect message.
func (f *admitting) suspects() bool {
	return slices.ContainsFunc(f.batch, func(a *admission) bool { return a.Suspect != nil })
}

// unread are the keys of which no row is known yet, sorted.
func (f *admitting) unread() (others []key) {
	if len(f.rows) == len(f.batch) {
		return nil
	}
	for _, a := range f.sorted() {
		if _, there := f.rows[a.key()]; !there && !f.missing[a.Intent.TenantID] {
			others = append(others, a.key())
		}
	}
	return others
}

// sorted is one request for each key, in the order in which everybody locks.
func (f *admitting) sorted() []*admission {
	list := slices.Clone(f.batch)
	slices.SortStableFunc(list, func(a, b *admission) int { return a.key().compare(b.key()) })
	return slices.CompactFunc(list, func(a, b *admission) bool { return a.key() == b.key() })
}

// read takes up the rows that were there already.
func (f *admitting) read(rows pgx.Rows) error {
	for rows.Next() {
		var now time.Time
		r, err := scanRow(rows, &now)
		if err != nil {
			return err
		}
		f.rows[r.key()], f.now[r.key()] = &r, now.UTC()
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for k := range f.first {
		if _, there := f.rows[k]; !there {
			return errRowGone // never go on without knowing whose it is
		}
	}
	return nil
}

// answer ranks what the request met.
func (f *admitting) answer(a *admission, done *payments.Admission) {
	k := a.key()
	r, there := f.rows[k]
	m := meeting{
		tenantUnknown: f.missing[a.Intent.TenantID], rowThere: there, refused: a.Refused != nil, existingOnly: a.ExistingOnly,
		inserted: f.fresh[k] && f.first[k] == a,
	}
	if there {
		m.sameRequest = payments.SabotageNoFingerprint || sameRequest(a, r)
		m.owner = a.Claim && a.inserts() && (r.holds(a.Token) || payments.SabotageIgnoreToken && r.ticket != nil)
	}
	done.Verdict = rank(m)
	if there {
		done.Payment = r.payment
	}
	switch done.Verdict {
	case payments.VerdictConflict:
		done.Differs = differs(r.payment.Intent, a.Intent)
	case payments.VerdictClaimed:
		done.Claim = a.claim(r, f.now[k])
	case payments.VerdictStored:
		done.Wait = f.wait(a)
	}
}

// sameRequest compares as the row was fingerprinted. Only one version exists, so a row of any other is compared field by field.
func sameRequest(a *admission, r *row) bool {
	if r.payment.Kind == payments.KindBatch {
		return false
	}
	if r.fingerprintVersion == payments.FingerprintVersion {
		return r.fingerprint == a.fingerprint
	}
	return len(payments.Differs(r.payment.Intent, a.Intent)) == 0
}

// differs names what two requests under one key ask for otherwise. Of a batch and a payment that is one thing.
func differs(stored, asked payments.Intent) []string {
	if stored.Kind == payments.KindBatch || asked.Kind == payments.KindBatch {
		return []string{"kind"}
	}
	return payments.Differs(stored, asked)
}

// queueClearSuspects deletes the rows of suspect messages that have now been seen to survive.
func queueClearSuspects(b *pgx.Batch, batch []*admission) {
	var streams []string
	var created []time.Time
	var sequences []int64
	for _, a := range batch {
		if o := a.Suspect; o != nil {
			streams, created, sequences = append(streams, o.Stream), append(created, micro(o.StreamCreated)), append(sequences, int64(o.Sequence))
		}
	}
	if len(streams) > 0 {
		b.Queue(query("clear_suspects"), streams, created, sequences)
	}
}

// queueClearSuspect does so for one message; nil: none.
func queueClearSuspect(b *pgx.Batch, o *payments.MessageOrigin) {
	if o != nil {
		b.Queue(query("clear_suspects"), []string{o.Stream}, []time.Time{micro(o.StreamCreated)}, []int64{int64(o.Sequence)})
	}
}
