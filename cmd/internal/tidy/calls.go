package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
)

// banned are functions that reach outside past the arguments. It is their mention that counts, so that
// handing time.Now to somebody is seen as well as calling it.
var banned = map[string]struct {
	names  []string
	remedy string
}{
	"time":    {[]string{"Now", "Since", "Until", "Sleep"}, "take a clock, or a timer that ends with the context"},
	"os":      {[]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}, "settings are read in cmd/internal/app and passed in"},
	"context": {[]string{"Background", "TO" + "DO"}, "pass the caller's context on (context.WithoutCancel where the work must outlive it)"},
}

// ownSource are the names of math/rand and math/rand/v2 that do not draw from the global source.
var ownSource = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

// exempt says whether the rule on calls leaves a folder alone: programs, examples of them, the development stack
// and test support are where such things are chosen.
func exempt(dir string) bool {
	return matchesAny(dir, []string{"cmd/...", "deploy/...", "examples/...", "payments/paymentstest/..."})
}

// Calls checks that no code inside the edges reads the clock, the environment or the global random
// source, sleeps, or makes a context out of nothing, but where the list of exceptions says why. An
// exception that nothing uses is a finding too.
func Calls(sources []*Source, exceptions []Exception) []Finding {
	var found []Finding
	used := make([]bool, len(exceptions))
	for _, s := range sources {
		if s.Test() || s.Generated() || exempt(s.Dir()) {
			continue
		}
		for _, m := range mentions(s) {
			if i := slices.IndexFunc(exceptions, func(e Exception) bool { return e.File == s.Path && e.Call == m.call }); i >= 0 {
				used[i] = true
				continue
			}
			found = append(found, s.finding(m.pos, "%s does not belong here: %s; or state a reason in cmd/internal/tidy/exceptions.go", m.call, m.remedy))
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			found = append(found, Finding{File: e.File, Text: "no longer mentions " + e.Call + "; delete its line from cmd/internal/tidy/exceptions.go"})
		}
	}
	return found
}

type mention struct {
	pos          token.Pos
	call, remedy string
}

// mentions finds the banned functions in a file under whatever name it imports their packages.
func mentions(s *Source) (found []mention) {
	imports := map[string]string{}
	for _, spec := range s.AST.Imports {
		p := importPath(spec)
		name := packageName(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if _, watched := banned[p]; name == "." && (watched || random(p)) {
			found = append(found, mention{spec.Pos(), "a dot import of " + p, "import it by name, so that its uses can be seen"})
		}
		imports[name] = p
	}
	ast.Inspect(s.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok || id.Obj != nil { // something declared in this file hides the package
			return true
		}
		p := imports[id.Name]
		if remedy := objectionToCall(p, sel.Sel.Name); remedy != "" {
			found = append(found, mention{sel.Pos(), packageName(p) + "." + sel.Sel.Name, remedy})
		}
		return true
	})
	return found
}

func objectionToCall(pkg, name string) string {
	if random(pkg) && !slices.Contains(ownSource, name) {
		return "take the random source as an argument"
	}
	if b, ok := banned[pkg]; ok && slices.Contains(b.names, name) {
		return b.remedy
	}
	return ""
}

func random(pkg string) bool { return pkg == "math/rand" || pkg == "math/rand/v2" }

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// packageName is the name that a path's package has by custom.
func packageName(p string) string {
	if base := path.Base(p); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(p))
}
