package devstack

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedVersion is what is fetched where no PostgreSQL is installed.
const embeddedVersion = embeddedpostgres.V17

const embeddedRepository = "https://repo1.maven.org/maven2"

// embeddedHome is where a fetched PostgreSQL stays; "" when there is no cache
// directory (no HOME).
func embeddedHome() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "oncepay", "postgres-"+string(embeddedVersion))
}

// embeddedBinaries is the directory of binaries fetched by an earlier start, or
// "". Only a complete fetch is renamed to this place.
func embeddedBinaries() string {
	home := embeddedHome()
	if home == "" {
		return ""
	}
	dir := filepath.Join(home, "bin")
	if _, err := os.Stat(filepath.Join(dir, "postgres")); err != nil {
		return ""
	}
	return dir
}

// fetchEmbedded downloads PostgreSQL's binaries. The library can only fetch by
// starting a server, so a throw-away one is started once and stopped again; from
// then on its binaries are used like any other. They come from a Maven repository.
func fetchEmbedded(home, repository string) (string, error) {
	if home == "" {
		return "", errors.New("no cache directory: set HOME")
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", err
	}
	staging, err := os.MkdirTemp(filepath.Dir(home), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(staging)
	port, err := freePort()
	if err != nil {
		return "", err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedVersion).
		Port(uint32(port)).
		CachePath(filepath.Join(staging, "cache")).
		RuntimePath(filepath.Join(staging, "runtime")).
		DataPath(filepath.Join(staging, "data")).
		BinariesPath(filepath.Join(staging, "binaries")).
		BinaryRepositoryURL(repository).
		StartTimeout(time.Minute).
		Logger(io.Discard))
	if err := server.Start(); err != nil {
		return "", err
	}
	if err := server.Stop(); err != nil {
		return "", err
	}
	bin := filepath.Join(home, "bin")
	if err := os.Rename(filepath.Join(staging, "binaries"), home); err != nil {
		if _, missing := os.Stat(filepath.Join(bin, "postgres")); missing != nil {
			return "", err
		}
	}
	return bin, nil
}
