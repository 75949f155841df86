package compose

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// volumes are the directories that prepare.sh writes to.
type volumes struct {
	t   *testing.T
	dir string
}

func newVolumes(t *testing.T) volumes {
	t.Helper()
	v := volumes{t, t.TempDir()}
	for _, dir := range []string{"nats", "postgres", "oncepay", "data"} {
		if err := os.Mkdir(filepath.Join(v.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(v.dir, "conf"), os.DirFS(filepath.Join(root, "deploy", "nats", "conf"))); err != nil {
		t.Fatal(err)
	}
	return v
}

// run runs the script, and returns what it prints and its exit code.
func (v volumes) run(args ...string) (string, int) {
	v.t.Helper()
	cmd := exec.Command("sh", append([]string{filepath.Join(root, "deploy", "compose", "prepare.sh")}, args...)...)
	cmd.Env = append(os.Environ(), "NATS_CONF="+filepath.Join(v.dir, "conf"), "NATS_PASSWORDS="+filepath.Join(v.dir, "nats"),
		"POSTGRES_SECRETS="+filepath.Join(v.dir, "postgres"), "ONCEPAY_SECRETS="+filepath.Join(v.dir, "oncepay"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		v.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// files is the content of all that was written.
func (v volumes) files() map[string]string {
	v.t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"nats", "postgres", "oncepay"} {
		paths, err := filepath.Glob(filepath.Join(v.dir, dir, "*"))
		if err != nil {
			v.t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				v.t.Fatal(err)
			}
			all[dir+"/"+filepath.Base(path)] = string(data)
		}
	}
	return all
}

// secretOf is the password of a NATS user.
func (v volumes) secretOf(name string) string {
	v.t.Helper()
	out, code := v.run("show", name)
	if code != 0 {
		v.t.Fatal(out)
	}
	return strings.TrimSpace(out)
}

// TestPrepare: it makes what is missing, once, and tells nobody.
func TestPrepare(t *testing.T) {
	t.Parallel()
	v := newVolumes(t)
	out, code := v.run()
	if code != 0 {
		t.Fatal(out)
	}
	made := v.files()
	for _, name := range []string{"nats/ROUTE.conf", "nats/SYSTEM.conf", "nats/ONCEPAY.conf", "nats/demo.conf", "postgres/superuser", "postgres/oncepay", "oncepay/database_url", "oncepay/nats_url"} {
		if made[name] == "" {
			t.Errorf("%s is not made", name)
		}
		info, err := os.Stat(filepath.Join(v.dir, name))
		if err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if len(made) != 8 {
		t.Errorf("made %d files", len(made))
	}
	seen := map[string]bool{}
	for _, secret := range []string{strings.TrimSpace(made["postgres/superuser"]), strings.TrimSpace(made["postgres/oncepay"]), v.secretOf("ONCEPAY"), v.secretOf("SYSTEM"), v.secretOf("demo")} {
		if len(secret) != 48 || seen[secret] || strings.Contains(out, secret) {
			t.Error("a secret is short, used twice, or told")
		}
		seen[secret] = true
	}
	database, err := url.Parse(strings.TrimSpace(made["oncepay/database_url"]))
	if password, _ := database.User.Password(); err != nil || password != strings.TrimSpace(made["postgres/oncepay"]) || database.Host != "postgres:5432" {
		t.Errorf("the database's URL: %v", err)
	}
	servers := strings.Split(strings.TrimSpace(made["oncepay/nats_url"]), ",")
	for i, s := range servers {
		u, err := url.Parse(s)
		if password, _ := u.User.Password(); err != nil || password != v.secretOf("ONCEPAY") || u.Host != []string{"nats-1:4222", "nats-2:4222", "nats-3:4222"}[i] {
			t.Errorf("server %d: %v", i, err)
		}
	}
	again, code := v.run()
	if code != 0 || again != "" {
		t.Errorf("the second time: %d, %q", code, again)
	}
	for name, text := range v.files() {
		if made[name] != text {
			t.Errorf("the second time changes %s", name)
		}
	}
}

// TestPrepareGoesOn: what an interrupted run left behind, empty or half written, is made good.
func TestPrepareGoesOn(t *testing.T) {
	t.Parallel()
	v := newVolumes(t)
	for _, name := range []string{"nats/demo.conf", "postgres/oncepay", "nats/SYSTEM.conf.new"} {
		if err := os.WriteFile(filepath.Join(v.dir, name), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := v.run(); code != 0 {
		t.Fatal(out)
	}
	if len(v.secretOf("demo")) != 48 || len(v.files()) != 8 {
		t.Errorf("%d files", len(v.files()))
	}
}

// TestRotate: one password is new, and all others are as they were.
func TestRotate(t *testing.T) {
	t.Parallel()
	v := newVolumes(t)
	if out, code := v.run(); code != 0 {
		t.Fatal(out)
	}
	before := v.files()
	out, code := v.run("rotate", "ONCEPAY")
	if code != 0 || strings.Contains(out, v.secretOf("ONCEPAY")) {
		t.Fatalf("%d, %q", code, out)
	}
	for name, text := range v.files() {
		if changes := name == "nats/ONCEPAY.conf" || name == "oncepay/nats_url"; (before[name] != text) != changes {
			t.Errorf("%s changed: %t", name, before[name] != text)
		}
	}
	if !strings.Contains(v.files()["oncepay/nats_url"], v.secretOf("ONCEPAY")) {
		t.Error("the workers have the old password")
	}
	before = v.files()
	if out, code := v.run("rotate", "POSTGRES"); code != 0 {
		t.Fatal(out)
	}
	for name, text := range v.files() {
		if changes := name == "postgres/oncepay" || name == "oncepay/database_url"; (before[name] != text) != changes {
			t.Errorf("%s changed: %t", name, before[name] != text)
		}
	}
	if made := v.files(); !strings.Contains(made["oncepay/database_url"], strings.TrimSpace(made["postgres/oncepay"])) {
		t.Error("the workers have PostgreSQL's old password")
	}
}

// TestPrepareRefuses: a name that is no user is none, whatever it looks like.
func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	v := newVolumes(t)
	if out, code := v.run(); code != 0 {
		t.Fatal(out)
	}
	before := v.files()
	for _, args := range [][]string{
		{"show", "nobody"}, {"show", ""}, {"show", "../postgres/superuser"}, {"show", "."}, {"show", ".*"}, {"show", "demo.conf"}, {"show", "ROUTE"},
		{"rotate", "nobody"}, {"rotate", "../oncepay/nats_url"}, {"show"}, {"rotate"}, {"show", "demo", "x"}, {"remove", "demo"},
	} {
		out, code := v.run(args...)
		if code == 0 || !strings.HasPrefix(out, "prepare: ") || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %d, %q", args, code, out)
		}
	}
	for name, text := range v.files() {
		if before[name] != text {
			t.Errorf("%s changed", name)
		}
	}
	empty := newVolumes(t)
	empty.dir = t.TempDir()
	if out, code := empty.run(); code == 0 {
		t.Errorf("without a configuration: %q", out)
	}
}
