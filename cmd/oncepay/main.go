// Command oncepay is the payment processor and its operators' commands.
package main

import (
	"os"

	"github.com/oncepay/oncepay/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
