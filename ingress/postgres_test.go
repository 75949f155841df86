package ingress

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/migrations"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/postgres"
)

// shop is an API on PostgreSQL, served on loopback, with a key for each of two tenants. far is the store behind the API; near reaches the same
// database past the proxy.
type shop struct {
	t       *testing.T
	url     string
	near    *postgres.Store
	proxy   *devstacktest.Proxy
	acme    string
	globex  string
	acmeKey payments.APIKey
	client  *http.Client
}

func openStore(t *testing.T, dsn string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openShop(t *testing.T, change ...func(*Config)) *shop {
	t.Helper()
	return openShopThatWaits(t, 30*time.Second, change...)
}

// openShopThatWaits is for who cuts PostgreSQL off: each write is given up after so long.
func openShopThatWaits(t *testing.T, flush time.Duration, change ...func(*Config)) *shop {
	t.Helper()
	dsn := devstacktest.Database(t, migrations.Up)
	s := &shop{t: t, near: openStore(t, dsn, postgres.Options{PoolSize: 3}), proxy: devstacktest.NewProxy(t, dsn)}
	far := openStore(t, devstacktest.Via(t, dsn, s.proxy.Addr()), postgres.Options{PoolSize: 6, FlushTimeout: flush, Logger: slog.New(slog.DiscardHandler)})
	for tenant, secret := range map[string]*string{"acme": &s.acme, "globex": &s.globex} {
		if _, err := s.near.CreateTenant(t.Context(), postgres.Tenant{ID: tenant}); err != nil {
			t.Fatal(err)
		}
		key, text, err := s.near.CreateAPIKey(t.Context(), tenant, payments.Scopes(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if *secret = text; tenant == "acme" {
			s.acmeKey = key
		}
	}
	cfg := Config{Store: far, FollowUps: far, Batches: far, Reader: far, FollowUpReader: far, Keys: far, Unpublished: far.Unpublished, UnpublishedMax: 100_000, Clock: systemClock{}, Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	api, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(api.Handler())
	server.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = api.Run(ctx) })
	s.url, s.client = server.URL, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}
	t.Cleanup(func() {
		cancel()
		s.client.CloseIdleConnections()
		server.Close()
		run.Wait()
		violations, err := s.near.TicketViolations(context.Background())
		if err != nil || len(violations) != 0 {
			t.Errorf("tickets: %+v, %v", violations, err)
		}
	})
	return s
}

func (s *shop) do(method, target, secret, key, body string, change ...func(*http.Request)) reply {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+target, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Error(err)
		return reply{}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Error(err)
	}
	got := reply{response.StatusCode, response.Header, text}
	got.check(s.t)
	return got
}

func (s *shop) post(target, key, body string, change ...func(*http.Request)) reply {
	s.t.Helper()
	return s.do("POST", target, s.acme, key, body, change...)
}

func (s *shop) get(target string, change ...func(*http.Request)) reply {
	s.t.Helper()
	return s.do("GET", target, s.acme, "", "", change...)
}

// A payment and a batch from first to last, on PostgreSQL.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	first := s.post("/v1/payments", "order-1", goodBody)
	target := first.header.Get("Location")
	if first.status != 202 || first.member("status") != "received" || target != "/v1/payments/pay_af5f4f1841e88ebcae502028d51c062c" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	if n, err := s.near.Unpublished(t.Context()); err != nil || n != 1 {
		t.Errorf("%d copies to publish, %v", n, err)
	}
	again := s.post("/v1/payments", `"order-1"`, `{ "payment_method":"pm_card_visa","kind":"charge","customer":"cus_1","currency":"USD","amount":9900,"off_session":true }`)
	if again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(first.body) {
		t.Errorf("%d %s", again.status, again.body)
	}
	changed := s.post("/v1/payments", "order-1", strings.Replace(goodBody, "9900", "9901", 1))
	if changed.is(t, "another amount", 422, "idempotency_key_reused"); !slices.Equal(changed.differs(), []string{"amount"}) {
		t.Errorf("%s", changed.body)
	}
	invalid := s.post("/v1/payments", "order-1", strings.Replace(goodBody, "9900", "-1", 1))
	invalid.is(t, "conflict before validation", 422, "idempotency_key_reused")
	s.post("/v1/payments", "order-2", strings.Replace(goodBody, "9900", "-1", 1)).is(t, "invalid", 400, "invalid_request")
	if got := s.post("/v1/payments", "order-2", goodBody); got.status != 202 || got.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the key of a refused request: %d %s", got.status, got.body)
	}
	if shown := s.get(target); shown.status != 200 || string(shown.body) != string(first.body) {
		t.Errorf("%s", shown.body)
	}
	if keys, _ := s.get("/v1/payments?customer=cus_1&status=received").page(t); !slices.Equal(keys, []string{"order-2", "order-1"}) {
		t.Errorf("newest first: %v", keys)
	}
	keys, next := s.get("/v1/payments?limit=1").page(t)
	rest, last := s.get("/v1/payments?limit=1&cursor=" + next).page(t)
	if !slices.Equal(append(keys, rest...), []string{"order-2", "order-1"}) || last != "" {
		t.Errorf("%v %v %q", keys, rest, last)
	}
	s.get("/v1/payments?cursor=nonsense").is(t, "no cursor", 400, "invalid_request")
	s.get("/v1/payments?customer=%00").is(t, "no text", 400, "invalid_request")
	if got := s.get(target + "/events"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.batches()
	s.tenants(target)
}

