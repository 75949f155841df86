package consumer

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

const chargeOfOrder1 = "pay_af5f4f1841e88ebcae502028d51c062c"

func refundJSON(key string) []byte {
	return []byte(`{"idempotency_key":"` + key + `","kind":"refund","payment_id":"` + chargeOfOrder1 + `","amount":500,"reason":"duplicate"}`)
}

// fakeFollowUps answers with what it is told to, and keeps what it was asked.
type fakeFollowUps struct {
	payments.FollowUps // the rest is none of a message's business
	mu                 sync.Mutex
	answer             payments.FollowUpAdmission
	err                error
	asked              []payments.FollowUpRequest
}

func (f *fakeFollowUps) AdmitFollowUp(_ context.Context, r payments.FollowUpRequest) (payments.FollowUpAdmission, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	a := f.answer
	a.FollowUp.Payment = payments.Payment{Intent: r.Intent, ID: r.Intent.ID(), Lane: r.Lane, Status: a.FollowUp.Status, NextAttemptAt: a.FollowUp.NextAttemptAt}
	return a, f.err
}

func withFollowUps(f *fakeFollowUps) func(*Config) {
	return func(c *Config) { c.Processor.FollowUps = f }
}

func TestReadFollowUps(t *testing.T) {
	t.Parallel()
	r := read(testSubjects, message{subject: "payments.bulk.acme", data: refundJSON("refund-1")})
	i := r.intent
	if r.refusal != nil || r.refused != nil || !r.followUp() || r.lane != payments.LaneBulk || i.Kind != payments.KindRefund || i.Amount != 500 || i.All ||
		i.Reason != "duplicate" || i.PaymentID != chargeOfOrder1 || i.TenantID != "acme" || r.id != payments.NewID("acme", "refund-1") {
		t.Errorf("%+v, refusal %+v, refused %+v", r, r.refusal, r.refused)
	}
	all := read(testSubjects, message{subject: "payments.intent.acme", data: bytes.Replace(refundJSON("k"), []byte(`"amount":500,`), nil, 1)})
	if all.refused != nil || !all.intent.All {
		t.Errorf("%+v, %v", all.intent, all.refused)
	}
	for body, field := range map[string]string{
		strings.Replace(string(refundJSON("k")), `"amount":500`, `"amount":0`, 1):               "amount",
		strings.Replace(string(refundJSON("k")), "pay_", "ref_", 1):                             "payment_id",
		strings.Replace(string(refundJSON("k")), "duplicate", "abandoned", 1):                   "reason",
		strings.Replace(string(refundJSON("k")), `"reason"`, `"off_session":false,"reason"`, 1): "off_session",
		strings.Replace(string(intentJSON("k")), `{`, `{"reason":"duplicate",`, 1):              "reason",
	} {
		r := read(testSubjects, message{subject: "payments.intent.acme", data: []byte(body)})
		if r.refusal != nil || r.refused == nil || len(r.refused.Fields) != 1 || r.refused.Fields[0].Field != field {
			t.Errorf("%s: refusal %+v, refused %v, want %s", body, r.refusal, r.refused, field)
		}
	}
	batch := read(testSubjects, message{subject: "payments.batch.acme", data: []byte(`{"idempotency_key":"b","payments":[{"kind":"refund","payment_id":"` + chargeOfOrder1 + `"}]}`)})
	if batch.refused == nil || batch.refused.Fields[0].Field != "payments[0].kind" || batch.followUp() {
		t.Errorf("a refund in a batch: %+v", batch.refused)
	}
}

