package compose

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// root is the repository.
var root = filepath.Join("..", "..")

// service is what the tests look at of a service.
type service struct {
	Image         string
	Build         map[string]any
	Command       any
	User          string
	Profiles      []string
	Environment   map[string]string
	Ports         []string
	Volumes       []string
	Networks      []string
	NetworkMode   string   `yaml:"network_mode"`
	Privileged    bool     `yaml:"privileged"`
	ReadOnly      bool     `yaml:"read_only"`
	CapDrop       []string `yaml:"cap_drop"`
	CapAdd        []string `yaml:"cap_add"`
	SecurityOpt   []string `yaml:"security_opt"`
	PidsLimit     int      `yaml:"pids_limit"`
	MemLimit      string   `yaml:"mem_limit"`
	StopGrace     string   `yaml:"stop_grace_period"`
	Restart       string   `yaml:"restart"`
	Secrets       []string `yaml:"secrets"`
	Healthcheck   map[string]any
	DependsOn     map[string]struct{ Condition string } `yaml:"depends_on"`
	ContainerName string                                `yaml:"container_name"`
}

// file is docker-compose.yml.
type file struct {
	Services map[string]service
	Networks map[string]struct{ Internal bool }
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

var variable = regexp.MustCompile(`\$\{([A-Z0-9_]+)(:?-)?([^}]*)\}`)

// raw is the text of the compose file.
func raw(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// load reads the file as Docker does with nothing in the environment: each variable has its default.
func load(t *testing.T) file {
	t.Helper()
	text := variable.ReplaceAllStringFunc(raw(t), func(v string) string {
		m := variable.FindStringSubmatch(v)
		if m[2] == "" {
			t.Errorf("%s has no default", m[1])
		}
		return m[3]
	})
	var f file
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Services) < 9 {
		t.Fatalf("only %d services", len(f.Services))
	}
	return f
}

// with lists the services that have a property, and fails if there are none.
func (f file) with(t *testing.T, what string, has func(name string, s service) bool) []string {
	t.Helper()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.Services)) {
		if has(name, f.Services[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("no service %s", what)
	}
	return names
}

func (f file) nodes(t *testing.T) []string {
	t.Helper()
	return f.with(t, "is a NATS node", func(_ string, s service) bool { return s.Environment["NATS_SERVER_NAME"] != "" })
}

func (f file) workers(t *testing.T) []string {
	t.Helper()
	return f.with(t, "is a worker", func(_ string, s service) bool { return strings.Contains(s.Environment["ONCEPAY_ROLES"], "worker") })
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
