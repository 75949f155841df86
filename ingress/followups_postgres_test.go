package ingress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/oncepay/oncepay/payments"
)

// becomes says of a payment what Stripe might.
func (s *shop) becomes(key string, status payments.Status, stripe payments.StripeStatus, received int64) {
	s.t.Helper()
	_, err := s.near.Evidence(s.t.Context(), "acme", payments.NewID("acme", key), func(p payments.Payment) (payments.Transition, error) {
		return payments.Transition{Status: status, Object: &payments.PaymentIntent{
			ID: "pi_" + key, Status: stripe, Amount: p.Amount, AmountReceived: received, Currency: p.Currency,
		}}, nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// charged makes a payment of 9900 that has been taken.
func (s *shop) charged(key string) (target string) {
	s.t.Helper()
	target = s.post("/v1/payments", key, goodBody).header.Get("Location")
	s.becomes(key, payments.StatusSucceeded, payments.StripeSucceeded, 9900)
	return target
}

// failed ends a follow-up so.
func (s *shop) failed(key string) {
	s.t.Helper()
	if _, err := s.near.Evidence(s.t.Context(), "acme", payments.NewID("acme", key), func(payments.Payment) (payments.Transition, error) {
		return payments.Transition{Status: payments.StatusFailed, Reason: "by_test"}, nil
	}); err != nil {
		s.t.Fatal(err)
	}
}

// A refund from first to last, on PostgreSQL.
func TestRefundsOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	target := s.charged("order-1")
	before, err := s.near.Unpublished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.post(target+"/refunds", "refund-1", `{"amount":9901}`).is(t, "more than was taken", 422, "amount_exceeds_available")
	s.post(target+"/refunds", "refund-1", `{"amount":-1}`).is(t, "invalid", 400, "invalid_request")
	s.post(target+"/capture", "refund-1", "").is(t, "a capture of what was taken", 409, "invalid_state")
	s.post(target+"/cancel", "refund-1", "").is(t, "a cancel of what was taken", 409, "invalid_state")
	s.post("/v1/payments/"+payments.NewID("acme", "none").String()+"/refunds", "refund-1", "").is(t, "of no payment", 404, "not_found")
	first := s.post(target+"/refunds", "refund-1", `{"amount":2500,"reason":"duplicate","metadata":{"rma":"7"}}`)
	id := payments.NewID("acme", "refund-1").Format(payments.KindRefund)
	if first.status != 202 || first.header.Get("Idempotent-Replayed") != "" || first.header.Get("Location") != "/v1/refunds/"+id || first.member("amount") != 2500.0 ||
		first.member("currency") != "usd" || first.member("payment_id") != strings.TrimPrefix(target, "/v1/payments/") || first.member("stripe_payment_intent") != "pi_order-1" {
		t.Fatalf("%d %v %s", first.status, first.header, first.body)
	}
	if n, err := s.near.Unpublished(t.Context()); err != nil || n != before+1 {
		t.Errorf("%d copies to publish after %d, %v", n, before, err)
	}
	again := s.post(target+"/refunds", `"refund-1"`, `{ "metadata":{"rma":"7"}, "amount":2500, "reason":"duplicate" }`)
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		t.Errorf("%d %s", again.status, again.body)
	}
	for body, differs := range map[string][]string{
		`{"amount":2501,"reason":"duplicate","metadata":{"rma":"7"}}`: {"amount"}, `{"amount":-1,"reason":"duplicate","metadata":{"rma":"7"}}`: {"amount"},
		`{"reason":"fraudulent","amount":2500}`: {"metadata", "reason"},
	} {
		got := s.post(target+"/refunds", "refund-1", body)
		if got.is(t, body, 422, "idempotency_key_reused"); !slices.Equal(got.differs(), differs) {
			t.Errorf("%s: %v", body, got.differs())
		}
	}
	s.get("/v1/payments?idempotency_key=refund-1").is(t, "a refund's key among payments", 400, "invalid_request")
	s.post("/v1/payments", "refund-1", goodBody).is(t, "a refund's key on a payment", 422, "idempotency_key_reused")
	s.post("/v1/batches", "refund-1", goodBatch).is(t, "a refund's key on a batch", 422, "idempotency_key_reused")
	s.post(target+"/refunds", "order-1", "").is(t, "a payment's key on a refund", 422, "idempotency_key_reused")
	rest := s.post(target+"/refunds", "refund-2", "")
	if rest.status != 202 || rest.member("amount") != 7400.0 {
		t.Errorf("all that is left: %d %s", rest.status, rest.body)
	}
	s.post(target+"/refunds", "refund-3", "").is(t, "nothing is left", 422, "amount_exceeds_available")
	s.failed("refund-1")
	if got := s.post(target+"/refunds", "refund-3", ""); got.status != 202 || got.member("amount") != 2500.0 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("what a failed refund has left: %d %s", got.status, got.body)
	}
	s.refundsShown(target, "refund-1", "refund-2", "refund-3")
}

