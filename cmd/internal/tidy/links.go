package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Graph says for each package which packages it imports, tests left out.
type Graph map[string][]string

// LoadGraph asks the go tool at root for our packages and everything below them. Packages that do not
// compile are in it as far as their imports can be read.
func LoadGraph(root string) (Graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	graph := Graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		graph[p.ImportPath] = p.Imports
	}
}

// Links checks that no folder reaches what the table of links forbids it, through whatever imports.
func Links(graph Graph, sources []*Source) []Finding {
	var found []Finding
	for _, rule := range links {
		for from := range graph {
			dir, ours := strings.CutPrefix(from, Module+"/")
			if !ours || !within(dir, rule.dir) {
				continue
			}
			for _, chain := range graph.reach(from, rule.forbidden) {
				at := place(sources, dir, chain[1])
				at.Text = strings.Join(chain, " -> ") + ": " + rule.remedy
				found = append(found, at)
			}
		}
	}
	return found
}

// reach returns the shortest chain of imports from a package to each of forbidden that it reaches.
func (g Graph) reach(from string, forbidden []string) (chains [][]string) {
	hit := map[string]bool{}
	seen := map[string]bool{from: true}
	for next := [][]string{{from}}; len(next) > 0; next = next[1:] {
		chain := next[0]
		for _, p := range g[chain[len(chain)-1]] {
			if seen[p] {
				continue
			}
			seen[p] = true
			longer := append(slices.Clone(chain), p)
			i := slices.IndexFunc(forbidden, func(f string) bool { return within(p, f+"/...") })
			switch {
			case i < 0:
				next = append(next, longer)
			case !hit[forbidden[i]]:
				hit[forbidden[i]] = true
				chains = append(chains, longer)
			}
		}
	}
	return chains
}

// place finds where a folder imports a path.
func place(sources []*Source, dir, imported string) Finding {
	for _, s := range sources {
		if s.Dir() != dir || s.Test() {
			continue
		}
		for _, spec := range s.AST.Imports {
			if importPath(spec) == imported {
				return Finding{File: s.Path, Line: s.line(spec.Pos())}
			}
		}
	}
	return Finding{File: dir}
}
