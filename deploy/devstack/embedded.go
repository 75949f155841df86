package devstack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// embeddedVersion is what is fetched where no PostgreSQL is installed.
const embeddedVersion = embeddedpostgres.V17

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
// then on its binaries are used like any other.
func fetchEmbedded() (string, error) {
	home := embeddedHome()
	if home == "" {
		return "", fmt.Errorf("no cache directory: set HOME")
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
		StartTimeout(time.Minute).
		Logger(io.Discard))
	if err := server.Start(); err != nil {
		return "", err
	}
	if err := server.Stop(); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(staging, "binaries"), home); err != nil && embeddedBinaries() == "" {
		return "", err
	}
	return filepath.Join(home, "bin"), nil
}