// refundsShown wants the refunds of a payment in this order, each as it is shown alone; no list of payments has them, and no other tenant.
func (s *shop) refundsShown(target string, keys ...string) {
	t := s.t
	t.Helper()
	list := s.get(target + "/refunds")
	if found, next := list.page(t); list.status != 200 || !slices.Equal(found, keys) || next != "" {
		t.Errorf("%v: %d %s", keys, list.status, list.body)
	}
	s.do("GET", target+"/refunds", s.globex, "", "").is(t, "another tenant's refunds", 404, "not_found")
	for _, key := range keys {
		id := payments.NewID("acme", key)
		alone := s.get("/v1/refunds/" + id.Format(payments.KindRefund))
		if alone.status != 200 || alone.member("idempotency_key") != key || !strings.Contains(string(list.body), string(alone.body)) {
			t.Errorf("%s: %d %s", key, alone.status, alone.body)
		}
		s.get("/v1/operations/op_"+id.Hex()).is(t, "a refund as an operation", 404, "not_found")
		s.get("/v1/payments/"+id.String()).is(t, "a refund as a payment", 404, "not_found")
		s.get("/v1/payments/"+id.String()+"/refunds").is(t, "refunds of a refund", 404, "not_found")
		s.post("/v1/payments/"+id.String()+"/refunds", "of-a-refund", "").is(t, "a refund of a refund", 404, "not_found")
		s.do("GET", "/v1/refunds/"+id.Format(payments.KindRefund), s.globex, "", "").is(t, "another tenant's refund", 404, "not_found")
	}
	s.do("POST", target+"/refunds", s.globex, "theirs", "").is(t, "a refund of another tenant's payment", 404, "not_found")
	if listed, _ := s.get("/v1/payments").page(t); !slices.Equal(listed, []string{"order-1"}) {
		t.Errorf("payments are listed with what is none: %v", listed)
	}
}

