// Package postgres keeps payments, their tickets, timelines, outgoing messages and dead letters in PostgreSQL: the ports payments.Store,
// payments.Batches, payments.Reader, payments.Keys and payments.Outbox.
//
// Rules that all files keep:
//
//   - Whoever changes a payment that has a ticket holds the ticket's row lock. Locks are taken in the order tickets, payments, each sorted by
//     tenant and id, so that no two transactions wait for each other. The budgets
//     of accounts (rate_budgets) come before both; a Take waits for none of the three.
//     A batch's row in batches comes before its row in payments; a new batch's children
//     come after that, since nobody else inserts them meanwhile.
//   - Statements join on all key columns as arrays, so that one plan serves an empty table and a full one.
//   - No transaction and no connection outlives a flush; none is held during a network call to anybody else.
//   - A commit whose answer was lost is settled by doing the same again with the same token: the second run reads its own token back.
//
// The SQL stands in the folder sql; names in braces are put in by sql.go.
package postgres
