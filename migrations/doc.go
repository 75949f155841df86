// Package migrations keeps the numbered SQL of Oncepay's tables and applies it. Any number of processes may start at once: one of them
// migrates under a session lock of PostgreSQL, each step in a transaction of its own, and the others wait; if it dies, the next goes on.
//
// Files are only ever added: a step that has been released is never changed. None has a way down: it could only drop what payments were made of.
package migrations
