package app

import (
	"crypto/rand"
	"time"

	"github.com/oncepay/oncepay/payments"
)

// SystemClock is the wall clock.
type SystemClock struct{}

// Now is the system's time.
func (SystemClock) Now() time.Time { return time.Now() }

// NewToken draws 128 random bits from the system's source, which never fails since Go 1.24.
func NewToken() payments.Token {
	var t payments.Token
	_, _ = rand.Read(t[:])
	return t
}
