package stripesim

import "syscall"

var errReset error = syscall.ECONNRESET