// A capture, a cancel that comes too late, and a refund that is accepted behind the capture.
func TestCapturesAndCancelsOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	manual := strings.Replace(goodBody, "{", `{"capture_method":"manual",`, 1)
	held := s.post("/v1/payments", "order-1", manual).header.Get("Location")
	s.post(held+"/capture", "capture-1", "").is(t, "nothing is held yet", 409, "invalid_state")
	s.post(held+"/refunds", "refund-1", "").is(t, "nothing is taken yet", 409, "invalid_state")
	s.becomes("order-1", payments.StatusRequiresCapture, payments.StripeRequiresCapture, 0)
	s.post(held+"/capture", "capture-1", `{"amount":9901}`).is(t, "more than is held", 422, "amount_exceeds_available")
	capture := s.post(held+"/capture", "capture-1", `{"amount":6000}`)
	if capture.status != 202 || capture.member("kind") != "capture" || capture.member("amount") != 6000.0 || !strings.HasPrefix(capture.header.Get("Location"), "/v1/operations/op_") {
		t.Fatalf("%d %s", capture.status, capture.body)
	}
	s.post(held+"/cancel", "cancel-1", "").is(t, "a capture is under way", 409, "invalid_state")
	s.post(held+"/capture", "capture-2", "").is(t, "another capture", 409, "invalid_state")
	if behind := s.post(held+"/refunds", "refund-1", ""); behind.status != 202 || behind.member("amount") != 6000.0 {
		t.Errorf("a refund behind its capture: %d %s", behind.status, behind.body)
	}
	if shown := s.get(capture.header.Get("Location")); shown.status != 200 || string(shown.body) != string(capture.body) {
		t.Errorf("%d %s", shown.status, shown.body)
	}
	open := s.post("/v1/payments", "order-2", goodBody).header.Get("Location")
	cancel := s.post(open+"/cancel", "cancel-1", `{"reason":"abandoned"}`)
	if cancel.status != 202 || cancel.member("kind") != "cancel" || cancel.member("amount") != 0.0 || cancel.member("reason") != "abandoned" {
		t.Errorf("%d %s", cancel.status, cancel.body)
	}
	if again := s.post(open+"/cancel", "cancel-1", `{"reason":"abandoned"}`); again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(cancel.body) {
		t.Errorf("%d %s", again.status, again.body)
	}
	s.post(open+"/cancel", "cancel-1", "").is(t, "without the reason", 422, "idempotency_key_reused")
}

// Those who wait are answered soon after the operation has ended, on PostgreSQL.
func TestRefundsAreWaitedForOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	target := s.charged("order-1")
	answers := make(chan reply, 3)
	for range 3 {
		go func() { answers <- s.post(target+"/refunds", "refund-1", "", with("Prefer", "wait=25")) }()
	}
	id := payments.NewID("acme", "refund-1")
	waitFor(t, "the refund", func() bool { _, err := s.near.FindFollowUp(t.Context(), "acme", id); return err == nil })
	s.failed("refund-1")
	replayed := 0
	for range 3 {
		got := <-answers
		if got.status != 200 || got.member("status") != "failed" || got.member("status_reason") != "by_test" || got.header.Get("Preference-Applied") != "wait=25" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		if got.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != 2 {
		t.Errorf("%d of 3 were repeats", replayed)
	}
}

// Many clients repeat the keys of refunds of two payments at random, some in other words, while others try to take one payment's key for the other:
// each key is one refund, and no more is accepted than was taken.
func TestClientsRepeatingRefundsOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	targets := []string{s.charged("order-0"), s.charged("order-1")}
	const clients, keys, rounds = 32, 20, 6
	var mu sync.Mutex
	stored, ids := map[string]int{}, map[string]string{}
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := range rounds {
				n := (c*7 + i*3) % keys
				key := "refund-" + strconv.Itoa(n)
				body := []string{`{"amount":1200}`, `{ "amount": 1200, "metadata":{} }`}[(c+i)%2]
				got := s.post(targets[n%2]+"/refunds", key, body)
				mu.Lock()
				switch id := fmt.Sprint(got.member("id")); {
				case got.status == 422 && got.code() == "amount_exceeds_available":
				case got.status != 202 || ids[key] != "" && ids[key] != id:
					t.Errorf("%s: %d %s", key, got.status, got.body)
				default:
					if ids[key] = id; got.header.Get("Idempotent-Replayed") == "" {
						stored[key]++
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for n, target := range targets {
		accepted, _ := s.get(target + "/refunds").page(t)
		if len(accepted) != 8 { // of 1200, of 9900
			t.Errorf("payment %d has the refunds %v", n, accepted)
		}
		for _, key := range accepted {
			if stored[key] != 1 || ids[key] != payments.NewID("acme", key).Format(payments.KindRefund) {
				t.Errorf("%s was stored %d times, as %s", key, stored[key], ids[key])
			}
			s.post(targets[1-n]+"/refunds", key, `{"amount":1200}`).is(t, "the key on the other payment", 422, "idempotency_key_reused")
		}
	}
	if len(stored) != 16 {
		t.Errorf("%d keys were stored", len(stored))
	}
}
