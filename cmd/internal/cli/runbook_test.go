package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// shellWords splits a line as a shell does: quotes, and a comment at its end.
var shellWords = regexp.MustCompile(`"[^"]*"|[^\s"]+`)

// TestRunbookCommands: every command of the runbook and of the README's operators' part is one that this program takes, to the last flag.
func TestRunbookCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/RUNBOOK.md")
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("`(oncepay [^`]+)`")
	var commands []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "oncepay ") {
			commands = append(commands, line)
		}
		for _, found := range inline.FindAllStringSubmatch(line, -1) {
			commands = append(commands, found[1])
		}
	}
	if len(commands) < 25 {
		t.Fatalf("%d commands: %q", len(commands), commands)
	}
	id := strings.Repeat("0", 32)
	named := strings.NewReplacer("dl_…", "dl_1", "rpl_…", "rpl_1", "pay_…", "pay_"+id, "ref_…", "ref_"+id, "pi_…", "pi_1", "acct_…", "acct_1")
	for _, command := range commands {
		line, _, _ := strings.Cut(named.Replace(command), " #")
		var args []string
		for _, word := range shellWords.FindAllString(line, -1)[1:] {
			word = strings.Trim(word, `"`)
			switch {
			case word == "ID" && args[0] == "dlq":
				word = "dl_1"
			case word == "ID":
				word = "pay_" + id
			case word == "NAME":
				word = "acme"
			}
			args = append(args, word)
		}
		if args[0] == "serve" || args[0] == "doctor" {
			args = append(args, "--help")
		}
		b := withSettings(t, map[string]string{"ONCEPAY_DATABASE_URL": "postgres://127.0.0.1:1/d"})
		r := b.run(append(args, "--yes")...)
		if strings.Contains(r.err, "unknown flag: --yes") {
			r = b.run(args...)
		}
		// As far as it can come without a database: the command line is in order.
		if r.code != exitOK && !strings.Contains(r.err, "PostgreSQL cannot be reached") {
			t.Errorf("%s: %+v", command, r)
		}
	}
}
