package tidy

import (
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// StateMachineFile is the page that payments/status.go generates.
const StateMachineFile = "docs/STATE_MACHINE.md"

// StateMachine compares the page's text with what payments/status.go says now.
func StateMachine(page string) []Finding {
	return compare(page, payments.StateMachineMarkdown(), Finding{
		File: StateMachineFile, Text: "differs from payments/status.go; regenerate it: go run ./cmd/internal/tidy/statemachine > " + StateMachineFile,
	})
}

// FailurePolicyFile is the page that payments/policy.go generates.
const FailurePolicyFile = "docs/FAILURE_POLICY.md"

// FailurePolicy compares the page's text with what payments.Decide says now.
func FailurePolicy(page string) []Finding {
	return compare(page, payments.FailurePolicyMarkdown(), Finding{
		File: FailurePolicyFile, Text: "differs from what payments.Decide says; regenerate it: go run ./cmd/internal/tidy/failurepolicy > " + FailurePolicyFile,
	})
}

// compare returns what is found at the first line that differs.
func compare(page, want string, found Finding) []Finding {
	if page == want {
		return nil
	}
	have, should := strings.Split(page, "\n"), strings.Split(want, "\n")
	line := 0
	for line < len(have) && line < len(should) && have[line] == should[line] {
		line++
	}
	found.Line = line + 1
	return []Finding{found}
}
