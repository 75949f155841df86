package letters

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// poison is a message that can never become a payment.
type poison struct {
	name    string
	tenant  string // of the subject; "" : the usual one
	filed   string // tenant of the dead letter
	key     string // of the dead letter
	headers nats.Header
	data    string
	reason  payments.Reason
	erased  bool
}

// poisons are one of every kind.
func poisons() []poison {
	body := func(key, rest string) string {
		return `{"idempotency_key":"` + key + `","payment_method":"pm_card_visa",` + rest + `}`
	}
	const money = `"amount":4200,"currency":"usd"`
	plain := func(name, rest string, reason payments.Reason) poison {
		return poison{name: name, key: name, data: body(name, rest), reason: reason}
	}
	withHeader := func(name, key, data string, reason payments.Reason, lines ...string) poison {
		return poison{name: name, key: key, data: data, reason: reason, headers: nats.Header{schema.HeaderIdempotencyKey: lines}}
	}
	keyless := `{"payment_method":"pm_card_visa",` + money + `}`
	list := []poison{
		{name: "no JSON", data: "\x00\xff not JSON", reason: payments.ReasonUndecodable},
		{name: "empty", data: "", reason: payments.ReasonUndecodable},
		plain("unknown-field", money+`,"colour":"red"`, payments.ReasonInvalid),
		plain("duplicate-member", money+`,"amount":4200`, payments.ReasonUndecodable),
		plain("wrong-type", `"amount":"4200","currency":"usd"`, payments.ReasonInvalid),
		plain("fraction", `"amount":42.5,"currency":"usd"`, payments.ReasonInvalid),
		plain("null", money+`,"description":null`, payments.ReasonInvalid),
		plain("nul", money+`,"description":"a\u0000b"`, payments.ReasonUndecodable),
		plain("lone-surrogate", money+`,"description":"\ud800"`, payments.ReasonUndecodable),
		plain("oversize", money+`,"description":"`+strings.Repeat("x", schema.IntentMaxBytes)+`"`, payments.ReasonInvalid),
		plain("negative", `"amount":-5,"currency":"usd"`, payments.ReasonInvalid),
		plain("zero", `"amount":0,"currency":"usd"`, payments.ReasonInvalid),
		plain("currency", `"amount":4200,"currency":"zzz"`, payments.ReasonInvalid),
		plain("another-tenant", money+`,"tenant_id":"`+world.Rival+`"`, payments.ReasonTenantMismatch),
		plain("child::0000", money, payments.ReasonKeyInvalid),
		{name: "no key", data: keyless, reason: payments.ReasonKeyMissing},
		withHeader("two key headers", "", keyless, payments.ReasonKeyInvalid, "a", "b"),
		withHeader("control character in the key", "", keyless, payments.ReasonKeyInvalid, "a\tb"),
		withHeader("both-keys", "both-keys", body("both-keys", money), payments.ReasonKeyInvalid, "another"),
		{name: "bad tenant", tenant: "No_Tenant", filed: "-", key: "bad-tenant", data: body("bad-tenant", money), reason: payments.ReasonTenantUnknown},
		{name: "unknown tenant", tenant: "nobody", filed: "nobody", key: "unknown-tenant", data: body("unknown-tenant", money), reason: payments.ReasonTenantUnknown},
		{name: "card in the payload", data: body("card-1", money+`,"description":"4242 4242 4242 4242"`), reason: payments.ReasonCardNumber, erased: true},
		{
			name: "card in a header", data: body("card-2", money), reason: payments.ReasonCardNumber, erased: true,
			headers: nats.Header{"X-Note": {"card 5555-5555-5555-4444"}},
		},
		{name: "escaped card", data: body("card-3", money+`,"description":"\u0034242424242424242"`), reason: payments.ReasonCardNumber, erased: true},
	}
	for i := range list {
		if list[i].tenant == "" {
			list[i].tenant, list[i].filed = world.Tenant, world.Tenant
		}
		list[i].filed = strings.TrimPrefix(list[i].filed, "-")
	}
	return list
}

