package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/schema"
)

// tree reads the document without knowing what OpenAPI is.
func tree(t *testing.T) map[string]any {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(Document(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

func at(t *testing.T, root map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		next, ok := root[name].(map[string]any)
		if !ok {
			t.Fatalf("no object %q under %v", name, path)
		}
		root = next
	}
	return root
}

func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// walk calls visit with every object of the document and its place.
func walk(v any, place string, visit func(place string, node map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(place, v)
		for name, child := range v {
			walk(child, place+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), visit)
		}
	case []any:
		for i, child := range v {
			walk(child, fmt.Sprintf("%s/%d", place, i), visit)
		}
	}
}

// TestForm: the file is formatted as it is committed, so that a change of it is a small one.
func TestForm(t *testing.T) {
	t.Parallel()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, Document(), "", "  "); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimRight(pretty.Bytes(), "\n"), bytes.TrimSuffix(Document(), []byte("\n"))) {
		t.Error("openapi.json is not indented by two spaces")
	}
	if _, err := parse(Document()); err != nil { // refuses repeated names, which encoding/json does not
		t.Error(err)
	}
}

// TestReferences: every $ref leads to something, and every component is referred to.
func TestReferences(t *testing.T) {
	t.Parallel()
	root := tree(t)
	used := map[string]bool{}
	walk(root, "", func(place string, node map[string]any) {
		if ref, ok := node["$ref"].(string); ok {
			used[strings.TrimPrefix(ref, "#")] = true
		}
	})
	components := map[string]bool{}
	for kind, list := range at(t, root, "components") {
		for name := range list.(map[string]any) {
			if kind != "securitySchemes" {
				components["/components/"+kind+"/"+name] = true
			}
		}
	}
	for ref := range used {
		if !components[ref] {
			t.Errorf("#%s leads nowhere", ref)
		}
	}
	for place := range components {
		if !used[place] {
			t.Errorf("#%s is used by nobody", place)
		}
	}
}

// TestOperations: what OpenAPI asks of every operation, and we do.
func TestOperations(t *testing.T) {
	t.Parallel()
	root := tree(t)
	ids := map[string]string{}
	for path, item := range at(t, root, "paths") {
		for method, v := range item.(map[string]any) {
			op, where := v.(map[string]any), strings.ToUpper(method)+" "+path
			id, _ := op["operationId"].(string)
			if other := ids[id]; id == "" || other != "" {
				t.Errorf("%s: operationId %q is missing, or also that of %s", where, id, other)
			}
			ids[id] = where
			for _, name := range []string{"summary", "description"} {
				if text, _ := op[name].(string); text == "" {
					t.Errorf("%s has no %s", where, name)
				}
			}
			if tags, _ := op["tags"].([]any); len(tags) != 1 {
				t.Errorf("%s has %d tags, want the one that it is shown under", where, len(tags))
			}
			security, stated := op["security"].([]any)
			if open := !strings.HasPrefix(path, "/v1/"); !stated || open != (len(security) == 0) {
				t.Errorf("%s: security %v", where, op["security"])
			}
			checkPathParameters(t, root, path, where, op)
			checkKeyParameter(t, root, method, where, op)
		}
	}
}

