package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating system user PostgreSQL runs as. PostgreSQL refuses
// to run as root, so root hands it to somebody without privileges.
type account struct {
	uid, gid int
	drop     bool // set when the process must change its user
}

// runAccount picks the account: the caller's own, or, for root, the owner of an
// existing data directory, else "postgres", else "nobody".
func runAccount(dataDir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	if info, err := os.Stat(filepath.Join(dataDir, "PG_VERSION")); dataDir != "" && err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			if st.Uid == 0 {
				return account{}, fmt.Errorf("data directory %s belongs to root, and PostgreSQL does not run as root: chown -R postgres %s", dataDir, dataDir)
			}
			return account{uid: int(st.Uid), gid: int(st.Gid), drop: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{uid: uid, gid: gid, drop: true}, nil
		}
	}
	return account{}, errors.New("PostgreSQL does not run as root and there is neither a user postgres nor nobody: add one, or start as another user")
}

// attr is how a child of this account is started: in a session of its own, so
// that Ctrl-C in a terminal reaches only the parent, which stops it in order.
func (a account) attr(deathSignal syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	setDeathSignal(attr, deathSignal)
	return attr
}

// own gives path to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// reaches reports whether the account may walk down to dir, which is not so for
// a data directory in the 0700 home of root.
func (a account) reaches(dir string) bool {
	if !a.drop {
		return true
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || !a.mayEnter(info) {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}

func (a account) mayEnter(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch mode := info.Mode().Perm(); {
	case int(st.Uid) == a.uid:
		return mode&0o100 != 0
	case int(st.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
