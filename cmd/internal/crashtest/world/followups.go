package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/payments/stripesim"
	"github.com/oncepay/oncepay/schema"
)

// FollowUp is one capture, cancel or refund that a producer asks for.
type FollowUp struct {
	oracle.FollowUp
	Order Order         // what it is about
	Lane  payments.Lane // by which it is published; the interactive one unless it says otherwise
}

// FollowUp draws up a follow-up of an order. Amount 0 asks for all there is.
func (w *World) FollowUp(kind payments.Kind, o Order, key string, amount int64) FollowUp {
	return FollowUp{Order: o, Lane: payments.LaneInteractive, FollowUp: oracle.FollowUp{TenantID: o.TenantID, Key: key, Kind: kind, Customer: o.Money.Customer, Amount: amount}}
}

// ID is the follow-up's id.
func (f FollowUp) ID() payments.ID { return payments.NewID(f.TenantID, f.Key) }

// Intent is what it asks for.
func (f FollowUp) Intent() payments.Intent {
	i := payments.Intent{
		TenantID: f.TenantID, IdempotencyKey: f.Key, Kind: f.Kind, PaymentID: f.Order.ID().String(), Amount: f.Amount, All: f.Amount == 0 && f.Kind != payments.KindCancel,
	}
	if f.Kind == payments.KindRefund {
		i.Metadata = map[string]string{"order": f.Key} // for rules of the simulator to match
	}
	return i.Normalized()
}

// path is where it is asked for over HTTP.
func (f FollowUp) path() string {
	what := string(f.Kind)
	if f.Kind == payments.KindRefund {
		what = "refunds"
	}
	return "/v1/payments/" + f.Order.ID().String() + "/" + what
}

// members are the wire's form of it, which HTTP and NATS share.
func (f FollowUp) members() schema.Intent {
	wire := schema.Intent{Metadata: f.Intent().Metadata}
	if f.Amount > 0 {
		wire.Amount = schema.Some(f.Amount)
	}
	return wire
}

// ExpectFollowUp enters a follow-up into the producers' account of the run.
func (w *World) ExpectFollowUp(f FollowUp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followUps[f.ID()] == nil {
		w.followUps[f.ID()] = &f.FollowUp
	}
}

// acknowledgedFollowUp notes that its producer was told that it is kept, or else that it is not.
func (w *World) acknowledgedFollowUp(f FollowUp, kept bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kept {
		w.followUps[f.ID()].Acknowledged = true
	}
}

// StoreFollowUps stores follow-ups as another part of the installation does that accepts them itself.
func (w *World) StoreFollowUps(list ...FollowUp) {
	w.Helper()
	for _, f := range list {
		w.ExpectFollowUp(f)
		a, err := w.Store.AdmitFollowUp(w.Context(), payments.FollowUpRequest{Intent: f.Intent(), Lane: payments.LaneInteractive})
		if err != nil || a.Verdict != payments.VerdictStored {
			w.Fatalf("admit %s: %s %s %v", f.Key, a.Verdict, a.Why, err)
		}
		w.acknowledgedFollowUp(f, true)
	}
}

// PublishFollowUps asks for follow-ups over NATS, and waits for each PubAck.
func (w *World) PublishFollowUps(list ...FollowUp) {
	w.Helper()
	for _, f := range list {
		w.ExpectFollowUp(f)
		wire := f.members()
		wire.IdempotencyKey, wire.Kind, wire.PaymentID = schema.Some(f.Key), schema.Some(string(f.Kind)), schema.Some(f.Order.ID().String())
		data, err := schema.EncodeIntent(wire)
		if err != nil {
			w.Fatal(err)
		}
		ack := w.Send(w.Subject(Order{Intent: oracle.Intent{TenantID: f.TenantID}, Lane: f.Lane}), data, nil)
		w.acknowledgedFollowUp(f, !ack.Duplicate)
	}
}

// AskFollowUp asks over HTTP, each time where at says, until there is an answer other than 503, and returns its status and whether it was a repeat. It
// fails the test when none comes. Accepted ones enter the producers' account.
func (c *Caller) AskFollowUp(f FollowUp, at func() string) (status int, repeated bool) {
	c.ExpectFollowUp(f)
	ctx, cancel := context.WithTimeout(context.Background(), RestLimit)
	defer cancel()
	body, err := schema.EncodeIntent(f.members())
	if err != nil {
		c.Error(err)
		return 0, false
	}
	for {
		status, repeated, err = c.postFollowUp(ctx, at(), f, body)
		switch {
		case ctx.Err() != nil:
			c.Errorf("%s was not answered in time: %v %d", f.Key, err, status)
			return 0, false
		case err == nil && status != http.StatusServiceUnavailable:
			c.acknowledgedFollowUp(f, status == http.StatusAccepted || status == http.StatusOK)
			return status, repeated
		}
		Await(ctx, 20*time.Millisecond+rand.N(60*time.Millisecond))
	}
}

