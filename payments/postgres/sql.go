package postgres

import (
	"embed"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

//go:embed sql/*.sql
var files embed.FS

// fragments are what the names in braces stand for. {payment} and {ticket} are the columns that row.go scans, in its order.
var fragments = strings.NewReplacer(
	"{payment}", `p.tenant_id, p.id, p.idempotency_key, p.kind, p.lane, p.status, coalesce(p.reason, ''), p.request_version,
    p.fingerprint, p.fingerprint_version, p.amount, p.amount_captured, p.amount_refunded, p.currency, p.capture_method, p.off_session,
    coalesce(p.customer, ''), coalesce(p.payment_method, ''), coalesce(p.details::text, ''), coalesce(p.failure::text, ''), p.expires_at,
    p.first_submit_at, p.last_submit_at, p.in_doubt, p.absent_at, p.tries, p.rounds, p.sequence, p.last_token,
    coalesce(p.stripe_account, ''), p.livemode, coalesce(p.stripe_payment_intent, ''), coalesce(p.stripe_charge, ''),
    coalesce(p.batch_id, ''), p.created_at, p.updated_at, p.finalized_at`,
	"{ticket}", `q.due_at, q.token, coalesce(q.abandoned, 0)`,
	"{letter}", `d.id, coalesce(d.tenant_id, ''), coalesce(d.idempotency_key, ''), d.payment_id, d.reason, d.message,
    coalesce(d.stream, ''), d.stream_created, coalesce(d.stream_seq, 0), coalesce(d.subject, ''), d.headers, d.payload, d.payload_length,
    d.payload_sha256, d.tries, d.state, d.replays, d.first_seen, d.last_seen`,
	"{tenant}", `t.id, coalesce(t.stripe_account, ''), coalesce(t.stripe_key_ref, ''), coalesce(t.account, ''), coalesce(t.livemode, false),
    t.created_at`,
	"{ticket statuses}", quoted(payments.TicketStatuses()),
)

// query returns the named statement. A name that does not exist is a mistake that the first call shows.
func query(name string) string {
	text, ok := statements()[name]
	if !ok {
		panic("postgres: no SQL of the name " + name)
	}
	return text
}

var statements = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	entries, err := files.ReadDir("sql")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		text, err := files.ReadFile("sql/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(e.Name(), ".sql")] = fragments.Replace(string(text))
	}
	return all
})

func quoted(statuses []payments.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = "'" + string(s) + "'"
	}
	return strings.Join(words, ", ")
}

// key names a payment inside the store.
type key struct {
	tenant string
	id     payments.ID
}

func (k key) compare(other key) int {
	if c := strings.Compare(k.tenant, other.tenant); c != 0 {
		return c
	}
	return strings.Compare(string(k.id[:]), string(other.id[:]))
}

// keyArrays are the two arrays that every statement joins on.
func keyArrays(keys []key) (tenants []string, ids [][]byte) {
	tenants, ids = make([]string, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		tenants[i], ids[i] = k.tenant, k.id[:]
	}
	return tenants, ids
}
