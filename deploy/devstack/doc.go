// Package devstack starts the real services that Oncepay stands on, PostgreSQL
// and NATS JetStream, for the demo, for `oncepay-dev up` and for tests, with
// nothing installed by hand but PostgreSQL's own binaries.
//
// Everything listens on 127.0.0.1 only. Nothing is left behind: a small watcher
// process holds the read end of a pipe whose write end only the parent has.
// When the parent ends, however it ends (kill -9 included), the watcher stops
// PostgreSQL and removes the temporary directories it was told about. On Linux
// PostgreSQL also gets a parent-death signal, should the watcher itself be gone.
//
// A named data directory survives and is taken over by the next start, even when
// its PostgreSQL is still running; one that a living process holds is refused.
package devstack
