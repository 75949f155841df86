package protection

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncepay/oncepay/cmd/internal/crashtest/world"
	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// finding is what a test has found.
type finding struct {
	Verdict        oracle.Verdict
	Intents        int
	Posts          int
	PaymentIntents int
	Letters        map[payments.Reason]int
	Violations     int
}

// conclude waits for rest and wants the oracle's full consent, and that of check. In a sabotaged build it writes down what there is instead.
func conclude(w *world.World, check func(world.Account)) {
	w.Helper()
	w.Rest()
	concludeUnrested(w, func(a world.Account) {
		for _, finding := range a.Wrong() {
			w.Error(finding)
		}
		check(a)
	})
}

// concludeUnrested is for runs that come to no rest, or not to a good one.
func concludeUnrested(w *world.World, check func(world.Account)) {
	w.Helper()
	a := w.Account()
	path := os.Getenv(world.FindingEnv)
	if path == "" {
		check(a)
		return
	}
	f := finding{Verdict: oracle.Judge(a.Run), Intents: len(a.Intents), Posts: a.Summary.Posts, PaymentIntents: a.Summary.PaymentIntents, Letters: a.Reasons(), Violations: len(a.Violations)}
	data, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// TestSabotage builds the same tests with one protection removed at a time. The oracle must turn red, or it would prove nothing.
func TestSabotage(t *testing.T) {
	t.Parallel()
	if os.Getenv(world.FindingEnv) != "" {
		t.Fatal("a sabotaged build runs one test by its name")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "sabotaged.test")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "sabotage", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("the sabotaged build: %v\n%s", err, out)
	}
	for _, c := range []struct {
		sabotage, test string
		red            func(finding) bool
	}{
		{"token", "TestStoppedOwnerAfterAnswer", func(f finding) bool { return f.Verdict.SecondOutcomes > 0 }},
		{"token", "TestStoppedRefunderAfterAnswer", func(f finding) bool { return f.Verdict.Misrecorded > 0 }},
		{"token", "TestRefunderHeldUpBeforeSend", func(f finding) bool { return f.Verdict.DoubleRefunds > 0 }},
		{"owner", "TestOwnerSendsOnce", func(f finding) bool { return f.Posts > f.Intents }},
		{"look", "TestLookBeforeSending", func(f finding) bool { return f.Verdict.DoubleCharges > 0 }},
		{"look", "TestLookBeforeRefunding", func(f finding) bool { return f.Verdict.DoubleRefunds > 0 }},
		{"window", "TestForgottenKey", func(f finding) bool { return f.PaymentIntents > 1 && f.Verdict.DoubleCharges > 0 }},
		{"ticket", "TestOwnerSendsOnce", func(f finding) bool { return f.Verdict.Unsettled > 0 && f.Violations > 0 }},
		{"fingerprint", "TestConflictWithMessageID", func(f finding) bool { return f.Verdict.Silent > 0 && f.Letters[payments.ReasonKeyReused] == 0 }},
	} {
		t.Run(c.sabotage+"/"+c.test, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "finding.json")
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, program, "-test.run", "^"+c.test+"$", "-test.timeout", "150s", "-test.v")
			run.Env = append(os.Environ(), world.SabotageEnv+"="+c.sabotage, world.FindingEnv+"="+path)
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s of the sabotaged build found nothing: %v\n%s", c.test, err, out)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f finding
			if err := json.Unmarshal(data, &f); err != nil {
				t.Fatal(err)
			}
			if !c.red(f) {
				t.Errorf("%s passes without the protection %q: %+v", c.test, c.sabotage, f)
			}
		})
	}
}