func parameters(t *testing.T, root, op map[string]any) (list []map[string]any) {
	all, _ := op["parameters"].([]any)
	for _, v := range all {
		p := v.(map[string]any)
		if ref, ok := p["$ref"].(string); ok {
			p = at(t, root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
		list = append(list, p)
	}
	return list
}

func checkPathParameters(t *testing.T, root map[string]any, path, where string, op map[string]any) {
	t.Helper()
	var inPath, described []string
	for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(path, -1) {
		inPath = append(inPath, m[1])
	}
	for _, p := range parameters(t, root, op) {
		if p["in"] == "path" && p["required"] == true {
			described = append(described, p["name"].(string))
		}
	}
	if !slices.Equal(inPath, described) {
		t.Errorf("%s: the path has %v, the parameters have %v", where, inPath, described)
	}
}

// checkKeyParameter: whatever changes something needs a key (invariant of the whole API).
func checkKeyParameter(t *testing.T, root map[string]any, method, where string, op map[string]any) {
	t.Helper()
	changes := method != "get" && method != "head"
	has := slices.ContainsFunc(parameters(t, root, op), func(p map[string]any) bool {
		return p["name"] == schema.HeaderIdempotencyKey && p["in"] == "header" && p["required"] == true
	})
	if changes != has {
		t.Errorf("%s: the Idempotency-Key header is described: %v", where, has)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	root := tree(t)
	var want []string
	for _, s := range payments.Scopes() {
		want = append(want, string(s))
	}
	slices.Sort(want)
	described := names(at(t, root, "components", "securitySchemes", "apiKey", "x-scopes"))
	if !slices.Equal(described, want) {
		t.Errorf("scopes %v, the API has %v", described, want)
	}
	walk(at(t, root, "paths"), "", func(place string, node map[string]any) {
		scopes, _ := node["apiKey"].([]any)
		for _, s := range scopes {
			if !slices.Contains(want, s.(string)) {
				t.Errorf("%s needs the scope %v, which does not exist", place, s)
			}
		}
	})
}

// jsonMembers are the members that a struct is written with: all of them, and those that are always there.
func jsonMembers(typ reflect.Type) (all, always []string) {
	for i := range typ.NumField() {
		tag, ok := typ.Field(i).Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if !ok || name == "-" {
			continue
		}
		all = append(all, name)
		if !strings.Contains(options, "omit") {
			always = append(always, name)
		}
	}
	slices.Sort(all)
	slices.Sort(always)
	return all, always
}

// TestMembers: the document's schemas have the members of the documents that are written, both ways.
func TestMembers(t *testing.T) {
	t.Parallel()
	root := tree(t)
	for name, value := range map[string]any{
		"Payment": schema.Payment{}, "Failure": schema.Failure{}, "PaymentList": schema.List[schema.Payment]{}, "TimelineEntry": schema.TimelineEntry{},
		"Timeline": schema.List[schema.TimelineEntry]{}, "Batch": schema.Batch{}, "StatusTotal": schema.StatusTotal{}, "BatchAccepted": schema.BatchAccepted{},
		"BatchPayment": schema.BatchPayment{}, "BatchList": schema.List[schema.Batch]{}, "Operation": schema.Operation{},
		"RefundList": schema.List[schema.Operation]{},
	} {
		all, always := jsonMembers(reflect.TypeOf(value))
		if name == "Payment" || name == "Operation" { // the command line alone adds the timeline
			all = slices.DeleteFunc(all, func(member string) bool { return member == "events" })
		}
		s := at(t, root, "components", "schemas", name)
		if got := names(at(t, s, "properties")); !slices.Equal(got, all) {
			t.Errorf("%s: described %v\n written %v", name, got, all)
		}
		if got := texts(s["required"]); !slices.Equal(got, always) {
			t.Errorf("%s: required %v\n always written %v", name, got, always)
		}
	}
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i, one := range list {
		out[i] = one.(string)
	}
	slices.Sort(out)
	return out
}

func TestRequestMembers(t *testing.T) {
	t.Parallel()
	schemas := at(t, tree(t), "components", "schemas")
	want := slices.Sorted(slices.Values(schema.IntentMembers()))
	if got := names(at(t, schemas, "Intent", "properties")); !slices.Equal(got, want) {
		t.Errorf("an intent is described with %v, read with %v", got, want)
	}
	ofBatch := slices.DeleteFunc(want, func(name string) bool { return name == "idempotency_key" })
	if got := names(at(t, schemas, "BatchIntent", "properties")); !slices.Equal(got, ofBatch) {
		t.Errorf("a batch's intent is described with %v, read with %v", got, ofBatch)
	}
	for _, name := range []string{"Intent", "BatchIntent", "BatchRequest"} {
		if at(t, schemas, name)["additionalProperties"] != false {
			t.Errorf("%s: unknown members are refused, which the schema does not say", name)
		}
	}
	for name, described := range at(t, schemas, "BatchRequest", "properties") {
		if _, err := schema.DecodeBatch([]byte(`{"` + name + `":0}`)); err == nil || strings.Contains(err.Error(), "unknown") || described == nil {
			t.Errorf("BatchRequest: %s is not read as a member: %v", name, err)
		}
	}
}

// TestOperationBodies: the bodies of captures, cancels and refunds are described with what is read of them, and with the domain's limits.
func TestOperationBodies(t *testing.T) {
	t.Parallel()
	schemas := at(t, tree(t), "components", "schemas")
	id := payments.NewID("demo", "order-1").String()
	for name, kind := range map[string]payments.Kind{"CaptureRequest": payments.KindCapture, "CancelRequest": payments.KindCancel, "RefundRequest": payments.KindRefund} {
		body := at(t, schemas, name)
		want := slices.Sorted(slices.Values(schema.OperationMembers(string(kind))))
		if got := names(at(t, body, "properties")); !slices.Equal(got, want) || body["additionalProperties"] != false || body["required"] != nil {
			t.Errorf("%s is described with %v, read with %v", name, got, want)
		}
		reason, _ := at(t, body, "properties")["reason"].(map[string]any)
		if (reason != nil) != slices.Contains(want, "reason") {
			t.Errorf("%s: %v", name, reason)
		}
		for _, word := range []string{"duplicate", "fraudulent", "requested_by_customer", "abandoned", "other"} {
			intent := payments.Intent{TenantID: "demo", IdempotencyKey: "k", Kind: kind, PaymentID: id, Reason: word, All: true}
			if described := slices.Contains(texts(reason["enum"]), word); described != (intent.ValidateFollowUp() == nil) {
				t.Errorf("%s: the reason %s is described: %v", name, word, described)
			}
		}
	}
	metadata := at(t, schemas, "Intent", "properties", "metadata")
	if !reflect.DeepEqual(at(t, schemas, "RefundRequest", "properties", "metadata"), metadata) {
		t.Error("the metadata of a refund are described otherwise than a payment's")
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	checkStatuses(t, "PaymentStatus", schema.PaymentStatuses(), 5) // "the last five are final"
	checkStatuses(t, "OperationStatus", schema.OperationStatuses(), 4)
}

func checkStatuses(t *testing.T, name string, want []string, final int) {
	t.Helper()
	s := at(t, tree(t), "components", "schemas", name)
	var got []string
	for _, v := range s["enum"].([]any) {
		got = append(got, v.(string))
	}
	if !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
	if described := names(at(t, s, "x-enum-descriptions")); !slices.Equal(described, slices.Sorted(slices.Values(want))) {
		t.Errorf("described are %v", described)
	}
	for i, status := range want {
		if payments.Status(status).Final() != (i >= len(want)-final) {
			t.Errorf("%s is final: %v", status, payments.Status(status).Final())
		}
	}
}

// TestLimits: the numbers of the document are those of the domain.
func TestLimits(t *testing.T) {
	t.Parallel()
	schemas := at(t, tree(t), "components", "schemas")
	intent := at(t, schemas, "Intent", "properties")
	for place, c := range map[string]struct {
		got  any
		want int
	}{
		"description": {at(t, intent, "description")["maxLength"], payments.DescriptionLengthMax},
		"suffix":      {at(t, intent, "statement_descriptor_suffix")["maxLength"], payments.DescriptorSuffixLengthMax},
		"email":       {at(t, intent, "receipt_email")["maxLength"], payments.ReceiptEmailLengthMax},
		"return_url":  {at(t, intent, "return_url")["maxLength"], payments.ReturnURLLengthMax},
		"customer":    {at(t, intent, "customer")["maxLength"], payments.ReferenceLengthMax},
		"method":      {at(t, intent, "payment_method")["maxLength"], payments.ReferenceLengthMax},
		"metadata":    {at(t, intent, "metadata")["maxProperties"], payments.MetadataMax},
		"names":       {at(t, intent, "metadata", "propertyNames")["maxLength"], payments.MetadataNameLengthMax},
		"values":      {at(t, intent, "metadata", "additionalProperties")["maxLength"], payments.MetadataValueLengthMax},
		"batch":       {at(t, schemas, "BatchRequest", "properties", "payments")["maxItems"], payments.BatchSizeMax},
		"parent":      {at(t, schemas, "BatchRequest", "properties", "parent")["maxLength"], payments.ParentLengthMax},
		"limit":       {at(t, tree(t), "components", "parameters", "Limit", "schema")["maximum"], payments.LimitMax},
		"default":     {at(t, tree(t), "components", "parameters", "Limit", "schema")["default"], payments.LimitDefault},
	} {
		if c.got != float64(c.want) {
			t.Errorf("%s: described as %v, is %d", place, c.got, c.want)
		}
	}
	batch := at(t, schemas, "BatchIntent", "properties")
	for name := range batch {
		if !reflect.DeepEqual(batch[name], intent[name]) {
			t.Errorf("%s of a batch's intent is described otherwise than an intent's", name)
		}
	}
}

// TestKeyPatterns: the header is described as it is read.
func TestKeyPatterns(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"IdempotencyKey": payments.KeyLengthMax, "BatchIdempotencyKey": payments.BatchKeyLengthMax} {
		c := jsonschema.NewCompiler()
		if err := c.AddResource("urn:doc", any(tree(t))); err != nil {
			t.Fatal(err)
		}
		s, err := c.Compile("urn:doc#/components/parameters/" + name + "/schema")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"order-1", `"order-1"`, `"a\"b"`, `"a\\b"`, `"a\b"`, `"a`, `a"`, `""`, "", " ", "a b", "ü", "a::b", `"a::b"`, "a:b", "\x00", "!", "~", `"a";p=1`, `a"b`,
			strings.Repeat("k", most), strings.Repeat("k", most+1), `"` + strings.Repeat("k", most) + `"`, `"` + strings.Repeat("k", most+1) + `"`,
			`"` + strings.Repeat(`\"`, most) + `"`, `"` + strings.Repeat(`\"`, most+1) + `"`,
		} {
			key, present, err := schema.ParseKeyHeader([]string{line})
			read := err == nil && present && !payments.ReservedKey(key) && len(key) <= most
			if described := s.Validate(line) == nil; described != read {
				t.Errorf("%s: %q is read: %v; described: %v", name, line, read, described)
			}
		}
	}
}

// TestExamples: every example is as its schema says.
func TestExamples(t *testing.T) {
	t.Parallel()
	root := tree(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:doc", any(root)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	check := func(place string, value any) {
		seen++
		s, err := c.Compile("urn:doc#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(place))
		if err != nil {
			t.Errorf("%s: %v", place, err)
			return
		}
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: an example is not as it says: %v", place, err)
		}
	}
	walk(root, "", func(place string, node map[string]any) {
		if list, ok := node["examples"].([]any); ok {
			for _, value := range list {
				check(place, value)
			}
		}
		if node["schema"] == nil {
			return
		}
		if value, ok := node["example"]; ok {
			check(place+"/schema", value)
		}
		if named, ok := node["examples"].(map[string]any); ok {
			for _, one := range named {
				check(place+"/schema", one.(map[string]any)["value"])
			}
		}
	})
	if seen < 40 {
		t.Errorf("only %d examples were found", seen)
	}
}

// TestRequestExamples: what the page shows a newcomer to send is accepted.
func TestRequestExamples(t *testing.T) {
	t.Parallel()
	read := func(raw []byte) error { _, err := schema.DecodeIntent(raw); return err }
	batch := func(raw []byte) error { _, err := schema.DecodeBatch(raw); return err }
	operation := func(kind string) func([]byte) error {
		return func(raw []byte) error { _, err := schema.DecodeOperation(kind, raw); return err }
	}
	for path, decode := range map[string]func([]byte) error{
		"/v1/payments": read, "/v1/batches": batch, "/v1/payments/{id}/capture": operation("capture"), "/v1/payments/{id}/cancel": operation("cancel"),
		"/v1/payments/{id}/refunds": operation("refund"),
	} {
		examples := at(t, tree(t), "paths", path, "post", "requestBody", "content", "application/json", "examples")
		for name, one := range examples {
			raw, err := json.Marshal(one.(map[string]any)["value"])
			if err != nil {
				t.Fatal(err)
			}
			if err := decode(raw); err != nil {
				t.Errorf("%s: example %s: %v", path, name, err)
			}
		}
	}
	// Ids are those of the keys beside them.
	accepted := at(t, tree(t), "paths", "/v1/batches", "post", "responses", "202", "content", "application/json", "examples", "accepted", "value")
	if accepted["id"] != payments.NewID("demo", "run-7.000000").Format(payments.KindBatch) {
		t.Errorf("the batch's id %v is not that of its key", accepted["id"])
	}
}
