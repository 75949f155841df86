package payments

import (
	"context"
	"slices"
)

// Bounds of a page of any list.
const (
	LimitDefault = 100
	LimitMax     = 1000
)

// ListRequest asks for a page of payments, newest first; empty filters let everything through. Charges alone are listed, unless Kinds says otherwise.
type ListRequest struct {
	TenantID       string
	Status         Status // as shown: processing is a received or waiting payment that somebody has
	Customer       string
	IdempotencyKey string
	Kinds          []Kind // empty: charges alone; a batch is never listed
	Batch          ID     // with TenantID: only the payments of this batch, in its order; zero: of all
	Limit          int    // 1 to LimitMax; 0: LimitDefault
	Cursor         string // next of the page before; "": the first page
}

// Lists reports whether what is of this kind is asked for.
func (r ListRequest) Lists(k Kind) bool {
	return k != KindBatch && (slices.Contains(r.Kinds, k) || len(r.Kinds) == 0 && k == KindCharge)
}

// BatchListRequest asks for a page of a tenant's batches, oldest first: the parts of a run in the order in which they were made.
type BatchListRequest struct {
	TenantID string
	Parent   string // "": all
	Limit    int    // 1 to LimitMax; 0: LimitDefault
	Cursor   string
}

// Reader shows payments and batches to whoever asks. Every method may also return CodeUnavailable.
type Reader interface {
	// Find reads one keyed request by id, a batch's own row included: Kind tells. CodeNotFound.
	Find(ctx context.Context, tenantID string, id ID) (Payment, error)
	// FindMany reads those of the payments that are there, in any order; tenants and ids belong together by their places.
	FindMany(ctx context.Context, tenants []string, ids []ID) ([]Payment, error)
	// List returns a page of payments and the cursor of the next page, "" after the last. CodeInvalid: a filter or the cursor; Field names it;
	// CodeNotFound: there is no such batch.
	List(ctx context.Context, r ListRequest) (page []Payment, next string, err error)
	// Timeline returns all that happened to a payment, oldest first. CodeNotFound.
	Timeline(ctx context.Context, tenantID string, id ID) ([]Entry, error)
	// Batch reads a batch with its totals. CodeNotFound.
	Batch(ctx context.Context, tenantID string, id ID) (BatchState, error)
	// Batches returns a page of batches with their totals. CodeInvalid as for List.
	Batches(ctx context.Context, r BatchListRequest) (page []BatchState, next string, err error)
}

// Keys finds API keys.
type Keys interface {
	// APIKeyBySecret returns the key that the secret belongs to, if it is good now. CodeNotFound; CodeUnavailable.
	APIKeyBySecret(ctx context.Context, secret string) (APIKey, error)
}
