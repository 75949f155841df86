// Package cli is the command line of oncepay, one file a command. What a command prints for --json is exactly one JSON document on standard
// output; everything else goes to standard error. Exit codes: 0 ok, 1 failed or not found, 2 usage or settings.
package cli
