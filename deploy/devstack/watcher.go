package devstack

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

// watchScript reads lines until the parent's end of the pipe closes:
//
//	temp PATH   remove PATH at the end
//	init PID    an initdb runs, as leader of its process group
//	run PID     a postmaster runs
//	done        it has ended
//
// then stops what still runs and removes the temporary directories. $1 is the
// signal that stops a postmaster: INT (orderly) or QUIT (at once). It ignores
// the terminal's signals, since it has to outlive the parent. "kill -s" is the one
// form that every shell takes together with "--" and a process group.
const watchScript = `
trap '' HUP INT QUIT TERM
stop=$1; shift
what= pid=
while read -r word rest; do
  case $word in
  temp) set -- "$@" "$rest" ;;
  init|run) what=$word pid=$rest ;;
  done) what= ;;
  esac
done
alive() {
  kill -0 "$pid" 2>/dev/null || return 1
  if [ -r "/proc/$pid/stat" ] && read -r _ _ state _ <"/proc/$pid/stat"; then
    [ "$state" != Z ] || return 1
  fi
}
await() {
  n=0
  while alive; do
    [ $n -lt "$1" ] || return 1
    n=$((n+1))
    sleep 0.1
  done
}
case $what in
init) kill -s KILL -- "-$pid" 2>/dev/null ;;
run)
  kill -s "$stop" "$pid" 2>/dev/null
  await 50 || { kill -s QUIT "$pid" 2>/dev/null; await 30; } || { kill -s KILL "$pid" 2>/dev/null; await 10; }
  ;;
esac
n=0
while [ $# -gt 0 ] && [ $n -lt 20 ]; do
  rm -rf -- "$@" 2>/dev/null && break
  n=$((n+1))
  sleep 0.1
done
`

// reportScript tells the watcher (fd 3) its own process id before it becomes the
// program, so that no moment exists in which a child runs unwatched.
const reportScript = `echo "$0 $$" >&3; exec "$@" 3>&-`

// watcher outlives the parent by just as long as it takes to clean up after it.
type watcher struct {
	mu   sync.Mutex
	pipe *os.File // nil once closed
	cmd  *exec.Cmd
}

// startWatcher starts a watcher that stops postmasters with stop ("INT", "QUIT").
func startWatcher(stop string) (*watcher, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watcher: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watchScript, "oncepay-watcher", stop)
	cmd.Stdin = r
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + toolPath(), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("watcher: %w", err)
	}
	return &watcher{pipe: w, cmd: cmd}, nil
}

// toolPath is where rm, sleep and ps are, also when PATH is empty.
func toolPath() string {
	path := "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	if own := os.Getenv("PATH"); own != "" {
		path += ":" + own
	}
	return path
}

func (w *watcher) tell(line string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe == nil {
		return errors.New("watcher is closed")
	}
	_, err := w.pipe.WriteString(line + "\n")
	return err
}

// tempDir makes a directory that is gone when the watcher is. The watcher learns
// the name first; it is random enough to be nobody else's.
func (w *watcher) tempDir(parent, prefix string) (string, error) {
	if strings.ContainsAny(parent, "\n") {
		return "", fmt.Errorf("directory %q: a line break in the name is not supported", parent)
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, prefix+hex.EncodeToString(b[:]))
	if err := w.tell("temp " + dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// close ends the watcher and waits for it: temporary directories are gone then.
func (w *watcher) close() error {
	w.mu.Lock()
	pipe := w.pipe
	w.pipe = nil
	w.mu.Unlock()
	if pipe == nil {
		return nil
	}
	pipe.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer timer.Stop()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("watcher: %w", err)
	}
	return nil
}
