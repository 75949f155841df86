package tidy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestModule applies every rule to this module.
func TestModule(t *testing.T) {
	t.Parallel()
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 10 {
		t.Fatalf("only %d Go files under the module root: the rules were not applied", len(sources))
	}
	rules := map[string]func(*testing.T) []Finding{
		"imports": func(*testing.T) []Finding { return Imports(sources) },
		"sizes":   func(*testing.T) []Finding { return Sizes(sources) },
		"docs":    func(*testing.T) []Finding { return Docs(sources) },
		"names":   func(*testing.T) []Finding { return Names(sources) },
		"markers": func(*testing.T) []Finding { return Markers(sources) },
		"calls":   func(*testing.T) []Finding { return Calls(sources, Exceptions) },
		"links": func(t *testing.T) []Finding {
			graph, err := LoadGraph(root)
			if err != nil {
				t.Fatal(err)
			}
			if len(graph[Module+"/cmd/internal/tidy"]) == 0 {
				t.Fatal("go list did not report this package's own imports")
			}
			return Links(graph, sources)
		},
		"paths": func(t *testing.T) (found []Finding) {
			files, err := Tracked(root)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range files {
				text, err := Text(root, name)
				if err != nil {
					t.Error(err)
				}
				found = append(found, MachinePaths(name, text)...)
			}
			return found
		},
		"state machine": func(t *testing.T) []Finding {
			page, err := os.ReadFile(filepath.Join(root, StateMachineFile))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return StateMachine(string(page))
		},
		"failure policy": func(t *testing.T) []Finding {
			page, err := os.ReadFile(filepath.Join(root, FailurePolicyFile))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return FailurePolicy(string(page))
		},
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range rule(t) {
				t.Error(f)
			}
		})
	}
}
