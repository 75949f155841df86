package devstack

import "syscall"

// setDeathSignal asks the kernel to signal the child when the thread that
// started it ends; the starter therefore keeps its thread (see child).
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
