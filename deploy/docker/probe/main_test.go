package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(`{"status":"as told"}`))
	}))
	defer server.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{server.URL + "/readyz"}, 0, `{"status":"as told"}`},
		{[]string{server.URL + "/other"}, 1, "503"},
		{[]string{"http://127.0.0.1:1/readyz"}, 1, "refused"},
		{nil, 2, "usage"},
		{[]string{"a", "b"}, 2, "usage"},
	} {
		var out strings.Builder
		if code := run(c.args, &out); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: %d, %q", c.args, code, out.String())
		}
	}
}
