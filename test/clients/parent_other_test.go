//go:build !linux

package clients

import "syscall"

// endWithParent: other kernels have no such signal; there the tests' own stop ends the process.
func endWithParent() *syscall.SysProcAttr { return nil }
