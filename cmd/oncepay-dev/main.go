// Command oncepay-dev runs the whole stack on this machine: up, demo, bench and the Stripe simulator alone. It needs nothing installed but Go
// and PostgreSQL's own binaries.
package main

import (
	"os"

	"github.com/oncepay/oncepay/cmd/internal/dev"
)

func main() { os.Exit(dev.Main(os.Args[1:])) }
