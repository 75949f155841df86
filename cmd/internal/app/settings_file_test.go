package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSettings(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`K=v`:                         "v",
		`K=`:                          "",
		`K=''`:                        "",
		`export K=v`:                  "v",
		"K=v\r":                       "v",
		"\uFEFFK=v":                   "v",
		`K= v `:                       "v",
		`K=v # comment`:               "v",
		`K=v#w`:                       "v#w",
		`K='v # w' # comment`:         "v # w",
		`K='it'\''s'`:                 "it's",
		`K=''\''quoted'\'''`:          "'quoted'",
		`K="a \"b\" \\ \$c $d \e"`:    `a "b" \ $c $d \e`,
		`K="a"'b'c`:                   "abc",
		`K=host=h password='x y' d=e`: "host=h password='x y' d=e",
		`K=p$w=1`:                     "p$w=1",
		"# K=x\n\nK=1\nK=2":           "2",
	} {
		got, err := parseSettings(line)
		if err != nil || got["K"] != want {
			t.Errorf("%q: %q, %v, want %q", line, got["K"], err, want)
		}
	}
	for line, want := range map[string]string{
		"hunter2":             "line 1 is not KEY=VALUE",
		"A=1\nhunter2 x=y":    "line 2 is not KEY=VALUE",
		"=hunter2":            "line 1 is not KEY=VALUE",
		"1K=hunter2":          "line 1 is not KEY=VALUE",
		"K='hunter2":          "line 1, K: a quote is not closed",
		`K="hunter2\"`:        "line 1, K: a quote is not closed",
		`K='a' hunter2`:       "line 1, K: something follows the quoted value",
		`K='hunter2'\`:        "line 1, K: ends with a backslash",
		"K='a\nhunter2'\nB=1": "line 1, K: a quote is not closed",
	} {
		if _, err := parseSettings(line); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestQuotedSettingsComeBack: what a shell would read of a single-quoted value is read here.
func TestQuotedSettingsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[^\n\r\x00]{0,40}`).Draw(t, "value")
		got, err := parseSettings("K='" + strings.ReplaceAll(value, "'", `'\''`) + "'")
		if err != nil || got["K"] != value {
			t.Fatalf("%q, %v", got["K"], err)
		}
	})
}

func FuzzParseSettings(f *testing.F) {
	for _, seed := range []string{"K=v", "export A='b'\\''c'", "K=\"a\\\"b\"", "#", "K='", "\uFEFF"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseSettings(text)
		if err == nil {
			for name := range values {
				if !variableName.MatchString(name) {
					t.Errorf("a name %q", name)
				}
			}
		}
	})
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(path, []byte("ONCEPAY_LEASE=2m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from, names, err := File(path)
	if !slices.Equal(names, []string{"ONCEPAY_LEASE"}) {
		t.Errorf("names: %q", names)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := from("ONCEPAY_LEASE"); !ok || v != "2m" {
		t.Errorf("%q, %v", v, ok)
	}
	if v, ok := from("ONCEPAY_DRAIN"); ok {
		t.Errorf("a setting out of nothing: %q", v)
	}
	none, _, err := File("")
	if _, ok := none("ONCEPAY_LEASE"); ok || err != nil {
		t.Errorf("no file: %v, %v", ok, err)
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, settingsFileMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path + ".missing", filepath.Dir(path), big} {
		var usage *UsageError
		if _, _, err := File(path); !errors.As(err, &usage) || !strings.HasPrefix(usage.Text, "--config: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUnknownNamesAreTold(t *testing.T) {
	t.Parallel()
	got := Unknown([]string{"PATH", "ONCEPAY_LEASE", "ONCEPAY_LEAS", "ONCEPAY_DEV_API_KEY", "ONCEPAY_LEAS", "ONCEPAY_"})
	if want := []string{"ONCEPAY_", "ONCEPAY_LEAS"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
