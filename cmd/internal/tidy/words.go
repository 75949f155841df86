package tidy

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// emptyNames say nothing of what a package is for.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// Names checks that no package or folder is called by an empty name.
func Names(sources []*Source) []Finding {
	var found []Finding
	for _, s := range sources {
		for _, name := range []string{s.AST.Name.Name, path.Base(s.Dir())} {
			if slices.Contains(emptyNames, strings.TrimSuffix(name, "_test")) {
				found = append(found, s.finding(s.AST.Name.Pos(), "package %s says nothing of what it is for; name it after what it does", name))
				break
			}
		}
	}
	return found
}

// Put together from halves, as the patterns below are, so that this file does not breach its own rule.
var marker = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// Markers checks that no comment postpones work.
func Markers(sources []*Source) []Finding {
	var found []Finding
	for _, s := range sources {
		for _, group := range s.AST.Comments {
			for _, c := range group.List {
				if m := marker.FindString(c.Text); m != "" {
					found = append(found, s.finding(c.Pos(), "%s in a comment; do it, or file an issue and delete the comment", m))
				}
			}
		}
	}
	return found
}

// machinePath finds paths of one person's machine.
var machinePath = regexp.MustCompile(`(^|[^\w./$}-])(/(ro` + `ot|wo` + `rk|Us` + `ers/\w+|ho` + `me/\w+)/[\w.]|[A-Z]:\\Us` + `ers\\)`)

// fixedHomes are the same on every machine that has them: container users, Homebrew's prefix.
var fixedHomes = []string{"/ho" + "me/nonroot/", "/ho" + "me/oncepay/", "/ho" + "me/linuxbrew/"}

// MachinePaths checks the text of one tracked file for paths of the machine that it was written on.
func MachinePaths(name string, text []byte) []Finding {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil // binary
	}
	var found []Finding
	n := 0
	for line := range bytes.Lines(text) {
		n++
		for _, m := range machinePath.FindAllString(string(line), -1) {
			if !slices.ContainsFunc(fixedHomes, func(h string) bool { return strings.Contains(m, h) }) {
				found = append(found, Finding{File: name, Line: n, Text: "a path of one machine (" + strings.TrimSpace(m) + "…); make it relative, or a setting"})
			}
		}
	}
	return found
}

// Tracked lists the files that git tracks under root, or every file where there is no git to ask.
func Tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 }), nil
	}
	var files []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.Type().IsRegular():
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	return files, err
}

// Text reads a tracked file; a symbolic link, a folder or a file that is gone has no text to check.
func Text(root, name string) ([]byte, error) {
	full := filepath.Join(root, filepath.FromSlash(name))
	info, err := os.Lstat(full)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(full)
}
