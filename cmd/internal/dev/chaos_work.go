package dev

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
	"github.com/oncepay/oncepay/schema"
)

// delivery is one request or message that a producer sends until it is accepted, or refused as it must be.
type delivery struct {
	at      time.Duration // not before, since the beginning
	intents []int         // indexes into chaosWork.intents of what it asks for; none for what must never be a payment
	key     string
	body    []byte

	subject string // over NATS; "" over HTTP
	msgID   string
	forget  bool // without waiting for a PubAck
	// reason is that of the dead letter which each of its messages must become; for a conflict only where the other request won.
	reason payments.Reason

	path    string // over HTTP
	door    int    // that it is sent to first
	prefer  string
	refusal string        // the code with which it must be refused
	may     string        // or may be; over NATS it is a dead letter invalid then
	ask     *ask          // what it asks for about a payment that is there
	then    *delivery     // sent once this one has been accepted
	money   *oracle.Money // of one side of a conflict
}

// chaosWork is all that producers send, drawn from a seed.
type chaosWork struct {
	random *rand.Rand
	// following is the source of what is asked for about payments: the payments of a seed are the same with it as without.
	following *rand.Rand
	subjects  schema.Subjects
	duration  time.Duration
	intents   []oracle.Intent
	cards     []card           // of each intent
	batches   map[string][]int // intents by key of their batch
	nats      [natsProducers][]*delivery
	http      [httpProducers][]*delivery
	plans     []*plan // in the order of their times
}

// The mix of a run.
const (
	natsProducers = 3 // the last does not wait for PubAcks
	httpProducers = 2
	spread        = 4 * time.Second // between the first and the last copy of an intent
	batchLeast    = 5
	batchMost     = 20
)

// newChaosWork draws n intents that are asked for within duration.
func newChaosWork(seed uint64, n int, duration time.Duration, subjects schema.Subjects) (*chaosWork, error) {
	w := &chaosWork{random: rand.New(rand.NewPCG(seed, 2)), following: rand.New(rand.NewPCG(seed, 3)), subjects: subjects, duration: duration, batches: map[string][]int{}}
	for len(w.intents) < n {
		if err := w.draw(w.duration * time.Duration(len(w.intents)) / time.Duration(n)); err != nil {
			return nil, err
		}
	}
	for i := range max(6, n/40) {
		if err := w.hostile(i, time.Duration(w.random.Int64N(int64(duration)))); err != nil {
			return nil, err
		}
	}
	byTime := func(a, b *delivery) int { return int(a.at - b.at) }
	for _, list := range slices.Concat(w.nats[:], w.http[:]) {
		slices.SortStableFunc(list, byTime)
	}
	slices.SortStableFunc(w.plans, func(a, b *plan) int { return int(a.at - b.at) })
	return w, nil
}

// draw adds the intents of one request.
func (w *chaosWork) draw(at time.Duration) error {
	switch w.random.IntN(20) {
	case 0:
		return w.batch(at, w.random.IntN(2) == 0)
	case 1:
		return w.conflict(at, w.random.IntN(2) == 0)
	}
	i := w.intent(fmt.Sprintf("order-%06d", len(w.intents)))
	key := w.intents[i].Key
	if err := w.follow(i, at); err != nil {
		return err
	}
	body, err := schema.EncodeIntent(w.wire(i, key, w.intents[i].Money))
	if err != nil {
		return err
	}
	subject, err := w.subject()
	if err != nil {
		return err
	}
	ways := w.random.IntN(10) // 0-5 NATS, 6-7 HTTP, 8-9 both
	if ways < 6 || ways > 7 {
		for range 1 + w.random.IntN(3) {
			m := delivery{at: w.later(at), intents: []int{i}, key: key, body: body, subject: subject}
			if w.random.IntN(10) == 0 {
				m.msgID = key // what people do, though nobody should
			}
			w.toNATS(&m)
		}
	}
	if ways < 6 {
		return nil
	}
	if body, err = schema.EncodeIntent(keyless(w.wire(i, key, w.intents[i].Money))); err != nil {
		return err
	}
	for range 1 + w.random.IntN(3) {
		w.toHTTP(&delivery{at: w.later(at), intents: []int{i}, key: key, body: body, path: "/v1/payments", prefer: w.prefer()})
	}
	return nil
}

