package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldestMajor is the oldest PostgreSQL that Oncepay supports.
const oldestMajor = 15

const howToInstall = "install it (Debian and Ubuntu: apt-get install postgresql; Red Hat: dnf install postgresql-server; macOS: brew install postgresql@17)"

// binaries is one installed PostgreSQL.
type binaries struct {
	dir   string // holds postgres and initdb
	major int
}

// binaryPatterns are the places where packages put PostgreSQL without adding it
// to PATH: Debian, Red Hat, Homebrew (ARM, Intel, Linux), Postgres.app, source.
var binaryPatterns = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/opt/homebrew/opt/postgresql/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/usr/libexec/postgresql*",
	"/usr/bin",
}

// installed lists every usable PostgreSQL >= 15, newest first; usable means that
// the account may execute it.
func installed(ctx context.Context, as account, searchPath string) []binaries {
	var dirs []string
	for _, dir := range filepath.SplitList(searchPath) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, pattern := range binaryPatterns {
		found, _ := filepath.Glob(pattern) // fails only for a malformed pattern
		dirs = append(dirs, found...)
	}
	if dir := embeddedBinaries(); dir != "" {
		dirs = append(dirs, dir)
	}
	var all []binaries
	seen := map[string]bool{}
	for _, dir := range dirs {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		dir = filepath.Dir(real)
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		if major, err := majorOf(ctx, as, real); err == nil && major >= oldestMajor {
			all = append(all, binaries{dir: dir, major: major})
		}
	}
	slices.SortStableFunc(all, func(a, b binaries) int { return b.major - a.major })
	return all
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func majorOf(ctx context.Context, as account, postgres string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, postgres, "--version")
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C"}
	cmd.SysProcAttr = as.attr(0)
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s --version says %q", postgres, out)
	}
	return strconv.Atoi(string(m[1]))
}

// chooseBinaries picks the newest PostgreSQL, or the one that an existing data
// directory was made with: another major version cannot read it.
func chooseBinaries(ctx context.Context, as account, dataDir string) (binaries, error) {
	all := installed(ctx, as, os.Getenv("PATH"))
	version, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if dataDir != "" && err == nil {
		want := strings.TrimSpace(string(version))
		for _, b := range all {
			if strconv.Itoa(b.major) == want {
				return b, nil
			}
		}
		return binaries{}, fmt.Errorf("data directory %s was made by PostgreSQL %s, which is not installed: install it, or name another directory", dataDir, want)
	}
	if len(all) > 0 {
		return all[0], nil
	}
	if as.drop {
		return binaries{}, fmt.Errorf("no PostgreSQL %d or newer found: %s", oldestMajor, howToInstall)
	}
	dir, err := fetchEmbedded(embeddedHome(), embeddedRepository)
	if err != nil {
		return binaries{}, fmt.Errorf("no PostgreSQL %d or newer found and fetching one failed (%w): %s", oldestMajor, err, howToInstall)
	}
	major, err := majorOf(ctx, as, filepath.Join(dir, "postgres"))
	if err != nil {
		return binaries{}, fmt.Errorf("fetched PostgreSQL does not run: %w", err)
	}
	return binaries{dir: dir, major: major}, nil
}
