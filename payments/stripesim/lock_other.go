//go:build !unix

package stripesim

import "os"

// lockFile has no portable form outside Unix; two simulators on one file are
// the caller's to avoid there.
func lockFile(*os.File) error { return nil }
