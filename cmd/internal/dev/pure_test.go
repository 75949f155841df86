package dev

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// TestWorkload: whatever the seed, every intent is published at least twice by at least two producers, what is drawn depends on the seed alone,
// and each message is what the oracle was told.
func TestWorkload(t *testing.T) {
	t.Parallel()
	subjects := schema.Subjects{}
	rapid.Check(t, func(t *rapid.T) {
		n, seed := rapid.IntRange(1, 300).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		w, err := newWorkload(n, seed, subjects)
		if err != nil {
			t.Fatal(err)
		}
		again, err := newWorkload(n, seed, subjects)
		if err != nil || !reflect.DeepEqual(w, again) {
			t.Fatalf("one seed, two workloads: %v", err)
		}
		copies, producers := map[int]int{}, map[int]map[int]bool{}
		total := 0
		for i, list := range w.producers {
			for _, p := range list {
				total++
				copies[p.intent]++
				if producers[p.intent] == nil {
					producers[p.intent] = map[int]bool{}
				}
				producers[p.intent][i] = true
				check(t, w, p)
			}
		}
		if total != w.messages || len(copies) != len(w.intents) {
			t.Fatalf("%d messages, %d said; %d of %d intents", total, w.messages, len(copies), len(w.intents))
		}
		keys := map[string]bool{}
		for i, intent := range w.intents {
			if keys[intent.Key] {
				t.Fatalf("two intents with the key %s", intent.Key)
			}
			keys[intent.Key] = true
			if !intent.Refused && (copies[i] < 2 || len(producers[i]) < 2) {
				t.Fatalf("%s: %d copies from %d producers", intent.Key, copies[i], len(producers[i]))
			}
		}
	})
}

// check holds a message against its intent.
func check(t *rapid.T, w *workload, p publication) {
	intent := w.intents[p.intent]
	var body struct {
		Key      string `json:"idempotency_key"`
		Amount   any    `json:"amount"`
		Currency string `json:"currency"`
		Customer string `json:"customer"`
	}
	if err := json.Unmarshal(p.data, &body); err != nil || body.Key != intent.Key || p.key != intent.Key {
		t.Fatalf("%s: %s, %v", intent.Key, p.data, err)
	}
	if intent.Refused {
		return
	}
	for _, m := range append(intent.Also, intent.Money) {
		if body.Amount == float64(m.Amount) && body.Currency == m.Currency && body.Customer == m.Customer {
			return
		}
	}
	t.Fatalf("%s: nobody told the oracle of %s", intent.Key, p.data)
}

func TestWorkloadHasEverything(t *testing.T) {
	t.Parallel()
	w, err := newWorkload(300, 1, schema.Subjects{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := newWorkload(300, 2, schema.Subjects{})
	if err != nil || reflect.DeepEqual(w.intents, other.intents) {
		t.Errorf("two seeds, one workload: %v", err)
	}
	found := map[string]int{}
	for _, i := range w.intents {
		for name, is := range map[string]bool{"declined": i.Declines, "conflict": len(i.Also) > 0, "refused": i.Refused} {
			if is {
				found[name]++
			}
		}
	}
	for _, list := range w.producers {
		for _, p := range list {
			if p.msgID != "" {
				found["message id"]++
			}
			if strings.Contains(p.subject, ".bulk.") {
				found["bulk"]++
			}
		}
	}
	if found["declined"] != 15 || found["conflict"] != 6 || found["refused"] != 6 || found["message id"] == 0 || found["bulk"] == 0 {
		t.Errorf("%v", found)
	}
}

func TestProofMath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0}, {[]float64{7}, 0, 7}, {[]float64{7}, 1, 7}, {[]float64{3, 1, 2}, 0.5, 2}, {[]float64{4, 1, 3, 2}, 0.5, 2}, {[]float64{4, 1, 3, 2}, 0.99, 4}, {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9, 9},
	} {
		if got := percentile(c.values, c.q); got != c.want {
			t.Errorf("percentile(%v, %v) = %v, want %v", c.values, c.q, got, c.want)
		}
	}
	for v, want := range map[float64]float64{1.24: 1.2, 1.25: 1.3, math.Inf(1): 0, math.Inf(-1): 0, 0: 0} {
		if got := round(v); got != want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
	if got := round(math.NaN()); got != 0 {
		t.Errorf("round(NaN) = %v", got)
	}
	at := time.Now()
	w, err := newWorkload(3, 1, schema.Subjects{})
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{work: w, firstAck: map[int]time.Time{0: at, 1: at, 2: at}}
	id := func(i int) string { return payments.NewID(w.intents[i].TenantID, w.intents[i].Key).String() }
	p := &Proof{}
	// One outcome came before the producer had its PubAck, one later, and one payment is still open.
	p.latencies(d, map[string]time.Time{id(0): at.Add(-time.Second), id(1): at.Add(1500 * time.Millisecond)})
	if p.E2EP50MS != 0 || p.E2EP99MS != 1500 {
		t.Errorf("p50 %v, p99 %v", p.E2EP50MS, p.E2EP99MS)
	}
	good := strings.Join((&Proof{Holds: true, Outcomes: map[string]int{"succeeded": 2, "failed": 1}}).lines(), "\n")
	bad := strings.Join((&Proof{Seed: 9, Findings: []string{"order-1 was charged twice"}}).lines(), "\n")
	if !strings.Contains(good, "1 failed, 2 succeeded") || !strings.Contains(good, "\nPROVED") || !strings.Contains(bad, "\nNOT PROVED") || !strings.Contains(bad, "! order-1 was charged twice") || !strings.Contains(bad, "--seed 9") {
		t.Errorf("%s\n%s", good, bad)
	}
}

// TestEnvFile: a shell, and --config, read back what was written, whatever is in it.
func TestEnvFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	env := map[string]string{"ONCEPAY_A": "it's $HOME `id` \"x\" \\ #y", "ONCEPAY_B": "", "ONCEPAY_C": "'''"}
	for range 2 { // the second replaces the first
		if err := writeEnvFile(path, env); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, value := range env {
		out, err := exec.Command("sh", "-c", `. "$0"; eval "printf %s \"\$$1\""`, path, name).Output()
		if err != nil || string(out) != value {
			t.Errorf("a shell reads %s as %q, %v", name, out, err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside it: %v, %v", entries, err)
	}
	if err := writeEnvFile(filepath.Join(path, "not-a-directory"), env); err == nil || !strings.HasPrefix(err.Error(), "--env-file: ") {
		t.Errorf("%v", err)
	}
}

func TestInDatabase(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable": "postgres://u:p@h:1/new?sslmode=disable", "host=h dbname=old": "host=h dbname=old dbname=new",
	} {
		if got := inDatabase(server, "new"); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
}

func TestPortOf(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]int{"": 0, "127.0.0.1:4222": 4222, "localhost:0": 0, "127.0.0.1:65535": 65535} {
		if got, err := portOf("--nats", addr); err != nil || got != want {
			t.Errorf("%q: %d, %v", addr, got, err)
		}
	}
	for _, addr := range []string{"4222", ":4222", "0.0.0.0:4222", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x"} {
		if _, err := portOf("--nats", addr); err == nil {
			t.Errorf("%q is taken for a port", addr)
		}
	}
}
