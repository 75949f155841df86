package tidy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parse makes sources of fixtures, path to text.
func parse(t *testing.T, files map[string]string) []*Source {
	t.Helper()
	var sources []*Source
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s, err := Parse(name, []byte(files[name]))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
	}
	return sources
}

// wants holds findings against the start of each line that is expected, in any order.
func wants(t *testing.T, found []Finding, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range found {
		lines = append(lines, f.String())
	}
	for _, w := range want {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, w) })
		if i < 0 {
			t.Errorf("no finding %q in %q", w, lines)
			continue
		}
		lines = slices.Delete(lines, i, i+1)
	}
	for _, l := range lines {
		t.Errorf("finding that was not wanted: %s", l)
	}
}

// importing is a file that imports the paths, one a line from line 2 on; ours begin with ./
func importing(paths ...string) string {
	text := "package p\n"
	for _, p := range paths {
		if ours, ok := strings.CutPrefix(p, "./"); ok {
			p = Module + "/" + ours
		}
		text += fmt.Sprintf("import _ %q\n", p)
	}
	return text
}

func TestImports(t *testing.T) {
	t.Parallel()
	found := Imports(parse(t, map[string]string{
		"payments/a.go":                     importing("context", "./schema", pgx),
		"payments/a_test.go":                importing("./payments/paymentstest", rapid, pgx, "./cmd/internal/app", "example.org/x"),
		"payments/coalesce/a.go":            importing("sync", "./payments"),
		"payments/stripesim/a.go":           importing("net/http", "./payments", strictJSON),
		"payments/postgres/a.go":            importing("./payments", "./payments/coalesce", "./migrations", pgx+"/pgxpool", stripe, "./payments/stripe"),
		"payments/stripe/a.go":              importing("./payments", stripe+"/client", pgx),
		"payments/paymentstest/a.go":        importing("testing", "./payments/stripesim", pgx, "./payments/postgres"),
		"schema/a.go":                       importing(strictJSON+"/jsontext", "./payments", nats),
		"schema/provision/a.go":             importing("./schema", nats+"/jetstream", strictJSON),
		"producer/b.go":                     importing("./schema/provision"),
		"producer/a.go":                     importing("./schema", nats+"/jetstream", "./consumer", "./payments/postgres", pgx),
		"producer/ingress/a.go":             importing("./producer", "./payments/coalesce", stripe),
		"consumer/a.go":                     importing("./payments", "./producer/ingress"),
		"deploy/devstack/a.go":              importing(natsServer+"/server", embeddedPostgres, "./payments/stripesim", "./cmd/internal/app"),
		"cmd/oncepay/main.go":               importing("./cmd/internal/cli", cobra, natsServer+"/server", "./payments/stripesim", "./cmd/internal/dev"),
		"cmd/internal/app/a.go":             importing("./payments/postgres", "./consumer", pgx, goleak),
		"cmd/internal/dev/a.go":             importing("./deploy/devstack", natsServer+"/server", "./cmd/internal/app"),
		"cmd/oncepay-dev/main.go":           importing("./cmd/internal/dev", "./payments/stripesim", rapid, "./cmd/internal/crashtest/world"),
		"cmd/oncepay-dev/main_test.go":      importing("./cmd/internal/crashtest/world"),
		"cmd/internal/cli/a.go":             importing("./cmd/internal/crashtest/world"),
		"cmd/internal/dev/b.go":             importing("./cmd/internal/crashtest/world"),
		"cmd/internal/crashtest/world/a.go": importing("testing", "./cmd/internal/app", "./deploy/devstack/devstacktest", "./payments/stripesim", goleak),
		"payments/stripesim/a_test.go":      importing("./cmd/internal/crashtest/world"),
		"cmd/oncepay-devious/internal.go":   importing("./payments/stripesim"),
		"new/a.go":                          importing(),
		"new/b.go":                          importing(),
	}))
	wants(t, found,
		"payments/a.go:3: payments may not import schema",
		"payments/a.go:4: payments may not import "+pgx,
		"payments/a_test.go:5: a test outside cmd imports cmd/internal/app",
		"payments/a_test.go:6: example.org/x is not an allowed library",
		"payments/coalesce/a.go:3: payments/coalesce may not import payments",
		"payments/stripesim/a.go:3: payments/stripesim/... may not import payments",
		"payments/stripesim/a.go:4: payments/stripesim/... may not import "+strictJSON,
		"payments/postgres/a.go:6: payments/postgres/... may not import "+stripe,
		"payments/postgres/a.go:7: payments/postgres/... may not import payments/stripe",
		"payments/stripe/a.go:4: payments/stripe/... may not import "+pgx,
		"payments/paymentstest/a.go:5: payments/paymentstest/... may not import payments/postgres",
		"schema/a.go:3: schema may not import payments",
		"schema/a.go:4: schema may not import "+nats,
		"schema/provision/a.go:4: schema/provision may not import "+strictJSON,
		"producer/b.go:2: producer/... may not import schema/provision",
		"producer/a.go:4: producer/... may not import consumer",
		"producer/a.go:5: producer/... may not import payments/postgres",
		"producer/a.go:6: producer/... may not import "+pgx,
		"producer/ingress/a.go:4: producer/... may not import "+stripe,
		"consumer/a.go:3: consumer/... may not import producer/ingress",
		"deploy/devstack/a.go:5: deploy/... may not import cmd/internal/app",
		"cmd/oncepay/main.go:4: cmd/... may not import "+natsServer,
		"cmd/oncepay/main.go:5: cmd/... may not import payments/stripesim",
		"cmd/oncepay/main.go:6: cmd/... may not import cmd/internal/dev",
		"cmd/internal/app/a.go:5: cmd/... may not import "+goleak,
		"cmd/oncepay-dev/main.go:4: cmd/oncepay-dev/... may not import "+rapid,
		"cmd/oncepay-dev/main.go:5: cmd/oncepay-dev/... may not import cmd/internal/crashtest/world",
		"cmd/internal/cli/a.go:2: cmd/... may not import cmd/internal/crashtest/world",
		"cmd/internal/dev/b.go:2: cmd/internal/dev/... may not import cmd/internal/crashtest/world",
		"payments/stripesim/a_test.go:2: a test outside cmd imports cmd/internal/crashtest/world",
		"cmd/oncepay-devious/internal.go:2: cmd/... may not import payments/stripesim",
		"new/a.go: its folder has no line in the import table",
	)
}

