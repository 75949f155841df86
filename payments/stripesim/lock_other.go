//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package stripesim

import "os"

// lockFile has no portable form here; two simulators on one file are
// the caller's to avoid there.
func lockFile(*os.File) error { return nil }
