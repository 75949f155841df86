package document

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// LetterFilter is the document of a choice of dead letters.
func LetterFilter(f payments.LetterFilter) schema.LetterFilter {
	doc := schema.LetterFilter{
		TenantID: f.TenantID, Reason: string(f.Reason), State: string(f.State), IdempotencyKey: f.IdempotencyKey, Batch: f.Batch, ID: f.ID, Text: f.Text,
		Since: schema.NullTimestamp(f.Since), Until: schema.NullTimestamp(f.Until),
	}
	if f.PaymentID != nil {
		doc.PaymentID = f.PaymentID.String()
	}
	return doc
}

// ReplayPreview is the document of what a replay of the filter would do.
func ReplayPreview(f payments.LetterFilter, p payments.ReplayPreview) schema.ReplayPreview {
	return schema.ReplayPreview{
		Filter: LetterFilter(f), DryRun: true, Count: p.Count, Payments: p.Payments, Amount: filled(p.Amount), Unpriced: p.Unpriced, Operations: p.Operations, Settled: p.Settled,
		Review: p.Review, Conflict: p.Conflict, Refused: p.Refused, Skipped: p.Skipped, PassedOver: p.PassedOver, ByReason: worded(p.ByReason),
	}
}

// Discarded is the document of what discarding the filter came to.
func Discarded(f payments.LetterFilter, d payments.DiscardResult) schema.Discarded {
	return schema.Discarded{Filter: LetterFilter(f), Discarded: d.Discarded, Canceled: d.Canceled, Refused: refusedLetters(d.Refused)}
}

// DiscardPreview is the document of what discarding the filter would do.
func DiscardPreview(f payments.LetterFilter, p payments.DiscardPreview) schema.DiscardPreview {
	return schema.DiscardPreview{
		Filter: LetterFilter(f), DryRun: true, Count: p.Count, Settled: p.Settled, Canceled: p.Canceled, Amount: filled(p.Amount), Unpriced: p.Unpriced,
		Refused: refusedLetters(p.Refused),
	}
}

// refusedLetters is never nil.
func refusedLetters(list []payments.RefusedLetter) []schema.RefusedLetter {
	docs := make([]schema.RefusedLetter, len(list))
	for i, r := range list {
		docs[i] = schema.RefusedLetter{ID: r.LetterID, Message: r.Why}
	}
	return docs
}

// Replay is the document of a replay.
func Replay(r payments.Replay) schema.Replay {
	return schema.Replay{
		ID: r.ID, State: string(r.State), Filter: LetterFilter(r.Filter), Set: filled(r.Set), Rate: schema.Null(r.Rate), Actor: r.Actor, Note: schema.Null(r.Reason),
		Total: r.Total, PassedOver: r.PassedOver, Issued: r.Issued, Finished: total(r.Results), NotBegun: r.NotBegun, Results: worded(r.Results), Amount: filled(r.Amount),
		CreatedAt: schema.NewTimestamp(r.CreatedAt), UpdatedAt: schema.NewTimestamp(r.UpdatedAt), FinishedAt: schema.NullTimestamp(r.FinishedAt),
	}
}

// ReplayItem is the document of one dead letter of a replay.
func ReplayItem(i payments.ReplayItem) schema.ReplayItem {
	doc := schema.ReplayItem{
		ReplayID: i.ReplayID, DeadLetterID: i.LetterID, TenantID: schema.Null(i.TenantID), Result: schema.Null(string(i.Result)),
		Status: schema.Null(string(i.Status)), Detail: schema.Null(i.Detail), FinishedAt: schema.NullTimestamp(i.FinishedAt),
	}
	if i.PaymentID != nil {
		doc.PaymentID = schema.Null(i.PaymentID.Format(i.Kind))
	}
	return doc
}

// Pause is the document of a pause.
func Pause(p payments.Pause) schema.Pause {
	return schema.Pause{
		TenantID: schema.Null(p.TenantID), Account: schema.Null(p.AccountID), Reason: p.Reason, Actor: p.Actor,
		Since: schema.NewTimestamp(p.Since), Until: schema.NullTimestamp(p.Until),
	}
}

// Rewind is the document of a rewind.
func Rewind(r payments.Rewind) schema.Rewind {
	p := r.Progress
	unknown := p.Unknown
	if unknown == nil {
		unknown = []string{}
	}
	return schema.Rewind{
		ID: r.ID, State: string(r.State), Step: string(p.Step), Since: schema.NewTimestamp(r.Since), Actor: r.Actor, Reason: schema.Null(r.Reason),
		Objects: p.Objects, Doubted: p.Doubted, Corrected: p.Corrected, Adopted: p.Adopted, Disagrees: p.Disagrees, Messages: p.Messages, Restored: p.Restored,
		DeadLetters: p.Letters, UnknownTenants: unknown, Note: schema.Null(p.Note), Detail: schema.Null(r.Detail),
		CreatedAt: schema.NewTimestamp(r.CreatedAt), UpdatedAt: schema.NewTimestamp(r.UpdatedAt), FinishedAt: schema.NullTimestamp(r.FinishedAt),
	}
}

// AcceptedMark is the document of a mark that was accepted.
func AcceptedMark(found payments.MarkVerdict, m payments.Mark) schema.AcceptedMark {
	return schema.AcceptedMark{Found: string(found), SystemID: m.SystemID, Timeline: m.Timeline, Counter: m.Counter}
}

// AuditEntry is the document of what an operator did.
func AuditEntry(e payments.AuditEntry) schema.AuditEntry {
	return schema.AuditEntry{
		ID: e.ID, At: schema.NewTimestamp(e.At), Actor: e.Actor, Action: e.Action, Reason: schema.Null(e.Reason), TenantID: schema.Null(e.TenantID),
		Target: schema.Null(e.Target), Filter: rawOrNull(e.Filter), Result: rawOrNull(e.Result),
	}
}

// rawOrNull is a JSON document as it is stored.
func rawOrNull(document []byte) jsontext.Value {
	if len(document) == 0 {
		return jsontext.Value("null")
	}
	return jsontext.Value(document)
}

// worded is a map under plain words; never nil.
func worded[K ~string](counts map[K]int) map[string]int {
	m := make(map[string]int, len(counts))
	for word, n := range counts {
		m[string(word)] = n
	}
	return m
}

// filled is the map, and an empty one for none: {} in every encoder.
func filled[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

// total is how many there are of all kinds together.
func total[K comparable](counts map[K]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
