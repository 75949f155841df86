package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// holdOf begins a statement that gives tokens: hold is who is held back (whose payments, of which account), by pauses and by the caller's Except, and
// holding says what there is of it in one row. except is the number of the first of four parameters: the accounts of Except and their modes, and the
// account of Only and its mode; home is that of the installation's account, which its mode follows. Nearly always nobody is held back, and then
// nothing of it is asked for each row.
func holdOf(except, home int) string {
	n := func(i int) string { return "$" + strconv.Itoa(i) }
	return strings.NewReplacer("{ids}", n(except), "{modes}", n(except+1), "{only}", n(except+2), "{only mode}", n(except+3), "{home}", n(home),
		"{home mode}", n(home+1)).Replace(`hold AS MATERIALIZED (
    SELECT a.tenant_id, a.account, NULL::bool AS livemode, true AS paused FROM pauses a, clock WHERE a.until IS NULL OR a.until > clock.now
    UNION ALL
    SELECT NULL, u.account, u.livemode, false FROM unnest((SELECT {ids}::text[]), (SELECT {modes}::bool[])) AS u(account, livemode)
),
holding AS MATERIALIZED (
    SELECT count(*) > 0 OR {only}::text <> '' AS anybody, coalesce(bool_or(paused), false) AS paused,
        coalesce(bool_or(tenant_id IS NULL AND account IS NULL), false) AS everything, {only}::text AS only_account, {only mode}::bool AS only_livemode,
        nullif({home}::text, '') AS home_account, {home mode}::bool AS home_livemode
    FROM hold
)`)
}

// held says whether a row w (tenant_id, account, livemode) is held back. An account that is not known yet is no account: nothing is sent for it.
const held = `CASE WHEN NOT (SELECT anybody FROM holding) THEN false ELSE
        EXISTS (SELECT FROM holding g WHERE g.only_account <> '' AND (g.only_account <> coalesce(w.account, '') OR g.only_livemode <> w.livemode))
        OR EXISTS (SELECT FROM hold h WHERE (h.tenant_id IS NULL OR h.tenant_id = w.tenant_id)
            AND (h.account IS NULL OR h.account = w.account AND coalesce(h.livemode = w.livemode, true))) END`

// homeHeld is held for all who use the installation's account.
const homeHeld = `(SELECT everything FROM holding)
        OR EXISTS (SELECT FROM holding g WHERE g.only_account <> '' AND (g.only_account <> coalesce(g.home_account, '') OR g.only_livemode <> g.home_livemode))
        OR EXISTS (SELECT FROM hold h, holding g WHERE h.account = g.home_account AND coalesce(h.livemode = g.home_livemode, true))`

// tenantHeld is held for the tenant of a row.
func tenantHeld(row string) string {
	return fmt.Sprintf(`CASE WHEN NOT (SELECT anybody FROM holding) THEN false ELSE (
        SELECT %s FROM (
            SELECT x.tenant_id, %s AS account, %s AS livemode FROM (SELECT %s.tenant_id) x LEFT JOIN tenants t ON t.id = x.tenant_id) w) END`,
		held, tenantAccount, tenantLivemode, row)
}

// tenantAccount and tenantLivemode are the account of a tenant t: its own, as soon as that is known, or the installation's.
const (
	tenantAccount  = `CASE WHEN coalesce(t.stripe_account, t.stripe_key_ref) IS NULL THEN (SELECT home_account FROM holding) ELSE t.account END`
	tenantLivemode = `CASE WHEN coalesce(t.stripe_account, t.stripe_key_ref) IS NULL THEN (SELECT home_livemode FROM holding) ELSE t.livemode END`
)

// mustBeAlone says of a ticket q whether it will be given out as one that was abandoned too often for company. The first condition is the index's.
var mustBeAlone = fmt.Sprintf(`(q.abandoned >= %d AND (q.abandoned >= %d OR q.token IS NOT NULL))`, payments.AbandonedAlone-1, payments.AbandonedAlone)

// holdParams are the four parameters of holdOf.
func holdParams(r payments.TakeRequest) []any {
	ids, livemodes := accountArrays(r.Except)
	var only payments.Account
	if r.Only != nil {
		only = *r.Only
	}
	return []any{ids, livemodes, only.ID, only.Livemode}
}
