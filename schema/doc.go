// Package schema is the wire contract: subjects, headers, stream and consumer
// settings as data, payment intents, outcome events, and the documents that the
// HTTP API and the command line print.
//
// It holds syntax and types, no business rules, and it does no input or output:
// whoever publishes, receives or answers imports it and nothing else of ours.
// What it once accepted it accepts for ever; testdata/v1 is the record of that.
//
// Its errors name a field and a remedy. They never repeat a value, since a value
// sent to the wrong field may be a card number.
package schema
