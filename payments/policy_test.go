package payments

import (
	"os"
	"strings"
	"testing"
)

func TestFailurePolicyDocumentIsWhatDecideSays(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../docs/FAILURE_POLICY.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != FailurePolicyMarkdown() {
		t.Error("docs/FAILURE_POLICY.md is not what FailurePolicyMarkdown returns: generate it again")
	}
}

// The table is whole: every kind of observation is in it, every history meets something, and every cell has a rule.
func TestFailurePolicyIsWhole(t *testing.T) {
	t.Parallel()
	kinds := map[ObservationKind]bool{}
	met := map[string]int{}
	for _, c := range policyClasses {
		var o Observation
		c.show(&o)
		kinds[o.Kind] = true
		for _, h := range policyHistories {
			if cell := policyCell(c, h); cell != "" {
				met[h.name]++
				met[c.name]++
				if !strings.HasPrefix(cell, "`") && !strings.HasPrefix(cell, "send again") {
					t.Errorf("%s, %s: %s", c.name, h.name, cell)
				}
			}
		}
		if met[c.name] == 0 {
			t.Errorf("%s meets no history", c.name)
		}
	}
	for _, k := range ObservationKinds() {
		if !kinds[k] {
			t.Errorf("%s is in no class", k)
		}
	}
	for _, h := range policyHistories {
		if met[h.name] == 0 {
			t.Errorf("%s meets no class", h.name)
		}
	}
}

// Every reason that Decide gives, but Stripe's own codes, is explained.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{"": true, "card_declined": true, "authentication_required": true}
	for _, r := range reasonRules {
		if explained[r.reason] || r.meaning == "" || r.remedy == "" {
			t.Errorf("%q is explained twice, or not at all", r.reason)
		}
		explained[r.reason] = true
	}
	obs := observations()
	for i, h := range histories() {
		if i%7 != 0 { // each reason comes up in thousands of situations
			continue
		}
		for _, o := range obs {
			got, err := Decide(h.p, o, testNow, Policy{TriesMax: testTriesMax})
			if err != nil {
				t.Fatal(err)
			}
			reason, _, _ := strings.Cut(got.Reason, ":")
			if !explained[reason] {
				t.Fatalf("%q is not explained", got.Reason)
			}
		}
	}
}
