package devstack

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeBinaries makes a directory whose postgres only knows its version.
func fakeBinaries(t *testing.T, parent, version string) string {
	t.Helper()
	dir := filepath.Join(parent, "pg"+version, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + " (Debian)'\n"
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInstalledIsNewestFirst(t *testing.T) {
	t.Parallel()
	parent := openDir(t)
	var dirs []string
	for _, version := range []string{"14.9", "88.1", "99beta1", "nonsense"} {
		dirs = append(dirs, fakeBinaries(t, parent, version))
	}
	half := fakeBinaries(t, parent, "97.0")
	if err := os.Remove(filepath.Join(half, "initdb")); err != nil {
		t.Fatal(err)
	}
	as, err := runAccount("")
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join(append(dirs, dirs[1], half, "", "relative/bin", "/nowhere"), ":")
	all := installed(t.Context(), as, path)
	if len(all) < 2 || all[0] != (binaries{dirs[2], 99}) || all[1] != (binaries{dirs[1], 88}) {
		t.Fatalf("got %v", all)
	}
	for _, b := range all {
		if b.major < oldestMajor || b.dir == half {
			t.Errorf("%v is not usable", b)
		}
	}
	if again := slices.CompactFunc(all, func(a, b binaries) bool { return a.dir == b.dir }); len(again) != len(all) {
		t.Errorf("twice the same in %v", all)
	}
}

func TestBinariesOutsidePathAreFound(t *testing.T) {
	t.Parallel()
	as, err := runAccount("")
	if err != nil {
		t.Fatal(err)
	}
	if all := installed(t.Context(), as, ""); len(all) == 0 {
		t.Fatal("no PostgreSQL found without PATH")
	}
}

// A data directory is read by the version that made it, not by a newer one.
func TestDataDirectoryChoosesItsVersion(t *testing.T) {
	t.Parallel()
	as, err := runAccount("")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range installed(t.Context(), as, os.Getenv("PATH")) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte(strconv.Itoa(b.major)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := chooseBinaries(t.Context(), as, dir)
		if err != nil || got.major != b.major {
			t.Errorf("chose %v for version %d: %v", got, b.major, err)
		}
	}
}

// Root's programs in its private home are of no use to the user it becomes.
func TestUnreachableBinariesAreLeftOut(t *testing.T) {
	t.Parallel()
	parent := openDir(t)
	dir := fakeBinaries(t, parent, "96.0")
	mode := os.FileMode(0o700)
	if os.Geteuid() != 0 {
		mode = 0o600
	}
	if err := os.Chmod(filepath.Join(dir, "postgres"), mode); err != nil {
		t.Fatal(err)
	}
	as, err := runAccount("")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range installed(t.Context(), as, dir) {
		if b.major == 96 {
			t.Fatal("an unusable PostgreSQL was chosen")
		}
	}
}
