package apidoc

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// row is one line of a table: a member, a parameter or a header.
type row struct {
	Name, In string
	Need     string // "required", or of a header of an answer "always"; "" otherwise
	Type     template.HTML
	Rules    []template.HTML
	Text     template.HTML
}

func members(n *node) []row {
	rows := make([]row, len(n.Properties))
	for i, m := range n.Properties {
		rows[i] = row{Name: m.Name, Need: need(slices.Contains(n.Required, m.Name), "required"), Type: m.Value.typeText(), Rules: m.Value.rules(), Text: inline(m.Value.Description)}
	}
	return rows
}

func parameterRow(p parameter) row {
	return row{Name: p.Name, In: p.In, Need: need(p.Required, "required"), Type: p.Schema.typeText(), Rules: p.Schema.rules(), Text: inline(p.Description)}
}

func headerRow(name string, h parameter) row {
	return row{Name: name, Need: need(h.Required, "always"), Type: h.Schema.typeText(), Rules: h.Schema.rules(), Text: inline(h.Description)}
}

func need(required bool, word string) string {
	if required {
		return word
	}
	return ""
}

func link(name string) template.HTML {
	safe := template.HTMLEscapeString(name)
	return template.HTML(`<a href="#schema-` + safe + `">` + safe + `</a>`) // escaped above
}

// typeText is what a value may be, in words, with links to schemas that have a name.
func (n *node) typeText() template.HTML {
	switch {
	case n == nil:
		return "anything"
	case n.Ref != "":
		return link(n.schemaName())
	case len(n.AnyOf) > 0:
		parts := make([]string, len(n.AnyOf))
		for i, one := range n.AnyOf {
			parts[i] = string(one.typeText())
		}
		return template.HTML(strings.Join(parts, " or ")) // made of the texts of this function
	case slices.Contains(n.Type, "array") && n.Items != nil:
		return "array of " + n.Items.typeText()
	case slices.Contains(n.Type, "object") && n.AdditionalProperties != nil && n.AdditionalProperties.node != nil:
		return "object of " + n.AdditionalProperties.typeText()
	}
	return template.HTML(template.HTMLEscapeString(strings.Join(n.Type, " or "))) // escaped
}

// rules are the limits of a value, in words.
func (n *node) rules() []template.HTML {
	if n == nil {
		return nil
	}
	var out []template.HTML
	say := func(format string, values ...any) { out = append(out, inline(fmt.Sprintf(format, values...))) }
	span := func(low, high *int64, what string) {
		switch {
		case low != nil && high != nil && *low == *high:
			say("%d%s", *low, what)
		case low != nil && high != nil:
			say("%d to %d%s", *low, *high, what)
		case low != nil && (*low != 1 || what == ""):
			say("at least %d%s", *low, what)
		case low != nil:
			say("not empty")
		case high != nil:
			say("at most %d%s", *high, what)
		}
	}
	if n.Const != nil {
		say("always `%s`", strings.Trim(string(n.Const), `"`))
	}
	if len(n.Enum) > 0 {
		say("`%s`", strings.Join(n.Enum, "`, `"))
	}
	span(n.Minimum, n.Maximum, "")
	span(n.MinLength, n.MaxLength, " characters")
	span(n.MinItems, n.MaxItems, " items")
	span(nil, n.MaxProperties, " entries")
	if n.Format != "" && n.Format != "int64" {
		say("%s", map[string]string{"date-time": "RFC 3339", "uri": "absolute URL", "uri-reference": "URL"}[n.Format])
	}
	if n.Pattern != "" {
		say("`%s`", n.Pattern)
	}
	if n.Default != nil {
		say("default `%s`", strings.Trim(string(n.Default), `"`))
	}
	return out
}

// codes are the problem codes that a response's schema allows.
func (n *node) codes() []string {
	if n == nil {
		return nil
	}
	for _, part := range n.AllOf {
		if code, ok := part.Properties.get("code"); ok {
			return code.Enum
		}
	}
	return nil
}
