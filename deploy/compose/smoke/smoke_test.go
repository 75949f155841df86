package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oncepay/oncepay/deploy/devstack/devstacktest"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
	"github.com/oncepay/oncepay/schema/provision"
)

func TestMain(m *testing.M) { devstacktest.Run(m) }

// stack is a stream, and a ledger that charges whatever comes.
type stack struct {
	mu     sync.Mutex
	ledger ledger
	seen   map[string]bool
	double bool
	wrong  bool
	counts summary

	looks        int
	onSecondLook func() // set: the first answer has been read, and time ends during the second
}

// charge books one message, once for each key, unless the stack is told to err.
func (s *stack) charge(tenant string, body []byte) {
	var wire struct {
		Key    string `json:"idempotency_key"`
		Amount int64  `json:"amount"`
	}
	if json.Unmarshal(body, &wire) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := payments.Intent{TenantID: tenant, IdempotencyKey: wire.Key}.ID().Format(payments.KindCharge)
	if s.seen[id] && !s.double {
		return
	}
	s.seen[id] = true
	if s.wrong {
		wire.Amount++
	}
	s.ledger.Charges = append(s.ledger.Charges, struct {
		Amount   int64             `json:"amount"`
		Metadata map[string]string `json:"metadata"`
	}{wire.Amount, map[string]string{"oncepay_payment": id}})
}

// ServeHTTP is the simulator's control.
func (s *stack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/_sim/ledger":
		if s.looks++; s.looks == 2 && s.onSecondLook != nil {
			s.onSecondLook()
		}
		_ = json.NewEncoder(w).Encode(s.ledger)
	case "/_sim/summary":
		_ = json.NewEncoder(w).Encode(s.counts)
	default:
		http.NotFound(w, r)
	}
}

// start runs a stack under a tenant of its own.
func start(t *testing.T, s *stack) options {
	t.Helper()
	nc, err := nats.Connect(devstacktest.NATS(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	subjects, settings := schema.Subjects{}, schema.DefaultSettings()
	settings.StreamMaxBytes = 64 << 20
	if err := provision.Ensure(t.Context(), js, subjects.Streams(settings), nil); err != nil {
		t.Fatal(err)
	}
	tenant := devstacktest.Prefix(t)
	s.seen = map[string]bool{}
	if _, err := nc.Subscribe("payments.intent."+tenant, func(m *nats.Msg) { s.charge(tenant, m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return options{nats: devstacktest.NATS(t).URL(), simulator: server.URL, tenant: tenant, password: "none is needed here", intents: 50, repeats: 3, within: time.Minute}
}

// TestRun: the verdict is that of the ledger.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		stack *stack
		error string
	}{
		{"as it should be", &stack{}, ""},
		{"each message is charged", &stack{double: true}, "charged twice"},
		{"another amount", &stack{wrong: true}, "was asked for"},
		{"the simulator knows better", &stack{counts: summary{DoubleCharges: 1}}, "nobody asked for"},
		{"a charge of nobody", &stack{counts: summary{Unattributed: 1}}, "nobody asked for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(t.Context(), start(t, c.stack), time.Now, &out)
			if c.error == "" && (err != nil || !strings.Contains(out.String(), "50 intents") || !strings.Contains(out.String(), "150 messages") || !strings.Contains(out.String(), "charged     50")) {
				t.Errorf("%v: %s", err, out.String())
			}
			if c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)) {
				t.Errorf("got %v, want %q", err, c.error)
			}
		})
	}
}

// TestRunGivesUp: an intent that is never charged, and a stack that is not there, are told in the end.
func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := start(t, &stack{onSecondLook: cancel})
	if _, err := waitCharged(ctx, o, map[string]intent{"pay_x": {id: "pay_x"}}); err == nil || !strings.Contains(err.Error(), "1 of 1 intents are not charged") {
		t.Errorf("got %v", err)
	}
	o.simulator = "http://127.0.0.1:1" // nobody listens there
	if _, err := waitCharged(ctx, o, nil); err == nil || !strings.Contains(err.Error(), "the ledger cannot be read") {
		t.Errorf("got %v", err)
	}
	o.password = ""
	if err := run(t.Context(), o, time.Now, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "NATS_PASSWORD") {
		t.Errorf("got %v", err)
	}
}
