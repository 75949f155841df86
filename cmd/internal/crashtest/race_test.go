//go:build race

package crashtest

// scale divides the load of tests that are about numbers: the race detector makes everything slower several times over.
const scale = 5
