package crashtest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncepay/oncepay/payments"
	"github.com/oncepay/oncepay/payments/paymentstest/oracle"
)

// sabotageEnv chooses the protection that a build with the tag sabotage lacks; findingEnv is the file to which a test of such a build writes
// what it has found, where it would otherwise judge.
const (
	sabotageEnv = "ONCEPAY_SABOTAGE"
	findingEnv  = "ONCEPAY_CRASHTEST_FINDING"
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
func (w *world) conclude(check func(account)) {
	w.Helper()
	w.rest()
	w.concludeUnrested(func(a account) {
		for _, finding := range a.wrong() {
			w.Error(finding)
		}
		check(a)
	})
}

// concludeUnrested is for runs that come to no rest, or not to a good one.
func (w *world) concludeUnrested(check func(account)) {
	w.Helper()
	a := w.account()
	path := os.Getenv(findingEnv)
	if path == "" {
		check(a)
		return
	}
	f := finding{Verdict: oracle.Judge(a.Run), Intents: len(a.Intents), Posts: a.Summary.Posts, PaymentIntents: a.Summary.PaymentIntents, Letters: a.reasons(), Violations: len(a.Violations)}
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
	if os.Getenv(findingEnv) != "" {
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
		{"owner", "TestOwnerSendsOnce", func(f finding) bool { return f.Posts > f.Intents }},
		{"look", "TestLookBeforeSending", func(f finding) bool { return f.Verdict.DoubleCharges > 0 }},
		{"window", "TestForgottenKey", func(f finding) bool { return f.PaymentIntents > 1 && f.Verdict.DoubleCharges > 0 }},
		{"ticket", "TestOwnerSendsOnce", func(f finding) bool { return f.Verdict.Unsettled > 0 && f.Violations > 0 }},
		{"fingerprint", "TestConflictWithMessageID", func(f finding) bool { return f.Verdict.Silent > 0 && f.Letters[payments.ReasonKeyReused] == 0 }},
	} {
		t.Run(c.sabotage, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "finding.json")
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, program, "-test.run", "^"+c.test+"$", "-test.timeout", "150s", "-test.v")
			run.Env = append(os.Environ(), sabotageEnv+"="+c.sabotage, findingEnv+"="+path)
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
