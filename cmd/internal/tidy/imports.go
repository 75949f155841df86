package tidy

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// Imports checks every import of every file against the import table.
func Imports(sources []*Source) []Finding {
	var found []Finding
	unlisted := map[string]bool{}
	for _, s := range sources {
		rule, ok := ruleFor(s.Dir())
		if !ok {
			if !unlisted[s.Dir()] {
				unlisted[s.Dir()] = true
				found = append(found, Finding{File: s.Path, Text: "its folder has no line in the import table; add one to cmd/internal/tidy/layout.go that says what it may import"})
			}
			continue
		}
		for _, spec := range s.AST.Imports {
			if text := rule.objection(importPath(spec), s.Test()); text != "" {
				found = append(found, s.finding(spec.Pos(), "%s", text))
			}
		}
	}
	return found
}

func ruleFor(dir string) (folder, bool) {
	i := slices.IndexFunc(layout, func(f folder) bool { return within(dir, f.dir) })
	if i < 0 {
		return folder{}, false
	}
	return layout[i], true
}

// objection says why a file of the folder may not import the path, "" if it may.
func (f folder) objection(imported string, test bool) string {
	ours, isOurs := strings.CutPrefix(imported, Module+"/")
	switch {
	case isOurs && test:
		if within(ours, "cmd/...") && !within(f.dir, "cmd/...") {
			return "a test outside cmd imports " + ours + "; move the test into cmd or what it needs out of there"
		}
	case isOurs:
		if !matchesAny(ours, f.own) || matchesAny(ours, f.except) {
			return f.dir + " may not import " + ours + " (allowed of ours: " + listed(f.own, f.except) + "); depend on a port, or move the code to where both may be known"
		}
	case standard(imported):
	case test:
		if !below(imported, inTests) {
			return imported + " is not an allowed library; use one of cmd/internal/tidy/layout.go, or add it there with a decision record"
		}
	case !below(imported, f.third):
		return f.dir + " may not import " + imported + " (allowed libraries: " + listed(f.third, nil) + "); hide it behind a port, or add it to cmd/internal/tidy/layout.go with a decision record"
	}
	return ""
}

func matchesAny(dir string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == "..." || within(dir, p) })
}

// below reports whether the import path is one of roots or a package below one.
func below(imported string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return within(imported, r+"/...") })
}

func listed(allowed, except []string) string {
	text := strings.Join(allowed, ", ")
	if text == "" {
		text = "none"
	}
	if len(except) > 0 {
		text += ", except " + strings.Join(except, ", ")
	}
	return text
}

// standard reports whether the path belongs to the standard library: its first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser has checked it
	}
	return p
}
