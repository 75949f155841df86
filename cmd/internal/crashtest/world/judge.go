package world

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/postgres"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// Account is everything that is known of a run at rest.
type Account struct {
	oracle.Run
	Letters    []payments.DeadLetter
	Told       []schema.Event // of batches, which the oracle does not know
	Violations []postgres.Violation
	Summary    stripesim.Summary
	Ledger     stripesim.Ledger
	Rows       map[payments.ID]payments.Payment
	// FollowUpRows are the captures, cancels and refunds that are stored.
	FollowUpRows map[payments.ID]payments.FollowUp
}

// Account reads the three accounts of the run.
func (w *World) Account() Account {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a := Account{Summary: w.Sim.Summary(), Ledger: w.Sim.Ledger(), Rows: map[payments.ID]payments.Payment{}, FollowUpRows: map[payments.ID]payments.FollowUp{}}
	w.mu.Lock()
	for _, i := range w.intents {
		a.Intents = append(a.Intents, *i)
	}
	for _, f := range w.followUps {
		a.FollowUps = append(a.FollowUps, *f)
	}
	w.mu.Unlock()
	for _, c := range a.Ledger.Charges {
		a.Charges = append(a.Charges, oracle.Charge{
			ID: c.ID, Money: oracle.Money{Amount: c.Amount, Currency: c.Currency, Customer: c.Customer}, Held: !c.Captured, Captured: c.AmountCaptured,
		})
	}
	w.readPayments(ctx, &a)
	w.readFollowUps(ctx, &a)
	w.readEvents(ctx, &a)
	var err error
	if a.Violations, err = w.Store.TicketViolations(ctx); err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *World) readPayments(ctx context.Context, a *Account) {
	w.Helper()
	tenants, err := w.Store.Tenants(ctx)
	if err != nil {
		w.Fatal(err)
	}
	for _, one := range tenants {
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, next, err := w.Store.List(ctx, payments.ListRequest{TenantID: one.ID, Limit: payments.LimitMax, Cursor: cursor})
			if err != nil {
				w.Fatal(err)
			}
			for _, p := range page {
				if a.Rows != nil {
					a.Rows[p.ID] = p
				}
				a.Payments = append(a.Payments, oracle.Payment{
					ID: p.ID.String(), TenantID: p.TenantID, Key: p.IdempotencyKey, Status: p.Status,
					Captured: p.AmountCaptured, Refunded: p.AmountRefunded, Money: oracle.Money{Amount: p.Amount, Currency: p.Currency, Customer: p.Customer},
				})
			}
			cursor = next
		}
	}
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, next, err := w.Store.DeadLetters(ctx, postgres.DeadLettersRequest{Limit: payments.LimitMax, Cursor: cursor})
		if err != nil {
			w.Fatal(err)
		}
		for _, l := range page {
			a.Letters = append(a.Letters, l)
			a.DeadLetters = append(a.DeadLetters, oracle.DeadLetter{TenantID: l.TenantID, Key: l.IdempotencyKey, Reason: l.Reason})
		}
		cursor = next
	}
}

// readEvents reads the stream of outcome events from its beginning.
func (w *World) readEvents(ctx context.Context, a *Account) {
	w.Helper()
	a.Events = []oracle.Event{}
	for _, m := range w.Messages(ctx, w.Subjects.StreamEvents()) {
		e, err := schema.DecodeEvent(m.Data())
		if err != nil {
			w.Fatalf("an event cannot be read: %v", err)
		}
		if e.Type == schema.EventBatchCompleted {
			a.Told = append(a.Told, e)
			continue
		}
		var data struct {
			Status payments.Status `json:"status"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			w.Fatalf("an event's data cannot be read: %v", err)
		}
		a.Events = append(a.Events, oracle.Event{ID: e.ID, Payment: e.Subject, Sequence: e.Sequence, Status: data.Status})
	}
}

// Messages are all that stand in a stream.
func (w *World) Messages(ctx context.Context, name string) (list []jetstream.Msg) {
	w.Helper()
	stream, err := w.JS.Stream(ctx, name)
	if err != nil {
		w.Fatal(err)
	}
	total := int(stream.CachedInfo().State.Msgs)
	if total == 0 {
		return nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		w.Fatal(err)
	}
	for len(list) < total {
		batch, err := consumer.Fetch(total-len(list), jetstream.FetchMaxWait(5*time.Second))
		if err != nil {
			w.Fatal(err)
		}
		before := len(list)
		for m := range batch.Messages() {
			list = append(list, m)
		}
		if len(list) == before {
			w.Fatalf("%s: only %d of %d messages could be read: %v", name, before, total, batch.Error())
		}
	}
	return list
}

// Of is the part of a run that is about one order.
func (a Account) Of(o Order) Account {
	part := Account{Summary: a.Summary, FollowUpRows: map[payments.ID]payments.FollowUp{}}
	for _, i := range a.Intents {
		if i.TenantID == o.TenantID && i.Key == o.Key {
			part.Intents = append(part.Intents, i)
		}
	}
	for _, c := range a.Charges {
		if c.Customer == o.Money.Customer {
			part.Charges = append(part.Charges, c)
		}
	}
	id := o.ID()
	for _, p := range a.Payments {
		if p.ID == id.String() {
			part.Payments = append(part.Payments, p)
		}
	}
	part.Events = []oracle.Event{}
	for _, e := range a.Events {
		if e.Payment == id.String() {
			part.Events = append(part.Events, e)
		}
	}
	about := a.aboutOrder(o, &part)
	for _, e := range a.Events {
		if about[e.Payment] {
			part.Events = append(part.Events, e)
		}
	}
	for _, d := range a.DeadLetters {
		if d.TenantID == o.TenantID && d.Key == o.Key {
			part.DeadLetters = append(part.DeadLetters, d)
		}
	}
	for _, v := range a.Violations {
		if v.ID == id {
			part.Violations = append(part.Violations, v)
		}
	}
	return part
}

// Wrong lists what is wrong with a run, nothing when all is well.
func (a Account) Wrong() []string {
	v := oracle.Judge(a.Run)
	findings := slices.Clone(v.Findings)
	if !v.Good() && len(findings) == 0 {
		findings = append(findings, "the oracle says no and names nothing")
	}
	for _, broken := range a.Violations {
		findings = append(findings, "ticket and status disagree: "+broken.What+" for "+broken.ID.String()+" "+string(broken.Status))
	}
	return append(findings, a.wire()...)
}

// Reasons counts the dead letters by reason.
func (a Account) Reasons() map[payments.Reason]int {
	n := map[payments.Reason]int{}
	for _, d := range a.DeadLetters {
		n[d.Reason]++
	}
	return n
}

// MustBeGood waits for rest and wants the oracle's full consent, and as many dead letters as are known.
func (w *World) MustBeGood(deadLetters int) Account {
	w.Helper()
	w.Rest()
	a := w.Account()
	for _, finding := range a.Wrong() {
		w.Error(finding)
	}
	if len(a.DeadLetters) != deadLetters {
		w.Errorf("%d dead letters, want %d: %v", len(a.DeadLetters), deadLetters, a.Reasons())
	}
	return a
}
