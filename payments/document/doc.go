// Package document is the one mapping from the domain to what other people see: the HTTP API, the command line and events print the same
// documents because all of them come from here.
package document
