// Package chaos is the machinery of `oncepay-dev chaos`: real processes that can be killed and stopped, TCP links between them that can be cut,
// stalled and slowed, a NATS node that is a process of its own, and the schedule of what happens when, a pure function of a seed.
//
// It knows nothing of payments. What runs, what is published and how it is judged is the command's matter.
//
// Nothing is left behind: every process holds the read end of a pipe whose write end only the parent has, and ends when that closes. One that was
// stopped with SIGSTOP cannot read; the Keeper, a small shell, is told of it and kills it when the parent has ended, however it ended.
package chaos
