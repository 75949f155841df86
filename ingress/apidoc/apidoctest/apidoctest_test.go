package apidoctest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/ingress/apidoc"
)

// TestFaults: each way in which an answer can differ from the document is seen.
func TestFaults(t *testing.T) {
	t.Parallel()
	doc, err := New(apidoc.Document())
	if err != nil {
		t.Fatal(err)
	}
	const (
		list    = `{"data":[],"next_cursor":null}`
		problem = `{"type":"/docs#rate_limited","title":"Too many requests","status":429,"code":"rate_limited","detail":"wait"}`
	)
	with := func(pairs ...string) http.Header {
		h := http.Header{"Request-Id": {"1"}, "Content-Type": {"application/json"}}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	without := with()
	without.Del("Request-Id")
	twice := with()
	twice.Add("Request-Id", "2")
	refused := with("Content-Type", "application/problem+json", "Retry-After", "1")
	for name, c := range map[string]struct {
		method, path string
		status       int
		header       http.Header
		body         string
		want         string // "": no fault
	}{
		"right":             {"GET", "/v1/payments", 200, with(), list, ""},
		"HEAD":              {"HEAD", "/v1/payments", 200, with(), "", ""},
		"refused":           {"GET", "/v1/payments", 429, refused, problem, ""},
		"text":              {"GET", "/metrics", 200, with("Request-Id", "", "Content-Type", "text/plain; version=0.0.4"), "up 1\n", ""},
		"unknown path":      {"GET", "/v1/nothing", 404, with("Content-Type", "application/problem+json"), strings.NewReplacer("rate_limited", "not_found", "429", "404").Replace(problem), ""},
		"status":            {"GET", "/v1/payments", 418, with(), list, "no such status"},
		"header missing":    {"GET", "/v1/payments", 200, without, list, "Request-Id is missing"},
		"header twice":      {"GET", "/v1/payments", 200, twice, list, "2 times"},
		"header's form":     {"GET", "/v1/payments", 429, with("Content-Type", "application/problem+json", "Retry-After", "soon"), problem, "Retry-After"},
		"header too much":   {"GET", "/v1/payments", 200, with("Idempotent-Replayed", "true"), list, "does not belong"},
		"media type":        {"GET", "/v1/payments", 200, with("Content-Type", "text/html"), list, "text/html"},
		"no JSON":           {"GET", "/v1/payments", 200, with(), `{"data"`, "not JSON"},
		"member missing":    {"GET", "/v1/payments", 200, with(), `{"data":[]}`, "next_cursor"},
		"member too much":   {"GET", "/v1/payments", 200, with(), `{"data":[],"next_cursor":null,"total":1}`, "total"},
		"member deep down":  {"GET", "/v1/payments", 200, with(), `{"data":[{}],"next_cursor":null}`, "amount_captured"},
		"code of others":    {"GET", "/v1/payments", 429, refused, strings.Replace(problem, `"code":"rate_limited"`, `"code":"not_found"`, 1), "code"},
		"body unlooked-for": {"GET", "/openapi.json", 304, http.Header{"Etag": {`"1"`}, "Request-Id": {"1"}}, "x", "no body"},
	} {
		faults := strings.Join(doc.Faults(c.method, c.path, c.status, c.header, []byte(c.body)), "; ")
		if (c.want == "") != (faults == "") || !strings.Contains(faults, c.want) {
			t.Errorf("%s: faults %q, want %q", name, faults, c.want)
		}
	}
}

// TestRoutes: the lists that tests compare others with are not empty.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"POST /v1/payments", "GET /v1/payments/{id}", "GET /docs"} {
		if routes := Routes(t); !slices.Contains(routes, want) {
			t.Errorf("no %s among %v", want, routes)
		}
	}
	if got := Statuses(t, "POST /v1/batches"); len(got) < 8 || got[0] != 202 {
		t.Errorf("statuses %v", got)
	}
}
