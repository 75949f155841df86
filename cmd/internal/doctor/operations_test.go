package doctor

import "testing"

func testPauses(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(`INSERT INTO pauses (since, tenant_id, reason, actor) VALUES (now(), 'globex', 'fraud', 'ann')`,
		`INSERT INTO pauses (since, until, account, reason, actor) VALUES (now(), now() - interval '1 second', 'acct_9', 'over', 'bob')`)
	w.expect(map[string]expectation{"pauses": is(OK, "paused: tenant globex until it is resumed by ann (fraud), holding 0 due payments")})
	w.sql(payment("k", "received", "-1 second"), `INSERT INTO pauses (since, until, reason, actor) VALUES (now() - interval '1 minute', '2099-01-01Z', 'fire', 'eve')`)
	w.expect(map[string]expectation{"pauses": is(Warning, "everything until 2099-01-01T00:00:00Z by eve (fire), holding 1 due payment", "`oncepay resume --reason R`", "`oncepay resume --tenant globex --reason R`")})
	w.sql(`DELETE FROM pauses WHERE actor = 'bob'`, `UPDATE pauses SET account = 'acct_9' WHERE actor = 'eve'`)
	w.expect(map[string]expectation{"pauses": is(OK, "account acct_9 until", "holding 0 due payments")})
	w.sql(`UPDATE payments SET stripe_account = 'acct_9', livemode = false`)
	w.expect(map[string]expectation{"pauses": is(Warning, "account acct_9 until", "holding 1 due payment", "`oncepay resume --account acct_9 --reason R`")})
}

func testReplays(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(`INSERT INTO replays (created_at, updated_at, total, id, state, actor, filter, amount) VALUES (now(), now(), 2, 'rpl_1', 'running', 'ann', '{}', '{}')`,
		`INSERT INTO replays (created_at, updated_at, finished_at, total, id, state, actor, filter, amount) VALUES (now(), now(), now(), 1, 'rpl_0', 'completed', 'ann', '{}', '{}')`,
		`INSERT INTO replay_items (replay_id, letter_id) VALUES ('rpl_1', 'dl_1'), ('rpl_1', 'dl_2')`)
	w.expect(map[string]expectation{"replays": is(OK, "rpl_1 running, 2 dead letters left")})
	w.sql(`UPDATE replays SET updated_at = now() - interval '5 minutes'`)
	w.expect(map[string]expectation{"replays": is(Warning, "none of them moved for 5m", "is a worker running")})
	w.sql(`UPDATE replays SET rate = 0.001`)
	w.expect(map[string]expectation{"replays": is(OK)})
	w.sql(`UPDATE replays SET rate = 0`, `UPDATE replay_items SET issued_at = now()`)
	w.expect(map[string]expectation{"replays": is(OK)})
	w.sql(`UPDATE replay_items SET issued_at = now() - interval '5 minutes'`)
	w.expect(map[string]expectation{"replays": is(Warning, "waits for its outcome: look at pauses, due and stripe")})
	w.sql(`UPDATE replays SET state = 'paused' WHERE id = 'rpl_1'`)
	w.expect(map[string]expectation{"replays": is(Warning, "rpl_1 paused, 2 dead letters left", "`oncepay replays resume rpl_1`")})
}

func testReview(t *testing.T, s *services) {
	w := s.world(t)
	w.sql(payment("a", "needs_review", ""), payment("b", "needs_review", ""), payment("c", "needs_review", ""), payment("d", "requires_action", ""),
		`UPDATE payments SET reason = CASE idempotency_key WHEN 'c' THEN 'several_payment_intents' WHEN 'd' THEN NULL ELSE 'stripe_disagrees: ' || idempotency_key END`)
	w.expect(map[string]expectation{"attention": is(Warning, "3 needs_review"), "review": is(Warning, "1 several_payment_intents, 2 stripe_disagrees", "`oncepay payments resolve ID --as STATUS --reason R`")})
}
