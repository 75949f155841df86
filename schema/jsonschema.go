package schema

import "embed"

//go:embed jsonschema/intent.json jsonschema/event.json
var jsonSchemas embed.FS

// JSONSchema returns the JSON Schema (draft 2020-12) called name: "intent" or
// "event". It describes what a sender should send, so it asks for more than the
// codec here, and less than the processor.
func JSONSchema(name string) ([]byte, error) {
	return jsonSchemas.ReadFile("jsonschema/" + name + ".json")
}
