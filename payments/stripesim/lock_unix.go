//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package stripesim

import (
	"os"
	"syscall"
)

// lockFile refuses a file that another simulator writes. The lock ends with
// the process, however it ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
