package postgres

import "github.com/oncepay/oncepay/payments"

// meeting is what a request met in the store.
type meeting struct {
	tenantUnknown bool
	rowThere      bool
	sameRequest   bool // the row's fingerprint is the request's
	refused       bool // validation said that it must not be inserted
	existingOnly  bool
	inserted      bool // the row is there because of this very request
	owner         bool // the row's ticket holds the request's token
}

// rank is the one place that orders the answers of Admit: key_reused before refused before exists before admitted.
func rank(m meeting) payments.Verdict {
	switch {
	case m.tenantUnknown:
		return payments.VerdictTenantUnknown
	case m.rowThere && !m.sameRequest:
		return payments.VerdictConflict
	case m.refused:
		return payments.VerdictRefused
	case m.owner:
		return payments.VerdictClaimed
	case m.inserted:
		return payments.VerdictStored
	case m.rowThere:
		return payments.VerdictExists
	default:
		return payments.VerdictAbsent
	}
}
