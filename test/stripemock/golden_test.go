package stripemock

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden is a body that some version of the product has sent, and that a payment may be bound to for ever.
type golden struct {
	name, body string
}

func (g golden) names(t testing.TB) []string {
	t.Helper()
	values, err := url.ParseQuery(g.body)
	if err != nil {
		t.Fatal(err)
	}
	return parameterNames(values)
}

// goldenBodies reads the golden bodies of all request versions.
func goldenBodies(t testing.TB) []golden {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "payments", "stripe", "testdata", "v*", "*.form"))
	if err != nil || len(paths) < 7 {
		t.Fatalf("the golden bodies of payments/stripe are not where they were: %v, %v", paths, err)
	}
	var list []golden
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, golden{name: filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", ".."))), body: string(body)})
	}
	return list
}

// post sends a body as it is, with the headers that the Gateway sends.
func (r *recorder) post(t testing.TB, path, body string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+testKey)
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Stripe-Version", apiVersion)
	q.Header.Set("Idempotency-Key", strings.Repeat("0", 64))
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestGoldenBodies: also the bodies of payments that were begun by earlier versions are accepted.
func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	bodies := goldenBodies(t)
	for _, form := range bodies {
		r.post(t, "/v1/payment_intents", form.body)
	}
	if calls := r.all(); len(calls) != len(bodies) {
		t.Errorf("%d requests arrived, want %d", len(calls), len(bodies))
	}
}
