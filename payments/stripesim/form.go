package stripesim

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxPairs bounds a form; metadata alone may have 50.
const maxPairs = 1000

// pair is one name=value of a form. For name[sub]=value, nested is set; sub is
// empty for name[] and may itself hold brackets, which no parameter allows.
type pair struct {
	name, sub string
	nested    bool
	value     string
}

// field is the pair's full name as the client wrote it, decoded.
func (p pair) field() string {
	if p.nested {
		return p.name + "[" + p.sub + "]"
	}
	return p.name
}

var (
	errFormEncoding = errors.New("the form is not percent-encoded properly")
	errFormUTF8     = errors.New("the form is not valid UTF-8")
	errFormSize     = errors.New("the form has too many parameters")
)

// parseForm splits application/x-www-form-urlencoded text, keeping its order.
func parseForm(raw string) ([]pair, error) {
	if raw == "" {
		return nil, nil
	}
	if strings.Count(raw, "&") >= maxPairs {
		return nil, errFormSize
	}
	pairs := make([]pair, 0, strings.Count(raw, "&")+1)
	for item := range strings.SplitSeq(raw, "&") {
		if item == "" {
			continue
		}
		k, v, _ := strings.Cut(item, "=")
		key, err := url.QueryUnescape(k)
		if err != nil {
			return nil, errFormEncoding
		}
		value, err := url.QueryUnescape(v)
		if err != nil {
			return nil, errFormEncoding
		}
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, errFormUTF8
		}
		pairs = append(pairs, splitField(key, value))
	}
	return pairs, nil
}

// splitField reads name[sub]; anything else with brackets is a plain, unknown name.
func splitField(key, value string) pair {
	open := strings.IndexByte(key, '[')
	if open <= 0 || key[len(key)-1] != ']' {
		return pair{name: key, value: value}
	}
	return pair{name: key[:open], sub: key[open+1 : len(key)-1], nested: true, value: value}
}

// fingerprint identifies a request for its idempotency key: method, path and
// parameters. The order of different parameters does not matter, that of equal
// names does (the last one wins).
func fingerprint(method, path string, pairs []pair) [sha256.Size]byte {
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.sub, b.sub)
	})
	buf := make([]byte, 0, 512)
	add := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	add(method)
	add(path)
	for _, p := range sorted {
		add(p.field())
		add(p.value)
	}
	return sha256.Sum256(buf)
}

// formMetadata collects metadata[k] for fault rules, before validation.
func formMetadata(pairs []pair) map[string]string {
	var m map[string]string
	for _, p := range pairs {
		if p.name == "metadata" && p.nested {
			if m == nil {
				m = map[string]string{}
			}
			m[p.sub] = p.value
		}
	}
	return m
}
