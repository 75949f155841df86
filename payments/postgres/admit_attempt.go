package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
)

// batchAttempt is what one attempt to store a batch found out.
type batchAttempt struct {
	*batchAdmission
	tenantUnknown bool
	created       bool // the row that guards the key was inserted: the batch is ours
	now           time.Time
	fresh         map[payments.ID]int64 // children inserted by this attempt, and the numbers of their rows in the outbox

	met   []row            // what was there under the key
	kept  []payments.Batch // and, if that is a batch, what is kept of it
	there []row            // its children in order; of a batch of ours, those that were there already

	messages []payments.OutboxItem
	done     payments.BatchAdmission
}

// queueBatch adds the statement that stores all of the batch if its key is new. Children are inserted in the order in which everybody locks.
func (s *Store) queueBatch(b *pgx.Batch, a *batchAttempt) {
	n := len(a.children)
	ids, keys, kinds, fingerprints := make([][]byte, n), make([]string, n), make([]string, n), make([][]byte, n)
	amounts, currencies, captures, offSession := make([]int64, n), make([]string, n), make([]string, n), make([]bool, n)
	customers, methods, details, expires := make([]string, n), make([]string, n), make([]string, n), make([]*time.Time, n)
	sorted := slices.SortedFunc(slices.Values(a.children), func(x, y *admission) int { return x.key().compare(y.key()) })
	for i, c := range sorted {
		in := c.Intent
		ids[i], keys[i], kinds[i], fingerprints[i] = c.id[:], in.IdempotencyKey, string(in.Kind), c.fingerprint[:]
		amounts[i], currencies[i], captures[i], offSession[i] = in.Amount, in.Currency, string(in.CaptureMethod), in.OffSession
		customers[i], methods[i], details[i], expires[i] = in.Customer, in.PaymentMethod, c.details, nullable(in.ExpiresAt)
	}
	b.Queue(query("admit_batch"), a.key.tenant, a.key.id[:], a.IdempotencyKey, a.fingerprint[:], a.Parent, s.now(), s.opts.RequestVersion,
		payments.BatchFingerprintVersion, payments.FingerprintVersion, s.hold().Microseconds(),
		ids, keys, kinds, fingerprints, amounts, currencies, captures, offSession, customers, methods, details, expires).Query(a.inserted)
}

// inserted takes up what this attempt has stored.
func (a *batchAttempt) inserted(rows pgx.Rows) error {
	a.fresh = make(map[payments.ID]int64, len(a.children))
	for rows.Next() {
		var child []byte
		var outbox int64
		var rewound bool
		if err := rows.Scan(&a.now, &child, &outbox, &rewound); err != nil {
			return err
		}
		a.created, a.now = true, a.now.UTC()
		if child != nil && !rewound { // what Stripe knows is read as it stands; the outbox brings its message
			var id payments.ID
			copy(id[:], child)
			a.fresh[id] = outbox
		}
	}
	return rows.Err()
}

// queueRead adds the questions for what was there already. They see what was committed while the insert waited.
func (a *batchAttempt) queueRead(b *pgx.Batch) {
	if a.created {
		var others []key
		for _, c := range a.children {
			if _, ours := a.fresh[c.id]; !ours {
				others = append(others, c.key())
			}
		}
		tenants, ids := keyArrays(others)
		b.Queue(query("read_by_id"), tenants, ids).Query(collect(&a.there))
		return
	}
	tenants, ids := keyArrays([]key{a.key})
	b.Queue(query("read_by_id"), tenants, ids).Query(collect(&a.met))
	b.Queue(query("find_batches"), tenants, ids).Query(collectBatches(&a.kept))
	b.Queue(query("batch_children"), a.key.tenant, a.key.id[:]).Query(collect(&a.there))
}