// batches: a batch, its repeat, its change, and where it is shown.
func (s *shop) batches() {
	t := s.t
	batch := s.post("/v1/batches", "run.000000", goodBatch)
	target := batch.header.Get("Location")
	if batch.status != 202 || target != "/v1/batches/"+payments.NewID("acme", "run.000000").Format(payments.KindBatch) || !strings.Contains(string(batch.body), `"index":1,"id":"`+payments.NewID("acme", "run.000000::1").String()) {
		t.Fatalf("%d %s", batch.status, batch.body)
	}
	if again := s.post("/v1/batches", "run.000000", strings.ReplaceAll(goodBatch, `"usd"`, `"USD"`)); again.status != 202 || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(batch.body) {
		t.Errorf("%d %s", again.status, again.body)
	}
	got := s.post("/v1/batches", "run.000000", strings.Replace(goodBatch, "200", "201", 1))
	if got.is(t, "a changed batch", 422, "idempotency_key_reused"); !slices.Equal(got.differs(), []string{"payments[1].amount"}) {
		t.Errorf("%s", got.body)
	}
	if shown := s.get(target); shown.status != 200 || shown.member("count") != 2.0 || shown.member("complete") != false || shown.member("parent") != "run-1" {
		t.Errorf("%s", shown.body)
	}
	if keys, _ := s.get("/v1/batches?parent=run-1").page(t); !slices.Equal(keys, []string{"run.000000"}) {
		t.Errorf("%v", keys)
	}
	if keys, _ := s.get("/v1/payments?idempotency_key=run.000000::1").page(t); !slices.Equal(keys, []string{"run.000000::1"}) {
		t.Errorf("%v", keys)
	}
	s.get("/v1/payments?idempotency_key=run.000000").is(t, "a batch's key among payments", 400, "invalid_request")
	s.post("/v1/payments", "run.000000", goodBody).is(t, "a batch's key on a payment", 422, "idempotency_key_reused")
	s.post("/v1/batches", "order-1", goodBatch).is(t, "a payment's key on a batch", 422, "idempotency_key_reused")
	id := strings.TrimPrefix(target, "/v1/batches/bat_")
	s.get("/v1/payments/pay_"+id).is(t, "a batch's id on a payment", 404, "not_found")
	s.get("/v1/payments/pay_"+id+"/events").is(t, "a batch's id on events", 404, "not_found")
	s.do("GET", target, s.globex, "", "").is(t, "another tenant's batch", 404, "not_found")
	if keys, _ := s.do("GET", "/v1/batches?parent=run-1", s.globex, "", "").page(t); keys != nil {
		t.Errorf("another tenant's: %v", keys)
	}
}

// tenants: no field of acme in globex's answers (field fault 30).
func (s *shop) tenants(target string) {
	t := s.t
	s.do("GET", target, s.globex, "", "").is(t, "another tenant's payment", 404, "not_found")
	s.do("GET", target+"/events", s.globex, "", "").is(t, "another tenant's events", 404, "not_found")
	theirs := s.do("POST", "/v1/payments", s.globex, "order-1", strings.Replace(goodBody, "cus_1", "cus_2", 1))
	if theirs.status != 202 || theirs.header.Get("Idempotent-Replayed") != "" || theirs.member("id") == "pay_af5f4f1841e88ebcae502028d51c062c" || strings.Contains(string(theirs.body), "acme") || strings.Contains(string(theirs.body), "cus_1") {
		t.Errorf("%d %s", theirs.status, theirs.body)
	}
	if keys, _ := s.do("GET", "/v1/payments", s.globex, "", "").page(t); !slices.Equal(keys, []string{"order-1"}) {
		t.Errorf("%v", keys)
	}
}

// Revocation is effective within a second, by the wall clock.
func TestRevocationOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	if got := s.get("/v1/payments"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if err := s.near.RevokeAPIKey(t.Context(), s.acmeKey.ID); err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	for {
		asked := time.Now()
		got := s.get("/v1/payments")
		if got.status == 401 {
			break
		}
		if asked.Sub(revoked) > time.Second {
			t.Fatalf("%d, %v after the revocation", got.status, asked.Sub(revoked))
		}
	}
}

