package schema

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// EncodeEvent writes an event: attributes in a fixed order, Data compacted and
// last, the time in UTC to the microsecond. Equal events give equal bytes. An
// event that is not whole is refused with a [*DecodeError].
func EncodeEvent(e Event) ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	w := writer{out: make([]byte, 0, 512+len(e.Data))}
	w.envelope(e)
	out, err := jsontext.AppendFormat(w.out, e.Data)
	if err != nil {
		w.fail(attributeData, "it is not well-formed JSON")
	}
	w.out = out
	return w.event()
}

// EncodePaymentEvent is EncodeEvent with a payment for Data, which is written as
// [Marshal] would write it, but without what no event may carry: see
// [Payment.ForEvent].
func EncodePaymentEvent(e Event, p Payment) ([]byte, error) {
	e.Data = jsontext.Value("{}") // it will be one
	if err := e.check(); err != nil {
		return nil, err
	}
	w := writer{out: make([]byte, 0, 1536)} // of a usual one
	w.envelope(e)
	w.payment(p.ForEvent())
	return w.event()
}

// envelope writes all attributes but the data.
func (w *writer) envelope(e Event) {
	w.out = append(w.out, '{')
	w.text(attributeSpecVersion, Some(EventSpecVersion))
	w.text(attributeID, Some(e.ID))
	w.text(attributeSource, Some(e.Source))
	w.text(attributeType, Some(e.Type))
	w.text(attributeSubject, Some(e.Subject))
	w.time(attributeTime, Some(NewTimestamp(e.Time).Time))
	w.text(attributeTenantID, Some(e.TenantID))
	w.name(attributeSequence)
	w.out = strconv.AppendInt(w.out, e.Sequence, 10)
	w.text(attributeContentType, Some(EventContentType))
	w.name(attributeData)
}

// event ends the event.
func (w *writer) event() ([]byte, error) {
	w.out = append(w.out, '}')
	if w.err == nil && len(w.out) > EventMaxBytes {
		w.err = errTooLarge(len(w.out), EventMaxBytes)
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}

// DecodeEvent reads an event for a consumer. Well-formed text, types and all
// attributes of ours are insisted on; attributes and event types that are not
// known yet are passed over, since later versions and brokers may add them. The
// error is a [*DecodeError].
func DecodeEvent(data []byte) (Event, error) {
	if len(data) > EventMaxBytes {
		return Event{}, errTooLarge(len(data), EventMaxBytes)
	}
	r := newReader(data)
	defer r.release()
	var e Event
	err := r.event(&e)
	if err == nil {
		err = r.end()
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return Event{}, err.settle(data)
	}
	return e, nil
}

func (r *reader) event(e *Event) *DecodeError {
	if err := r.begin(""); err != nil {
		return err
	}
	var version, contentType Optional[string]
	for {
		name, more, err := r.name("")
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := r.attribute(name, e, &version, &contentType); err != nil {
			return err
		}
	}
	if version.Value != EventSpecVersion {
		return r.refuse(attributeSpecVersion, "it must be 1.0")
	}
	if contentType.Or(EventContentType) != EventContentType {
		return r.refuse(attributeContentType, "it must be application/json, or left out")
	}
	return nil
}

func (r *reader) attribute(name []byte, e *Event, version, contentType *Optional[string]) *DecodeError {
	switch string(name) {
	case attributeSpecVersion:
		return r.text(attributeSpecVersion, version)
	case attributeContentType:
		return r.text(attributeContentType, contentType)
	case attributeID:
		return r.plain(attributeID, &e.ID)
	case attributeSource:
		return r.plain(attributeSource, &e.Source)
	case attributeType:
		return r.plain(attributeType, &e.Type)
	case attributeSubject:
		return r.plain(attributeSubject, &e.Subject)
	case attributeTenantID:
		return r.plain(attributeTenantID, &e.TenantID)
	case attributeTime:
		return into(&e.Time, attributeTime, r.timestamp)
	case attributeSequence:
		return into(&e.Sequence, attributeSequence, r.integer)
	case attributeData:
		raw, refused := r.value(attributeData, jsontext.KindBeginObject, "a JSON object")
		e.Data = raw.Clone()
		return refused
	}
	if err := r.dec.SkipValue(); err != nil {
		return r.syntax("", err)
	}
	return nil
}

func (r *reader) plain(field string, to *string) *DecodeError { return into(to, field, r.text) }

// into reads a member whose absence its zero value shows.
func into[T any](to *T, field string, read func(string, *Optional[T]) *DecodeError) *DecodeError {
	var o Optional[T]
	if err := read(field, &o); err != nil {
		return err
	}
	*to = o.Value
	return nil
}
