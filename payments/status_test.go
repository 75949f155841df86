package payments

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestStateMachineDocumentIsTheTable(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../docs/STATE_MACHINE.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != StateMachineMarkdown() {
		t.Error("docs/STATE_MACHINE.md is not what StateMachineMarkdown returns: generate it again")
	}
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	type row struct {
		ticket, final bool
		next          string
	}
	anyOutcome := " succeeded requires_capture requires_action failed expired canceled needs_review"
	want := map[Status]row{
		"received":         {true, false, "waiting unknown pending rejected stalled" + anyOutcome},
		"waiting":          {true, false, "waiting unknown pending rejected stalled" + anyOutcome},
		"unknown":          {true, false, "waiting unknown pending rejected" + anyOutcome},
		"pending":          {true, false, "waiting pending unknown" + anyOutcome},
		"requires_capture": {false, false, "succeeded canceled failed unknown needs_review"},
		"requires_action":  {false, false, "succeeded requires_capture pending failed canceled unknown needs_review"},
		"needs_review":     {false, false, "waiting unknown pending rejected" + anyOutcome},
		"stalled":          {false, false, "waiting unknown pending rejected" + anyOutcome},
		"succeeded":        {false, true, ""},
		"failed":           {false, true, ""},
		"rejected":         {false, true, ""},
		"expired":          {false, true, ""},
		"canceled":         {false, true, ""},
	}
	if len(Statuses()) != len(want) {
		t.Fatalf("%d statuses are stored, want %d", len(Statuses()), len(want))
	}
	all := append(Statuses(), StatusProcessing, "", "nonsense")
	for _, s := range Statuses() {
		w, ok := want[s]
		if !ok {
			t.Errorf("%s is not a status of the contract", s)
			continue
		}
		if s.HasTicket() != w.ticket || s.Final() != w.final || !s.Stored() {
			t.Errorf("%s: ticket %v, final %v, stored %v", s, s.HasTicket(), s.Final(), s.Stored())
		}
		if s.HasTicket() != slices.Contains(TicketStatuses(), s) {
			t.Errorf("%s: TicketStatuses disagrees with HasTicket", s)
		}
		next := strings.Fields(w.next)
		for _, n := range all {
			if got := s.CanMove(n); got != slices.Contains(next, string(n)) {
				t.Errorf("%s -> %q: CanMove = %v", s, n, got)
			}
		}
		if s.Final() && s.HasTicket() {
			t.Errorf("%s is final and somebody must act on it", s)
		}
		if !strings.Contains(StateMachineMarkdown(), "| `"+string(s)+"` |") {
			t.Errorf("%s is missing in the document", s)
		}
	}
	for _, s := range []Status{StatusProcessing, "", "nonsense"} {
		if s.Stored() || s.Final() || s.HasTicket() || s.CanMove(StatusSucceeded) {
			t.Errorf("%q is never stored and has no rules", s)
		}
	}
}

func TestEveryOpenStatusCanEnd(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		seen := map[Status]bool{s: true}
		for todo := []Status{s}; len(todo) > 0; todo = todo[1:] {
			for _, n := range Statuses() {
				if todo[0].CanMove(n) && !seen[n] {
					seen[n], todo = true, append(todo, n)
				}
			}
		}
		if !s.Final() && !seen[StatusSucceeded] {
			t.Errorf("no way leads from %s to succeeded", s)
		}
	}
}

func TestShownStatus(t *testing.T) {
	t.Parallel()
	for _, s := range Statuses() {
		for _, owned := range []bool{false, true} {
			want := s
			if owned && (s == StatusReceived || s == StatusWaiting) {
				want = StatusProcessing
			}
			if got := (Payment{Status: s, Owned: owned}).ShownStatus(); got != want {
				t.Errorf("%s owned %v is shown as %s, want %s", s, owned, got, want)
			}
		}
	}
}
