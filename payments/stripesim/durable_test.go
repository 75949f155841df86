package stripesim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// reopen closes the rig's simulator and opens its file again.
func (r *rig) reopen(opts Options) *rig {
	r.t.Helper()
	mustNil(r.t, r.sim.Close())
	if opts.Clock == nil {
		opts.Clock = r.clock.now
	}
	next := newRig(r.t, opts)
	next.clock = r.clock
	return next
}

func ledgerJSON(t *testing.T, s *Server) string {
	t.Helper()
	b, err := json.Marshal(struct {
		L Ledger
		S Summary
	}{s.Ledger(), s.Summary()})
	mustNil(t, err)
	return string(b)
}

func TestReopenRebuildsEverything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	opts := Options{Path: path, DebitSettle: time.Hour}
	r := newRig(t, opts)
	paid := r.pay("paid", "customer", "cus_1")
	declined := r.pay("declined", "payment_method", "pm_card_visa_chargeDeclined")
	lost := r.do(call{path: intentsPath, key: "lost", form: pay("metadata[oncepay_payment]", "pay_2"), fault: FaultCommitThen503})
	failed := r.do(call{path: intentsPath, key: "failed", form: pay("metadata[oncepay_payment]", "pay_3"), fault: FaultCommitThen500})
	held := r.pay("held", "capture_method", "manual", "metadata[oncepay_payment]", "pay_4")
	debit := r.pay("debit", "payment_method", "pm_usBankAccount_success", "metadata[oncepay_payment]", "pay_5")
	r.do(call{path: intentsPath, key: "gone", form: pay(), fault: FaultResetBefore})
	id := at(declined.object(t), "error.payment_intent.id").(string)
	wrong := r.do(call{path: intentsPath + "/" + id + "/confirm", key: "wrong", form: form("off_session", "true")})
	mustNil(t, r.sim.AdvanceClock(time.Hour)) // settles the debit
	canceledRes := r.do(call{path: intentsPath + "/" + at(held.object(t), "id").(string) + "/cancel", key: "cancel"})
	list := r.get(intentsPath, "limit", "100")
	before := ledgerJSON(t, r.sim)

	r = r.reopen(opts)
	if after := ledgerJSON(t, r.sim); after != before {
		t.Errorf("after opening again:\n%s\nbefore:\n%s", after, before)
	}
	if got := r.get(intentsPath, "limit", "100"); got.body != list.body {
		t.Errorf("listed %s\nbefore %s", got.body, list.body)
	}
	for _, tc := range []struct {
		first result
		again result
	}{
		{paid, r.pay("paid", "customer", "cus_1")},
		{declined, r.pay("declined", "payment_method", "pm_card_visa_chargeDeclined")},
		{failed, r.pay("failed", "metadata[oncepay_payment]", "pay_3")},
		{debit, r.pay("debit", "payment_method", "pm_usBankAccount_success", "metadata[oncepay_payment]", "pay_5")},
		{wrong, r.do(call{path: intentsPath + "/" + id + "/confirm", key: "wrong", form: form("off_session", "true")})},
		{canceledRes, r.do(call{path: intentsPath + "/" + at(held.object(t), "id").(string) + "/cancel", key: "cancel"})},
	} {
		if tc.again.header.Get("Idempotent-Replayed") != "true" || tc.again.body != tc.first.body || tc.again.status != tc.first.status ||
			tc.again.header.Get("Original-Request") != tc.first.header.Get("Request-Id") {
			t.Errorf("first %d %s\nagain %d %v %s", tc.first.status, tc.first.body, tc.again.status, tc.again.header, tc.again.body)
		}
	}
	again := r.pay("lost", "metadata[oncepay_payment]", "pay_2")
	if lost.status != 503 || again.status != 200 || again.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a 503 was stored: %+v", again)
	}
	if other := r.pay("paid", "amount", "1234"); other.status != 400 {
		t.Errorf("another amount under a restored key: %d", other.status)
	}
	if sum := r.sim.Summary(); sum.DoubleCharges != 1 || sum.DoubleCharged[0] != "pay_2" {
		t.Errorf("summary %+v", sum)
	}
	// The clock's offset, and what is due by it, are kept too.
	mustNil(t, r.sim.AdvanceClock(23*time.Hour))
	if res := r.pay("declined", "payment_method", "pm_card_visa_chargeDeclined"); res.header.Get("Idempotent-Replayed") != "" {
		t.Error("a key outlived 24 h across a restart")
	}
}

