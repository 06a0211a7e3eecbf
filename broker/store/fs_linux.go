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

// Sync skips metadata that only matters to others, such as the modification time.
func (f *diskFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// useHugePages asks for pages of 2 MiB and for the memory at once. It does so piece by
// piece, because others wait to map memory during each. A system without huge pages goes on
// with small ones.
func useHugePages(mem []byte) {
	unix.Madvise(mem, unix.MADV_HUGEPAGE) //nolint:errcheck // see above
	for piece := range slices.Chunk(mem, mib) {
		unix.Madvise(piece, unix.MADV_POPULATE_WRITE) //nolint:errcheck // the memory is then allocated when it is touched
	}
}
