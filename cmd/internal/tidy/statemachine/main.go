// Command statemachine prints docs/STATE_MACHINE.md as payments/status.go has it.
package main

import (
	"fmt"
	"os"

	"github.com/oncepay/oncepay/payments"
)

func main() {
	if _, err := fmt.Print(payments.StateMachineMarkdown()); err != nil {
		fmt.Fprintln(os.Stderr, "statemachine:", err)
		os.Exit(1)
	}
}
