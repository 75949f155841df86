package stripemock

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stripe/stripe-mock/embedded"

	"github.com/oncepay/oncepay/payments"
)

// schema is the part of an OpenAPI schema that says what a parameter may be.
type schema struct {
	Type       string
	Enum       []string
	MaxLength  int
	AnyOf      []schema
	Items      *schema // of a list
	Properties map[string]schema
	// AdditionalProperties is false, or the schema of members whose names are free.
	AdditionalProperties json.RawMessage
	Required             []string
}

// specification is what stripe-mock was built with.
type specification struct {
	Info  struct{ Version string }
	Paths map[string]map[string]operation
}

type operation struct {
	Parameters []struct {
		Name, In string
		Schema   schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
}

var specified = func() specification {
	var s specification
	if err := json.Unmarshal(embedded.OpenAPISpec, &s); err != nil {
		panic("stripe-mock's specification cannot be read: " + err.Error())
	}
	return s
}()

// parameters is the schema of all parameters of the request, as one object.
func (s specification) parameters(method, path string) (schema, bool) {
	if rest, ok := strings.CutPrefix(path, "/v1/payment_intents/"); ok && rest != "" {
		id, verb, nested := strings.Cut(rest, "/")
		if path = "/v1/payment_intents/{intent}"; nested && id != "" {
			path += "/" + verb
		}
	}
	if rest, ok := strings.CutPrefix(path, "/v1/refunds/"); ok && rest != "" {
		path = "/v1/refunds/{refund}"
	}
	o, ok := s.Paths[path][strings.ToLower(method)]
	if !ok {
		return schema{}, false
	}
	all := schema{Type: "object", Properties: map[string]schema{}}
	if method != "GET" {
		return o.RequestBody.Content["application/x-www-form-urlencoded"].Schema, true
	}
	for _, p := range o.Parameters {
		if p.In == "query" {
			all.Properties[p.Name] = p.Schema
		}
	}
	return all, true
}

// allows reports whether a parameter that is reached by the names may have the value. stripe-mock passes over two things that Stripe does not:
// unknown names inside of a parameter, and lengths.
func (s schema) allows(names []string, value string) bool {
	if len(s.AnyOf) > 0 {
		return slices.ContainsFunc(s.AnyOf, func(one schema) bool { return one.allows(names, value) })
	}
	if s.Type == "array" {
		return len(names) == 1 && names[0] == "" && s.Items != nil && s.Items.allows(nil, value)
	}
	if len(names) > 0 {
		if member, ok := s.Properties[names[0]]; ok {
			return member.allows(names[1:], value)
		}
		var free schema
		return s.Type == "object" && json.Unmarshal(s.AdditionalProperties, &free) == nil && free.Type != "" && free.allows(names[1:], value)
	}
	switch s.Type {
	case "string":
		return (s.MaxLength == 0 || utf8.RuneCountInString(value) <= s.MaxLength) && (len(s.Enum) == 0 || slices.Contains(s.Enum, value))
	case "integer":
		_, err := strconv.ParseInt(value, 10, 64)
		return err == nil
	case "boolean":
		return value == "true" || value == "false"
	}
	return false
}

// breaches names the parameters of a request that the specification does not allow.
func (s specification) breaches(c call) []string {
	all, ok := s.parameters(c.method, c.path)
	if !ok {
		return []string{c.method + " " + c.path}
	}
	values, err := url.ParseQuery(c.query)
	if c.method != "GET" {
		values, err = url.ParseQuery(c.body)
	}
	if err != nil {
		return []string{"all: " + err.Error()}
	}
	var list []string
	for name, given := range values {
		names := strings.Split(strings.ReplaceAll(name, "]", ""), "[")
		several := !strings.HasSuffix(name, "[]") && len(given) != 1
		if several || slices.ContainsFunc(given, func(value string) bool { return !all.allows(names, value) }) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// TestSpecification: the specification is the one of our version, and our own validation accepts nothing that is longer than it says.
func TestSpecification(t *testing.T) {
	t.Parallel()
	if specified.Info.Version != apiVersion {
		t.Fatalf("the specification is that of %s", specified.Info.Version)
	}
	create, ok := specified.parameters("POST", "/v1/payment_intents")
	if !ok || string(create.AdditionalProperties) != "false" || len(create.Properties) < 20 {
		t.Fatalf("the specification has no PaymentIntents: %+v", create)
	}
	for name, ours := range map[string]int{
		"description": payments.DescriptionLengthMax, "statement_descriptor_suffix": payments.DescriptorSuffixLengthMax,
		"customer": payments.ReferenceLengthMax, "payment_method": payments.ReferenceLengthMax,
	} {
		if stated := create.Properties[name].MaxLength; stated == 0 || ours > stated {
			t.Errorf("%s may have %d characters, and we accept %d", name, stated, ours)
		}
	}
}
