// Package paymentstest holds the conformance suites of the ports: what every payments.Gateway and every payments.Store must do, written against
// payments/ports.go alone, so that a second implementation, a simulator and the real service can be held to the same.
//
// An implementation runs a suite from a test of its own:
//
//	func TestConformance(t *testing.T) { paymentstest.Gateway(t, openStripe) }
//
// The function that it passes makes what one part of the suite works with; parts run in parallel and share nothing. Whatever cannot be seen
// through the ports is tested beside the implementation.
package paymentstest
