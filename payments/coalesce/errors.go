package coalesce

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotFlushed is in the chain of every error of Do that proves that the item was in no flush and
// will be in none. Any other error comes from the flush that the item was in.
var ErrNotFlushed = errors.New("coalesce: the item was not flushed")

// ErrClosed is returned for items that arrive after Close was called; it wraps ErrNotFlushed.
var ErrClosed = fmt.Errorf("%w: the group is closed", ErrNotFlushed)

// ErrGoexit is what waiters get whose Flush ended its goroutine with runtime.Goexit.
var ErrGoexit = errors.New("coalesce: the flush ended its goroutine (runtime.Goexit)")

// CountError is what every waiter gets when a Flush returned another number of results than it was
// given items: no result can then be trusted to belong to its item.
type CountError struct {
	Want, Got int
}

// Error implements error.
func (e *CountError) Error() string {
	return fmt.Sprintf("coalesce: the flush returned %d results for %d items; it must return one per item, in order", e.Got, e.Want)
}

// PanicError is what every waiter gets when its Flush panicked.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked, as debug.Stack prints it.
	Stack []byte
}

// Error implements error; it leaves the stack out.
func (e *PanicError) Error() string { return fmt.Sprintf("coalesce: the flush panicked: %v", e.Value) }

// Unwrap returns the panic's value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// notFlushed is the error of a waiter that left before its flush.
func notFlushed(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return fmt.Errorf("%w: %w", ErrNotFlushed, err)
	}
	return fmt.Errorf("%w: %w: %w", ErrNotFlushed, err, cause)
}
