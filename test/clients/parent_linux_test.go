package clients

import "syscall"

// endWithParent makes the kernel end the process when the tests die without stopping it, as at their time limit.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
