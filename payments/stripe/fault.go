package stripe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// unreadable is said where nothing better is known.
const unreadable = "the answer could not be read"

// faultBefore is faultOf for a call of which nothing left.
func faultBefore(err error) string {
	if fault := faultOf(err); fault != unreadable {
		return fault
	}
	return "no connection was obtained"
}

// faultOf puts an error of the network into words of our own: net/http's would quote what the other side sent.
func faultOf(err error) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var op *net.OpError
	var timeout net.Error
	switch {
	case err == nil:
		return "no reason was given"
	case errors.Is(err, context.Canceled):
		return "the call was ended"
	case errors.Is(err, errTooLong):
		return errTooLong.Error()
	case errors.Is(err, errUpgrade):
		return errUpgrade.Error()
	case errors.As(err, &cert):
		return "the server's certificate is not trusted"
	case errors.As(err, &dns):
		return "the host name was not found"
	case errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "the call timed out"
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection was obtained"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended before the answer was complete"
	default:
		return unreadable
	}
}