func TestLinks(t *testing.T) {
	t.Parallel()
	sources := parse(t, map[string]string{
		"cmd/oncepay/main.go": importing("fmt", "./cmd/internal/cli"),
		"producer/a.go":       importing("./schema"),
	})
	graph := Graph{
		Module + "/cmd/oncepay":         {"fmt", Module + "/cmd/internal/cli"},
		Module + "/cmd/internal/cli":    {"example.org/lib", natsServer + "/server"},
		Module + "/cmd/oncepay-dev":     {natsServer + "/server"},
		"example.org/lib":               {"testing", "testing/iotest"},
		Module + "/producer":            {Module + "/schema"},
		Module + "/schema":              {pgx + "/pgconn", pgx + "/pgtype"},
		Module + "/consumer":            {nats},
		Module + "/consumer/deadletter": {Module + "/consumer"},
		nats:                            {"net"},
	}
	wants(t, Links(graph, sources),
		"cmd/oncepay/main.go:3: "+Module+"/cmd/oncepay -> "+Module+"/cmd/internal/cli -> "+natsServer+"/server: ",
		"cmd/oncepay/main.go:3: "+Module+"/cmd/oncepay -> "+Module+"/cmd/internal/cli -> example.org/lib -> testing: ",
		"producer/a.go:2: "+Module+"/producer -> "+Module+"/schema -> "+pgx+"/pgconn: ",
	)
}

func TestSizes(t *testing.T) {
	t.Parallel()
	function := func(lines int) string { return "func f() {\n" + strings.Repeat("\n", lines-2) + "}\n" }
	generated := "// Code generated by x. DO NOT EDIT.\n\n"
	found := Sizes(parse(t, map[string]string{
		"a/fits.go":      "package a\n" + strings.Repeat("\n", MaxFileLines-1),
		"a/long.go":      "package a\n" + strings.Repeat("\n", MaxFileLines),
		"a/long_test.go": "package a\n" + strings.Repeat("\n", MaxFileLines) + function(MaxFunctionLines+1),
		"a/made.go":      generated + "package a\n" + strings.Repeat("\n", MaxFileLines) + function(MaxFunctionLines+1),
		"b/fits.go":      "package b\n" + function(MaxFunctionLines),
		"b/long.go":      "package b\n// Of comments only the function's own lines count.\n" + function(MaxFunctionLines+1),
	}))
	wants(t, found, "a/long.go:401: 401 lines, 400 allowed", "b/long.go:3: f has 71 lines, 70 allowed")
}

