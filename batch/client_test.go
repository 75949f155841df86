package batch

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/schema"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://pay.example.com": true, "https://pay.example.com/oncepay/": true, "https://10.0.0.1:8443": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true, "http://localhost:8080": true,
		"http://LocalHost": true, "http://127.9.9.9": true,
		"http://pay.example.com": false, "http://10.0.0.1": false, "http://localhost.example.com": false, "http://0.0.0.0:80": false, "https://user:hunter2@pay.example.com": false,
		"https://pay.example.com/?a=hunter2": false, "https://pay.example.com/#hunter2": false, "pay.example.com": false, "": false, "ftp://hunter2": false, "https://": false, "://hunter2": false,
	} {
		_, err := NewClient(ClientOptions{URL: address, APIKey: testKey})
		if (err == nil) != good || err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "example.com/")) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := NewClient(ClientOptions{URL: "http://pay.example.com", APIKey: testKey, Insecure: true}); err != nil {
		t.Error(err)
	}
}

// TestRequest: what leaves, and that a redirect is not followed with the key.
func TestRequest(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	requests := make(chan *http.Request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Clone(r.Context())
		http.Redirect(w, r, elsewhere.URL, http.StatusPermanentRedirect)
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(ClientOptions{URL: server.URL + "/prefix/", APIKey: testKey, UserAgent: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, key := range []string{"plain", `"quoted`, `"both"`, `back\slash`} {
		if _, _, err := c.Accept(t.Context(), key, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "redirect") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%v", err)
		}
		r := <-requests
		got, present, err := schema.ParseKeyHeader(r.Header.Values("Idempotency-Key"))
		if got != key || !present || err != nil {
			t.Errorf("%q arrived as %q, %v", key, got, err)
		}
		if r.Method != "POST" || r.URL.Path != "/prefix/v1/batches" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer "+testKey || r.UserAgent() != "agent" {
			t.Errorf("%+v", r)
		}
	}
	if _, err := c.Batches(t.Context(), "a&b=c", "next/+", 7); err == nil {
		t.Error("a redirect is no page")
	}
	if r := <-requests; r.URL.Query().Encode() != "cursor=next%2F%2B&limit=7&parent=a%26b%3Dc" || r.Header.Get("Idempotency-Key") != "" {
		t.Errorf("%s", r.URL)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, "30": 30 * time.Second, "86400": retryAfterMax, "-1": 0, "soon": 0, "1.5": 0, "99999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0, now.Add(time.Hour).Format(http.TimeFormat): retryAfterMax,
	} {
		header := http.Header{"Retry-After": {value}, "Date": {now.Format(http.TimeFormat)}}
		if got := retryAfter(header); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	least, most := new(clock).patience(0), new(clock).patience(0)
	least.Random = func(int64) int64 { return 0 }
	for tries := range 100 {
		longest := most.delay(tries, nil)
		if shortest := least.delay(tries, nil); longest > backoffMax || shortest < backoffFirst/2 || shortest < longest/2-1 || tries > 6 && longest != backoffMax {
			t.Errorf("%d: %s to %s", tries, shortest, longest)
		}
	}
}

// TestUntrustedServer: a certificate that nobody signed is not tried again.
func TestUntrustedServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c, err := NewClient(ClientOptions{URL: server.URL, APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	clock := new(clock)
	_, err = Publish(t.Context(), planOf(t, "run", csvOf(1)), c, PublishOptions{Concurrency: 1, Patience: clock.patience(time.Hour)})
	if err == nil || len(clock.waits) > 0 || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v after %v", err, clock.waits)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	c, err := NewClient(ClientOptions{URL: "http://127.0.0.1:1", APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	clock := new(clock)
	var told []string
	patience := clock.patience(time.Minute)
	patience.Trouble = func(err error) { told = append(told, err.Error()) }
	_, err = Publish(t.Context(), planOf(t, "run", csvOf(1)), c, PublishOptions{Concurrency: 1, Patience: patience})
	if err == nil || !strings.Contains(err.Error(), "refused") || len(clock.waits) < 5 || len(told) != len(clock.waits) || strings.Contains(fmt.Sprint(told), testKey) {
		t.Errorf("%v after %v: %v", err, clock.waits, told)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]string{
		"run": "", "2026-01/payroll:a": "", strings.Repeat("k", 231): "",
		"": "is required", "a b": "printable ASCII", "ä": "printable ASCII", "a::b": "reserved", strings.Repeat("k", 232): "at most 231", "4242424242424242": "card number",
	} {
		if got := CheckKey(run); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", run, got, want)
		}
	}
	for i, want := range map[int]string{0: "K.000000", 1: "K.000001", 999_999: "K.999999", 1_000_000: "K.1000000"} {
		if got := Key("K", i); got != want {
			t.Errorf("%d: %s", i, got)
		}
	}
}
