package dev

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSabotaged: a build without one of the protections is found out, by the demo as by chaos, and both say how to see it again.
func TestSabotaged(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "oncepay-dev")
	build := exec.CommandContext(t.Context(), "go", "build", "-pgo=off", "-tags", "sabotage", "-o", program, "github.com/oncepay/oncepay/cmd/oncepay-dev")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v %s", err, out)
	}
	for name, test := range map[string]func(*testing.T, string){"demo": testDemoSabotaged, "chaos": testChaosSabotaged} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, program)
		})
	}
}

// testDemoSabotaged: a build that sends again without looking first charges twice, and the demo says so.
func testDemoSabotaged(t *testing.T, program string) {
	p := start(t, program, temporary(t), []string{"ONCEPAY_SABOTAGE=look"}, "demo", "--intents", "400", "--faults", "commit_then_503", "--json")
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
	d := p.document()
	numbers(t, d, demoNumbers)
	if n := d["double_charges"].(float64); n < 1 || d["holds"] != false {
		t.Errorf("%v double charges; %v", n, d["findings"])
	}
	// What went wrong can be understood: the log is kept, and named.
	_, after, _ := strings.Cut(p.err.String(), "the workers' log is ")
	if _, err := os.Stat(strings.TrimSpace(after)); err != nil {
		t.Errorf("the log: %v in %q", err, p.err.String())
	}
}

// testChaosSabotaged: without the protection that only repeats put to the test, chaos says no.
func testChaosSabotaged(t *testing.T, program string) {
	p := start(t, program, temporary(t), []string{"ONCEPAY_SABOTAGE=owner"}, "chaos", "--keys-off", "--seed", "5", "--duration", "4s", "--rate", "25")
	if code := p.wait(); code != 1 || !strings.Contains(p.out.String(), "NOT PROVED") ||
		!strings.Contains(p.out.String(), "oncepay-dev chaos --seed 5 --duration 4s --rate 25 --keys-off\n") {
		t.Errorf("exit code %d: %s%s", code, p.out.String(), p.err.String())
	}
}
