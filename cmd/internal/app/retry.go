package app

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The waits between attempts to reach what is away.
const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Second
)

// answerTimeout bounds what PostgreSQL answers at once if it answers at all: a connection may lead to a server that is gone, and the next one not.
const answerTimeout = 30 * time.Second

// retry calls f until it succeeds, fails for good, or ctx ends. What a starting process needs may be starting too.
func retry(ctx context.Context, log *slog.Logger, what string, again func(error) bool, f func() error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := f()
		if err == nil || !again(err) || ctx.Err() != nil {
			return err
		}
		log.Warn(what+" is not reachable yet; it is tried again until it is", "error", OneLine(err.Error()))
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C:
		}
	}
}

// OneLine is the text without line breaks, for a log or an error message.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// unreachable reports whether PostgreSQL may only be away: what it refuses by name (a password, a database that does not exist), and a
// certificate that cannot be trusted, will not mend itself.
func unreachable(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return strings.HasPrefix(refused.Code, "57P") || strings.HasPrefix(refused.Code, "53") || strings.HasPrefix(refused.Code, "08")
	}
	// A connection that is cut in the middle of a question is no refusal either, nor is one that was closed before it, nor silence.
	var failed *pgconn.ConnectError
	var network net.Error
	away := errors.As(err, &failed) || errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
	return away && !badCertificate(err)
}

func badCertificate(err error) bool {
	var bad *tls.CertificateVerificationError
	return errors.As(err, &bad)
}

// DatabaseError names the setting that an error of connecting to PostgreSQL is about; a *UsageError where PostgreSQL refuses it.
func DatabaseError(err error) error {
	const name = "ONCEPAY_DATABASE_URL: "
	var refused *pgconn.PgError
	isAnswer := errors.As(err, &refused)
	switch {
	case isAnswer && (strings.HasPrefix(refused.Code, "28") || strings.HasPrefix(refused.Code, "3D")):
		return &UsageError{name + "PostgreSQL refuses: " + refused.Message}
	case badCertificate(err):
		return &UsageError{name + OneLine(err.Error())}
	case unreachable(err):
		return fmt.Errorf(name+"PostgreSQL cannot be reached: %w", err)
	default:
		return fmt.Errorf(name+"%w", err)
	}
}
