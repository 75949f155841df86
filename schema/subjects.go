package schema

import (
	"errors"
	"fmt"
	"strings"
)

// DefaultPrefix is the first token of every subject unless a setting says
// otherwise.
const DefaultPrefix = "payments"

// PrefixMaxBytes bounds the prefix: subjects are repeated in every message.
const PrefixMaxBytes = 64

// UnknownTenant stands in a dead letter's subject where the message named no
// tenant that could exist. No tenant id begins with an underscore.
const UnknownTenant = "_unknown"

// SubjectKind says what the messages on a subject are.
type SubjectKind string

// The kinds of subject. All but events have the form prefix.kind.tenant.
const (
	SubjectIntent SubjectKind = "intent" // one intent, interactive lane
	SubjectBulk   SubjectKind = "bulk"   // one intent, bulk lane
	SubjectBatch  SubjectKind = "batch"  // one batch of up to 100 intents
	SubjectEvent  SubjectKind = "event"  // prefix.event.tenant.token
	SubjectDead   SubjectKind = "dead"   // a copy of one dead letter
)

// ErrSubject is wrapped by every error about a subject or its prefix.
var ErrSubject = errors.New("invalid subject")

// Subjects makes and reads subjects under one prefix. The zero value uses
// [DefaultPrefix].
type Subjects struct {
	// Prefix is one or more tokens of a-z, 0-9 and - joined by dots, at most
	// [PrefixMaxBytes] long; empty means [DefaultPrefix].
	Prefix string
}

// NewSubjects checks prefix and returns the subjects under it.
func NewSubjects(prefix string) (Subjects, error) {
	s := Subjects{Prefix: prefix}
	return s, s.Validate()
}

// Validate reports a prefix that cannot be part of a subject and a stream name.
// Capitals and underscores are refused: no two prefixes may lead to the same
// streams' names, or one installation would reconfigure the other's.
func (s Subjects) Validate() error {
	if len(s.Prefix) > PrefixMaxBytes {
		return fmt.Errorf("%w: the prefix is longer than %d bytes: shorten it", ErrSubject, PrefixMaxBytes)
	}
	for token := range strings.SplitSeq(s.prefix(), ".") {
		if !validToken(token) || strings.Contains(token, "_") {
			return fmt.Errorf("%w: the prefix must be tokens of a-z, 0-9 and -, each beginning with a letter or digit, joined by dots", ErrSubject)
		}
	}
	return nil
}

func (s Subjects) prefix() string {
	if s.Prefix == "" {
		return DefaultPrefix
	}
	return s.Prefix
}

// Intent is the subject for one intent of tenant in the interactive lane.
func (s Subjects) Intent(tenant string) (string, error) { return s.of(SubjectIntent, tenant) }

// Bulk is the subject for one intent of tenant in the bulk lane.
func (s Subjects) Bulk(tenant string) (string, error) { return s.of(SubjectBulk, tenant) }

// Batch is the subject for one batch message of tenant.
func (s Subjects) Batch(tenant string) (string, error) { return s.of(SubjectBatch, tenant) }

// Dead is the subject for copies of tenant's dead letters. [UnknownTenant] is
// allowed here, and only here.
func (s Subjects) Dead(tenant string) (string, error) {
	if tenant == UnknownTenant {
		return s.prefix() + "." + string(SubjectDead) + "." + UnknownTenant, nil
	}
	return s.of(SubjectDead, tenant)
}

// Event is the subject for tenant's events of one type, such as
// "oncepay.payment.succeeded".
func (s Subjects) Event(tenant, eventType string) (string, error) {
	base, err := s.of(SubjectEvent, tenant)
	if err != nil {
		return "", err
	}
	token, err := EventToken(eventType)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSubject, err)
	}
	return base + "." + token, nil
}

// of refuses a tenant that is not one: the NATS client would publish a wildcard
// or an extra token without a word.
func (s Subjects) of(kind SubjectKind, tenant string) (string, error) {
	if !ValidTenant(tenant) {
		return "", errTenant
	}
	return s.prefix() + "." + string(kind) + "." + tenant, nil
}

var errTenant = fmt.Errorf("%w: the tenant must be 1 to %d characters of a-z, 0-9, _ and -, beginning with a letter or digit", ErrSubject, TenantMaxBytes)

// ParseSubject reads the kind and the tenant out of the subject of a message.
// The tenant is the last token, except in an event's subject, where it is the
// last but one. The error says what is wrong with the subject and does not
// repeat it.
func (s Subjects) ParseSubject(subject string) (SubjectKind, string, error) {
	rest, ok := strings.CutPrefix(subject, s.prefix()+".")
	if !ok {
		return "", "", fmt.Errorf("%w: it does not begin with the prefix %q", ErrSubject, s.prefix())
	}
	kindToken, tail, ok := strings.Cut(rest, ".")
	if !ok {
		return "", "", fmt.Errorf("%w: it ends before the tenant", ErrSubject)
	}
	kind, tenant := SubjectKind(kindToken), tail
	switch kind {
	case SubjectIntent, SubjectBulk, SubjectBatch:
	case SubjectDead:
		if tenant == UnknownTenant {
			return kind, tenant, nil
		}
	case SubjectEvent:
		var token string
		tenant, token, ok = strings.Cut(tail, ".")
		if !ok || !validToken(token) {
			return "", "", fmt.Errorf("%w: an event's subject ends with the tenant and the event", ErrSubject)
		}
	default:
		return "", "", fmt.Errorf("%w: the token after the prefix must be intent, bulk, batch, event or dead", ErrSubject)
	}
	if !ValidTenant(tenant) {
		return "", "", errTenant
	}
	return kind, tenant, nil
}
