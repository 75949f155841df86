package stripesim

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"
)

// control answers the simulator's own endpoints, which need no key.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /_sim/ledger":
		controlAnswer(w, http.StatusOK, s.Ledger())
	case "GET /_sim/summary":
		controlAnswer(w, http.StatusOK, s.Summary())
	case "POST /_sim/faults":
		controlDo(w, r, s.controlFault)
	case "DELETE /_sim/faults":
		s.ClearFaults()
		controlAnswer(w, http.StatusOK, okBody)
	case "POST /_sim/limits":
		controlDo(w, r, s.SetLimits)
	case "POST /_sim/clock":
		controlDo(w, r, s.controlClock)
	case "POST /_sim/idempotency":
		controlDo(w, r, s.controlIdempotency)
	default:
		controlAnswer(w, http.StatusNotFound, controlError("no such control: "+r.Method+" "+r.URL.Path))
	}
}

var okBody = map[string]bool{"ok": true}

func controlError(message string) any {
	return map[string]any{"error": map[string]string{"type": "simulator_error", "message": message}}
}

func controlAnswer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":{"type":"simulator_error","message":"the answer cannot be encoded"}}`)
	}
	send(w, status, "application/json", append(b, '\n'))
}

// controlDo decodes the body strictly and applies it.
func controlDo[T any](w http.ResponseWriter, r *http.Request, do func(T) error) {
	var v T
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&v)
	if err == nil {
		if _, end := dec.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is more after the JSON object")
		}
	}
	if err == nil {
		err = do(v)
	}
	if err != nil {
		controlAnswer(w, http.StatusBadRequest, controlError(err.Error()))
		return
	}
	controlAnswer(w, http.StatusOK, okBody)
}

// ruleBody tells a zero that was written from one that was left out.
type ruleBody struct {
	Match struct {
		Method   string            `json:"method"`
		Path     string            `json:"path"`
		Metadata map[string]string `json:"metadata"`
		Nth      *int              `json:"nth"`
	} `json:"match"`
	Fault string   `json:"fault"`
	Times *int     `json:"times"`
	Rate  *float64 `json:"rate"`
}

func (s *Server) controlFault(b ruleBody) error {
	rule := Rule{Match: Match{Method: b.Match.Method, Path: b.Match.Path, Metadata: b.Match.Metadata}, Fault: b.Fault}
	if b.Match.Nth != nil {
		if rule.Match.Nth = *b.Match.Nth; rule.Match.Nth == 0 {
			return errors.New("match.nth is 0: it counts from 1")
		}
	}
	if b.Times != nil {
		if rule.Times = *b.Times; rule.Times == 0 {
			return errors.New("times is 0: use 1 or more, or leave it out for no end")
		}
	}
	if b.Rate != nil {
		if rule.Rate = *b.Rate; rule.Rate == 0 {
			return errors.New("rate is 0: use more than 0 and at most 1, or leave it out for always")
		}
	}
	return s.AddFault(rule)
}

type clockBody struct {
	AdvanceS *float64 `json:"advance_s"`
}

func (s *Server) controlClock(b clockBody) error {
	if b.AdvanceS == nil || math.Abs(*b.AdvanceS) > maxAdvance.Seconds() {
		return errors.New("advance_s is missing or out of range: use seconds, as 90000")
	}
	return s.AdvanceClock(time.Duration(*b.AdvanceS * float64(time.Second)))
}

type idempotencyBody struct {
	Enabled *bool `json:"enabled"`
}

func (s *Server) controlIdempotency(b idempotencyBody) error {
	if b.Enabled == nil {
		return errors.New("enabled is missing: use true or false")
	}
	s.SetIdempotency(*b.Enabled)
	return nil
}
