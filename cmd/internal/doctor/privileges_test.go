package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writes finds the statements that write. An upsert is both: what stands between its two halves names no other table.
var (
	writes  = regexp.MustCompile(`\b(INSERT) INTO (\w+)|\b(DELETE) FROM (\w+)|\b(UPDATE) ([a-z_]+)\b`)
	upserts = regexp.MustCompile(`\bINSERT INTO (\w+)(?:[^I]|I[^N]|IN[^S])*?\bDO (UPDATE)\b`)
)

// TestPrivilegesAreThoseOfTheSQL: every write of the store is a right that is asked for, and no right is asked for that it has no use for.
func TestPrivilegesAreThoseOfTheSQL(t *testing.T) {
	t.Parallel()
	store := filepath.Join("..", "..", "..", "payments", "postgres")
	used := map[string][]string{}
	read := 0
	for _, pattern := range []string{"*.go", filepath.Join("sql", "*.sql")} {
		files, err := filepath.Glob(filepath.Join(store, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			read++
			found := writes.FindAllStringSubmatch(string(text), -1)
			for _, m := range upserts.FindAllStringSubmatch(string(text), -1) {
				found = append(found, []string{"", "", "", "", "", m[2], m[1]})
			}
			for _, m := range found {
				right, table := m[1]+m[3]+m[5], m[2]+m[4]+m[6]
				if _, ours := privileges[table]; !ours {
					t.Errorf("%s: %s on %s is not among the privileges", filepath.Base(file), right, table)
				}
				if !slices.Contains(used[table], right) {
					used[table] = append(used[table], right)
				}
			}
		}
	}
	if read < 50 {
		t.Fatalf("only %d files were read", read)
	}
	for table, rights := range privileges {
		asked := strings.Split(rights, ", ")
		for _, right := range used[table] {
			if !slices.Contains(asked, right) {
				t.Errorf("%s on %s is used and not asked for", right, table)
			}
		}
		for _, right := range asked {
			if right != "SELECT" && !slices.Contains(used[table], right) {
				t.Errorf("%s on %s is asked for and not used", right, table)
			}
		}
	}
}
