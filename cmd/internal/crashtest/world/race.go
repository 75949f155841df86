//go:build race

package world

// Scale divides the load of tests that are about numbers: the race detector makes everything slower several times over.
const Scale = 5

// slow stretches the short times, in which a call that is merely slow would look like one that was lost.
const slow = 3
