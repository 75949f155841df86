// Package rewind runs the job by which a database that was restored learns again what it has forgotten.
//
// It waits until nobody can be sending any more, keeps what Stripe lists, makes in doubt whatever is to be worked on, stores the payments of
// messages that the database does not have, and marks the database anew. Every step may be repeated, so a runner that dies is followed by
// another one. Nothing is ever sent by it.
package rewind
