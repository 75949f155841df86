package clients

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/oncepay/oncepay/ingress/apidoc"
)

// TestOpenAPI holds the document against the OpenAPI Initiative's own schema of 3.1, and each of its schemas against JSON Schema's.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	c := jsonschema.NewCompiler()
	add := func(name string, text []byte) any {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(name, value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	official := add("urn:openapi-3.1", []byte(datamodel.OpenAPI31SchemaData))
	if id := official.(map[string]any)["$id"]; !strings.HasPrefix(id.(string), "https://spec.openapis.org/oas/3.1/schema/") {
		t.Fatalf("this is not the schema of OpenAPI 3.1: %v", id)
	}
	schema, err := c.Compile("urn:openapi-3.1")
	if err != nil {
		t.Fatal(err)
	}
	document := add("urn:document", apidoc.Document())
	if err := schema.Validate(document); err != nil {
		t.Errorf("openapi.json is not OpenAPI 3.1: %v", err)
	}
	schemas := document.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	if len(schemas) < 10 {
		t.Errorf("only %d schemas", len(schemas))
	}
	for name := range schemas {
		if _, err := c.Compile("urn:document#/components/schemas/" + name); err != nil {
			t.Errorf("%s is not a JSON Schema of 2020-12: %v", name, err)
		}
	}
	// It does say no.
	delete(document.(map[string]any), "info")
	if schema.Validate(document) == nil {
		t.Error("a document without info passed")
	}
}
