package payments

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// addMetadata notes one fault for each rule that is broken, in a fixed order. Where it is a value that breaks it, its entry is named, the first of them by
// name; a name that is refused is not repeated, nor one that could be a secret itself.
func (e *ValidationError) addMetadata(m map[string]string) {
	if len(m) > MetadataMax {
		e.add(fieldMetadata, "must have at most "+strconv.Itoa(MetadataMax)+" entries: Stripe takes 50, and four are ours")
	}
	var reserved, name, badName bool
	var long, bad firstEntry
	for k, v := range m {
		switch {
		case checkEncoding(k) != "":
			badName = true
		case checkEncoding(v) != "":
			bad.note(k)
		case strings.HasPrefix(k, MetadataReservedNamePrefix):
			reserved = true
		}
		if k == "" || utf8.RuneCountInString(k) > MetadataNameLengthMax || strings.ContainsAny(k, "[]") {
			name = true
		}
		if len(v) > MetadataValueLengthMax && utf8.RuneCountInString(v) > MetadataValueLengthMax {
			long.note(k)
		}
	}
	if reserved {
		e.add(fieldMetadata, "must not use names that begin with "+MetadataReservedNamePrefix+", which are ours: choose another prefix")
	}
	if name {
		e.add(fieldMetadata, "must have names of 1 to "+strconv.Itoa(MetadataNameLengthMax)+" characters without [ and ]")
	}
	if long.there {
		e.add(long.field(), "must have values of at most "+strconv.Itoa(MetadataValueLengthMax)+" characters")
	}
	switch {
	case badName:
		e.add(fieldMetadata, "must be valid UTF-8 without the character U+0000")
	case bad.there:
		e.add(bad.field(), "must be valid UTF-8 without the character U+0000")
	}
}

// firstEntry is the first by name of the entries that break a rule, so that the message does not depend on the order of a map.
type firstEntry struct {
	there bool
	name  string
}

func (f *firstEntry) note(name string) {
	if !f.there || name < f.name {
		f.there, f.name = true, name
	}
}

// field is metadata.NAME, or metadata alone for a name that is none of plain letters with few digits: it may be a secret.
func (f *firstEntry) field() string {
	digits := 0
	for _, c := range []byte(f.name) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '-':
		default:
			return fieldMetadata
		}
	}
	if f.name == "" || len(f.name) > MetadataNameLengthMax || digits > 3 {
		return fieldMetadata
	}
	return fieldMetadata + "." + f.name
}
