//go:build unix && !linux

package store

import (
	"errors"
	"os"
)

func fallocate(*os.File, int64) error { return errors.ErrUnsupported }

func useHugePages([]byte) {}
