package stripesim

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the shape of a parameter.
type kind int

const (
	scalar kind = iota // name=value
	object             // name[sub]=value with fixed subs
	dict               // name[any]=value
	list               // name[]=value, name[0]=value
)

// shape says how a parameter may be written. loose objects may be scalars too.
type shape struct {
	kind  kind
	subs  []string
	loose bool
}

// spec is the set of parameters that an endpoint knows.
type spec map[string]shape

// values are parameters that passed their spec. The last of equal names wins.
type values struct {
	scalars map[string]string
	dicts   map[string]map[string]string
	lists   map[string][]string
}

// read checks pairs against the spec: unknown names and wrong shapes are refused.
func (s spec) read(pairs []pair) (*values, *apiError) {
	v := &values{scalars: make(map[string]string, len(pairs))}
	for _, p := range pairs {
		sh, ok := s[p.name]
		if !ok {
			return nil, unknownParam(p.field())
		}
		if e := v.put(sh, p); e != nil {
			return nil, e
		}
	}
	return v, nil
}

func (v *values) put(sh shape, p pair) *apiError {
	switch {
	case sh.kind == scalar || (sh.loose && !p.nested):
		if p.nested {
			return invalid("parameter_invalid_string", p.name, "Invalid string: "+p.name+" is a plain value.")
		}
		v.scalars[p.name] = p.value
	case sh.kind == list:
		if p.nested && p.sub != "" && strings.Trim(p.sub, "0123456789") != "" {
			return unknownParam(p.field())
		}
		if !p.nested {
			return invalid("", p.name, "Invalid array: "+p.name+" must be sent as "+p.name+"[].")
		}
		if v.lists == nil {
			v.lists = map[string][]string{}
		}
		v.lists[p.name] = append(v.lists[p.name], p.value)
	case !p.nested:
		return invalid("", p.name, "Invalid object: "+p.name+" must be sent as "+p.name+"[key]=value.")
	case sh.kind == object && !contains(sh.subs, p.sub):
		return unknownParam(p.field())
	default:
		if v.dicts == nil {
			v.dicts = map[string]map[string]string{}
		}
		if v.dicts[p.name] == nil {
			v.dicts[p.name] = map[string]string{}
		}
		v.dicts[p.name][p.sub] = p.value
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func unknownParam(field string) *apiError {
	return invalid("parameter_unknown", field, "Received unknown parameter: "+field)
}

func missingParam(field string) *apiError {
	return invalid("parameter_missing", field, "Missing required param: "+field+".")
}

func emptyParam(field string) *apiError {
	return invalid("parameter_invalid_empty", field, "You passed an empty string for '"+field+"'. We assume empty values are an attempt to unset a parameter; however '"+field+"' cannot be unset.")
}

func integer(field, s string) (int64, *apiError) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || s[0] == '+' {
		return 0, invalid("parameter_invalid_integer", field, "Invalid integer: "+clip(s))
	}
	return n, nil
}

// flag reads a boolean; absent and empty are false.
func (v *values) flag(field string) (bool, *apiError) {
	switch s := v.scalars[field]; s {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalid("", field, "Invalid boolean: "+clip(s))
	}
}

// choice reads an enumeration; absent and empty are the default.
func (v *values) choice(field, def string, allowed ...string) (string, *apiError) {
	s := v.scalars[field]
	if s == "" {
		return def, nil
	}
	if contains(allowed, s) {
		return s, nil
	}
	return "", invalid("", field, fmt.Sprintf("Invalid %s: must be one of %s", field, strings.Join(allowed, ", ")))
}

// clip keeps an echoed value short.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

// Stripe's limits on metadata (docs.stripe.com/metadata).
const (
	maxMetadataKeys  = 50
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

// metadata checks and copies the metadata; an empty value unsets its key.
func (v *values) metadata() (map[string]string, *apiError) {
	out := make(map[string]string, len(v.dicts["metadata"]))
	for k, val := range v.dicts["metadata"] {
		switch {
		case k == "" || strings.ContainsAny(k, "[]"):
			return nil, invalid("", "metadata", "Invalid metadata key: keys may not be empty nor hold square brackets.")
		case utf8.RuneCountInString(k) > maxMetadataKey:
			return nil, invalid("", "metadata", fmt.Sprintf("Metadata keys can have up to %d characters.", maxMetadataKey))
		case utf8.RuneCountInString(val) > maxMetadataValue:
			return nil, invalid("", "metadata["+k+"]", fmt.Sprintf("Metadata values can have up to %d characters.", maxMetadataValue))
		case val != "":
			out[k] = val
		}
	}
	if len(out) > maxMetadataKeys {
		return nil, invalid("", "metadata", fmt.Sprintf("Metadata can have up to %d keys.", maxMetadataKeys))
	}
	return out, nil
}

// url reads an absolute URL; absent and empty are "".
func (v *values) url(field string) (string, *apiError) {
	s := v.scalars[field]
	if s == "" {
		return "", nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || (u.Host == "" && u.Opaque == "" && u.Path == "") {
		return "", invalid("url_invalid", field, "Not a valid URL")
	}
	return s, nil
}

// email reads an address as loosely as Stripe: something@something.
func (v *values) email(field string) (string, *apiError) {
	s := v.scalars[field]
	if at := strings.LastIndexByte(s, '@'); s != "" && (at < 1 || at == len(s)-1 || strings.ContainsAny(s, " \t\r\n")) {
		return "", invalid("email_invalid", field, "Invalid email address")
	}
	return s, nil
}

// suffix reads the statement descriptor suffix: at most 22 characters, at
// least one letter, none of <>\'"* (docs.stripe.com/get-started/account/statement-descriptors).
func (v *values) suffix(field string) (string, *apiError) {
	s := v.scalars[field]
	switch {
	case s == "":
		return "", nil
	case utf8.RuneCountInString(s) > 22:
		return "", invalid("", field, "The statement descriptor suffix must be at most 22 characters.")
	case strings.ContainsAny(s, `<>\'"*`):
		return "", invalid("", field, `The statement descriptor suffix may not hold any of < > \ ' " *.`)
	case !strings.ContainsFunc(s, unicode.IsLetter):
		return "", invalid("", field, "The statement descriptor suffix must have at least one letter.")
	}
	return s, nil
}
