package document_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/document"
	"github.com/oncepay/oncepay/schema"
)

// TestOperationsGolden fixes what operators' programs read, member by member, by both encoders.
func TestOperationsGolden(t *testing.T) {
	t.Parallel()
	id := payments.NewID("acme", "order-1")
	filter := payments.LetterFilter{TenantID: "acme", Reason: payments.ReasonInvalid, State: payments.DeadLetterOpen, IdempotencyKey: "order-1", Batch: "b",
		PaymentID: &id, ID: "dl_1", Text: "x", Since: at, Until: at.Add(time.Hour)}
	for name, c := range map[string]struct {
		got  any
		want string
	}{
		"preview": {document.ReplayPreview(filter, payments.ReplayPreview{Count: 3, Payments: 2, Amount: map[string]int64{"usd": 9900, "eur": 1}, Unpriced: 1, Operations: 8, Settled: 1, Review: 5, Conflict: 6, Refused: 7, Skipped: 2, PassedOver: 4, ByReason: map[payments.Reason]int{payments.ReasonInvalid: 3}}),
			`{"filter":{"tenant_id":"acme","reason":"invalid","state":"open","idempotency_key":"order-1","batch":"b","payment_id":"pay_af5f4f1841e88ebcae502028d51c062c","id":"dl_1","text":"x",` +
				`"since":"2030-01-31T12:00:00.123456Z","until":"2030-01-31T13:00:00.123456Z"},"dry_run":true,"count":3,"payments":2,"amount":{"eur":1,"usd":9900},"unpriced":1,"operations":8,"settled":1,"review":5,"conflict":6,"refused":7,"skipped":2,"passed_over":4,"by_reason":{"invalid":3}}`},
		"empty preview": {document.ReplayPreview(payments.LetterFilter{}, payments.ReplayPreview{}),
			`{"filter":{},"dry_run":true,"count":0,"payments":0,"amount":{},"unpriced":0,"operations":0,"settled":0,"review":0,"conflict":0,"refused":0,"skipped":0,"passed_over":0,"by_reason":{}}`},
		"discard preview": {document.DiscardPreview(payments.LetterFilter{TenantID: "acme"}, payments.DiscardPreview{Count: 4, Settled: 1, Canceled: 1, Amount: map[string]int64{"usd": 9900}, Unpriced: 1, Refused: []payments.RefusedLetter{{LetterID: "dl_1", Why: "w"}}}),
			`{"filter":{"tenant_id":"acme"},"dry_run":true,"count":4,"settled":1,"canceled":1,"amount":{"usd":9900},"unpriced":1,"refused":[{"id":"dl_1","message":"w"}]}`},
		"empty discard preview": {document.DiscardPreview(payments.LetterFilter{}, payments.DiscardPreview{}), `{"filter":{},"dry_run":true,"count":0,"settled":0,"canceled":0,"amount":{},"unpriced":0,"refused":[]}`},
		"discarded": {document.Discarded(payments.LetterFilter{}, payments.DiscardResult{Discarded: 2, Canceled: 1, Refused: []payments.RefusedLetter{{LetterID: "dl_1", Why: "w"}}}),
			`{"filter":{},"discarded":2,"canceled":1,"refused":[{"id":"dl_1","message":"w"}]}`},
		"replay": {document.Replay(payments.Replay{ID: "rpl_1", State: payments.ReplayCompleted, Set: map[string]string{"description": "d"}, Rate: 2.5, Actor: "ann@host", Reason: "mended", Total: 3, PassedOver: 2, Issued: 3, NotBegun: 1,
			Results: map[payments.ReplayResult]int{payments.ReplaySucceeded: 2, payments.ReplayConflict: 1}, Amount: map[string]int64{"usd": 1}, CreatedAt: at, UpdatedAt: at, FinishedAt: at}),
			`{"id":"rpl_1","state":"completed","filter":{},"set":{"description":"d"},"rate":2.5,"actor":"ann@host","note":"mended","total":3,"passed_over":2,"issued":3,"finished":3,"not_begun":1,"results":{"conflict":1,"succeeded":2},` +
				`"amount":{"usd":1},"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finished_at":"2030-01-31T12:00:00.123456Z"}`},
		"bare replay": {document.Replay(payments.Replay{ID: "rpl_1", State: payments.ReplayRunning, Actor: "a", Total: 1, CreatedAt: at, UpdatedAt: at}),
			`{"id":"rpl_1","state":"running","filter":{},"set":{},"rate":null,"actor":"a","note":null,"total":1,"passed_over":0,"issued":0,"finished":0,"not_begun":0,"results":{},"amount":{},` +
				`"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finished_at":null}`},
		"item": {document.ReplayItem(payments.ReplayItem{ReplayID: "rpl_1", LetterID: "dl_1", TenantID: "acme", PaymentID: &id, Result: payments.ReplayFailedAgain, Status: payments.StatusFailed, Detail: "declined", FinishedAt: at}),
			`{"replay_id":"rpl_1","dead_letter_id":"dl_1","tenant_id":"acme","payment_id":"pay_af5f4f1841e88ebcae502028d51c062c","result":"failed_again","status":"failed","detail":"declined","finished_at":"2030-01-31T12:00:00.123456Z"}`},
		"bare item": {document.ReplayItem(payments.ReplayItem{ReplayID: "rpl_1", LetterID: "dl_1"}),
			`{"replay_id":"rpl_1","dead_letter_id":"dl_1","tenant_id":null,"payment_id":null,"result":null,"status":null,"detail":null,"finished_at":null}`},
		"pause": {document.Pause(payments.Pause{ID: 7, TenantID: "acme", Reason: "fraud", Actor: "a", Since: at, Until: at}),
			`{"tenant_id":"acme","account":null,"reason":"fraud","actor":"a","since":"2030-01-31T12:00:00.123456Z","until":"2030-01-31T12:00:00.123456Z"}`},
		"audit": {document.AuditEntry(payments.AuditEntry{ID: 1, At: at, Actor: "a", Action: "dlq replay", Reason: "r", TenantID: "acme", Target: "rpl_1", Filter: []byte(`{"reason":"invalid"}`), Result: []byte(`{"count":3}`)}),
			`{"id":1,"at":"2030-01-31T12:00:00.123456Z","actor":"a","action":"dlq replay","reason":"r","tenant_id":"acme","target":"rpl_1","filter":{"reason":"invalid"},"result":{"count":3}}`},
		"rewind": {document.Rewind(payments.Rewind{ID: 7, State: payments.RewindFailed, Since: at, Actor: "ann", Reason: "r", Detail: "d", CreatedAt: at, UpdatedAt: at, FinishedAt: at,
			Progress: payments.RewindProgress{Step: payments.RewindStripe, Objects: 1, Doubted: 2, Corrected: 3, Adopted: 8, Disagrees: 4, Messages: 5, Restored: 6, Letters: 7, Unknown: []string{"globex"}, Note: "n"}}),
			`{"id":7,"state":"failed","step":"stripe","since":"2030-01-31T12:00:00.123456Z","actor":"ann","reason":"r","objects":1,"doubted":2,"corrected":3,"adopted":8,"disagrees":4,"messages":5,"restored":6,"dead_letters":7,` +
				`"unknown_tenants":["globex"],"note":"n","detail":"d","created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finished_at":"2030-01-31T12:00:00.123456Z"}`},
		"bare rewind": {document.Rewind(payments.Rewind{ID: 7, State: payments.RewindRunning, Since: at, Actor: "a", CreatedAt: at, UpdatedAt: at, Progress: payments.RewindProgress{Step: payments.RewindSettle}}),
			`{"id":7,"state":"running","step":"settle","since":"2030-01-31T12:00:00.123456Z","actor":"a","reason":null,"objects":0,"doubted":0,"corrected":0,"adopted":0,"disagrees":0,"messages":0,"restored":0,"dead_letters":0,` +
				`"unknown_tenants":[],"note":null,"detail":null,"created_at":"2030-01-31T12:00:00.123456Z","updated_at":"2030-01-31T12:00:00.123456Z","finished_at":null}`},
		"accepted mark": {document.AcceptedMark(payments.MarkBehind, payments.Mark{SystemID: "1", Timeline: 2, Counter: 3}), `{"found":"behind","system_id":"1","timeline":2,"counter":3}`},
		"bare audit": {document.AuditEntry(payments.AuditEntry{ID: 1, At: at, Actor: "a", Action: "pause"}),
			`{"id":1,"at":"2030-01-31T12:00:00.123456Z","actor":"a","action":"pause","reason":null,"tenant_id":null,"target":null,"filter":null,"result":null}`},
	} {
		ours, err := schema.Marshal(c.got)
		if err != nil || string(ours) != c.want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, ours, c.want)
		}
		if std, err := json.Marshal(c.got); err != nil || string(std) != c.want {
			t.Errorf("%s, by encoding/json: %v\n got %s\nwant %s", name, err, std, c.want)
		}
	}
}
