package deadline

import (
	"errors"
	"io"
	"os"
)

// ReplaceFile writes a file, synced, so that a crash leaves the old one or the new one. Errors: those of the disk and of write. A broker and a monitor
// both keep such files, and this is the package that both may import.
func ReplaceFile(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