// TestFollowUpMessages: every answer of the store, and what becomes of the message. Nothing is claimed, and nothing sent from here.
func TestFollowUpMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer payments.FollowUpAdmission
		reason payments.Reason // "" : none is buried
		says   string
		wakes  bool
	}{
		"stored":     {payments.FollowUpAdmission{Verdict: payments.VerdictStored, FollowUp: received()}, "", "", true},
		"there":      {payments.FollowUpAdmission{Verdict: payments.VerdictExists, FollowUp: received()}, "", "", true},
		"long there": {payments.FollowUpAdmission{Verdict: payments.VerdictExists}, "", "", false},
		"conflict": {payments.FollowUpAdmission{Verdict: payments.VerdictConflict, Differs: []string{"amount", "reason"}}, payments.ReasonKeyReused,
			"differs: amount, reason. Publish a new refund", false},
		"no payment": {payments.FollowUpAdmission{Verdict: payments.VerdictPaymentUnknown, Why: "there is none"}, payments.ReasonInvalid, "payment_id: there is none. Nothing of it is stored", false},
		"state":      {payments.FollowUpAdmission{Verdict: payments.VerdictInvalidState, Why: "not yet"}, payments.ReasonInvalid, "payment_id: not yet. Nothing", false},
		"too much":   {payments.FollowUpAdmission{Verdict: payments.VerdictAmountExceeds, Why: "less"}, payments.ReasonInvalid, "amount: less. Nothing", false},
		"odd amount": {payments.FollowUpAdmission{Verdict: payments.VerdictAmountInvalid, Why: "must end in 0"}, payments.ReasonInvalid, "amount: must end in 0. Nothing", false},
		"stranger":   {payments.FollowUpAdmission{Verdict: payments.VerdictTenantUnknown}, payments.ReasonTenantUnknown, "tenants create", false},
		"child":      {payments.FollowUpAdmission{Verdict: payments.VerdictAbsent}, payments.ReasonKeyInvalid, "batch", false},
	} {
		f := &fakeFollowUps{answer: c.answer}
		r := newRig(t, withFollowUps(f))
		msg := newMsg("", 1)
		msg.data = refundJSON("refund-1")
		msg.onAck = func() {
			if len(r.store.open()) != 0 != (c.reason != "") {
				t.Errorf("%s: acked, and the dead letters are %+v", name, r.store.open())
			}
		}
		r.handle(context.Background(), r.from, msg)
		letters := r.store.open()
		if msg.acks() != 1 || len(f.asked) != 1 || len(r.dues[0].wake) != 0 != c.wakes {
			t.Errorf("%s: %d acks, asked %d times, woken %d", name, msg.acks(), len(f.asked), len(r.dues[0].wake))
		}
		if c.reason != "" && (len(letters) != 1 || letters[0].Reason != c.reason || !strings.Contains(letters[0].Message, c.says)) {
			t.Errorf("%s: %+v", name, letters)
		}
		if calls, _ := r.gateway.calls(); calls != 0 || r.store.count("admit") != 0 {
			t.Errorf("%s: %d calls to Stripe, %d admissions of charges", name, calls, r.store.count("admit"))
		}
	}
}

// received is a follow-up that anybody may take.
func received() payments.FollowUp {
	return payments.FollowUp{Payment: payments.Payment{Status: payments.StatusReceived, NextAttemptAt: time.Now()}}
}

// TestEndOfFollowUpWakes: what waited for a follow-up is looked for at once when that has ended, on both lanes.
func TestEndOfFollowUpWakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   payments.Kind
		status payments.Status
		err    error
		wakes  bool
	}{
		"refunded":       {payments.KindRefund, payments.StatusSucceeded, nil, true},
		"canceled":       {payments.KindCancel, payments.StatusRejected, nil, true},
		"still in doubt": {payments.KindRefund, payments.StatusUnknown, nil, false},
		"not recorded":   {payments.KindCapture, payments.StatusSucceeded, errAway, false},
		"a charge":       {payments.KindCharge, payments.StatusSucceeded, nil, false},
	} {
		r := newRig(t)
		r.goOn(payments.Settlement{Recorded: payments.Recorded{Payment: payments.Payment{Intent: payments.Intent{Kind: c.kind}, Status: c.status}}, Err: c.err})
		for _, d := range r.dues {
			if len(d.wake) != 0 != c.wakes {
				t.Errorf("%s: lane %s was woken %d times", name, d.lane, len(d.wake))
			}
		}
	}
}

func TestInvalidFollowUpIsOnlyLookedUp(t *testing.T) {
	t.Parallel()
	f := &fakeFollowUps{answer: payments.FollowUpAdmission{Verdict: payments.VerdictRefused}}
	r := newRig(t, withFollowUps(f))
	msg := newMsg("", 1)
	msg.data = bytes.Replace(refundJSON("refund-1"), []byte("duplicate"), []byte("bored"), 1)
	r.handle(context.Background(), r.from, msg)
	letters := r.store.open()
	if len(f.asked) != 1 || f.asked[0].Refused == nil || msg.acks() != 1 || len(letters) != 1 || !strings.Contains(letters[0].Message, "reason must be one of") {
		t.Errorf("asked %+v, %d acks, letters %+v", f.asked, msg.acks(), letters)
	}
}

