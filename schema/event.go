package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The fixed attributes of every event.
const (
	EventSpecVersion     = "1.0"
	EventContentType     = "application/json"
	EventMediaType       = "application/cloudevents+json"
	EventSourcePrefix    = "urn:oncepay:"
	EventSequenceMax     = math.MaxInt32
	EventMaxBytes        = 1 << 20
	eventAttributeMaxLen = 255
)

// Event is one outcome event: a CloudEvent 1.0 in the JSON event format.
//
// tenantid and sequence are extension attributes. sequence is a CloudEvents
// Integer, which the type system of the specification (v1.0.2, section "Type
// System") bounds to 32 bits and its JSON format (section 2.2) writes as a
// number. The documented extension of the same name is a String that sorts as
// text; it is told by its sequencetype, which we do not send: a number is what
// readers count with.
type Event struct {
	ID       string // see [EventID]
	Source   string // see [EventSource]
	Type     string // "oncepay.payment.succeeded"
	Subject  string // the id of the object in Data
	Time     time.Time
	TenantID string
	Sequence int64 // per object, from 1, without gaps
	Data     jsontext.Value
}

// EventSource names the installation, so that source and id together are unique
// among all that share a broker. namespace is the installation's.
func EventSource(namespace string) string {
	var b strings.Builder
	b.WriteString(EventSourcePrefix)
	for i := range len(namespace) {
		c := namespace[i]
		if (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else { // all else is escaped, so that any name gives a URN (RFC 8141)
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// EventID is the id of the event for one transition of an object:
// pay_…_4_succeeded. It depends on nothing else, so a transition that is
// published again has it again. The type is part of it because after a restore
// the same number may be given to another transition, which must not be taken
// for a repeat. It is one safe token for use as a message id.
func EventID(subject string, sequence int64, eventType string) string {
	what := eventType[strings.LastIndexByte(eventType, '.')+1:]
	return subject + "_" + strconv.FormatInt(sequence, 10) + "_" + what
}

// The attributes of an event, in the order in which EncodeEvent writes them.
const (
	attributeSpecVersion = "specversion"
	attributeID          = "id"
	attributeSource      = "source"
	attributeType        = "type"
	attributeSubject     = "subject"
	attributeTime        = "time"
	attributeTenantID    = "tenantid"
	attributeSequence    = "sequence"
	attributeContentType = "datacontenttype"
	attributeData        = "data"
)

// EventAttributes lists the names of an event's members in their order.
func EventAttributes() []string {
	return []string{
		attributeSpecVersion, attributeID, attributeSource, attributeType, attributeSubject,
		attributeTime, attributeTenantID, attributeSequence, attributeContentType, attributeData,
	}
}

// check refuses an event that is not whole. The error is a [*DecodeError].
func (e Event) check() *DecodeError {
	refuse := func(field, problem string) *DecodeError { return &DecodeError{Field: field, Problem: problem} }
	for _, a := range []struct{ name, value string }{
		{attributeID, e.ID}, {attributeSource, e.Source}, {attributeSubject, e.Subject},
	} {
		if !validAttribute(a.value) {
			return refuse(a.name, "it must be 1 to 255 printable ASCII characters without spaces")
		}
	}
	if _, err := EventToken(e.Type); err != nil {
		return refuse(attributeType, "it must be oncepay.<object>.<what>, both of a-z and _")
	}
	if !ValidTenant(e.TenantID) {
		return refuse(attributeTenantID, "it must be a tenant id")
	}
	if e.Sequence < 1 || e.Sequence > EventSequenceMax {
		return refuse(attributeSequence, "it must be an integer from 1 to 2147483647")
	}
	if y := e.Time.UTC().Year(); e.Time.IsZero() || y < 1 || y > 9999 {
		return refuse(attributeTime, "it must be an RFC 3339 time")
	}
	if e.Data.Kind() != jsontext.KindBeginObject {
		return refuse(attributeData, "it must be a JSON object")
	}
	return nil
}

func validAttribute(s string) bool {
	if s == "" || len(s) > eventAttributeMaxLen {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7E {
			return false
		}
	}
	return true
}
