package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// metadataDot begins the name under which one metadata entry is edited.
const metadataDot = memberMetadata + "."

// CheckEdit says why a member of an intent cannot be set to the text by
// [EditIntent], with the remedy; nil: it can. Whose intent it is and under which
// key it stands is never edited: that would be another request.
func CheckEdit(name, text string) *DecodeError {
	problem := func(text string) *DecodeError { return &DecodeError{Field: safeName(name), Problem: text} }
	switch {
	case name == memberIdempotencyKey, name == memberTenantID:
		return problem("cannot be changed: publish a new message instead")
	case name == memberMetadata:
		return problem("is edited by entry, as metadata.name=value")
	case strings.HasPrefix(name, metadataDot) && len(name) > len(metadataDot):
		return nil
	case !slices.Contains(IntentMembers(), name):
		return problem("is no member of an intent; the members are listed in the documentation of payment intents")
	case text == "":
		return nil
	}
	switch name {
	case memberAmount:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return problem("must be an integer, in minor units")
		}
	case memberOffSession:
		if text != "true" && text != "false" {
			return problem("must be true or false")
		}
	case memberExpiresAt:
		if _, err := ParseTime(text); err != nil {
			return problem("must be an RFC 3339 time, as 2026-01-31T03:00:00Z")
		}
	}
	return nil
}

// EditIntent sets members of an intent's JSON object, each to a text that
// [CheckEdit] lets through; an empty text takes the member away. All else stays
// as it is, readable or not: what is wrong with it is for [DecodeIntent] to say.
// A member that stands there more than once stands there once afterwards.
func EditIntent(data []byte, set map[string]string) ([]byte, error) {
	for _, name := range namesInOrder(set) {
		if err := CheckEdit(name, set[name]); err != nil {
			return nil, err
		}
	}
	if len(data) > IntentMaxBytes {
		return nil, errTooLarge(len(data), IntentMaxBytes)
	}
	direct, entries := map[string]string{}, map[string]string{}
	for name, text := range set {
		if entry, ok := strings.CutPrefix(name, metadataDot); ok {
			entries[entry] = text
		} else {
			direct[name] = text
		}
	}
	return editObject(data, editedNames(direct, entries), func(name string, value jsontext.Value) (jsontext.Value, bool, error) {
		if name == memberMetadata && len(entries) > 0 {
			if value == nil {
				value = jsontext.Value("{}")
			}
			edited, err := editObject(value, namesInOrder(entries), setTexts(entries))
			return edited, true, err
		}
		text, ok := direct[name]
		return editedValue(name, text), ok, nil
	})
}

func editedNames(direct, entries map[string]string) []string {
	names := namesInOrder(direct)
	if len(entries) > 0 {
		names = append(names, memberMetadata)
	}
	return names
}

// setTexts edits an object of texts.
func setTexts(set map[string]string) func(string, jsontext.Value) (jsontext.Value, bool, error) {
	return func(name string, _ jsontext.Value) (jsontext.Value, bool, error) {
		text, ok := set[name]
		return editedValue("", text), ok, nil
	}
}

// editedValue is the JSON of a member's text; nil takes it away.
func editedValue(name, text string) jsontext.Value {
	switch {
	case text == "":
		return nil
	case name == memberAmount, name == memberOffSession:
		return jsontext.Value(text)
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8, which is then replaced
		quoted, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "\uFFFD"))
	}
	return quoted
}

func namesInOrder(set map[string]string) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// editObject copies a JSON object and lets edit replace values: those of the
// members that are there, and then, with a nil value, those of the named ones
// that were not. What edit replaces by nil is left out.
func editObject(data []byte, names []string, edit func(string, jsontext.Value) (jsontext.Value, bool, error)) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	malformed := &DecodeError{Problem: "is no JSON object, so nothing in it can be set", Malformed: true}
	if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
		return nil, malformed
	}
	out, seen := []byte{'{'}, map[string]bool{}
	put := func(quoted []byte, value jsontext.Value) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	for dec.PeekKind() == jsontext.KindString {
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, malformed
		}
		raw, err := jsontext.AppendUnquote(nil, quoted)
		name, quoted := string(raw), bytes.Clone(quoted)
		value, readErr := dec.ReadValue()
		if readErr != nil {
			return nil, malformed
		}
		edited, ours, editErr := edit(name, value)
		switch {
		case editErr != nil:
			return nil, editErr
		case err != nil || !ours:
			put(quoted, value)
		case !seen[name]:
			put(quoted, edited)
			seen[name] = true
		}
	}
	if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindEndObject {
		return nil, malformed
	}
	if dec.PeekKind() != 0 { // something stands behind the object
		return nil, malformed
	}
	for _, name := range names {
		if seen[name] {
			continue
		}
		edited, _, err := edit(name, nil)
		if err != nil {
			return nil, err
		}
		put(editedValue("", name), edited)
	}
	return append(out, '}'), nil
}