// goodOnes is how many good payments stand beside a poisonous one.
const goodOnes = 500 / world.Scale

// TestPoison publishes one message of every malformed kind among 500 good ones. Each becomes exactly its dead letter, and no good one suffers.
func TestPoison(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.Unhurried)
	list := poisons()
	sequences := map[uint64]poison{}
	prefix := strings.TrimSuffix(w.IntentSubject(world.Tenant), world.Tenant)
	for i, p := range list {
		w.PublishMany(fmt.Sprintf("good-%d-nr", i), goodOnes/len(list)+1)
		ack := w.Send(prefix+p.tenant, []byte(p.data), p.headers)
		sequences[ack.Sequence] = p
		if p.key != "" {
			o := w.Order(p.key)
			o.TenantID, o.Refused, o.Acknowledged = p.filed, true, true
			o.Money = oracle.Money{Customer: "nobody's " + p.name}
			w.Expect(o)
		}
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	a := w.MustBeGood(len(list))
	if want := len(list) * (goodOnes/len(list) + 1); len(a.Charges) != want {
		t.Errorf("%d charges, want %d", len(a.Charges), want)
	}
	stream, err := w.JS.Stream(t.Context(), w.Subjects.StreamIntents())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range a.Letters {
		p, ok := sequences[l.Origin.Sequence]
		if !ok {
			t.Errorf("a dead letter %s of the message %d, which is none of the malformed", l.Reason, l.Origin.Sequence)
			continue
		}
		delete(sequences, l.Origin.Sequence)
		full, err := w.Store.DeadLetter(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		p.judge(t, full)
		_, err = stream.GetMsg(t.Context(), l.Origin.Sequence)
		if gone := errors.Is(err, jetstream.ErrMsgNotFound); gone != p.erased {
			t.Errorf("%s: the stream's message is gone: %v, want %v (%v)", p.name, gone, p.erased, err)
		}
	}
	for _, p := range sequences {
		t.Errorf("%s: no dead letter", p.name)
	}
	copies := map[string]bool{} // each at least once
	for _, m := range w.Messages(t.Context(), w.Subjects.StreamDead()) {
		if payments.ContainsCardNumber(m.Data()) {
			t.Error("a copy of a dead letter holds a card number")
		}
		var letter struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(m.Data(), &letter); err != nil {
			t.Errorf("a copy of a dead letter cannot be read: %v", err)
		}
		copies[letter.ID] = true
	}
	if len(copies) != len(list) {
		t.Errorf("copies of %d dead letters, want %d", len(copies), len(list))
	}
}

// judge holds a dead letter against the message.
func (p poison) judge(t *testing.T, l payments.DeadLetter) {
	t.Helper()
	if l.Reason != p.reason || l.TenantID != p.filed || l.IdempotencyKey != p.key || l.State != payments.DeadLetterOpen || l.Message == "" {
		t.Errorf("%s: %s of tenant %q, key %q, %s, %q; want %s, %q, %q", p.name, l.Reason, l.TenantID, l.IdempotencyKey, l.State, l.Message, p.reason, p.filed, p.key)
	}
	if l.PayloadLength != len(p.data) || l.PayloadSHA256 != sha256.Sum256([]byte(p.data)) {
		t.Errorf("%s: length %d and hash are not the message's", p.name, l.PayloadLength)
	}
	if p.erased {
		if l.Payload != nil || l.Headers != nil || strings.Contains(l.Message, "4242") || strings.Contains(l.Message, "5555") {
			t.Errorf("%s: something of a card number is kept", p.name)
		}
		return
	}
	if !bytes.Equal(l.Payload, []byte(p.data)) {
		t.Errorf("%s: the payload is not kept byte for byte", p.name)
	}
	for name, lines := range p.headers {
		for _, line := range lines {
			if !bytes.Contains(l.Headers, []byte(name+": "+line+"\r\n")) {
				t.Errorf("%s: the header %s is not kept", p.name, name)
			}
		}
	}
}

// panicky panics when it is to submit one payment, the first times of it.
type panicky struct {
	payments.Gateway
	id payments.ID

	mu   sync.Mutex
	left int
}

func (g *panicky) Submit(ctx context.Context, s payments.Submission) payments.Observation {
	if s.Payment.ID == g.id {
		g.mu.Lock()
		now := g.left > 0
		g.left--
		g.mu.Unlock()
		if now {
			panic("a bug that only this payment meets")
		}
	}
	return g.Gateway.Submit(ctx, s)
}

// TestPanic: a payment whose handler panics is a dead letter, and nobody beside it notices. Nothing was sent, and only Stripe's records can
// tell, so the payment stays in doubt, is looked up, and is charged when the bug is gone.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.Unhurried)
	victim := w.Order("victim")
	w.PublishMany("before", goodOnes/2)
	w.Publish(victim)
	w.PublishMany("after", goodOnes/2)
	w.Start(world.WorkerOptions{Name: "healthy", Gateway: func(g payments.Gateway) payments.Gateway {
		return &panicky{Gateway: g, id: victim.ID(), left: 2}
	}})
	a := w.MustBeGood(1)
	if l := a.Letters[0]; l.Reason != payments.ReasonHandlerPanic || l.IdempotencyKey != victim.Key || l.PaymentID == nil || *l.PaymentID != victim.ID() {
		t.Errorf("the dead letter is %+v", l)
	}
	if want := 2*(goodOnes/2) + 1; len(a.Charges) != want {
		t.Errorf("%d charges, want %d", len(a.Charges), want)
	}
}

