package dev

import (
	"strings"
	"testing"
)

// TestBenchHTTP: the benchmark of the HTTP API runs on its own, and finds what it says it finds.
func TestBenchHTTP(t *testing.T) {
	t.Parallel()
	p := run(t, "bench", "http", "--turn", "1s", "--intents", "1000", "--json")
	if p.code() != 0 {
		t.Fatalf("exit code %d: %s", p.code(), p.err.String())
	}
	d := p.document()
	names := "baseline_per_s baseline_p50_ms baseline_p99_ms product_per_s product_p50_ms product_p99_ms ratio p50_ratio product_published_per_s " +
		"published_ratio batch_payments_per_s batch_ratio"
	numbers(t, d, names)
	for name := range strings.FieldsSeq(names) {
		if v, _ := d[name].(float64); v <= 0 {
			t.Errorf("%s is %v", name, d[name])
		}
	}
	if d["name"] != "http" || d["clients"] != 64.0 || d["turn_s"] != 1.0 || d["product_p50_ms"].(float64) > d["product_p99_ms"].(float64) {
		t.Errorf("%v", d)
	}
}
