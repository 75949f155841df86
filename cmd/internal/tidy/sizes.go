package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
)

// The greatest sizes outside tests and generated code, in lines.
const (
	MaxFileLines     = 400
	MaxFunctionLines = 70
)

// Sizes checks the length of files and functions.
func Sizes(sources []*Source) []Finding {
	var found []Finding
	for _, s := range sources {
		if s.Test() || s.Generated() {
			continue
		}
		if n := bytes.Count(s.Text, []byte("\n")); n > MaxFileLines {
			found = append(found, Finding{File: s.Path, Line: MaxFileLines + 1, Text: fmt.Sprintf("%d lines, %d allowed; give each idea of it a file of its own", n, MaxFileLines)})
		}
		for _, decl := range s.AST.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > MaxFunctionLines {
				found = append(found, s.finding(f.Pos(), "%s has %d lines, %d allowed; take a step of it out into a function", f.Name.Name, n, MaxFunctionLines))
			}
		}
	}
	return found
}
