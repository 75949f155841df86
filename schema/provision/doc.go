// Package provision makes a JetStream server have the streams and consumers that
// package schema describes as data.
//
// It is an admin step: run it once per deployment, before anything publishes.
// Several processes may run it at once. It never makes a change that could drop a
// stored message or make a consumer pass one over; such a change is refused with
// the name of the setting and the way to make it by hand.
package provision