func keyless(i schema.Intent) schema.Intent {
	i.IdempotencyKey = schema.Optional[string]{}
	return i
}

// card is how an intent is to be paid.
type card struct {
	method    string
	onSession bool // its customer is there: a decline is canceled
	manual    bool // it is to be captured
}

// The mix of cards, in one of so many intents.
const (
	onSessionEvery = 6
	manualEvery    = 12
)

// intent draws one.
func (w *chaosWork) intent(key string) (index int) {
	n := len(w.intents)
	intent := oracle.Intent{
		TenantID: demoTenant, Key: key, Declines: w.random.IntN(declineEvery) == 0,
		Money: oracle.Money{Amount: 100 + w.random.Int64N(50_000), Currency: currencies[w.random.IntN(len(currencies))], Customer: fmt.Sprintf("cus_chaos%06d", n)},
	}
	c := card{method: goodMethods[w.random.IntN(len(goodMethods))], onSession: w.random.IntN(onSessionEvery) == 0, manual: w.random.IntN(manualEvery) == 0}
	if intent.Declines {
		c.method, c.onSession = declinedMethods[w.random.IntN(len(declinedMethods))], w.random.IntN(2) == 0
	}
	intent.Held = c.manual
	w.intents, w.cards = append(w.intents, intent), append(w.cards, c)
	return n
}

// cancels counts the intents whose decline must be canceled: their customer could still pay with another card.
func (w *chaosWork) cancels() (n int) {
	for i, c := range w.cards {
		if c.onSession && w.intents[i].Declines {
			n++
		}
	}
	return n
}

// deliveries counts what producers have to send.
func (w *chaosWork) deliveries() (n int64) {
	for _, list := range slices.Concat(w.nats[:], w.http[:]) {
		n += int64(len(list))
	}
	for _, p := range w.plans {
		for _, group := range p.groups {
			n += int64(len(group))
		}
	}
	return n
}

// wire is what is sent for an intent.
func (w *chaosWork) wire(i int, key string, money oracle.Money) schema.Intent {
	c := w.cards[i]
	wire := wireIntent(key, money, c.method)
	if c.onSession {
		wire.OffSession = schema.Some(false)
	}
	if c.manual {
		wire.CaptureMethod = schema.Some(string(payments.CaptureManual))
	}
	return wire
}

func (w *chaosWork) subject() (string, error) {
	if w.random.IntN(bulkEvery) == 0 {
		return w.subjects.Bulk(demoTenant)
	}
	return w.subjects.Intent(demoTenant)
}

func (w *chaosWork) later(at time.Duration) time.Duration {
	return min(w.duration, at+time.Duration(w.random.Int64N(int64(spread))))
}

func (w *chaosWork) prefer() string {
	if w.random.IntN(5) == 0 {
		return "wait=2"
	}
	return ""
}

// toNATS gives a message to one of the producers. Those that do not wait cannot be held to anything, so what must be visible goes to the others.
func (w *chaosWork) toNATS(m *delivery) {
	among := natsProducers
	if m.reason != "" || m.money != nil {
		among--
	}
	p := w.random.IntN(among)
	m.forget = p == natsProducers-1
	w.nats[p] = append(w.nats[p], m)
}

func (w *chaosWork) toHTTP(m *delivery) {
	p := w.random.IntN(httpProducers)
	m.door = w.random.IntN(2)
	w.http[p] = append(w.http[p], m)
}

// batch draws a batch, which is sent twice.
func (w *chaosWork) batch(at time.Duration, overNATS bool) error {
	key := fmt.Sprintf("batch-%06d", len(w.intents))
	message := schema.BatchMessage{}
	var children []int
	for n := range batchLeast + w.random.IntN(batchMost-batchLeast+1) {
		i := w.intent(fmt.Sprintf("%s::%d", key, n))
		w.cards[i].manual, w.intents[i].Held = false, false // the batch would be complete only when somebody captures it
		children = append(children, i)
		message.Payments = append(message.Payments, keyless(w.wire(i, key, w.intents[i].Money)))
	}
	w.batches[key] = children
	if overNATS {
		message.IdempotencyKey = schema.Some(key)
	}
	body, err := schema.EncodeBatch(message)
	if err != nil {
		return err
	}
	subject, err := w.subjects.Batch(demoTenant)
	if err != nil {
		return err
	}
	for range 2 {
		m := delivery{at: w.later(at), intents: children, key: key, body: body}
		if overNATS {
			m.subject = subject
			w.toNATS(&m)
		} else {
			m.path = "/v1/batches"
			w.toHTTP(&m)
		}
	}
	return nil
}

