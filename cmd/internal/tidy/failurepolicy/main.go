// Command failurepolicy prints docs/FAILURE_POLICY.md as payments.Decide has it.
package main

import (
	"fmt"
	"os"

	"github.com/oncepay/oncepay/payments"
)

func main() {
	if _, err := fmt.Print(payments.FailurePolicyMarkdown()); err != nil {
		fmt.Fprintln(os.Stderr, "failurepolicy:", err)
		os.Exit(1)
	}
}
