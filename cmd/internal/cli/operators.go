package cli

import (
	"context"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// operators is what the commands of operators need of the store.
type operators interface {
	DeadLetters(ctx context.Context, r postgres.DeadLettersRequest) ([]payments.DeadLetter, string, error)
	DeadLetter(ctx context.Context, id string) (payments.DeadLetter, error)
	PreviewReplay(ctx context.Context, n payments.NewReplay) (payments.ReplayPreview, error)
	CreateReplay(ctx context.Context, r payments.NewReplay) (payments.Replay, error)
	Replay(ctx context.Context, id string) (payments.Replay, error)
	Replays(ctx context.Context, limit int, cursor string) ([]payments.Replay, string, error)
	ReplayItems(ctx context.Context, id string, result payments.ReplayResult, limit int, cursor string) ([]payments.ReplayItem, string, error)
	PauseReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error)
	ResumeReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error)
	CancelReplay(ctx context.Context, id string, op payments.Operation) (payments.Replay, error)
	PreviewDiscard(ctx context.Context, f payments.LetterFilter, limit int) (payments.DiscardPreview, error)
	Discard(ctx context.Context, f payments.LetterFilter, limit int, op payments.Operation) (payments.DiscardResult, error)
	FindAnywhere(ctx context.Context, id payments.ID) (payments.Payment, error)
	Find(ctx context.Context, tenantID string, id payments.ID) (payments.Payment, error)
	FindFollowUp(ctx context.Context, tenantID string, id payments.ID) (payments.FollowUp, error)
	Resolve(ctx context.Context, tenantID string, id payments.ID, d payments.Decision, op payments.Operation) (payments.Recorded, error)
	Pause(ctx context.Context, p payments.Pause) (payments.Pause, error)
	Resume(ctx context.Context, scope payments.Pause, op payments.Operation) (ended bool, err error)
	Pauses(ctx context.Context) ([]payments.Pause, error)
	Tenants(ctx context.Context) ([]postgres.Tenant, error)
	StripeAccounts(ctx context.Context) ([]string, error)
	Mark(ctx context.Context) (payments.MarkState, error)
	AcceptMark(ctx context.Context, counter int64, op payments.Operation, result []byte) error
	BeginRewind(ctx context.Context, since time.Time, op payments.Operation) (r payments.Rewind, began bool, err error)
	Rewind(ctx context.Context, id int64) (payments.Rewind, error)
	Audit(ctx context.Context, f payments.AuditFilter, limit int, cursor string) ([]payments.AuditEntry, string, error)
}

// withOperators gives one command the store of the settings.
func (s *shared) withOperators(ctx context.Context, f func(operators) error) error {
	if s.operators != nil {
		return asUsage(f(s.operators))
	}
	return s.withStore(ctx, func(store *postgres.Store) error { return f(store) })
}
