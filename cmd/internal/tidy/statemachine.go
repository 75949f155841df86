package tidy

import (
	"strings"

	"github.com/oncepay/oncepay/payments"
)

// StateMachineFile is the page that payments/status.go generates.
const StateMachineFile = "docs/STATE_MACHINE.md"

// StateMachine compares the page's text with what payments/status.go says now.
func StateMachine(page string) []Finding { return compare(page, payments.StateMachineMarkdown()) }

func compare(page, want string) []Finding {
	if page == want {
		return nil
	}
	have, should := strings.Split(page, "\n"), strings.Split(want, "\n")
	line := 0
	for line < len(have) && line < len(should) && have[line] == should[line] {
		line++
	}
	return []Finding{{File: StateMachineFile, Line: line + 1, Text: "differs from payments/status.go; regenerate it: go run ./cmd/internal/tidy/statemachine > " + StateMachineFile}}
}
