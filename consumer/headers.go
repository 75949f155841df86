package consumer

import (
	"bytes"
	"slices"
)

// wireHeaders writes headers as NATS does on the wire, names in order, so that any bytes survive in a dead letter.
func wireHeaders(headers map[string][]string) []byte {
	if len(headers) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("NATS/1.0\r\n")
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, line := range headers[name] {
			b.WriteString(name + ": " + line + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// readHeaders reads what wireHeaders wrote, byte for byte.
func readHeaders(wire []byte) map[string][]string {
	_, lines, found := bytes.Cut(wire, []byte("\r\n"))
	headers := map[string][]string{}
	for found && len(lines) > 0 {
		var line []byte
		line, lines, found = bytes.Cut(lines, []byte("\r\n"))
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok {
			headers[string(name)] = append(headers[string(name)], string(value))
		}
	}
	return headers
}