func TestDocs(t *testing.T) {
	t.Parallel()
	found := Docs(parse(t, map[string]string{
		"payments/doc.go": "// Package payments is documented here.\npackage payments\n",
		"payments/a.go": `package payments

// A is documented.
type A struct{ Field int }

type B int

//go:generate directive only
func C() {}

func (a *A) D() {}

// E is documented.
func (A) E() {}

type g[T, U any] struct{}

func (*g[T, U]) Hidden() {}

// One comment for a group of values.
const (
	H = 1
	I = 2
)

var (
	J = 1 // at the end of its line
	K = 2
	l = 3
)

type (
	// M is documented.
	M int
	N int
)
`,
		"payments/a_test.go":    "package payments\n\nfunc Exported() {}\n",
		"payments/made.go":      "// Code generated by x. DO NOT EDIT.\n\npackage payments\n\nfunc Made() {}\n",
		"schema/a.go":           "package schema\n",
		"cmd/internal/cli/a.go": "package cli\n\nfunc Run() {}\n",
		"cmd/internal/cli/b.go": "// Package cli is documented in its second file.\npackage cli\n",
	}))
	wants(t, found,
		"payments/a.go:6: exported B has no doc comment",
		"payments/a.go:9: exported C",
		"payments/a.go:11: exported D",
		"payments/a.go:28: exported K",
		"payments/a.go:35: exported N",
		"schema/a.go:1: package schema has no doc comment",
	)
}

func TestNames(t *testing.T) {
	t.Parallel()
	found := Names(parse(t, map[string]string{
		"payments/util/a.go":      "package money\n",
		"payments/money/a.go":     "package money\n",
		"schema/a.go":             "package common\n",
		"schema/a_test.go":        "package helpers_test\n",
		"cmd/internal/utility.go": "package internal\n",
	}))
	wants(t, found, "payments/util/a.go:1: package util says", "schema/a.go:1: package common says", "schema/a_test.go:1: package helpers_test says")
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	found := Markers(parse(t, map[string]string{
		"a/a.go": "package a\n\n// TO" + "DO: later\nvar x = \"TO" + "DO\" // FIX" + "ME\n\n/* a\n XX" + "X */\n// XX" + "XX is a mask, mastodon an animal\n",
	}))
	wants(t, found, "a/a.go:3: TO"+"DO in a comment", "a/a.go:4: FIX"+"ME in a comment", "a/a.go:6: XX"+"X in a comment")
}

func TestCalls(t *testing.T) {
	t.Parallel()
	sources := parse(t, map[string]string{
		"payments/a.go": `package payments

import (
	"context"
	"math/rand/v2"
	"os"
	clock "time"
)

var now = clock.Now

func f(ctx context.Context, d clock.Duration) {
	clock.Sleep(d)
	_ = rand.N(d)
	_ = rand.New(rand.NewPCG(1, 2)).Int()
	_ = os.Getenv("X")
	_ = context.Background()
	_ = context.WithoutCancel(ctx)
}

func g(rand *rand.Rand) int { return rand.Int() }
`,
		"payments/dot.go":            "package payments\n\nimport . \"time\"\n\nvar _ = Now\n",
		"payments/postgres/a.go":     "package postgres\n\nimport \"time\"\n\nvar _ = time.Now\nvar _ = time.Since\n",
		"payments/a_test.go":         "package payments\n\nimport \"time\"\n\nvar _ = time.Now\n",
		"payments/paymentstest/a.go": "package paymentstest\n\nimport \"time\"\n\nvar _ = time.Now\n",
		"cmd/internal/app/a.go":      "package app\n\nimport \"os\"\n\nvar _ = os.Getenv\n",
		"deploy/devstack/a.go":       "package devstack\n\nimport \"time\"\n\nvar _ = time.Sleep\n",
	})
	exceptions := []Exception{
		{"payments/postgres/a.go", "time.Now", "a default"},
		{"payments/postgres/b.go", "time.Now", "a file that is gone"},
	}
	wants(t, Calls(sources, exceptions),
		"payments/a.go:10: time.Now does not belong here",
		"payments/a.go:13: time.Sleep",
		"payments/a.go:14: rand.N ",
		"payments/a.go:16: os.Getenv",
		"payments/a.go:17: context.Background",
		"payments/dot.go:3: a dot import of time",
		"payments/postgres/a.go:6: time.Since",
		"payments/postgres/b.go: no longer mentions time.Now",
	)
}

