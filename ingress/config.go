package ingress

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// Admitter stores payments: the one verb of payments.Store that the door needs.
type Admitter interface {
	// Admit is as in payments.Store.
	Admit(ctx context.Context, r payments.AdmitRequest) (payments.Admission, error)
}

// Actions finds what a customer must do for a payment that requires an action.
type Actions interface {
	// Action returns Stripe's next_action as JSON, and the client_secret. Both are for the owning tenant alone: no log, no event, no list has them.
	Action(ctx context.Context, p payments.Payment) (nextAction []byte, clientSecret string, err error)
}

// Observer is told what happens at the door; a nil function is not called. It must not block.
type Observer struct {
	// Request: a request was answered. route is a path of Routes, or "other"; method is one that HTTP defines, or "OTHER".
	Request func(route, method string, status int, took time.Duration)
}

// FollowUps stores captures, cancels and refunds: the one verb of payments.FollowUps that the door needs.
type FollowUps interface {
	// AdmitFollowUp is as in payments.FollowUps.
	AdmitFollowUp(ctx context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error)
}

// Config is what an API is made of. The ports of its first paragraph and Clock are needed.
type Config struct {
	Store          Admitter
	FollowUps      FollowUps
	Batches        payments.Batches
	Reader         payments.Reader
	FollowUpReader payments.FollowUpReader
	Keys           payments.Keys

	// Unpublished counts the accepted rows whose copies are not in their streams yet; from UnpublishedMax on nothing new is accepted, and from
	// three quarters of it on no new batch. It is asked at most once in 250 ms. Nil: not looked at.
	Unpublished    func(context.Context) (int64, error)
	UnpublishedMax int64

	// Actions, when nil, leaves next_action and client_secret out.
	Actions Actions

	// Rate is how many requests a second each API key may make of this process, Burst how many at once (at least 1; 0: a second's). 0: unlimited.
	Rate  float64
	Burst int

	// Docs serves /openapi.json, /docs and what is below /docs/; nil: those paths do not exist.
	Docs http.Handler

	Clock    payments.Clock
	Log      *slog.Logger // slog.Default unless set
	Observer Observer
}

// Bounds of what one process holds in memory and of what it asks of others at once.
const (
	inFlightMax = 4096   // requests that are not only waiting, and whose answers are not known yet; 64 KiB each
	ofOneKeyMax = 1024   // shares of one API key's requests, until their answers are written
	longShare   = 4      // shares of a request that may take far more memory than others: a batch, or a list
	batchesMax  = 512    // of these, batches; 900 KiB each
	waitersMax  = 10_000 // requests that wait by Prefer
	actionsMax  = 64     // questions to Actions
)

// API is the HTTP API. Make one with New.
type API struct {
	cfg     Config
	mux     *http.ServeMux
	keys    *keyring
	rates   *rates
	crowd   *crowd
	backlog *backlog
	waiting *waitingRoom

	inFlight, batches, actions chan struct{}

	toldAway atomic.Int64 // when the log last said that a service is away
}

// New checks the configuration and returns the API.
func New(cfg Config) (*API, error) {
	switch {
	case cfg.Store == nil, cfg.FollowUps == nil, cfg.Batches == nil, cfg.Reader == nil, cfg.FollowUpReader == nil, cfg.Keys == nil:
		return nil, errors.New("ingress: Store, FollowUps, Batches, Reader, FollowUpReader and Keys are needed")
	case cfg.Clock == nil:
		return nil, errors.New("ingress: Clock is needed")
	case cfg.Unpublished != nil && cfg.UnpublishedMax < 1:
		return nil, errors.New("ingress: UnpublishedMax must be at least 1 where Unpublished is set")
	case cfg.Rate < 0, math.IsNaN(cfg.Rate), math.IsInf(cfg.Rate, 0), cfg.Burst < 0:
		return nil, errors.New("ingress: Rate and Burst must be 0 for none, or above")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	a := &API{
		cfg:      cfg,
		keys:     newKeyring(cfg.Keys, cfg.Clock),
		rates:    newRates(cfg.Rate, cfg.Burst),
		crowd:    newCrowd(ofOneKeyMax),
		backlog:  newBacklog(cfg),
		waiting:  newWaitingRoom(cfg.Reader, cfg.Clock, waitersMax),
		inFlight: make(chan struct{}, inFlightMax),
		batches:  make(chan struct{}, batchesMax),
		actions:  make(chan struct{}, actionsMax),
	}
	a.mux = a.routes()
	return a, nil
}

// Run serves those who wait by Prefer until ctx ends, and then answers them at once. It comes before http.Server.Shutdown, which would wait for
// them. Without it nobody waits. It can be called once.
func (a *API) Run(ctx context.Context) error { return a.waiting.run(ctx) }
