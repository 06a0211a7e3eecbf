//go:build !linux

package testenv

import "syscall"

// endWithParent does nothing where the system has no such service: a test process
// that is killed leaves its children.
func endWithParent() *syscall.SysProcAttr { return nil }
