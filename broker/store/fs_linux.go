package store

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func fallocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, size)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return errors.ErrUnsupported
		}
		if err != nil {
			return fmt.Errorf("allocate %s: %w", f.Name(), err)
		}
		return nil
	}
}

// Sync leaves out what only matters to others, such as the time of the change.
func (f *diskFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// useHugePages asks for pages of 2 MiB, and for the memory at once, piece by piece
// because others wait to map meanwhile; a system without them goes on with small ones.
func useHugePages(mem []byte) {
	unix.Madvise(mem, unix.MADV_HUGEPAGE) //nolint:errcheck // as said
	for piece := range slices.Chunk(mem, mib) {
		unix.Madvise(piece, unix.MADV_POPULATE_WRITE) //nolint:errcheck // memory comes when it is touched
	}
}