// queueAdoption adds what makes children that were there already the batch's own: a rewind stores them without their batch.
func (a *batchAttempt) queueAdoption(b *pgx.Batch) {
	var others []key
	batch := a.key.id.Format(payments.KindBatch)
	for i := range a.done.Children {
		if p := &a.done.Children[i]; p.BatchID == "" {
			p.BatchID = batch
			others = append(others, key{p.TenantID, p.ID})
		}
	}
	if len(others) == 0 {
		return
	}
	slices.SortFunc(others, key.compare)
	tenants, ids := keyArrays(others)
	b.Queue(query("lock_any_tickets"), tenants, ids)
	b.Queue(query("adopt_children"), a.key.tenant, ids, batch)
}

// answer ranks what the request met.
func (a *batchAttempt) answer(requestVersion int) error {
	m := meeting{tenantUnknown: a.tenantUnknown, refused: a.Refused != nil, existingOnly: a.ExistingOnly, inserted: a.created, rowThere: a.created || len(a.met) > 0}
	switch {
	case a.created:
		if err := a.take(requestVersion); err != nil {
			return err
		}
		m.sameRequest = len(a.done.Differs) == 0
	case m.rowThere:
		if err := a.compare(); err != nil {
			return err
		}
		m.sameRequest = len(a.done.Differs) == 0
	case !m.tenantUnknown && a.inserts():
		return errRowGone // never go on without knowing whose it is
	}
	a.done.Verdict = rank(m)
	if a.done.Verdict != payments.VerdictStored && a.done.Verdict != payments.VerdictExists {
		a.done.Children = nil
	}
	if a.created && a.done.Verdict == payments.VerdictConflict {
		a.done.Batch = payments.Batch{} // of which nothing stays
	}
	return nil
}

// take puts the children of a batch of ours together: those that are new, and those that were there and ask for the same.
func (a *batchAttempt) take(requestVersion int) error {
	there := make(map[payments.ID]payments.Payment, len(a.there))
	for _, r := range a.there {
		there[r.payment.ID] = r.payment
	}
	a.done.Batch = payments.Batch{
		TenantID: a.TenantID, IdempotencyKey: a.IdempotencyKey, Parent: a.Parent, Count: len(a.children), CreatedAt: a.now,
	}
	a.done.Children = make([]payments.Payment, len(a.children))
	intents := make([]payments.Intent, len(a.children))
	for i, c := range a.children {
		p, met := there[c.id]
		outbox, ours := a.fresh[c.id]
		switch {
		case ours:
			p = c.fresh(a.now, requestVersion, false).payment
			p.BatchID = a.key.id.Format(payments.KindBatch)
			a.messages = append(a.messages, announcedItem(alone(outbox), p.TenantID, p.Lane, c.announced))
		case !met:
			return errRowGone
		}
		a.done.Children[i], intents[i] = p, p.Intent
	}
	a.done.Differs = a.Differs(a.Parent, intents)
	return nil
}

// compare holds the request against what was there under its key.
func (a *batchAttempt) compare() error {
	met := a.met[0]
	if met.payment.Kind != payments.KindBatch {
		a.done.Differs = differs(met.payment.Intent, a.Intent())
		return nil
	}
	if len(a.kept) == 0 {
		return fmt.Errorf("%w: the batch %s has no row of its own", errMapping, a.key.id.Format(payments.KindBatch))
	}
	a.done.Batch = a.kept[0]
	intents := make([]payments.Intent, len(a.there))
	a.done.Children = make([]payments.Payment, len(a.there))
	for i, r := range a.there {
		a.done.Children[i], intents[i] = r.payment, r.payment.Intent
	}
	if met.fingerprintVersion == payments.BatchFingerprintVersion && met.fingerprint == a.fingerprint || payments.SabotageNoFingerprint {
		if len(a.there) != a.done.Batch.Count {
			return fmt.Errorf("%w: of the batch %s %d of %d payments are there", errMapping, a.key.id.Format(payments.KindBatch), len(a.there), a.done.Batch.Count)
		}
		return nil
	}
	a.done.Differs = a.Differs(a.done.Batch.Parent, intents)
	if len(a.done.Differs) == 0 && met.fingerprintVersion == payments.BatchFingerprintVersion {
		return fmt.Errorf("%w: the batch %s has not the fingerprint of its payments", errMapping, a.key.id.Format(payments.KindBatch))
	}
	return nil
}
