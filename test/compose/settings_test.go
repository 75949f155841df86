package compose

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// program builds oncepay, once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "oncepay-compose-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "oncepay")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/oncepay")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// config is what `oncepay config --json` makes of an environment.
func config(t *testing.T, env map[string]string) (effective map[string]string, complaints string, code int) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "config", "--json")
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	if code = cmd.ProcessState.ExitCode(); code == 0 {
		if err := json.Unmarshal(out.Bytes(), &effective); err != nil {
			t.Fatal(err)
		}
	}
	return effective, errs.String(), code
}

// secretFiles are what stands in the files that settings name.
var secretFiles = map[string]string{
	"/run/oncepay/database_url": "postgres://oncepay:secret@postgres:5432/oncepay?sslmode=disable",
	"/run/oncepay/nats_url":     "nats://ONCEPAY:secret@nats-1:4222,nats://ONCEPAY:secret@nats-2:4222,nats://ONCEPAY:secret@nats-3:4222",
	"/run/secrets/stripe_key":   "sk_test_simulator",
}

// settings are a service's, with its secrets' files on this machine.
func settings(t *testing.T, s service) map[string]string {
	t.Helper()
	env := map[string]string{}
	for name, value := range s.Environment {
		if !strings.HasPrefix(name, "ONCEPAY_") {
			continue
		}
		if path, ok := strings.CutPrefix(value, "file:"); ok {
			text, known := secretFiles[path]
			if !known {
				t.Errorf("%s names %s, which nobody mounts", name, path)
			}
			value = "file:" + filepath.Join(t.TempDir(), filepath.Base(path))
			if err := os.WriteFile(strings.TrimPrefix(value, "file:"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env[name] = value
	}
	return env
}

// TestSettings: oncepay knows every setting that the file gives it, and takes every value.
func TestSettings(t *testing.T) {
	t.Parallel()
	f := load(t)
	for _, name := range f.with(t, "has settings", func(_ string, s service) bool { return s.Environment["ONCEPAY_DATABASE_URL"] != "" }) {
		env := settings(t, f.Services[name])
		effective, complaints, code := config(t, env)
		if code != 0 || complaints != "" {
			t.Errorf("%s: exit %d: %s", name, code, complaints)
			continue
		}
		for setting, value := range env {
			if got, ok := effective[setting]; !ok || got != value {
				t.Errorf("%s: %s is %q, and %q is given", name, setting, got, value)
			}
		}
	}
	wrong := settings(t, f.Services["worker-1"])
	wrong["ONCEPAY_STREAM_REPLICA"] = "3"
	if _, complaints, _ := config(t, wrong); !strings.Contains(complaints, "ONCEPAY_STREAM_REPLICA is no setting") {
		t.Errorf("a slip in a name goes unnoticed: %q", complaints)
	}
}

// TestVariables: a variable of the file that looks like a setting is one, so that whoever exports it for Docker can also run oncepay beside it.
func TestVariables(t *testing.T) {
	t.Parallel()
	effective, _, code := config(t, nil)
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, m := range variable.FindAllStringSubmatch(raw(t), -1) {
		if _, known := effective[m[1]]; strings.HasPrefix(m[1], "ONCEPAY_") && !known {
			t.Errorf("%s looks like a setting, and is none", m[1])
		}
	}
}

// TestSecrets: none stands in the file, and who mounts one reads it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	f := load(t)
	for name, s := range f.Services {
		for setting, value := range s.Environment {
			secret := slices.Contains([]string{"ONCEPAY_DATABASE_URL", "ONCEPAY_NATS_URL", "ONCEPAY_STRIPE_KEY"}, setting)
			if secret && !strings.HasPrefix(value, "file:/run/") {
				t.Errorf("%s: %s does not come from a file", name, setting)
			}
			if strings.Contains(setting, "PASSWORD") && setting != "POSTGRES_PASSWORD_FILE" {
				t.Errorf("%s: a password in %s", name, setting)
			}
		}
		if key := s.Environment["ONCEPAY_STRIPE_KEY"]; (key != "") != slices.Contains(s.Secrets, "stripe_key") || key != "" && key != "file:/run/secrets/stripe_key" {
			t.Errorf("%s: key %q, secrets %v", name, key, s.Secrets)
		}
		mounts := strings.Join(s.Volumes, " ")
		if needs := s.Environment["ONCEPAY_DATABASE_URL"] != ""; needs != strings.Contains(mounts, "oncepay-secrets:/run/oncepay:ro") {
			t.Errorf("%s mounts %s", name, mounts)
		}
		for volume, readers := range map[string]string{"nats-secrets:": "prepare nats-1 nats-2 nats-3", "postgres-secrets:": "prepare postgres"} {
			if strings.Contains(mounts, volume) && !slices.Contains(strings.Fields(readers), name) {
				t.Errorf("%s reads %s", name, volume)
			}
		}
	}
	if key := strings.TrimSpace(read(t, f.Secrets["stripe_key"].File)); !strings.HasPrefix(key, "sk_test_") || strings.Contains(key, "_live_") {
		t.Error("the key that is used where none is given must be one of the simulator's")
	}
}

// TestLiveKey: with a live key the simulator's address is refused before anything starts, so that a forgotten line cannot send it there.
func TestLiveKey(t *testing.T) {
	t.Parallel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve")
	for name, value := range settings(t, load(t).Services["worker-1"]) {
		if name == "ONCEPAY_STRIPE_KEY" {
			value = "sk_" + "live_0123456789abcdef"
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), "ONCEPAY_STRIPE_URL") {
		t.Errorf("exit %d: %s", code, out)
	}
}
