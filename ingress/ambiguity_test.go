package ingress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
)

// The ambiguities that keys exist for: whoever does not know what has become of a request repeats it, and there is one payment.

// wantOne wants the keys to be one payment each, and nothing else to be there.
func (s *shop) wantOne(keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		if got := s.post("/v1/payments", key, goodBody); got.status != 202 || got.member("id") != payments.NewID("acme", key).String() {
			s.t.Errorf("%s: %d %s", key, got.status, got.body)
		}
	}
	page, _, err := s.near.List(s.t.Context(), payments.ListRequest{TenantID: "acme", Limit: 1000})
	if err != nil || len(page) != len(keys) {
		s.t.Errorf("%d payments under %d keys, %v", len(page), len(keys), err)
	}
}

// slowAdmitter answers late: the payment is committed long before anybody hears of it.
type slowAdmitter struct {
	Admitter
	committed chan struct{}
	answer    chan struct{}
}

func (s slowAdmitter) Admit(ctx context.Context, r payments.AdmitRequest) (payments.Admission, error) {
	a, err := s.Admitter.Admit(ctx, r)
	select {
	case s.committed <- struct{}{}:
		<-s.answer
	default: // only the first is slow
	}
	return a, err
}

func TestAmbiguityRequestTimedOut(t *testing.T) {
	t.Parallel()
	slow := slowAdmitter{committed: make(chan struct{}, 1), answer: make(chan struct{})}
	s := openShop(t, func(c *Config) {
		slow.Admitter = c.Store
		c.Store = slow
	})
	ctx, cancel := context.WithCancel(t.Context())
	timedOut := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/payments", bytes.NewReader([]byte(goodBody)))
		if err != nil {
			timedOut <- err
			return
		}
		r.Header = http.Header{"Authorization": {"Bearer " + s.acme}, "Content-Type": {"application/json"}, "Idempotency-Key": {"order-1"}}
		response, err := s.client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		timedOut <- err
	}()
	waitFor(t, "the commit", func() bool { return len(slow.committed) == 1 })
	cancel() // the client's patience ends
	if err := <-timedOut; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	got := s.post("/v1/payments", "order-1", goodBody)
	if got.status != 202 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %v", got.status, got.header)
	}
	close(slow.answer)
	s.wantOne("order-1")
}

func TestAmbiguityResponseLost(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	between := devstacktest.NewProxy(t, s.url)
	var lose atomic.Bool
	between.OnClientData(func(chunk []byte) devstacktest.Action {
		if bytes.Contains(chunk, []byte("POST ")) && lose.CompareAndSwap(true, false) {
			return devstacktest.ForwardThenCut
		}
		return devstacktest.Forward
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	var keys []string
	for i := range 20 {
		key := fmt.Sprint("order-", i)
		keys = append(keys, key)
		lose.Store(true)
		for try := 0; ; try++ {
			r, err := http.NewRequest("POST", "http://"+between.Addr()+"/v1/payments", bytes.NewReader([]byte(goodBody)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Authorization": {"Bearer " + s.acme}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
			response, err := client.Do(r)
			if err != nil && try < 5 {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != 202 || try == 0 {
				t.Errorf("%d at try %d", response.StatusCode, try)
			}
			break
		}
	}
	s.wantOne(keys...)
}

func TestAmbiguityClientReplaysItsQueue(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	ctx, crash := context.WithCancel(t.Context())
	var keys []string
	var done atomic.Int64
	var group sync.WaitGroup
	for i := range 60 {
		key := fmt.Sprint("order-", i)
		keys = append(keys, key)
		group.Go(func() { // until the client dies with its answers unread
			r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/payments", bytes.NewReader([]byte(goodBody)))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header = http.Header{"Authorization": {"Bearer " + s.acme}, "Content-Type": {"application/json"}, "Idempotency-Key": {key}}
			response, err := s.client.Do(r)
			if err == nil {
				response.Body.Close()
			}
			if done.Add(1) == 20 {
				crash()
			}
		})
	}
	group.Wait()
	crash()
	s.wantOne(keys...)
}

func TestAmbiguityBalancerDeliversTwice(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	var keys []string
	for i := range 30 {
		key := fmt.Sprint("order-", i)
		keys = append(keys, key)
		answers := make(chan reply, 2)
		for range 2 {
			go func() { answers <- s.post("/v1/payments", key, goodBody) }()
		}
		a, b := <-answers, <-answers
		repeats := 0
		for _, got := range []reply{a, b} {
			if got.header.Get("Idempotent-Replayed") == "true" {
				repeats++
			}
		}
		if a.status != 202 || b.status != 202 || string(a.body) != string(b.body) || repeats != 1 {
			t.Errorf("%d %s\n%d %s, %d repeats", a.status, a.body, b.status, b.body, repeats)
		}
	}
	s.wantOne(keys...)
}
