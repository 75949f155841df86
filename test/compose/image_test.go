package compose

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stages are the Dockerfile's, by name, with what each is from.
func stages(t *testing.T) (from map[string]string, lines map[string][]string) {
	t.Helper()
	from, lines = map[string]string{}, map[string][]string{}
	name := ""
	for line := range strings.SplitSeq(read(t, "deploy", "docker", "Dockerfile"), "\n") {
		if m := regexp.MustCompile(`^FROM (\S+) AS (\S+)$`).FindStringSubmatch(line); m != nil {
			name = m[2]
			from[name] = m[1]
			continue
		}
		lines[name] = append(lines[name], line)
	}
	return from, lines
}

// TestImage: what runs is static, on nothing, and not root.
func TestImage(t *testing.T) {
	t.Parallel()
	f := load(t)
	from, lines := stages(t)
	build := strings.Join(lines["build"], "\n")
	if !strings.Contains(build, "CGO_ENABLED=0") || !strings.Contains(build, "-trimpath") {
		t.Error("the build is not static, or tells paths")
	}
	if !regexp.MustCompile(`^golang:1\.\d+-`).MatchString(from["build"]) {
		t.Errorf("built by %s", from["build"])
	}
	for name, s := range f.Services {
		if s.Build == nil {
			continue
		}
		target, _ := s.Build["target"].(string)
		if from[target] != "base" || from["base"] != "scratch" {
			t.Errorf("%s is built on %s, %s", name, from[target], from["base"])
		}
		if slices.ContainsFunc(lines[target], func(l string) bool { return strings.HasPrefix(l, "USER") }) {
			t.Errorf("%s changes its user", name)
		}
	}
	if !slices.Contains(lines["base"], "USER 65532:65532") {
		t.Error("the images run as root")
	}
	for _, target := range []string{"oncepay", "simulator"} {
		if !strings.Contains(strings.Join(lines[target], "\n"), "HEALTHCHECK") {
			t.Errorf("%s has no health check", target)
		}
	}
	if strings.Contains(strings.Join(lines["oncepay"], "\n"), "oncepay-dev") {
		t.Error("the product's image holds the simulator")
	}
}

// TestDockerignore: what must not get into an image does not get to its build either.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	ignored := strings.Split(read(t, ".dockerignore"), "\n")
	for _, want := range []string{".git", ".env*", "**/*.key", "**/*.pem", "deploy/compose", "deploy/nats"} {
		if !slices.Contains(ignored, want) {
			t.Errorf("%s is not ignored", want)
		}
	}
}
