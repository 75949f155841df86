//go:build unix && !linux

package devstack

import "syscall"

// setDeathSignal does nothing here: only Linux has a parent-death signal, other
// systems rely on the watcher alone.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// ramDir is "": only Linux has a directory in memory everywhere.
func ramDir() string { return "" }
