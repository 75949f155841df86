package dev

import (
	"fmt"
	"math/rand/v2"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// demoTenant is the tenant that the development stack has.
const demoTenant = "demo"

// publication is one message that a producer sends.
type publication struct {
	intent  int // index into workload.intents; -1 for a message that no producer should have sent
	subject string
	data    []byte
	msgID   string
	key     string
}

// workload is what a demo publishes: every intent several times, by several producers, with messages among them that must not become payments.
type workload struct {
	intents   []oracle.Intent
	producers [][]publication
	messages  int
}

// The mix of a workload, in one of so many intents.
const (
	declineEvery  = 20 // the card is declined
	conflictEvery = 50 // two requests under one key
	poisonEvery   = 50 // a message that can never be a payment
	bulkEvery     = 4  // on the bulk lane
	producerCount = 4
)

var (
	goodMethods     = []string{"pm_card_visa", "pm_card_mastercard", "pm_card_amex", "pm_card_visa_debit"}
	declinedMethods = []string{"pm_card_visa_chargeDeclined", "pm_card_visa_chargeDeclinedInsufficientFunds", "pm_card_chargeDeclinedExpiredCard"}
	currencies      = []string{"usd", "eur", "gbp", "chf"}
)

// newWorkload draws n intents from the seed.
func newWorkload(n int, seed uint64, subjects schema.Subjects) (*workload, error) {
	w := &workload{producers: make([][]publication, producerCount)}
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		if err := w.add(i, random, subjects); err != nil {
			return nil, err
		}
	}
	for i := range max(1, n/poisonEvery) {
		if err := w.addPoison(i, random, subjects); err != nil {
			return nil, err
		}
	}
	for _, p := range w.producers {
		random.Shuffle(len(p), func(a, b int) { p[a], p[b] = p[b], p[a] })
		w.messages += len(p)
	}
	return w, nil
}

// add draws one intent and gives it to two to four producers, to some of them twice in a row.
func (w *workload) add(i int, random *rand.Rand, subjects schema.Subjects) error {
	intent := oracle.Intent{
		TenantID: demoTenant, Key: fmt.Sprintf("order-%06d", i), Declines: i%declineEvery == declineEvery-1,
		Money: oracle.Money{Amount: 100 + random.Int64N(50_000), Currency: currencies[random.IntN(len(currencies))], Customer: fmt.Sprintf("cus_demo%06d", i)},
	}
	method := goodMethods[random.IntN(len(goodMethods))]
	if intent.Declines {
		method = declinedMethods[random.IntN(len(declinedMethods))]
	}
	subject, err := subjects.Intent(demoTenant)
	if i%bulkEvery == 0 {
		subject, err = subjects.Bulk(demoTenant)
	}
	if err != nil {
		return err
	}
	conflict := intent.Money
	if i%conflictEvery == conflictEvery/2 {
		conflict.Amount++
		intent.Also = []oracle.Money{conflict}
	}
	w.intents = append(w.intents, intent)
	for copyNumber, p := range random.Perm(producerCount)[:2+random.IntN(producerCount-1)] {
		money := intent.Money
		if copyNumber == 1 {
			money = conflict // the same money, unless this key is one of the conflicts
		}
		data, err := schema.EncodeIntent(wireIntent(intent.Key, money, method))
		if err != nil {
			return err
		}
		message := publication{intent: i, subject: subject, data: data, key: intent.Key}
		if random.IntN(8) == 0 {
			message.msgID = intent.Key // what people do, though nobody should
		}
		for range 1 + random.IntN(2) {
			w.producers[p] = append(w.producers[p], message)
		}
	}
	return nil
}

func wireIntent(key string, money oracle.Money, method string) schema.Intent {
	return schema.Intent{
		IdempotencyKey: schema.Some(key), Amount: schema.Some(money.Amount), Currency: schema.Some(money.Currency), Customer: schema.Some(money.Customer),
		PaymentMethod: schema.Some(method), Metadata: map[string]string{"order": key},
	}
}

// addPoison draws a message that must become a dead letter and nothing else.
func (w *workload) addPoison(i int, random *rand.Rand, subjects schema.Subjects) error {
	key := fmt.Sprintf("poison-%06d", i)
	body := func(rest string) []byte {
		return []byte(`{"idempotency_key":"` + key + `","payment_method":"pm_card_visa",` + rest + `}`)
	}
	kinds := [][]byte{
		body(`"amount":-5,"currency":"usd"`),
		body(`"amount":100,"currency":"zzz"`),
		body(`"amount":100,"currency":"usd","colour":"red"`),
		body(`"amount":"100","currency":"usd"`),
		body(`"amount":100,"currency":"usd","description":"a\u0000b"`),
		body(`"amount":100,"currency":"usd","tenant_id":"another"`),
	}
	subject, err := subjects.Intent(demoTenant)
	if err != nil {
		return err
	}
	message := publication{intent: len(w.intents), subject: subject, data: kinds[i%len(kinds)], key: key}
	w.intents = append(w.intents, oracle.Intent{TenantID: demoTenant, Key: key, Refused: true, Money: oracle.Money{Customer: "poison-" + key}})
	p := random.IntN(producerCount)
	w.producers[p] = append(w.producers[p], message)
	return nil
}

// faults is what the simulator does to requests unless --faults says otherwise; each hits about two in a hundred.
var faults = []string{
	"reset_before", "commit_then_hang", "commit_then_reset", "commit_then_500", "commit_then_503", "truncate_body", "html_502", "garbage_200",
	"slow:200", "in_use_409", "rate_limit_429", "lock_timeout_429", "unauthorized_401", "should_retry_true", "should_retry_false",
}

// faultRate is the chance of each fault.
const faultRate = 0.02

// settledStatus reports whether the demo is done with a payment in this status.
func settledStatus(s payments.Status) bool { return !s.HasTicket() }