// conflict draws two requests under one key. Over NATS either may win, and each message of the other must become a dead letter; over HTTP the
// first is accepted before the second is sent, which must then be refused.
func (w *chaosWork) conflict(at time.Duration, overNATS bool) error {
	i := w.intent(fmt.Sprintf("order-%06d", len(w.intents)))
	key, one := w.intents[i].Key, w.intents[i].Money
	other := one
	other.Amount++
	if !overNATS {
		first, second := w.wire(i, key, one), w.wire(i, key, other)
		accepted, err := schema.EncodeIntent(keyless(first))
		if err != nil {
			return err
		}
		refused, err := schema.EncodeIntent(keyless(second))
		if err != nil {
			return err
		}
		then := &delivery{key: key, body: refused, path: "/v1/payments", door: w.random.IntN(2), refusal: "idempotency_key_reused"}
		w.toHTTP(&delivery{at: at, intents: []int{i}, key: key, body: accepted, path: "/v1/payments", then: then})
		return nil
	}
	w.intents[i].Also = []oracle.Money{other}
	for _, money := range []oracle.Money{one, other} {
		body, err := schema.EncodeIntent(w.wire(i, key, money))
		if err != nil {
			return err
		}
		for range 1 + w.random.IntN(2) {
			subject, err := w.subject()
			if err != nil {
				return err
			}
			w.toNATS(&delivery{at: w.later(at), intents: []int{i}, key: key, body: body, subject: subject, reason: payments.ReasonKeyReused, money: &money})
		}
	}
	return nil
}

// hostile draws a message that must become a dead letter and nothing else, or a request that must be refused.
func (w *chaosWork) hostile(n int, at time.Duration) error {
	key := fmt.Sprintf("hostile-%06d", n)
	money := func(rest string) []byte {
		return []byte(`{"payment_method":"pm_card_visa","customer":"cus_hostile",` + rest + `}`)
	}
	keyed := func(rest string) []byte { return money(`"idempotency_key":"` + key + `",` + rest) }
	subject, err := w.subject()
	if err != nil {
		return err
	}
	stranger, err := w.subjects.Intent("nobody")
	if err != nil {
		return err
	}
	messages := []delivery{
		{body: keyed(`"amount":-5,"currency":"usd"`), reason: payments.ReasonInvalid},
		{body: keyed(`"amount":100,"currency":"zzz"`), reason: payments.ReasonInvalid},
		{body: keyed(`"amount":100,"currency":"usd","tenant_id":"another"`), reason: payments.ReasonTenantMismatch},
		{body: keyed(`"amount":100,"currency":"usd","description":"4242 4242 4242 4242"`), reason: payments.ReasonCardNumber},
		{body: money(`"amount":100,"currency":"usd"`), reason: payments.ReasonKeyMissing},
		{body: []byte(`{"amount":100,`), reason: payments.ReasonUndecodable},
		{body: []byte("\x00\xff\xfe"), reason: payments.ReasonUndecodable},
		{body: keyed(`"amount":100,"currency":"usd"`), reason: payments.ReasonTenantUnknown, subject: stranger},
	}
	requests := []delivery{
		{body: money(`"amount":-5,"currency":"usd"`), refusal: "invalid_request"},
		{body: money(`"amount":100,"currency":"usd","description":"4242 4242 4242 4242"`), refusal: "card_number_detected"},
		{body: []byte(`{"amount":100,`), refusal: "invalid_request"},
	}
	i := n % (len(messages) + len(requests))
	if i < len(messages) {
		m := messages[i]
		m.at, m.key = at, key
		if m.subject == "" {
			m.subject = subject
		}
		w.toNATS(&m)
		return nil
	}
	m := requests[i-len(messages)]
	m.at, m.key, m.path = at, key, "/v1/payments"
	w.toHTTP(&m)
	return nil
}