// TestFollowUpThatCannotBeStored comes back, also where nobody can store it.
func TestFollowUpThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"away":    withFollowUps(&fakeFollowUps{err: errAway}),
		"no such": func(*Config) {},
	} {
		r := newRig(t, change)
		msg := newMsg("", 1)
		msg.data = refundJSON("refund-1")
		r.handle(context.Background(), r.from, msg)
		if msg.acks() != 0 || len(r.store.open()) != 0 || !r.sawFate(fateUnavailable) {
			t.Errorf("%s: %d acks, letters %+v", name, msg.acks(), r.store.open())
		}
	}
}

// TestSuspectFollowUp: its raw bytes are kept before it starts, and the admission ends the count.
func TestSuspectFollowUp(t *testing.T) {
	t.Parallel()
	f := &fakeFollowUps{answer: payments.FollowUpAdmission{Verdict: payments.VerdictStored, FollowUp: received()}}
	r := newRig(t, withFollowUps(f))
	msg := newMsg("", payments.SuspectFrom)
	msg.data = refundJSON("refund-1")
	r.handle(context.Background(), r.from, msg)
	if r.store.count("suspect") != 1 || len(f.asked) != 1 || f.asked[0].Suspect == nil || f.asked[0].Suspect.Sequence != msg.sequence || msg.acks() != 1 {
		t.Errorf("%d suspects, asked %+v, %d acks", r.store.count("suspect"), f.asked, msg.acks())
	}
}

// TestScoutBringsFollowUps: one that is accepted is stored ahead, and one that is not is left to the lane.
func TestScoutBringsFollowUps(t *testing.T) {
	t.Parallel()
	for verdict, stored := range map[payments.Verdict]bool{payments.VerdictStored: true, payments.VerdictInvalidState: false} {
		f := &fakeFollowUps{answer: payments.FollowUpAdmission{Verdict: verdict}}
		o := newOutlook(t, withFollowUps(f))
		o.backlog(100)
		o.stream.publish("globex", refundJSON("refund-1"))
		o.lookOnce()
		if len(f.asked) == 0 || f.asked[0].Intent.TenantID != "globex" || o.sawFate(fateScouted) != stored || len(o.store.open()) != 0 || o.store.count("bury message") != 0 {
			t.Errorf("%s: asked %+v, scouted %v, letters %+v", verdict, f.asked, o.sawFate(fateScouted), o.store.open())
		}
	}
}

func TestFollowUpsReadAgain(t *testing.T) {
	t.Parallel()
	again := ReadAgain(testSubjects, payments.DeadLetter{Payload: refundJSON("refund-1"), Origin: payments.MessageOrigin{Subject: "payments.intent.acme"}})
	if again.Reason != "" || again.Refused != nil || again.Intent.Kind != payments.KindRefund {
		t.Errorf("%+v", again)
	}
	reason, text := again.ExplainFollowUp(payments.FollowUpAdmission{Verdict: payments.VerdictAmountExceeds, Why: "less"})
	if reason != payments.ReasonInvalid || !strings.HasPrefix(text, "amount: less") {
		t.Errorf("%s, %s", reason, text)
	}
	if reason, text := again.ExplainFollowUp(payments.FollowUpAdmission{Verdict: payments.VerdictStored}); reason != "" || text != "" {
		t.Errorf("%s, %s", reason, text)
	}
	at := time.Unix(300, 0)
	f := ReadForgotten(testSubjects, payments.MessageOrigin{Subject: "payments.bulk.acme"}, at, nil, refundJSON("refund-1"))
	if f.Letter != nil || len(f.Payments) != 1 || f.Payments[0].Intent.Kind != payments.KindRefund || !f.Payments[0].StoredAt.Equal(at) {
		t.Errorf("%+v", f)
	}
	if l := f.NotAllowed("not yet"); l.Reason != payments.ReasonInvalid || !strings.HasPrefix(l.Message, "payment_id: not yet. ") || !slices.Equal(l.Payload, refundJSON("refund-1")) {
		t.Errorf("%+v", l)
	}
}
