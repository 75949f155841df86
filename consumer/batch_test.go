package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// batchJSON is a batch of n payments; the i-th is about 1000+i.
func batchJSON(key string, n int) []byte {
	var b strings.Builder
	b.WriteString(`{"idempotency_key":"` + key + `","payments":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"amount":%d,"currency":"usd","customer":"cus_1","payment_method":"pm_card_visa"}`, 1000+i)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func batchMsg(body []byte, deliveries uint64) *fakeMsg {
	msg := newMsg("", deliveries)
	msg.subject, msg.data = "payments.batch.acme", body
	return msg
}

func childID(t *testing.T, key string, i int) payments.ID {
	t.Helper()
	child, err := payments.ChildKey(key, i)
	if err != nil {
		t.Fatal(err)
	}
	return payments.NewID("acme", child)
}

// checkBatch is what holds of every batch that read accepts.
func checkBatch(t *testing.T, subject string, r reading) {
	t.Helper()
	b := r.batch
	if (b.Refused == nil) != (b.Validate() == nil) || r.refused != b.Refused || r.id != b.ID() || r.existingOnly || r.lane != payments.LaneBulk {
		t.Fatalf("%+v, refused %+v", r, b.Refused)
	}
	if b.CardField() != "" || payments.CheckKey(b.IdempotencyKey) != "" || payments.ReservedKey(b.IdempotencyKey) || len(b.IdempotencyKey) > payments.BatchKeyLengthMax {
		t.Fatalf("accepted %+v", b)
	}
	if b.TenantID != r.tenant || b.IdempotencyKey != r.key || len(b.Payments) > payments.BatchSizeMax || subject != "payments.batch."+r.tenant {
		t.Fatalf("whose is it: %+v", r)
	}
	if children := b.Children(); len(children) != len(b.Payments) {
		t.Fatalf("%d children of %d payments", len(children), len(b.Payments))
	}
}

func TestReadBatch(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]message{
		"body":       {"payments.batch.acme", nil, []byte(`{"idempotency_key":"b-1","parent":"run","payments":[` + keyless + `,` + keyless + `]}`)},
		"header":     {"payments.batch.acme", keyHeader(`"b-1"`), []byte(`{"parent":"run","payments":[` + keyless + `,` + keyless + `]}`)},
		"both agree": {"payments.batch.acme", keyHeader("b-1"), []byte(`{"idempotency_key":"b-1","parent":"run","payments":[` + keyless + `,` + keyless + `]}`)},
		"own tenant": {"payments.batch.acme", nil, []byte(`{"idempotency_key":"b-1","parent":"run","payments":[` + keyless + `,{"tenant_id":"acme",` + keyless[1:] + `]}`)},
	} {
		r := read(testSubjects, m)
		if r.refusal != nil || r.batch == nil || r.refused != nil {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		checkBatch(t, m.subject, r)
		b := r.batch
		if r.tenant != "acme" || r.key != "b-1" || b.Parent != "run" || len(b.Payments) != 2 || b.Payments[1].Amount != 9900 || !b.Payments[0].OffSession {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

func TestReadRefusesBatches(t *testing.T) {
	t.Parallel()
	batch := func(body string) message { return message{"payments.batch.acme", nil, []byte(body)} }
	list := `"payments":[` + keyless + `]`
	for name, c := range map[string]struct {
		m      message
		reason payments.Reason
		key    string
		says   string
	}{
		"no JSON":                   {batch("hello"), payments.ReasonUndecodable, "", ""},
		"cut off":                   {batch(`{"idempotency_key":"b-1","payments":[` + keyless), payments.ReasonUndecodable, "b-1", ""},
		"none":                      {batch(`{"idempotency_key":"b-1","payments":[]}`), payments.ReasonInvalid, "b-1", "payments"},
		"101":                       {message{"payments.batch.acme", nil, batchJSON("b-1", 101)}, payments.ReasonInvalid, "b-1", "100"},
		"null":                      {batch(`{"idempotency_key":"b-1","payments":null}`), payments.ReasonInvalid, "b-1", "payments"},
		"an unknown member":         {batch(`{"idempotency_key":"b-1","lane":1,` + list + `}`), payments.ReasonInvalid, "b-1", ""},
		"a payment with a key":      {batch(`{"idempotency_key":"b-1","payments":[` + goodBody + `]}`), payments.ReasonInvalid, "b-1", "payments[0].idempotency_key"},
		"an intent":                 {batch(goodBody), payments.ReasonInvalid, "order-1", ""},
		"no key":                    {batch(`{` + list + `}`), payments.ReasonKeyMissing, "", "idempotency_key"},
		"a reserved key":            {batch(`{"idempotency_key":"b::1",` + list + `}`), payments.ReasonKeyInvalid, "b::1", "::"},
		"a reserved key, as header": {message{"payments.batch.acme", keyHeader("b::1"), []byte(`{` + list + `}`)}, payments.ReasonKeyInvalid, "b::1", "::"},
		"a long key":                {batch(`{"idempotency_key":"` + strings.Repeat("k", 241) + `",` + list + `}`), payments.ReasonKeyInvalid, strings.Repeat("k", 241), "240"},
		"key and header differ":     {message{"payments.batch.acme", keyHeader("b-2"), []byte(`{"idempotency_key":"b-1",` + list + `}`)}, payments.ReasonKeyInvalid, "b-1", "differ"},
		"another tenant's payment":  {batch(`{"idempotency_key":"b-1","payments":[` + keyless + `,{"tenant_id":"globex",` + keyless[1:] + `]}`), payments.ReasonTenantMismatch, "b-1", "payments[1].tenant_id"},
		"impossible tenant":         {message{"payments.batch.ACME", nil, batchJSON("b-1", 1)}, payments.ReasonTenantUnknown, "b-1", ""},
		"on the bulk lane":          {message{"payments.bulk.acme", nil, batchJSON("b-1", 1)}, payments.ReasonInvalid, "b-1", "payments"},
	} {
		r := read(testSubjects, c.m)
		if r.refusal == nil || r.refusal.reason != c.reason || !strings.Contains(r.refusal.message, c.says) || r.key != c.key || r.batch != nil || r.refused != nil {
			t.Errorf("%s: %+v, %+v", name, r, r.refusal)
		}
	}
	for _, body := range []string{`{"idempotency_key":"b-1"}`, `{"idempotency_key":"b-1","payments":[` + keyless + `,{"amount":-1}]}`, `{"idempotency_key":"b-1","parent":"a b",` + list + `}`,
		`{"idempotency_key":"b-1","parent":"",` + list + `}`} {
		if r := read(testSubjects, batch(body)); r.refusal != nil || r.batch == nil || r.refused == nil || r.batch.Refused != r.refused {
			t.Errorf("%s: what is wrong by the rules of business is compared with the batch first: %+v", body, r)
		}
	}
}

func TestBatchIsStoredAndAcked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for delivery := range uint64(5) {
		msg := batchMsg(batchJSON("b", 100), delivery+1)
		msg.onAck = func() {
			if r.store.status(childID(t, "b", 99)) != payments.StatusReceived {
				t.Error("acked before the batch was stored")
			}
		}
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 1 || len(r.dues[1].wake) != 1 || len(r.dues[0].wake) != 0 {
			t.Errorf("delivery %d: %d acks; woken: %d", delivery+1, msg.acks(), len(r.dues[1].wake))
		}
		<-r.dues[1].wake
	}
	if len(r.store.rows) != 100 || len(r.store.open()) != 0 || r.store.count("suspect") != 3 {
		t.Errorf("%d rows, letters %+v, %d suspects", len(r.store.rows), r.store.open(), r.store.count("suspect"))
	}
	if got := r.dues[1].unclaimed.pulledNow(); got != 100 {
		t.Errorf("the lane waits for %d tickets of its own, want 100", got)
	}
	if calls, _ := r.gateway.calls(); calls != 0 {
		t.Errorf("%d calls: the tickets carry the work", calls)
	}
	want := []payments.Step{payments.StepBeforeAdmit, payments.StepAfterAdmit, payments.StepBeforeAck, payments.StepAfterAck}
	if !slices.Equal(r.steps[:4], want) {
		t.Errorf("steps %v", r.steps)
	}
}

// A batch whose payments are all settled wakes nobody.
func TestRepeatOfAFinishedBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(context.Background(), r.from, batchMsg(batchJSON("b", 2), 1))
	<-r.dues[1].wake
	for _, row := range r.store.rows {
		row.ticket, row.payment.Status = false, payments.StatusSucceeded
	}
	msg := batchMsg(batchJSON("b", 2), 1)
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.dues[1].wake) != 0 || !r.sawFate("exists") {
		t.Errorf("%d acks, fates %v", msg.acks(), r.fates)
	}
}

func TestBatchesThatAreBuried(t *testing.T) {
	t.Parallel()
	swap := func(body []byte) []byte { // the first payment goes to the second place
		var b struct {
			Key      string            `json:"idempotency_key"`
			Payments []json.RawMessage `json:"payments"`
		}
		if err := json.Unmarshal(body, &b); err != nil {
			t.Fatal(err)
		}
		b.Payments[0], b.Payments[1] = b.Payments[1], b.Payments[0]
		out, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, c := range map[string]struct {
		subject string
		body    []byte
		reason  payments.Reason
		says    []string
	}{
		"an amount":       {"payments.batch.acme", bytes.Replace(batchJSON("b", 3), []byte("1002"), []byte("1009"), 1), payments.ReasonKeyReused, []string{"payments[2].amount", "new batch"}},
		"the order":       {"payments.batch.acme", swap(batchJSON("b", 3)), payments.ReasonKeyReused, []string{"payments[0].amount", "payments[1].amount"}},
		"one less":        {"payments.batch.acme", batchJSON("b", 2), payments.ReasonKeyReused, []string{"differs: payments."}},
		"one more":        {"payments.batch.acme", batchJSON("b", 4), payments.ReasonKeyReused, []string{"differs: payments."}},
		"a parent":        {"payments.batch.acme", bytes.Replace(batchJSON("b", 3), []byte(`"payments"`), []byte(`"parent":"p","payments"`), 1), payments.ReasonKeyReused, []string{"parent"}},
		"invalid":         {"payments.batch.acme", bytes.Replace(batchJSON("c", 3), []byte("1002"), []byte("-1"), 1), payments.ReasonInvalid, []string{"payments[2].amount"}},
		"101":             {"payments.batch.acme", batchJSON("c", 101), payments.ReasonInvalid, []string{"payments"}},
		"none":            {"payments.batch.acme", batchJSON("c", 0), payments.ReasonInvalid, []string{"payments"}},
		"no list":         {"payments.batch.acme", []byte(`{"idempotency_key":"c"}`), payments.ReasonInvalid, []string{"payments"}},
		"tenant unknown":  {"payments.batch.nobody", batchJSON("b", 3), payments.ReasonTenantUnknown, []string{"tenants create"}},
		"reserved key":    {"payments.batch.acme", batchJSON("b::0", 3), payments.ReasonKeyInvalid, []string{"::"}},
		"invalid, stored": {"payments.batch.acme", bytes.Replace(batchJSON("b", 3), []byte("1002"), []byte("-1"), 1), payments.ReasonKeyReused, []string{"payments[2].amount"}},
	} {
		r := newRig(t)
		r.handle(context.Background(), r.from, batchMsg(batchJSON("b", 3), 1))
		msg := batchMsg(c.body, 2)
		msg.subject, msg.sequence = c.subject, 8
		msg.onAck = func() {
			if len(r.store.open()) != 1 {
				t.Errorf("%s: acked before the dead letter was committed", name)
			}
		}
		r.handle(context.Background(), r.from, msg)
		letters := r.store.open()
		if msg.acks() != 1 || len(letters) != 1 || len(r.store.rows) != 3 {
			t.Errorf("%s: %d acks, %d rows, letters %+v", name, msg.acks(), len(r.store.rows), letters)
			continue
		}
		if l := letters[0]; l.Reason != c.reason || !bytes.Equal(l.Payload, c.body) || l.Origin.Subject != c.subject {
			t.Errorf("%s: %+v", name, l)
		}
		for _, text := range c.says {
			if !strings.Contains(letters[0].Message, text) {
				t.Errorf("%s: %q does not name %q", name, letters[0].Message, text)
			}
		}
	}
}

// Where nothing of a batch could be committed nothing is said.
func TestNothingOfABatchCommitted(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errAway, payments.Errorf(payments.CodeInternal, "bug")} {
		r := newRig(t)
		r.store.before = func(verb string, _ payments.ID) error {
			if verb == "admit batch" {
				return err
			}
			return nil
		}
		msg := batchMsg(batchJSON("b", 3), 1)
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 0 || len(r.store.rows) != 0 || !r.sawFate(fateUnavailable) || r.storeAway.Load() != payments.Retryable(err) || r.dues[1].unclaimed.all() != 0 {
			t.Errorf("%v: %d acks, fates %v", err, msg.acks(), r.fates)
		}
	}
}

// A batch that ends its worker each time is started three times, with its bytes committed before; one that survives leaves nothing.
func TestBatchAsSuspect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	died := payments.Errorf(payments.CodeInternal, "the process ended here")
	for start := 1; start <= payments.SuspectStartsMax; start++ {
		r.store.before = func(verb string, _ payments.ID) error {
			if verb != "admit batch" {
				return nil
			}
			if l := r.store.open(); len(l) != 1 || l[0].State != payments.DeadLetterSuspect || !bytes.Equal(l[0].Payload, batchJSON("b", 3)) {
				t.Errorf("start %d: %+v", start, l)
			}
			return died
		}
		msg := batchMsg(batchJSON("b", 3), uint64(payments.SuspectFrom+start-1))
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 0 {
			t.Errorf("start %d: acked", start)
		}
	}
	r.store.before = nil
	msg := batchMsg(batchJSON("b", 3), 6)
	r.handle(context.Background(), r.from, msg)
	if l := r.store.open(); msg.acks() != 1 || len(l) != 1 || l[0].Reason != payments.ReasonWorkerKilled || len(r.store.rows) != 0 || len(r.starting) != 0 {
		t.Errorf("%d acks, %+v", msg.acks(), l)
	}
	msg = batchMsg(batchJSON("bystander", 3), 3)
	msg.sequence = 8
	r.handle(context.Background(), r.from, msg)
	if msg.acks() != 1 || len(r.store.open()) != 1 || len(r.store.rows) != 3 {
		t.Errorf("a bystander: %d acks, %+v", msg.acks(), r.store.open())
	}
}

