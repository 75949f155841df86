// Package apidoctest holds what a server answers against the OpenAPI document: the operation, the status, the headers and the body. It is for
// tests alone.
//
// It is stricter than the document is to clients: they are told to ignore members that they do not know, but an answer of this server with a
// member that the document does not name fails here.
package apidoctest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/oncepay/oncepay/ingress/apidoc"
)

// Check fails the test if the document does not have this answer: method and path are those of the request (the path without its query), the
// others those of the answer. The body of a HEAD is not looked at.
func Check(t testing.TB, method, path string, status int, header http.Header, body []byte) {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range doc.Faults(method, path, status, header, body) {
		t.Errorf("%s %s: %d is not as openapi.json has it: %s", method, path, status, fault)
	}
}

// CheckRequest fails the test if the document does not allow body as the body of a request.
func CheckRequest(t testing.TB, method, path string, body []byte) {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	_, _, pointer := doc.operation(method, path)
	if fault := doc.validate(pointer+"/requestBody/content/application~1json/schema", body); fault != "" {
		t.Errorf("%s %s: the request is not as openapi.json has it: %s", method, path, fault)
	}
}

// Routes lists what the document describes, as net/http's patterns: "POST /v1/payments".
func Routes(t testing.TB) []string {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	for path, operations := range doc.paths() {
		for method := range operations {
			routes = append(routes, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(routes)
	return routes
}

// Statuses lists the statuses that the document has for an operation, "POST /v1/payments".
func Statuses(t testing.TB, route string) []int {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(route, " ")
	_, op, _ := doc.operation(method, path)
	var statuses []int
	for status := range object(op["responses"]) {
		if n, err := strconv.Atoi(status); err == nil {
			statuses = append(statuses, n)
		}
	}
	slices.Sort(statuses)
	return statuses
}

// Problem is one code of the document and what goes with it.
type Problem struct {
	Code, Title string
	Status      int
}

// Problems lists the codes that the document explains, in its order.
func Problems(t testing.TB) []Problem {
	t.Helper()
	var document struct {
		Problems []Problem `json:"x-problems"`
	}
	if err := json.Unmarshal(apidoc.Document(), &document); err != nil {
		t.Fatal(err)
	}
	return document.Problems
}

// Scopes lists the scopes that the document asks for an operation, "POST /v1/payments".
func Scopes(t testing.TB, route string) []string {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(route, " ")
	_, op, _ := doc.operation(method, path)
	var scopes []string
	needs, _ := op["security"].([]any)
	for _, need := range needs {
		for _, list := range object(need) {
			for _, scope := range list.([]any) {
				scopes = append(scopes, scope.(string))
			}
		}
	}
	return scopes
}

// Codes lists the problem codes that the document has for one status of an operation, "POST /v1/payments"; none for a status that is no refusal.
func Codes(t testing.TB, route string, status int) []string {
	t.Helper()
	doc, err := load()
	if err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(route, " ")
	responses, pointer := doc.responses(method, path)
	response, _ := doc.follow(object(responses[strconv.Itoa(status)]), pointer)
	problem := object(object(object(response["content"])["application/problem+json"])["schema"])
	parts, _ := problem["allOf"].([]any)
	var codes []string
	for _, part := range parts {
		list, _ := object(object(object(part)["properties"])["code"])["enum"].([]any)
		for _, code := range list {
			codes = append(codes, code.(string))
		}
	}
	return codes
}

const documentURL = "urn:oncepay:openapi"

// Description is the document, ready to be held against answers.
type Description struct {
	root     map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex // of the compiler
}

// load reads the committed document once.
var load = sync.OnceValues(func() (*Description, error) { return New(apidoc.Document()) })

// New reads a document.
func New(document []byte) (*Description, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	root := object(parsed)
	for _, schema := range object(object(root["components"])["schemas"]) {
		shut(object(schema))
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(documentURL, root); err != nil {
		return nil, err
	}
	return &Description{root: root, compiler: c}, nil
}

// shut makes a schema of a component refuse members that it does not name. Schemas within an answer, which only narrow a component, stay open.
func shut(schema map[string]any) {
	if _, stated := schema["additionalProperties"]; schema["properties"] != nil && !stated {
		schema["additionalProperties"] = false
	}
}

// Faults says where an answer is not as the document has it.
func (d *Description) Faults(method, path string, status int, header http.Header, body []byte) []string {
	responses, pointer := d.responses(method, path)
	if responses == nil {
		return []string{"the document has no such operation"}
	}
	name := strconv.Itoa(status)
	response, pointer := d.follow(object(responses[name]), pointer+"/"+name)
	if response == nil {
		return []string{"it has no such status"}
	}
	faults := d.headerFaults(object(response["headers"]), pointer+"/headers", header)
	if method == http.MethodHead {
		return faults
	}
	return append(faults, d.bodyFaults(object(response["content"]), pointer+"/content", header, body)...)
}

// responses finds an operation's responses; a path or a method that is not described has those of x-otherwise.
func (d *Description) responses(method, path string) (responses map[string]any, pointer string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if _, op, at := d.operation(method, path); op != nil {
		return object(op["responses"]), at + "/responses"
	}
	return object(object(d.root["x-otherwise"])["responses"]), "/x-otherwise/responses"
}

func (d *Description) paths() map[string]map[string]any {
	paths := map[string]map[string]any{}
	for path, item := range object(d.root["paths"]) {
		paths[path] = object(item)
	}
	return paths
}

var hole = regexp.MustCompile(`\\\{[^/]+\\\}`)

// operation finds the operation of a request's path; one without holes comes first, as OpenAPI has it.
func (d *Description) operation(method, path string) (template string, op map[string]any, pointer string) {
	method = strings.ToLower(method)
	for template, item := range d.paths() {
		pattern := "^" + hole.ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`) + "$"
		if template != path && !regexp.MustCompile(pattern).MatchString(path) {
			continue
		}
		if op := object(item[method]); op != nil && (template == path || d.paths()[path] == nil) {
			return template, op, "/paths/" + escape(template) + "/" + method
		}
	}
	return "", nil, ""
}

// follow goes where $ref leads, once: the document's references do not chain.
func (d *Description) follow(node map[string]any, pointer string) (map[string]any, string) {
	ref, ok := node["$ref"].(string)
	if !ok {
		return node, pointer
	}
	pointer = strings.TrimPrefix(ref, "#")
	at := d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		at = object(at[part])
	}
	return at, pointer
}

func (d *Description) headerFaults(described map[string]any, pointer string, header http.Header) []string {
	var faults []string
	for name, node := range described {
		spec, at := d.follow(object(node), pointer+"/"+escape(name))
		values := header.Values(name)
		switch {
		case len(values) == 0 && spec["required"] == true:
			faults = append(faults, "the header "+name+" is missing")
		case len(values) > 1:
			faults = append(faults, "the header "+name+" was sent "+strconv.Itoa(len(values))+" times")
		case len(values) == 1:
			text, _ := json.Marshal(values[0])
			if object(spec["schema"])["type"] == "integer" {
				text = []byte(values[0])
			}
			if fault := d.validate(at+"/schema", text); fault != "" {
				faults = append(faults, "the header "+name+": "+fault)
			}
		}
	}
	for name := range object(object(d.root["components"])["headers"]) {
		if described[name] == nil && header.Get(name) != "" {
			faults = append(faults, "the header "+name+" does not belong to this answer")
		}
	}
	slices.Sort(faults)
	return faults
}

func (d *Description) bodyFaults(content map[string]any, pointer string, header http.Header, body []byte) []string {
	sent := header.Get("Content-Type")
	if len(content) == 0 {
		if len(body) > 0 {
			return []string{fmt.Sprintf("it has no body, and %d bytes came", len(body))}
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(sent)
	if err != nil || content[mediaType] == nil {
		return []string{fmt.Sprintf("it has no body of the type %q", sent)}
	}
	if !strings.HasSuffix(mediaType, "json") {
		body, _ = json.Marshal(string(body))
	}
	if fault := d.validate(pointer+"/"+escape(mediaType)+"/schema", body); fault != "" {
		return []string{"the body: " + fault}
	}
	return nil
}

// validate holds JSON against the schema at a place of the document, and returns what is wrong, "" if nothing is.
func (d *Description) validate(pointer string, text []byte) string {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return "it is not JSON: " + err.Error()
	}
	d.mu.Lock()
	schema, err := d.compiler.Compile(documentURL + "#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	d.mu.Unlock()
	if err != nil {
		return "its schema cannot be read: " + err.Error()
	}
	if err := schema.Validate(value); err != nil {
		return err.Error()
	}
	return ""
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

// escape makes a name a part of a JSON pointer (RFC 6901).
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