func (c *Caller) postFollowUp(ctx context.Context, addr string, f FollowUp, body []byte) (status int, repeated bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+f.path(), bytes.NewReader(body))
	if err != nil {
		return 0, false, err
	}
	r.GetBody = nil // as in Send
	r.Header.Set("Authorization", "Bearer "+c.Secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(schema.HeaderIdempotencyKey, f.Key)
	response, err := c.Client.Do(r)
	if err != nil {
		return 0, false, err
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil {
		return 0, false, err
	}
	return response.StatusCode, response.Header.Get("Idempotent-Replayed") == "true", nil
}

// FollowUpNow is a follow-up as it stands, the zero one when there is none.
func (w *World) FollowUpNow(f FollowUp) payments.FollowUp {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	now, err := w.Store.FindFollowUp(ctx, f.TenantID, f.ID())
	if err != nil && payments.ErrorCode(err) != payments.CodeNotFound {
		w.Fatal(err)
	}
	return now
}

// AwaitFollowUp waits until a follow-up stands so.
func (w *World) AwaitFollowUp(f FollowUp, what string, stands func(payments.FollowUp) bool) {
	w.Helper()
	w.Await(what+" of "+f.Key, func() (bool, string) {
		now := w.FollowUpNow(f)
		return stands(now), fmt.Sprintf("it is %q for %q", now.Status, now.Payment.Reason)
	})
}

// FaultFollowUp lets the simulator treat requests for a follow-up so, the first times of them. Its payment's PaymentIntent must be known.
func (w *World) FaultFollowUp(f FollowUp, fault string, times int) {
	w.Helper()
	match := stripesim.Match{Path: stripePath(w.FollowUpNow(f))}
	if f.Kind == payments.KindRefund {
		match.Metadata = map[string]string{"order": f.Key}
	}
	if err := w.Sim.AddFault(stripesim.Rule{Match: match, Fault: fault, Times: times}); err != nil {
		w.Fatal(err)
	}
}

// StripePath is where a follow-up goes to.
func (w *World) StripePath(f FollowUp) string {
	w.Helper()
	return stripePath(w.FollowUpNow(f))
}

// readFollowUps reads the follow-ups of all payments, and what Stripe gave back.
func (w *World) readFollowUps(ctx context.Context, a *Account) {
	w.Helper()
	type charge struct {
		tenant string
		id     payments.ID
	}
	var charges []charge
	w.SQL(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT DISTINCT tenant_id, payment_id FROM operations")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var c charge
			var id []byte
			if err := rows.Scan(&c.tenant, &id); err != nil {
				return err
			}
			copy(c.id[:], id)
			charges = append(charges, c)
		}
		return rows.Err()
	})
	for _, c := range charges {
		list, err := w.Store.FollowUpsOf(ctx, c.tenant, c.id, "")
		if err != nil {
			w.Fatal(err)
		}
		for _, f := range list {
			a.FollowUpRows[f.ID] = f
			a.Operations = append(a.Operations, oracle.Operation{
				ID: f.ID.Format(f.Kind), TenantID: f.TenantID, Key: f.IdempotencyKey, Kind: f.Kind, Payment: f.PaymentID, Status: f.Status, Amount: f.Amount,
			})
		}
	}
	customers := map[string]string{}
	for _, c := range a.Ledger.Charges {
		customers[c.PaymentIntent] = c.Customer
	}
	for _, r := range a.Ledger.Refunds {
		a.Refunds = append(a.Refunds, oracle.Refund{ID: r.ID, Customer: customers[r.PaymentIntent], Amount: r.Amount, Failed: r.Status == "failed"})
	}
}

// aboutOrder adds what is about one order's payment to a part of the run, and returns the ids that its events are of.
func (a Account) aboutOrder(o Order, part *Account) map[string]bool {
	ids := map[string]bool{}
	for _, f := range a.FollowUps {
		if f.Customer == o.Money.Customer {
			part.FollowUps = append(part.FollowUps, f)
		}
	}
	for _, f := range a.Operations {
		if f.Payment == o.ID().String() {
			part.Operations = append(part.Operations, f)
			ids[f.ID] = true
		}
	}
	for _, r := range a.Refunds {
		if r.Customer == o.Money.Customer {
			part.Refunds = append(part.Refunds, r)
		}
	}
	return ids
}