// A panic while a batch is stored is a dead letter of its message.
func TestBatchPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.before = func(verb string, _ payments.ID) error {
		if verb == "admit batch" {
			panic("bug")
		}
		return nil
	}
	msg := batchMsg(batchJSON("b", 3), 1)
	r.handle(context.Background(), r.from, msg)
	if l := r.store.open(); msg.acks() != 1 || len(l) != 1 || l[0].Reason != payments.ReasonHandlerPanic || r.gate.inside != 0 {
		t.Errorf("%d acks, %+v", msg.acks(), l)
	}
}

// The published copy of a batch's payment finds its row, whatever has become of it, and makes none.
func TestCopyOfAChild(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(context.Background(), r.from, batchMsg(batchJSON("b", 2), 1))
	<-r.dues[1].wake
	copyOf := func(key string, deliveries uint64) *fakeMsg {
		msg := newMsg(key, deliveries)
		msg.subject, msg.sequence = "payments.bulk.acme", 50
		msg.data = bytes.Replace(msg.data, []byte("9900"), []byte("1001"), 1)
		r.handle(context.Background(), r.from, msg)
		return msg
	}
	if msg := copyOf("b::1", 1); msg.acks() != 1 || len(r.dues[1].wake) != 1 {
		t.Errorf("a copy of a payment that waits: %d acks", msg.acks())
	}
	<-r.dues[1].wake
	row := r.store.rows[childID(t, "b", 1)]
	row.ticket, row.payment.Status = false, payments.StatusFailed
	if msg := copyOf("b::1", 4); msg.acks() != 1 || len(r.dues[1].wake) != 0 {
		t.Errorf("a copy of a payment that is settled: %d acks", msg.acks())
	}
	if len(r.store.open()) != 0 || len(r.store.rows) != 2 {
		t.Errorf("%d rows, %+v", len(r.store.rows), r.store.open())
	}
	if msg := copyOf("b::2", 1); msg.acks() != 1 || len(r.store.open()) != 1 || r.store.open()[0].Reason != payments.ReasonKeyInvalid {
		t.Errorf("of a payment that the batch does not have: %+v", r.store.open())
	}
}

// The scout leaves batches alone, also if it were handed one.
func TestScoutLeavesBatches(t *testing.T) {
	t.Parallel()
	o := newOutlook(t)
	o.scout = newScout(o.lanes[1], o.dues[1], o.stream)
	sequence := o.stream.publish("globex", batchJSON("b", 2))
	o.stream.messages[0].subject = "payments.batch.globex"
	m, err := o.stream.next(context.Background(), "globex", sequence)
	if err != nil || m == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	w := &wave{}
	o.scout.admit(context.Background(), m, w)
	if w.stored != 0 || w.failedAt != 0 || o.store.count("admit batch")+o.store.count("admit") != 0 {
		t.Errorf("%+v, calls %v", w, o.store.calls)
	}
}
