package postgres

import (
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// fragments are what the names in braces stand for. {payment} and {ticket} are the columns that row.go scans, in its order,
// {batch} those of batches.go; {child} is the id of a batch's i-th child.
//
// Those of budgets speak of a row b of rate_budgets, or of none, which is a full bucket, and of clock, with the time now and the rate that is set:
// {rate} is how many calls a second there may be, {burst} what the bucket holds at most, {tokens} what it holds, {tokens at} the time that {tokens}
// is stored with, {interactive waits} and {bulk waits} whether tickets of that lane wait for tokens, {room} how many tickets a Take ($1 lane, $2 limit)
// may have; {waits until}, until when tickets are taken to wait that a row u leaves for want of tokens: 0.1 s past the next token, since whoever
// comes for it comes late, or not at all. A time that lies further in the future than a transaction can have waited for a lock was written by a
// clock that is wrong, and stops nobody.
var fragments = strings.NewReplacer(
	"{payment}", paymentColumns,
	"{ticket}", ticketColumns,
	"{letter}", `d.id, coalesce(d.tenant_id, ''), coalesce(d.idempotency_key, ''), d.payment_id, d.reason, d.message,
    coalesce(d.stream, ''), d.stream_created, coalesce(d.stream_seq, 0), coalesce(d.subject, ''), d.headers, d.payload, d.payload_length,
    d.payload_sha256, d.tries, d.state, d.replays, d.first_seen, d.last_seen,
    coalesce((SELECT k.kind FROM payments k WHERE k.tenant_id = d.tenant_id AND k.id = d.payment_id), '')`,
	"{matches}", matches,
	"{letter's payment}", lettersPayment,
	"{replay}", replayColumns,
	"{replay counts}", replayCounts,
	"{not begun}", notBegun,
	"{rewind}", rewindColumns,
	"{batch}", `b.tenant_id, b.id, b.idempotency_key, coalesce(b.parent, ''), b.count, b.created_at, b.completed_at`,
	"{child}", childID,
	"{stored}", stored,
	"{input paced}", askedInput("arrival, "),
	"{at stripe}", atStripe,
	"{tenant}", `t.id, coalesce(t.stripe_account, ''), coalesce(t.stripe_key_ref, ''), coalesce(t.account, ''), coalesce(t.livemode, false),
    t.created_at`,
	"{ticket statuses}", quoted(payments.TicketStatuses()),
	"{statuses that hold up}", quoted(holdsUp),
	"{rate}", budgetRate,
	"{burst}", budgetBurst,
	"{tokens}", budgetTokens,
	"{tokens at}", `CASE WHEN b.updated_at > clock.now + interval '5 s' THEN clock.now ELSE greatest(b.updated_at, clock.now) END`,
	"{interactive waits}", interactiveWaits,
	"{bulk waits}", `coalesce(b.bulk_waits_until > clock.now AND b.bulk_waits_until < clock.now + interval '1 minute', false)`,
	"{room}", `CASE WHEN $1::int2 = 2 AND `+interactiveWaits+` THEN 0 ELSE least($2::int, floor(`+budgetTokens+` + 1e-9))::int END`,
	"{waits until}", `clock.now + make_interval(secs => least(50, greatest(0, 1 - u.tokens) / u.rate + 0.1))`,
	// Of walks from tenant to tenant: first those after the start, then, behind, those up to it. No tenant's id is as high as ~.
	"{own way}", `(t.stripe_account IS NOT NULL OR t.stripe_key_ref IS NOT NULL)`,
	"{part}", `SELECT coalesce(w.tenant_id, '') AS low, w.behind OR w.tenant_id IS NULL AS behind,
            CASE WHEN w.behind OR w.tenant_id IS NULL THEN w.start ELSE '~' END AS high`,
	"{next with tickets}", `SELECT (SELECT q.tenant_id FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id > r.low AND q.tenant_id <= r.high
            ORDER BY q.tenant_id LIMIT 1) AS tenant_id OFFSET 0`,
	"{due}", `coalesce((SELECT q.due_at FROM queue q WHERE q.lane = $1::int2 AND q.tenant_id = n.tenant_id ORDER BY q.due_at LIMIT 1) <= clock.now, false)`,
	// Of tickets q: {alone}. Of who is held back, in statements that begin with {hold of …}: {held} of a row w; {t held}, {q held} and {n held} of the
	// tenant of a row of that name; {home held}; {account} and {livemode} of a tenant t.
	"{alone}", mustBeAlone,
	"{hold of take}", holdOf(9, 7),
	"{hold of take_alone}", holdOf(8, 6),
	"{hold of take_due}", holdOf(12, 5),
	"{hold of take_due_alone}", holdOf(7, 5),
	"{hold of take_paced}", holdOf(21, 19),
	"{hold of take_rest}", holdOf(5, 3),
	"{held}", held,
	"{t held}", tenantHeld("t"),
	"{q held}", tenantHeld("q"),
	"{n held}", tenantHeld("n"),
	"{home held}", homeHeld,
	"{account}", tenantAccount,
	"{livemode}", tenantLivemode,
	"{give}", give,
	"{given}", given,
)

// stored inserts the payments of a flush, in the order of the arrays: input is what was given, stored what was new.
//
// asked is what the caller gave. Who is paused gets no token, nor does a payment of which Stripe has PaymentIntents although its row is new: the
// database was restored, and that payment begins as one that may have been charged.
var stored = `asked AS (
    SELECT * FROM unnest((SELECT $1::text[]), (SELECT $2::bytea[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::int2[]), (SELECT $6::bytea[]), (SELECT $7::bigint[]), (SELECT $8::text[]), (SELECT $9::text[]),
        (SELECT $10::bool[]), (SELECT $11::text[]), (SELECT $12::text[]), (SELECT $13::text[]), (SELECT $14::timestamptz[]), (SELECT $15::text[]), (SELECT $16::bool[]), (SELECT $17::bytea[]), (SELECT $18::bigint[]))
    WITH ORDINALITY AS u(tenant_id, id, idempotency_key, kind, lane, fingerprint, amount, currency, capture_method,
        off_session, customer, payment_method, details, expires_at, stripe_account, livemode, token, lease_us, ord)
),
clock AS (SELECT coalesce($21::timestamptz, now()) AS now),
` + askedInput("") + `,
stored AS (
    INSERT INTO payments (tenant_id, id, idempotency_key, kind, lane, status, request_version, fingerprint, fingerprint_version, amount,
        currency, capture_method, off_session, customer, payment_method, details, expires_at, stripe_account, livemode,
        in_doubt, first_submit_at, last_submit_at, created_at, updated_at)
    SELECT tenant_id, id, idempotency_key, kind, lane, CASE WHEN rewound THEN 'unknown' ELSE 'received' END, $19::int2, fingerprint, $20::int2, amount,
        currency, capture_method, off_session, nullif(customer, ''), nullif(payment_method, ''), nullif(details, '')::json, expires_at,
        nullif(stripe_account, ''), livemode, rewound OR token IS NOT NULL,
        CASE WHEN rewound THEN first_at WHEN token IS NOT NULL THEN clock.now END,
        CASE WHEN rewound THEN last_at WHEN token IS NOT NULL THEN clock.now END, clock.now, clock.now
    FROM input, clock ORDER BY ord
    ON CONFLICT DO NOTHING -- by any unique index: with one named, the other fails the statement where two writers meet (1 in 100 such flushes)
    RETURNING tenant_id, id
)`

// matches is a filter of dead letters d. All letters of a batch have a key that begins with the batch's, up to the separator, which stands in no key of
// a client's; the id of a batch is that of its key.
const matches = `($1::text IS NULL OR d.tenant_id = $1) AND ($2::text IS NULL OR d.reason = $2) AND ($3::text IS NULL OR d.state = $3)
    AND ($3::text IS NOT NULL OR d.state <> 'suspect')
    AND ($4::text IS NULL OR d.idempotency_key = $4) AND ($5::bytea IS NULL OR d.payment_id = $5)
    AND ($6::timestamptz IS NULL OR d.last_seen >= $6) AND ($7::timestamptz IS NULL OR d.last_seen < $7)
    AND ($8::text IS NULL OR d.id = $8)
    AND ($9::text IS NULL OR strpos(d.message, $9) > 0 OR position(convert_to($9, 'UTF8') IN d.payload) > 0)
    AND ($10::text IS NULL OR split_part(d.idempotency_key, '` + payments.ChildSeparator + `', 1) = $10
        OR keyed_id(d.tenant_id, split_part(d.idempotency_key, '` + payments.ChildSeparator + `', 1)) = $11::bytea)`

// lettersPayment is the id of the payment that a dead letter d names, whether or not there is one; null for a letter without tenant or key.
const lettersPayment = `coalesce(d.payment_id, substr(sha256(convert_to(d.tenant_id, 'UTF8') || '\x00'::bytea || convert_to(d.idempotency_key, 'UTF8')), 1, 16))`

// atStripe are the PaymentIntents of a payment a that a rewind has found. The table is nearly always empty, and then no row is asked for. Where they are
// on several accounts none is pinned: a look-up on one of them would show half of the truth.
const atStripe = `SELECT min(o.created_at) AS first_at, max(o.created_at) AS last_at,
            CASE WHEN min(o.stripe_account) = max(o.stripe_account) AND bool_and(o.livemode) = bool_or(o.livemode) THEN min(o.stripe_account) END AS stripe_account,
            bool_or(o.livemode) AND min(o.stripe_account) = max(o.stripe_account) AND bool_and(o.livemode) AS livemode
        FROM stripe_objects o WHERE (SELECT EXISTS (SELECT FROM stripe_objects)) AND o.tenant_id = a.tenant_id AND o.payment_id = a.id
        GROUP BY o.tenant_id`

// askedInput is asked without the tokens of those who get none.
func askedInput(more string) string {
	return `paused AS MATERIALIZED (SELECT p.tenant_id, p.account FROM pauses p, clock WHERE p.until IS NULL OR p.until > clock.now),
input AS MATERIALIZED (
    SELECT a.tenant_id, a.id, a.idempotency_key, a.kind, a.lane, a.fingerprint, a.amount, a.currency, a.capture_method, a.off_session, a.customer,
        a.payment_method, a.details, a.expires_at, ` + more + `a.ord, o.first_at, o.last_at, o.first_at IS NOT NULL AS rewound,
        CASE WHEN o.first_at IS NOT NULL THEN o.stripe_account WHEN NOT a.held THEN a.stripe_account END AS stripe_account,
        CASE WHEN o.first_at IS NOT NULL THEN o.livemode ELSE a.livemode AND NOT a.held END AS livemode,
        CASE WHEN o.first_at IS NULL AND NOT a.held THEN a.token END AS token,
        CASE WHEN o.first_at IS NULL AND NOT a.held THEN a.lease_us ELSE 0 END AS lease_us
    FROM (
        SELECT a.*, CASE WHEN NOT (SELECT EXISTS (SELECT FROM paused)) THEN false ELSE EXISTS (
            SELECT FROM paused h WHERE (h.tenant_id IS NULL OR h.tenant_id = a.tenant_id) AND (h.account IS NULL OR h.account = a.stripe_account)) END AS held
        FROM asked a OFFSET 0) a
    LEFT JOIN LATERAL (` + atStripe + `) o ON true
)`
}

// holdsUp are the statuses of a follow-up that has still to be worked on before those behind it: what Stripe is processing holds up nobody.
var holdsUp = []payments.Status{
	payments.StatusReceived, payments.StatusWaiting, payments.StatusUnknown, payments.StatusNeedsReview, payments.StatusStalled,
}

// childID is the id of the i-th child of a batch b: payments.NewID of its key. By its id every plan finds it through the primary key.
const childID = `substr(sha256(convert_to(b.tenant_id, 'UTF8') || '\x00'::bytea || convert_to(b.idempotency_key || '` + payments.ChildSeparator + `' || i, 'UTF8')), 1, 16)`

// A bucket holds what comes in within 50 ms: a pause of that length costs nothing, and Stripe is not met with more than that at once.
const (
	// budgetRate is the setting, or what Throttle has left of it: that grows back in a straight line within 30 s.
	budgetRate = `CASE WHEN b.rate IS NULL OR clock.now NOT BETWEEN b.throttled_at - interval '5 s' AND b.throttled_at + interval '30 s'
        THEN clock.setting
        ELSE least(clock.setting, b.rate + (clock.setting - b.rate) * greatest(0, extract(epoch FROM clock.now - b.throttled_at)::float8) / 30) END`
	budgetBurst = `greatest(2, ` + budgetRate + ` / 20)`
	// least and greatest pass over nulls: without a row there is a full bucket.
	budgetTokens = `least(` + budgetBurst + `, b.tokens + ` + budgetRate + ` * greatest(0, extract(epoch FROM clock.now - b.updated_at)::float8))`

	interactiveWaits = `coalesce(b.interactive_waits_until > clock.now AND b.interactive_waits_until < clock.now + interval '1 minute', false)`
)

// give is how tickets that are locked (tenant_id, payment_id, place, and the account that they are pinned to if they are to none) are given to the
// caller. Where no send is in doubt, the first one that may be is this one: what was sent before is known not to have been executed. Where no
// account is known nothing may be sent, so that no send is in doubt either; nor is one while a declined payment is being canceled.
const give = `given AS (
    SELECT l.tenant_id, l.payment_id, l.place, l.account, l.livemode, ($4::bytea[])[row_number() OVER (ORDER BY l.place)] AS token FROM locked l
),
ticket AS (
    UPDATE queue q SET due_at = clock.now + $3::bigint * interval '1 microsecond', token = g.token,
        abandoned = least(q.abandoned + (q.token IS NOT NULL)::int, 1000) -- a count that overflowed would fail every Take of the lane
    FROM given g, clock WHERE q.tenant_id = g.tenant_id AND q.payment_id = g.payment_id
    RETURNING q.tenant_id, q.payment_id, q.due_at, q.token, q.abandoned, g.place, g.account, g.livemode
),
before AS MATERIALIZED (
    SELECT p.*, t.due_at, t.token, t.abandoned, t.place, t.account, t.livemode AS account_livemode
    FROM ticket t JOIN payments p ON p.tenant_id = t.tenant_id AND p.id = t.payment_id
    ORDER BY p.tenant_id, p.id FOR UPDATE OF p
),
submitting AS (
    UPDATE payments p SET first_submit_at = clock.now, last_submit_at = clock.now, in_doubt = true,
        stripe_account = coalesce(p.stripe_account, b.account), livemode = CASE WHEN p.stripe_account IS NULL THEN b.account_livemode ELSE p.livemode END
    FROM before b, clock WHERE p.tenant_id = b.tenant_id AND p.id = b.id AND NOT b.in_doubt AND b.status NOT IN ('unknown', 'pending')
        AND NOT (b.status = 'waiting' AND coalesce(b.reason, '') = 'cancelling_declined')
        AND coalesce(b.stripe_account, b.account) IS NOT NULL
)`

// given are the claims that {give} has made, in their order: the payments as they stood before.
const given = `SELECT ` + paymentColumns + `, ` + ticketColumns + `, (SELECT now FROM clock), q.place, coalesce(q.account, ''), coalesce(q.account_livemode, false)
FROM before p, LATERAL (SELECT p.due_at, p.token, p.abandoned, p.place, p.account, p.account_livemode) q
ORDER BY q.place`

const (
	paymentColumns = `p.tenant_id, p.id, p.idempotency_key, p.kind, p.lane, p.status, coalesce(p.reason, ''), p.request_version,
    p.fingerprint, p.fingerprint_version, p.amount, p.amount_captured, p.amount_refunded, p.currency, p.capture_method, p.off_session,
    coalesce(p.customer, ''), coalesce(p.payment_method, ''), coalesce(p.details::text, ''), coalesce(p.failure::text, ''), p.expires_at,
    p.first_submit_at, p.last_submit_at, p.in_doubt, p.absent_at, p.tries, p.rounds, p.sequence, p.last_token,
    coalesce(p.stripe_account, ''), p.livemode, coalesce(p.stripe_payment_intent, ''), coalesce(p.stripe_charge, ''),
    coalesce(p.batch_id, ''), p.created_at, p.updated_at, p.finalized_at`
	ticketColumns = `q.due_at, q.token, coalesce(q.abandoned, 0)`
)
