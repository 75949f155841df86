//go:build !race

package world

// Scale divides the load of tests that are about numbers.
const Scale = 1

// slow stretches the short times.
const slow = 1
