// Package crashtest holds, in the packages below it, the tests of the whole worker on real PostgreSQL, JetStream and the simulator: it dies at every
// step, under every fault, alone and after another owner; processes are killed and stopped; PostgreSQL and NATS go away; messages are poison. Whatever
// happens, the oracle must find one charge and one outcome for every intent, and nothing lost.
//
// Package world is what they run in; the others are tests alone, and say what they are about in their main_test.go. Protections are tested by removing
// them: the tests of package protection also run in a build with the tag sabotage, where the oracle has to turn red.
package crashtest
