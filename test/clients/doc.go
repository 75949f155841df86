// Package clients runs the four programs of examples/ against the whole stack, as a newcomer would: first directly, then again under the same
// keys, and then through a proxy that loses answers and asks for patience. Stripe's ledger must show every payment charged once.
//
// It needs sh, curl, awk, python3, node and npm, and PostgreSQL's binaries for the stack. What compiles the TypeScript example is pinned by
// package-lock.json and installed by npm ci into a folder that is removed.
//
// Beside that it holds the OpenAPI document against the schema that the OpenAPI Initiative publishes for 3.1 (in the copy that libopenapi
// brings). The module is one of its own, since the product needs none of this.
package clients
