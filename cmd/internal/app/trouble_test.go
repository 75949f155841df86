package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
)

func TestTroubleIsToldAtOnceAndThenNowAndThen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tr := newTrouble(NewLog(&out, "info"), func() time.Time { return now })
	pay := payments.Payment{ID: payments.NewID("acme", "order-1"), Intent: payments.Intent{TenantID: "acme"}}
	lines := func(wantTimes ...float64) {
		t.Helper()
		text := strings.TrimSpace(out.String())
		out.Reset()
		var got []float64
		for _, line := range strings.Fields(strings.ReplaceAll(text, " ", "_")) {
			var l struct {
				Level   string
				Times   float64
				Payment string
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil || l.Payment != pay.ID.String() {
				t.Errorf("%s: %v", line, err)
			}
			got = append(got, l.Times)
		}
		if len(got) != len(wantTimes) {
			t.Fatalf("%d lines, want %d: %s", len(got), len(wantTimes), text)
		}
		for i := range got {
			if got[i] != wantTimes[i] {
				t.Errorf("line %d says %v times, want %v", i, got[i], wantTimes[i])
			}
		}
	}
	for range 500 {
		tr.observed(pay, payments.Observation{Kind: payments.ObservedUnauthorized})
	}
	lines(1)
	tr.observed(pay, payments.Observation{Kind: payments.ObservedNotSent}) // another trouble is told at once
	lines(1)
	now = now.Add(troubleEvery)
	tr.observed(pay, payments.Observation{Kind: payments.ObservedUnauthorized})
	lines(500)
	for _, o := range []payments.ObservationKind{payments.ObservedAnswer, payments.ObservedDecline, payments.ObservedRecords, payments.ObservedInvalid} {
		tr.observed(pay, payments.Observation{Kind: o})
	}
	tr.settled(payments.Settlement{Recorded: payments.Recorded{Payment: payments.Payment{ID: pay.ID, Status: payments.StatusSucceeded}}})
	lines()
	pay.Status = payments.StatusStalled
	tr.settled(payments.Settlement{Recorded: payments.Recorded{Payment: pay}})
	lines(1)
}

// A payment that is given up has a dead letter like any other, and is counted as one.
func TestGivenUpIsCountedAsADeadLetter(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.Observer().Settled(payments.LaneBulk, payments.Settlement{Recorded: payments.Recorded{Payment: payments.Payment{Status: payments.StatusStalled}}}, 0)
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "oncepay_dead_letters_total" && f.GetMetric()[0].GetCounter().GetValue() == 1 &&
			f.GetMetric()[0].GetLabel()[0].GetValue() == string(payments.ReasonAttemptsExhausted) {
			return
		}
	}
	t.Error("it is not counted")
}
