package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncepay/oncepay/batch"
)

// TestBatchWhichRows: the rows that failed are named at the end, and --results has all of them.
func TestBatchWhichRows(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	_, address, key := b.serveAPI()
	file := rowsOf(120, "description", "d")
	for _, row := range []int{3, 112} { // the n-th row has the amount n.50
		line := fmt.Sprintf("\n%d.50,usd,pm_card_visa,", row)
		file = strings.Replace(file, line, strings.Replace(line, "pm_card_visa", "pm_card_chargeDeclinedInsufficientFunds", 1), 1)
	}
	name := writeFile(t, "payments.csv", file)
	results := filepath.Join(t.TempDir(), "results.jsonl")
	run := []string{"batch", "run", name, "--key", "rows", "--api-url", address, "--api-key", key}
	r := b.run(append(run, "--results", results)...)
	at := strings.Index(r.err, "2 payments did not succeed:\nROW  PAYMENT")
	if r.code != exitOK || at < 0 || !strings.Contains(r.out, "failed     2") {
		t.Fatalf("%+v", r)
	}
	shown := strings.Split(strings.TrimSpace(r.err[at:]), "\n")
	if len(shown) != 4 || !strings.HasPrefix(shown[2], "3    pay_") || !strings.HasPrefix(shown[3], "112  pay_") || !strings.Contains(shown[3], "failed") || !strings.Contains(shown[3], "insufficient_funds") {
		t.Errorf("%q", shown)
	}
	data, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 120 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var o batch.Outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		failed := i == 2 || i == 111
		if o.Row != int64(i+1) || o.IdempotencyKey != fmt.Sprintf("rows.%06d::%d", i/100, i%100) || !strings.HasPrefix(o.ID, "pay_") || (o.Status == "failed") != failed || (o.Failure != nil) != failed {
			t.Errorf("%d: %s", i, line)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(results), ".oncepay*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	b.run("payments", "list", "--tenant", "demo", "--key", "rows").says(t, exitFailed, "", "--key: names a run of batches, and no payment: `oncepay batch show rows --tenant demo` shows it")
	b.run("payments", "list", "--key", "rows").says(t, exitFailed, "", "`oncepay batch show rows --tenant demo` shows it")
	b.run("payments", "list", "--tenant", "demo", "--batch", "rows").says(t, exitFailed, "", "this is the key of a run, not of a batch; give one of its batches: rows.000000, rows.000001. `oncepay batch show rows --tenant demo`")
	b.run("payments", "list", "--tenant", "demo", "--batch", "row").says(t, exitFailed, "", "the tenant has no batch and no run of batches under this key")
	// Without the flag the rows are told all the same, and --json has its one document.
	r = b.run(append(run, "--json")...)
	if d := oneDocument(t, r.out); r.code != exitOK || d["complete"] != true || !strings.Contains(r.err, "\n112  pay_") {
		t.Errorf("%+v", r)
	}
}

// TestBatchGrows: a run that looks finished meets a longer file, and then a shorter one.
func TestBatchGrows(t *testing.T) {
	t.Parallel()
	b := newBench(t, migrate)
	_, address, key := b.serveAPI()
	run := func(rows int, more ...string) result {
		name := writeFile(t, "payments.csv", rowsOf(rows, "description", "d"))
		return b.run(append([]string{"batch", "run", name, "--key", "grows", "--api-url", address, "--api-key", key}, more...)...)
	}
	if r := run(200); r.code != exitOK || strings.Contains(r.err, "adds") || strings.Contains(r.err, "MB") {
		t.Fatalf("%+v", r)
	}
	if r := run(230); r.code != exitOK || !strings.Contains(r.err, "the run had 200 payments; this file adds 30\n") || !strings.Contains(r.out, "succeeded  230") {
		t.Errorf("%+v", r)
	}
	if r := run(230); r.code != exitOK || strings.Contains(r.err, "adds") {
		t.Errorf("%+v", r)
	}
	for rows, want := range map[int]string{150: "rows from ", 200: "rows from 201 on were sent before", 229: "differs in the number of rows"} {
		if r := run(rows); r.code != exitUsage || r.out != "" || !strings.Contains(r.err, want) || !strings.HasSuffix(r.err, "; nothing new was sent\n") {
			t.Errorf("%d rows: %+v", rows, r)
		}
	}
}

// TestBatchNobodyThere: an API that is not there is told of by the setting that names it.
func TestBatchNobodyThere(t *testing.T) {
	t.Parallel()
	b := withSettings(t, nil)
	r := b.run("batch", "run", writeFile(t, "f.csv", rowsOf(3, "description", "d")), "--key", "k", "--api-url", "http://127.0.0.1:1", "--api-key", "opk_x", "--retry-for", "0s")
	b.fails(r, exitFailed, "nothing listens at ONCEPAY_API_URL: is the service running, and is the address right?", "this call knows none of 3 payments to be accepted")
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"pay-2026.01": "pay-2026.01", "a$b": "'a$b'", "it's": `'it'\''s'`, "-k": "-- '-k'", "`x`": "'`x`'"} {
		if got := shellWord(key); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// TestBatchRefusedLater: a batch that is refused once something new was sent is no matter of the command line alone: what was sent is said.
func TestBatchRefusedLater(t *testing.T) {
	t.Parallel()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"data":[],"next_cursor":null}`)
			return
		case key != "run.000000":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"code":"idempotency_key_reused","differs":["payments[1].amount"]}`)
			return
		}
		var children []map[string]any
		for i := range 100 {
			children = append(children, map[string]any{"index": i, "id": "pay_x", "idempotency_key": fmt.Sprintf("%s::%d", key, i), "status": "received"})
		}
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "bat_x", "payments": children})
	}))
	t.Cleanup(door.Close)
	b := withSettings(t, nil)
	name := writeFile(t, "f.csv", rowsOf(300, "description", "d"))
	r := b.run("batch", "run", name, "--key", "run", "--concurrency", "1", "--api-url", door.URL, "--api-key", "opk_x")
	b.fails(r, exitFailed, "it differs in row 102, column amount", "(100 of 300 payments are accepted)")
}

func TestFarOf(t *testing.T) {
	t.Parallel()
	plan := &batch.Plan{Rows: 20_000}
	for want, sent := range map[string]batch.Sent{
		"this call knows none of 20000 payments to be accepted":     {},
		"1600 of 20000 payments are accepted":                       {Rows: 1600},
		"1600 of 20000 payments are accepted: 1600 before, 0 new":   {Rows: 1600, ReplayedRows: 1600},
		"1700 of 20000 payments are accepted: 1600 before, 100 new": {Rows: 1700, ReplayedRows: 1600, New: true},
	} {
		if got := farOf(sent, plan); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