// Whatever prefix of the file survives, opening it either restores exactly the
// whole lines or, for a damaged line, refuses.
func TestTornAndCorruptFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger")
	r := newRig(t, Options{Path: path})
	r.pay("a")
	r.pay("b", "metadata[oncepay_payment]", "pay_2")
	mustNil(t, r.sim.Close())
	whole, err := os.ReadFile(path)
	mustNil(t, err)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	if len(lines) != 4 { // header, two requests, and nothing
		t.Fatalf("%d lines: %s", len(lines), whole)
	}
	open := func(content []byte) (*Server, string, error) {
		p := filepath.Join(dir, fmt.Sprintf("f%d", time.Now().UnixNano()))
		mustNil(t, os.WriteFile(p, content, 0o600))
		s, err := New(Options{Path: p, Clock: r.clock.now})
		return s, p, err
	}
	for cut := 0; cut <= len(whole); cut += 7 {
		s, p, err := open(whole[:cut])
		mustNil(t, err)
		if want := max(0, bytes.Count(whole[:cut], []byte("\n"))-1); s.Summary().Charges != want {
			t.Errorf("cut at %d: %d charges, want %d", cut, s.Summary().Charges, want)
		}
		mustNil(t, s.Close())
		if kept, _ := os.ReadFile(p); len(kept) == 0 || kept[len(kept)-1] != '\n' {
			t.Errorf("cut at %d: the torn line is still there", cut)
		}
	}
	for name, content := range map[string][]byte{
		"a changed amount":   bytes.Replace(whole, []byte(`"amount":2000`), []byte(`"amount":2001`), 1),
		"a missing line":     append([]byte("\n"), whole...),
		"no header":          bytes.Join(lines[1:], nil),
		"two headers":        append(append([]byte{}, lines[0]...), whole...),
		"a blank line":       append(append([]byte{}, whole...), '\n'),
		"another file":       []byte("hello, world\n"),
		"a later version":    line(t, &record{Header: &header{Version: 2}}),
		"a half request":     append(append([]byte{}, lines[0]...), line(t, &record{Changed: true})...),
		"a nameless request": append(append([]byte{}, lines[0]...), line(t, &record{Request: &Request{}})...),
	} {
		s, _, err := open(content)
		if err == nil {
			t.Errorf("%s was accepted: %+v", name, s.Summary())
			mustNil(t, s.Close())
		} else if !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// line encodes a record as the journal does.
func line(t *testing.T, rec *record) []byte {
	t.Helper()
	b, err := json.Marshal(rec)
	mustNil(t, err)
	return []byte(checksum(b) + " " + string(b) + "\n")
}

func TestFileOfAnotherProcessIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	r := newRig(t, Options{Path: path})
	if s, err := New(Options{Path: path}); err == nil {
		mustNil(t, s.Close())
		t.Error("one file was opened twice")
	}
	mustNil(t, r.sim.Close())
	if _, err := New(Options{Path: filepath.Join(path, "below")}); err == nil {
		t.Error("a path below a file was opened")
	}
}