// TestWorkerKilled: a payment ends every worker that has it. From the third on it is alone in its process, after the sixth it is a dead letter;
// the others beside it settle all the while.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.DeathTimes)
	killer := w.Order("killer")
	bystanders := w.PublishMany("before", goodOnes/5)
	w.Publish(killer)
	bystanders = append(bystanders, w.PublishMany("after", goodOnes-goodOnes/5)...)
	// An owner whose look-up timed out records that, and deaths would count anew.
	if deaths := w.KillUntilBuried(killer, payments.StepBeforeSubmit, payments.StepBeforeRecord); deaths != payments.AbandonedMax {
		t.Errorf("%d workers died, want %d", deaths, payments.AbandonedMax)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.MustHaveSettled(bystanders)
	w.MustBeGood(1)
}

// TestMessageKillsWorkers: a message ends every worker before its payment is stored. From the third delivery on each start is counted, after
// the third such start the message is a dead letter with its bytes, and it was never charged.
func TestMessageKillsWorkers(t *testing.T) {
	t.Parallel()
	w := world.NewOf(t, world.DeathTimes)
	killer := w.Order("killer")
	bystanders := w.PublishMany("before", goodOnes/5)
	w.Publish(killer)
	bystanders = append(bystanders, w.PublishMany("after", goodOnes-goodOnes/5)...)
	want := payments.SuspectFrom - 1 + payments.SuspectStartsMax
	if deaths := w.KillUntilBuried(killer, payments.StepBeforeAdmit); deaths != want {
		t.Errorf("%d workers died, want %d", deaths, want)
	}
	w.Start(world.WorkerOptions{Name: "healthy"})
	w.MustHaveSettled(bystanders)
	a := w.MustBeGood(1)
	if len(a.Charges) != len(bystanders) || w.Status(killer.ID()) != "" {
		t.Errorf("%d charges, want those of the %d bystanders; the killer is %q", len(a.Charges), len(bystanders), w.Status(killer.ID()))
	}
	full, err := w.Store.DeadLetter(t.Context(), a.Letters[0].ID)
	if err != nil || !bytes.Equal(full.Payload, killer.Body(t)) {
		t.Errorf("the dead letter does not hold the message: %v", err)
	}
}
