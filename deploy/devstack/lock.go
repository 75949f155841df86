package devstack

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// dirLock marks a named directory as held by this process. The kernel drops it
// when the process ends, so a kill -9 leaves nothing to repair.
type dirLock struct{ f *os.File }

// lockDir locks dir; a directory that another living process holds is an error.
// A short wait covers a holder that is just ending.
func lockDir(dir string) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &dirLock{f: f}, nil
		}
		if time.Now().After(deadline) {
			f.Close()
			return nil, fmt.Errorf("directory %s is in use by another running process: stop that one, or name another directory", dir)
		}
	}
}

func (l *dirLock) release() {
	if l != nil {
		l.f.Close()
	}
}