func TestExceptionsStateAReason(t *testing.T) {
	t.Parallel()
	seen := map[[2]string]bool{}
	for _, e := range Exceptions {
		if len(e.Reason) < 10 {
			t.Errorf("%s %s: reason %q", e.File, e.Call, e.Reason)
		}
		if at := [2]string{e.File, e.Call}; seen[at] {
			t.Errorf("%s %s is listed twice", e.File, e.Call)
		} else {
			seen[at] = true
		}
	}
}

func TestMachinePaths(t *testing.T) {
	t.Parallel()
	home, root, work := "/ho"+"me/", "/ro"+"ot/", "/wo"+"rk/"
	text := strings.Join([]string{
		"cd " + root + "src",
		"dir: \"" + home + "ann/src\"",
		"(" + work + "main)",
		"C:\\Us" + "ers\\ann",
		"/Us" + "ers/ann/src",
		"image: " + home + "nonroot/app, " + home + "linuxbrew/.linuxbrew",
		"GET https://example.org" + work + "x",
		"$ROOT" + work + "x and a" + root + "b and ./" + work + "y",
		"the folder of root is " + strings.TrimSuffix(root, "/") + ".",
	}, "\n")
	wants(t, MachinePaths("a.md", []byte(text)), "a.md:1: ", "a.md:2: ", "a.md:3: ", "a.md:4: ", "a.md:5: ")
	wants(t, MachinePaths("a.png", []byte("\x00"+text)))
}

func TestStateMachine(t *testing.T) {
	t.Parallel()
	compare := func(page, want string) []Finding {
		return compare(page, want, Finding{File: StateMachineFile, Text: StateMachine("")[0].Text})
	}
	wants(t, compare("a\nb\nc\n", "a\nb\nc\n"))
	wants(t, compare("a\nb\nc\n", "a\nx\nc\n"), "docs/STATE_MACHINE.md:2: differs from payments/status.go; regenerate it: go run ./cmd/internal/tidy/statemachine > docs/STATE_MACHINE.md")
	wants(t, compare("", "a\n"), "docs/STATE_MACHINE.md:1: ")
	wants(t, compare("a\n", "a\nb\n"), "docs/STATE_MACHINE.md:2: ")
}

// TestLoad shows which files of a tree the rules see.
func TestLoad(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "module m\n",
		"a/a.go":                "package a\n",
		"a/tagged.go":           "//go:build never\n\npackage a\n",
		"a/a_test.go":           "package a\n",
		"a/testdata/broken.go":  "not Go",
		"_b/b.go":               "not Go",
		".c/c.go":               "not Go",
		"test/nested/go.mod":    "module n\n",
		"test/nested/nested.go": "not Go",
	} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Path)
	}
	if want := []string{"a/a.go", "a/a_test.go", "a/tagged.go"}; !slices.Equal(names, want) {
		t.Errorf("loaded %v, want %v", names, want)
	}
	if got, err := Root(filepath.Join(root, "a", "testdata")); err != nil || got != root {
		t.Errorf("Root = %s, %v", got, err)
	}
	files, err := Tracked(root) // no git here: every file
	if err != nil || !slices.Contains(files, "test/nested/go.mod") || len(files) != 9 {
		t.Errorf("Tracked = %v, %v", files, err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "broken.go"), []byte("not Go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(root); err == nil || !strings.Contains(err.Error(), "a/broken.go:1") {
		t.Errorf("a file that does not parse: %v", err)
	}
}
