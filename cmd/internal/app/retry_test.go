package app

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// What PostgreSQL refuses by name ends a starting process; whatever else keeps it from its answer is waited for, whenever it comes.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		err  error
		away bool
	}{
		{&pgconn.PgError{Code: "57P01"}, true}, // terminating connection
		{&pgconn.PgError{Code: "57P03"}, true}, // starting up
		{&pgconn.PgError{Code: "53300"}, true}, // too many connections
		{&pgconn.PgError{Code: "28P01"}, false},
		{&pgconn.PgError{Code: "3D000"}, false},
		{&pgconn.PgError{Code: "42501"}, false},
		{&pgconn.ConnectError{}, true},
		{reset, true},
		{fmt.Errorf("in the middle of an answer: %w", io.ErrUnexpectedEOF), true},
		{fmt.Errorf("asked: %w", driver.ErrBadConn), true}, // by database/sql, of connections that were closed before the question
		{fmt.Errorf("no answer: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("dial: %w", &tls.CertificateVerificationError{Err: errors.New("unknown authority")}), false},
		{errors.New("a migration is broken"), false},
	} {
		if unreachable(c.err) != c.away {
			t.Errorf("%v: away is %v", c.err, !c.away)
		}
	}
}
