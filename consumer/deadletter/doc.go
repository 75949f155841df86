// Package deadletter runs operators' replays. A payment that was given up gets its ticket again; a message that nobody could go on with is read and
// admitted as if it had just been delivered. Then workers have it: a replay never calls Stripe, and what it takes up goes the same way under the same
// keys as the first time.
//
// Any number of runners may run, in one process or many: items are held for a while, so that what a runner leaves behind is taken up by another.
package deadletter