// Prefer: wait over the wire: answered soon after the payment is settled.
func TestWaitOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	answers := make(chan reply, 3)
	for range 3 {
		go func() { answers <- s.post("/v1/payments", "order-1", goodBody, with("Prefer", "wait=25")) }()
	}
	id := payments.NewID("acme", "order-1")
	waitFor(t, "the payment", func() bool { _, err := s.near.Find(t.Context(), "acme", id); return err == nil })
	if _, err := s.near.Evidence(t.Context(), "acme", id, func(payments.Payment) (payments.Transition, error) {
		return payments.Transition{Status: payments.StatusCanceled, Reason: "requested_by_customer"}, nil
	}); err != nil {
		t.Fatal(err)
	}
	settled, replayed := time.Now(), 0
	for range 3 {
		got := <-answers
		if got.status != 200 || got.member("status") != "canceled" || got.header.Get("Preference-Applied") != "wait=25" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
		if got.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	if replayed != 2 || time.Since(settled) > 10*time.Second {
		t.Errorf("%d were repeats, %v after", replayed, time.Since(settled))
	}
	if got := s.get("/v1/payments/" + id.String() + "/events"); got.status != 200 || !strings.Contains(string(got.body), `"type":"oncepay.payment.canceled","status":"canceled"`) {
		t.Errorf("%s", got.body)
	}
}

// 32 clients repeat the same keys at random while PostgreSQL goes and comes back: each key is one payment, and every answer for it names the same.
func TestRepeatsWhilePostgresIsCut(t *testing.T) {
	t.Parallel()
	s := openShopThatWaits(t, 3*time.Second)
	const clients, keys = 32, 40
	over := make(chan struct{})
	var mu sync.Mutex
	ids, away := map[string]string{}, 0
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				default:
				}
				key := "order-" + strconv.Itoa((c*31+i*17)%keys)
				got := s.post("/v1/payments", key, goodBody)
				mu.Lock()
				switch id := fmt.Sprint(got.member("id")); {
				case got.status == 503:
					away++
				case got.status != 202 || ids[key] != "" && ids[key] != id:
					t.Errorf("%s: %d %s", key, got.status, got.body)
				default:
					ids[key] = id
				}
				mu.Unlock()
			}
		})
	}
	timer := time.NewTimer(0)
	for range 3 {
		timer.Reset(150 * time.Millisecond)
		<-timer.C
		s.proxy.Cut()
		timer.Reset(100 * time.Millisecond)
		<-timer.C
		s.proxy.Heal()
	}
	close(over)
	group.Wait()
	for i := range keys { // whatever was answered 503 is mended by repeating it
		key := "order-" + strconv.Itoa(i)
		waitFor(t, key, func() bool {
			got := s.post("/v1/payments", key, goodBody)
			return got.status == 202 && got.member("id") == payments.NewID("acme", key).String()
		})
	}
	page, _, err := s.near.List(t.Context(), payments.ListRequest{TenantID: "acme", Limit: 1000})
	if err != nil || len(page) != keys {
		t.Errorf("%d payments, %v", len(page), err)
	}
	if n, err := s.near.Unpublished(t.Context()); err != nil || n != keys {
		t.Errorf("%d copies to publish, %v", n, err)
	}
	t.Logf("%d answers of 503", away)
}

// PostgreSQL away: 503 with Retry-After for everything, 401 for nobody.
func TestPostgresAway(t *testing.T) {
	t.Parallel()
	s := openShopThatWaits(t, 3*time.Second)
	s.proxy.Cut()
	for _, got := range []reply{s.post("/v1/payments", "order-1", goodBody), s.post("/v1/batches", "run", goodBatch), s.get("/v1/payments")} {
		got.is(t, "away", 503, "unavailable")
	}
	s.proxy.Heal()
	waitFor(t, "the way back", func() bool { return s.post("/v1/payments", "order-1", goodBody).status == 202 })
}

// Too many rows unpublished: the real count closes the door, and nothing is stored.
func TestBacklogOnPostgres(t *testing.T) {
	t.Parallel()
	s := openShop(t, func(c *Config) { c.UnpublishedMax = 3 })
	if got := s.post("/v1/payments", "order-0", goodBody); got.status != 202 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := s.post("/v1/batches", "run", goodBatch); got.status != 202 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	n := 0
	waitFor(t, "the closed door", func() bool {
		n++ // what was accepted is answered like the first time, also behind a closed door
		return s.post("/v1/payments", "order-1-"+strconv.Itoa(n), goodBody).status == 503
	})
	if got := s.get("/v1/payments"); got.status != 200 {
		t.Errorf("%d", got.status)
	}
	s.post("/v1/payments", "order-2", goodBody).is(t, "closed", 503, "unavailable")
	if got := s.post("/v1/payments", "order-0", goodBody); got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("a repeat of what is there: %d %s", got.status, got.body)
	}
	s.post("/v1/payments", "order-0", strings.Replace(goodBody, "9900", "9901", 1)).is(t, "another request under its key", 422, "idempotency_key_reused")
	s.post("/v1/batches", "run-2", goodBatch).is(t, "closed", 503, "unavailable")
	if _, err := s.near.Find(t.Context(), "acme", payments.NewID("acme", "order-2")); payments.ErrorCode(err) != payments.CodeNotFound {
		t.Errorf("%v", err)
	}
}
