//go:build !race

package crashtest

// scale divides the load of tests that are about numbers.
const scale = 1

// slow stretches the short times.
const slow = 1
