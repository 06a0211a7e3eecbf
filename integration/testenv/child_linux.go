package testenv

import "syscall"

// endWithParent makes the kernel kill a child when the test process ends, however it ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
