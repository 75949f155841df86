package apidoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// document is the part of OpenAPI 3.1 that the page shows. Names stand in the order of the file.
type document struct {
	Info struct {
		Title, Version, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[ordered[operation]] // by path, then method
	Components struct {
		SecuritySchemes ordered[struct {
			Description string
			Scopes      ordered[string] `json:"x-scopes"`
		}] `json:"securitySchemes"`
		Parameters, Headers ordered[parameter]
		Responses           ordered[response]
		Schemas             ordered[*node]
	}
	// Otherwise is what a request of a path or method is answered that the document does not name.
	Otherwise struct {
		Description string
		Responses   ordered[response]
	} `json:"x-otherwise"`
	Problems []problem `json:"x-problems"`
}

type operation struct {
	OperationID string `json:"operationId"`
	Tags        []string
	Summary     string
	Description string
	Security    []map[string][]string
	Parameters  []parameter
	RequestBody *struct {
		Content ordered[media]
	} `json:"requestBody"`
	Responses ordered[response]
}

// parameter is a parameter or a response's header.
type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      *node
	Example     jsontext.Value
	Examples    ordered[example]
}

type example struct {
	Summary string
	Value   jsontext.Value
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     ordered[parameter]
	Content     ordered[media]
}

type media struct {
	Schema   *node
	Examples ordered[example]
}

// problem is one code of a refusal; x-problems is the document's own list of them.
type problem struct {
	Code, Title, Meaning, Remedy, Retry string
	Status                              int
}

// node is a JSON Schema.
type node struct {
	Ref                  string `json:"$ref"`
	Title, Description   string
	Type                 words
	Format, Pattern      string
	Enum                 []string
	EnumDescriptions     ordered[string] `json:"x-enum-descriptions"`
	Const, Default       jsontext.Value
	Minimum, Maximum     *int64
	MinLength            *int64 `json:"minLength"`
	MaxLength            *int64 `json:"maxLength"`
	MinItems             *int64 `json:"minItems"`
	MaxItems             *int64 `json:"maxItems"`
	MaxProperties        *int64 `json:"maxProperties"`
	Items                *node
	AdditionalProperties *additional `json:"additionalProperties"`
	Properties           ordered[*node]
	Required             []string
	AllOf                []*node `json:"allOf"`
	AnyOf                []*node `json:"anyOf"`
}

// words is a word or a list of them.
type words []string

func (w *words) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindBeginArray {
		return json.UnmarshalDecode(dec, (*[]string)(w))
	}
	*w = words{""}
	return json.UnmarshalDecode(dec, &(*w)[0])
}

// additional is additionalProperties: a schema, or true or false, which leave node nil.
type additional struct{ *node }

func (a *additional) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == jsontext.KindBeginObject {
		return json.UnmarshalDecode(dec, &a.node)
	}
	return dec.SkipValue()
}

// ordered is an object in the order in which it is written.
type ordered[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

func (o *ordered[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == jsontext.KindString {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		m := member[T]{Name: name.String()}
		if err := json.UnmarshalDecode(dec, &m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	_, err := dec.ReadToken()
	return err
}

func (o ordered[T]) get(name string) (value T, ok bool) {
	i := slices.IndexFunc(o, func(m member[T]) bool { return m.Name == name })
	if i < 0 {
		return value, false
	}
	return o[i].Value, true
}

// parse reads the document and puts what parameters, headers and responses refer to in their place; schemas keep their references, since
// the page links them.
func parse(data []byte) (*document, error) {
	doc := &document{}
	if err := json.Unmarshal(data, doc, json.MatchCaseInsensitiveNames(true)); err != nil {
		return nil, err
	}
	components := &doc.Components
	for i := range components.Responses {
		if err := doc.settle(&components.Responses[i].Value); err != nil {
			return nil, err
		}
	}
	for i := range doc.Otherwise.Responses {
		if err := doc.settle(&doc.Otherwise.Responses[i].Value); err != nil {
			return nil, err
		}
	}
	for _, path := range doc.Paths {
		for i := range path.Value {
			op := &path.Value[i].Value
			for j := range op.Parameters {
				if err := follow(&op.Parameters[j], op.Parameters[j].Ref, "parameters", components.Parameters); err != nil {
					return nil, err
				}
			}
			for j := range op.Responses {
				if err := doc.settle(&op.Responses[j].Value); err != nil {
					return nil, err
				}
			}
		}
	}
	return doc, nil
}

func (d *document) settle(r *response) error {
	if err := follow(r, r.Ref, "responses", d.Components.Responses); err != nil {
		return err
	}
	for i := range r.Headers {
		if err := follow(&r.Headers[i].Value, r.Headers[i].Value.Ref, "headers", d.Components.Headers); err != nil {
			return err
		}
	}
	return nil
}

// follow replaces what stands at to by the component that ref names; "" is no reference.
func follow[T any](to *T, ref, kind string, components ordered[T]) error {
	if ref == "" {
		return nil
	}
	name, ok := strings.CutPrefix(ref, "#/components/"+kind+"/")
	value, found := components.get(name)
	if !ok || !found {
		return fmt.Errorf("%s leads nowhere", ref)
	}
	*to = value
	return nil
}

// schemaName is the name of the schema that a reference leads to, "" for none.
func (n *node) schemaName() string {
	if n == nil {
		return ""
	}
	return strings.TrimPrefix(n.Ref, "#/components/schemas/")
}
