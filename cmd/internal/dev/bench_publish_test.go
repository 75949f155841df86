package dev

import (
	"strings"
	"testing"
)

// TestBenchPublish: it needs neither PostgreSQL nor Stripe, and its ratios are those of its rates.
func TestBenchPublish(t *testing.T) {
	t.Parallel()
	p := run(t, "bench", "publish", "--intents", "300", "--concurrency", "32", "--json")
	if p.code() != 0 {
		t.Fatalf("exit code %d: %s", p.code(), p.err.String())
	}
	d := p.document()
	names := "plain_async_per_s publish_all_per_s publish_concurrent_per_s publish_all_ratio publish_concurrent_ratio lone_plain_p50_us lone_publish_p50_us lone_ratio"
	numbers(t, d, names)
	for name := range strings.FieldsSeq(names) {
		if v, _ := d[name].(float64); v <= 0 {
			t.Errorf("%s is %v", name, d[name])
		}
	}
	if d["name"] != "publish" || d["intents"] != 300.0 || d["concurrency"] != 32.0 {
		t.Errorf("%v", d)
	}
	plain, publish := d["lone_plain_p50_us"].(float64), d["lone_publish_p50_us"].(float64)
	if ratio := d["lone_ratio"].(float64); ratio < plain/publish-0.01 || ratio > plain/publish+0.01 {
		t.Errorf("%v of %v is %v", publish, plain, ratio)
	}
}
