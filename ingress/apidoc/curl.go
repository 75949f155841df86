package apidoc

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// curl is the command that makes the operation's request with the document's own examples.
func curl(method, path string, op operation, secured bool) string {
	query := ""
	var headers []string
	for _, p := range op.Parameters {
		value := p.sample()
		switch {
		case value == "":
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
		case p.In == "query" && query == "":
			query = "?" + p.Name + "=" + value
		case p.In == "header":
			headers = append(headers, p.Name+": "+value)
		}
	}
	var out strings.Builder
	out.WriteString(`curl "$ONCEPAY_API_URL` + path + query + `"`)
	if method != "GET" && op.RequestBody == nil {
		out.WriteString(" -X " + method)
	}
	if secured {
		out.WriteString(" \\\n  -H \"Authorization: Bearer $ONCEPAY_API_KEY\"")
	}
	for _, h := range headers {
		out.WriteString(" \\\n  -H " + quoted(h))
	}
	if op.RequestBody != nil {
		for _, m := range op.RequestBody.Content {
			if len(m.Value.Examples) > 0 {
				out.WriteString(" \\\n  -H " + quoted("Content-Type: "+m.Name) + " \\\n  -d " + quoted(legible(m.Value.Examples[0].Value.Value)))
				break
			}
		}
	}
	return out.String()
}

// sample is the parameter's example as it stands in a request, "" without one.
func (p parameter) sample() string {
	if p.Example != nil {
		return plain(p.Example)
	}
	if len(p.Examples) > 0 {
		return plain(p.Examples[0].Value.Value)
	}
	return ""
}

func plain(value jsontext.Value) string {
	if text, err := jsontext.AppendUnquote(nil, value); err == nil {
		return string(text)
	}
	return string(value)
}

// quoted puts a text between single quotes for a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// legible writes a value of the document in one line, or indented where that would be a long one.
func legible(value jsontext.Value) string {
	line := value.Clone()
	if err := line.Compact(); err == nil && len(line) < 80 {
		return string(line)
	}
	return indented(value)
}