// A file that cannot be written executes nothing, answers 500 and frees the key.
func TestWriteFailureExecutesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	r := newRig(t, Options{Path: path})
	r.pay("a")
	good := r.sim.book.journal.file
	readOnly, err := os.Open(path)
	mustNil(t, err)
	r.sim.book.mu.Lock()
	r.sim.book.journal.file = readOnly
	r.sim.book.mu.Unlock()
	r.pay("b", "metadata[oncepay_payment]", "pay_2").want(t, 500, map[string]any{"error.type": "api_error"})
	if ids := r.listed(); len(ids) != 1 || r.sim.Summary().Charges != 1 {
		t.Errorf("listed %v, summary %+v", ids, r.sim.Summary())
	}
	if err := r.sim.AdvanceClock(time.Hour); err == nil {
		t.Error("the clock advanced without its line")
	}
	// The end of the file is unknown now, so nothing is written even if it could be.
	r.sim.book.mu.Lock()
	r.sim.book.journal.file = good
	r.sim.book.mu.Unlock()
	r.pay("b", "metadata[oncepay_payment]", "pay_2").want(t, 500, nil)
	mustNil(t, readOnly.Close())
	r = r.reopen(Options{Path: path, Sync: true})
	r.pay("b", "metadata[oncepay_payment]", "pay_2").want(t, 200, map[string]any{"status": "succeeded"})
}

// helperProcess is a simulator of its own, until its standard input ends.
func helperProcess(path string) int {
	s, err := New(Options{Path: path})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("http://" + l.Addr().String())
	go http.Serve(l, s)
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// startHelper runs the test binary as a simulator and returns its URL.
func startHelper(t *testing.T, path string) (kill func(), url string) {
	t.Helper()
	exe, err := os.Executable()
	mustNil(t, err)
	cmd := exec.CommandContext(deadline(t), exe)
	cmd.Env = append(os.Environ(), helperEnv+"="+path)
	_, err = cmd.StdinPipe() // ends with this process
	mustNil(t, err)
	out, err := cmd.StdoutPipe()
	mustNil(t, err)
	mustNil(t, cmd.Start())
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill() // SIGKILL
			_ = cmd.Wait()
		})
	}
	t.Cleanup(kill)
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(first, "http://") {
		t.Fatalf("helper said %q, %v", first, err)
	}
	return kill, strings.TrimSpace(first)
}

// TestKill kills a simulator under load, three times on one file: whatever it
// answered is in the ledger, once, and is replayed byte for byte.
func TestKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	var mu sync.Mutex
	answered := map[string]string{} // key to body
	for round := range 3 {
		kill, url := startHelper(t, path)
		r := &rig{t: t, web: &httptest.Server{URL: url}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		enough := make(chan struct{})
		var count int
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					key := fmt.Sprintf("%d-%d-%d", round, w, i)
					res := r.pay(key, "metadata[oncepay_payment]", key)
					if res.err != nil {
						return // killed
					}
					mu.Lock()
					answered[key] = res.body
					if count++; count == 100 {
						close(enough)
					}
					mu.Unlock()
				}
			})
		}
		<-enough
		kill()
		wg.Wait()
	}
	s, err := New(Options{Path: path})
	mustNil(t, err)
	defer s.Close()
	charged := map[string]string{}
	for _, c := range s.Ledger().Charges {
		charged[c.IdempotencyKey] = c.PaymentIntent
	}
	web := httptest.NewServer(s)
	defer web.Close()
	r := &rig{t: t, web: web, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	if len(answered) < 300 {
		t.Fatalf("only %d answers", len(answered))
	}
	for key, body := range answered {
		if id := charged[key]; id == "" || !strings.Contains(body, id) {
			t.Errorf("%s was answered, and the ledger has %q", key, id)
		}
		if again := r.pay(key, "metadata[oncepay_payment]", key); again.body != body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: again %+v, first %s", key, again, body)
		}
	}
	if sum := s.Summary(); sum.DoubleCharges != 0 || sum.Unattributed != 0 || sum.PaymentIntents != sum.Charges {
		t.Errorf("summary %+v", sum)
	}
}
