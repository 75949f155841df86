package chaos

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keeperScript reads lines until the parent's end of the pipe closes:
//
//	temp PATH   remove PATH at the end
//	stopped PID PID is stopped and cannot see our end
//	going PID   it goes on
//
// then kills what is stopped, and removes the temporary directories once whatever wrote into them has ended too.
const keeperScript = `
trap '' HUP INT QUIT TERM
stopped=' '
while read -r word rest; do
  case $word in
  temp) set -- "$@" "$rest" ;;
  stopped) stopped="$stopped$rest " ;;
  going) stopped="${stopped%% $rest *} ${stopped#* $rest }" ;;
  esac
done
for pid in $stopped; do kill -s KILL "$pid" 2>/dev/null; done
n=0
while [ $# -gt 0 ] && [ $n -lt 50 ]; do
  rm -rf -- "$@" 2>/dev/null && break
  n=$((n+1))
  sleep 0.1
done
`

// Keeper outlives this process by as long as it takes to clean up after it. Its methods may be called from any goroutine.
type Keeper struct {
	mu   sync.Mutex
	pipe *os.File // nil once closed
	cmd  *exec.Cmd
}

// NewKeeper starts a keeper.
func NewKeeper() (*Keeper, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", keeperScript, "oncepay-keeper")
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("keeper: %w", err)
	}
	return &Keeper{pipe: w, cmd: cmd}, nil
}

func (k *Keeper) tell(line string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pipe == nil {
		return errors.New("keeper is closed")
	}
	_, err := k.pipe.WriteString(line + "\n")
	return err
}

// TempDir makes a directory that is gone when the keeper is.
func (k *Keeper) TempDir(prefix string) (string, error) {
	parent := os.TempDir()
	if strings.Contains(parent, "\n") {
		return "", fmt.Errorf("directory %q: a line break in the name is not supported", parent)
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	dir, err := filepath.Abs(filepath.Join(parent, prefix+hex.EncodeToString(b[:])))
	if err != nil {
		return "", err
	}
	if err := k.tell("temp " + dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// Close ends the keeper and waits for it: temporary directories are gone then. It may be called again.
func (k *Keeper) Close() error {
	k.mu.Lock()
	pipe := k.pipe
	k.pipe = nil
	k.mu.Unlock()
	if pipe == nil {
		return nil
	}
	pipe.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = k.cmd.Process.Kill() })
	defer timer.Stop()
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("keeper: %w", err)
	}
	return nil
}
