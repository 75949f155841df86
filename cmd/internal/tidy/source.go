// Package tidy holds the rules of the code's layout: who may import whom, which libraries a folder may
// use, how long files and functions may be, what must carry a comment, and which calls are not made
// outside the edges. Its test applies them to this module; each finding names the place and the remedy.
package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Module is the path of the module that the rules are about.
const Module = "github.com/oncepay/oncepay"

// Finding is one breach of a rule. Line is 0 when it concerns a whole file or folder.
type Finding struct {
	File string // slash-separated, relative to the module root
	Line int
	Text string // what is wrong and the remedy
}

// String formats the finding as file:line: text.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// Source is one parsed Go file, whatever its build tags.
type Source struct {
	Path string // slash-separated, relative to the module root
	Text []byte
	Fset *token.FileSet
	AST  *ast.File
}

// Dir is the file's folder relative to the module root, "." for the root itself.
func (s *Source) Dir() string { return path.Dir(s.Path) }

// Test reports whether the go tool compiles the file only into tests.
func (s *Source) Test() bool { return strings.HasSuffix(s.Path, "_test.go") }

// Generated reports whether the file carries the standard header of generated code.
func (s *Source) Generated() bool { return ast.IsGenerated(s.AST) }

func (s *Source) line(pos token.Pos) int { return s.Fset.Position(pos).Line }

func (s *Source) finding(pos token.Pos, format string, args ...any) Finding {
	return Finding{File: s.Path, Line: s.line(pos), Text: fmt.Sprintf(format, args...)}
}

// Parse makes a Source of a file's text.
func Parse(name string, text []byte) (*Source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	return &Source{Path: name, Text: text, Fset: fset, AST: file}, nil
}

// Root is the folder of the go.mod that rules dir.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod in the folder or above it: run the check inside the module")
		}
		dir = parent
	}
}

// Load parses every Go file of the module at root, also those that build tags leave out. Like the go
// tool it passes over testdata, folders that begin with . or _, and modules nested in this one.
func Load(root string) ([]*Source, error) {
	var sources []*Source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && passOver(name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(d.Name(), ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		source, err := Parse(filepath.ToSlash(rel), text)
		if err != nil {
			return err
		}
		sources = append(sources, source)
		return nil
	})
	return sources, err
}

func passOver(dir, base string) bool {
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// within reports whether dir matches pattern: the folder itself, or with /... also all below it.
func within(dir, pattern string) bool {
	if base, recursive := strings.CutSuffix(pattern, "/..."); recursive {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return dir == pattern
}
