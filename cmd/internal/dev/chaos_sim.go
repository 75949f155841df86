package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/oncepay/oncepay/payments/stripesim"
)

// controlClient has no connection left from a simulator that was killed since.
var controlClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// simControl speaks to the simulator's control. The simulator forgets faults and limits with every restart, so all are told again each time.
type simControl struct {
	url        string
	keysOff    bool
	background bool // every fault, rarely

	mu      sync.Mutex
	rule    *stripesim.Rule
	latency int // ms
}

// backgroundRate is the chance of each fault at any time.
const backgroundRate = 0.004

// setRule changes the fault beside the background, nil for none.
func (s *simControl) setRule(ctx context.Context, rule *stripesim.Rule) error {
	s.mu.Lock()
	s.rule = rule
	s.mu.Unlock()
	return s.apply(ctx)
}

// during sets a fault for a while. The simulator may be down by another event's doing: it is told when it starts again.
func (s *simControl) during(ctx context.Context, d time.Duration, set func(context.Context, *stripesim.Rule) error, rule *stripesim.Rule) error {
	_ = set(ctx, rule)
	pause(ctx, d)
	_ = set(ctx, nil)
	return nil
}

func (s *simControl) setLatency(ctx context.Context, ms int) error {
	s.mu.Lock()
	s.latency = ms
	s.mu.Unlock()
	return s.apply(ctx)
}

// heal takes every fault away.
func (s *simControl) heal(ctx context.Context) error {
	s.mu.Lock()
	s.rule, s.latency, s.background = nil, 0, false
	s.mu.Unlock()
	return s.apply(ctx)
}

// apply tells the simulator all that is set.
func (s *simControl) apply(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call(ctx, http.MethodDelete, "/_sim/faults", nil, nil); err != nil {
		return err
	}
	var rules []stripesim.Rule
	if s.rule != nil {
		rules = append(rules, *s.rule)
	}
	if s.background {
		for _, fault := range faults {
			rules = append(rules, stripesim.Rule{Fault: fault, Rate: backgroundRate})
			rules = append(rules, stripesim.Rule{Match: stripesim.Match{Method: http.MethodGet, Path: "/v1/payment_intents"}, Fault: fault, Rate: backgroundRate})
		}
	}
	for _, r := range rules {
		if err := s.call(ctx, http.MethodPost, "/_sim/faults", r, nil); err != nil {
			return err
		}
	}
	if err := s.call(ctx, http.MethodPost, "/_sim/limits", stripesim.Limits{LatencyMS: s.latency}, nil); err != nil {
		return err
	}
	if !s.keysOff {
		return nil
	}
	return s.call(ctx, http.MethodPost, "/_sim/idempotency", map[string]bool{"enabled": false}, nil)
}

// applyTo tells all that is set to a simulator that has just been started. Another event may end this life of it meanwhile: then it is that event's to tell
// the next.
func (s *simControl) applyTo(ctx context.Context, ended <-chan struct{}) error {
	for deadline := time.Now().Add(startMax); ; {
		err := s.apply(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ended:
			return nil
		default:
		}
		if !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// call makes one request of the control, and reads the answer into out.
func (s *simControl) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, &body)
	if err != nil {
		return err
	}
	response, err := controlClient.Do(request)
	if err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		return fmt.Errorf("simulator: %s %s: %s", method, path, response.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(out)
}
