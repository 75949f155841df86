// Package crashtest holds the tests of the whole worker on real PostgreSQL, JetStream and the simulator: it dies at every step, under every
// fault, alone and after another owner; processes are killed and stopped; PostgreSQL and NATS go away; messages are poison. Whatever happens,
// the oracle must find one charge and one outcome for every intent, and nothing lost.
//
// Everything is in the test files. A world is one installation of its own: a database, streams under a prefix, a simulator and a clock that
// all of them share. A worker is wired as in production, and one that is meant to die reaches PostgreSQL and NATS through proxies that are
// cut. Protections are tested by removing them: the same tests run in a build with the tag sabotage, where the oracle has to turn red.
package crashtest
