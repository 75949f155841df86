// Package world is what the crash tests run in. A World is one installation of its own: a database, streams under a prefix, a simulator and a clock
// that all of them share, and what its producers have asked for. A Worker is wired as in production, and one that is meant to die reaches
// PostgreSQL and NATS through proxies that are cut; a Process is a worker, or the HTTP API, in a process of its own. An Account is everything
// that is known of a run at rest, for the oracle to judge. Only tests import it.
package world
