package audit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// files are what the writer writes to. Not safe for concurrent use.
type files struct {
	dir                 string
	fileBytes, maxBytes int64
	current             *os.File
	written             int64 // to current
}

// append writes whole lines to the newest file, or to a new one if that is full. at is the
// instant of the first line, Unix ms.
func (f *files) append(lines []byte, at int64) error {
	if f.current == nil || f.written >= f.fileBytes {
		if err := f.next(at); err != nil {
			return err
		}
	}
	n, err := f.current.Write(lines)
	f.written += int64(n)
	if err != nil && n > 0 { // a line may be cut; the next one begins after a line break
		f.close()
	}
	return err
}

// next continues the newest file if it has room and was not written here, or begins another.
func (f *files) next(at int64) error {
	all, err := list(f.dir)
	if err != nil {
		return err
	}
	if n := len(all); f.current == nil && n > 0 && all[n-1].bytes < f.fileBytes {
		if err := f.open(all[n-1].path, all[n-1].bytes); err != nil {
			return err
		}
		n, err := f.current.WriteString("\n") // a crash may have cut off its last line
		f.written += int64(n)
		return err
	}
	if err := f.close(); err != nil {
		return err
	}
	if err := f.open(filepath.Join(f.dir, fmt.Sprintf("%s%d%s", prefix, at, suffix)), 0); err != nil {
		return err
	}
	return f.prune()
}

func (f *files) open(path string, bytes int64) (err error) {
	f.current, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	f.written = bytes
	return err
}

// prune removes the oldest files while all together take too much space.
func (f *files) prune() error {
	all, err := list(f.dir)
	if err != nil {
		return err
	}
	total := f.fileBytes // for the one just begun
	for _, x := range all {
		total += x.bytes
	}
	for len(all) > 1 && total > f.maxBytes {
		if err := os.Remove(all[0].path); err != nil {
			return err
		}
		total -= all[0].bytes
		all = all[1:]
	}
	return nil
}

func (f *files) close() error {
	if f.current == nil {
		return nil
	}
	err := f.current.Close()
	f.current, f.written = nil, 0
	return err
}

const (
	prefix = "audit-"
	suffix = ".jsonl"
)

// file is one of the audit's files.
type file struct {
	path  string
	start int64 // Unix ms
	bytes int64
}

// list returns the audit's files, oldest first. It ignores files with other names.
func list(dir string) (all []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	for _, e := range entries {
		name, isOurs := strings.CutSuffix(e.Name(), suffix)
		name, isToo := strings.CutPrefix(name, prefix)
		start, err := strconv.ParseInt(name, 10, 64)
		if !isOurs || !isToo || err != nil {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // pruned since
		}
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		all = append(all, file{filepath.Join(dir, e.Name()), start, info.Size()})
	}
	slices.SortFunc(all, func(a, b file) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}
