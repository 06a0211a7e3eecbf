package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/dustin/go-humanize/english"
	"go.uber.org/zap"
)

// Inspect describes the contents of a data directory: each segment, the definitions and
// each queue. It changes nothing. The directory must not be in use.
func Inspect(dir string, w io.Writer) error {
	r, queues, err := examine(dir)
	if err != nil {
		return err
	}
	defer r.close()
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%-20s %10s %9s  %s\n", "segment", "bytes", "messages", "state")
	for _, s := range r.files {
		state := "open"
		if s.ended {
			state = "complete"
		}
		fmt.Fprintf(out, "%-20s %10d %9d  %s\n", s.name, s.end, s.messages, state)
	}
	for _, number := range slices.Sorted(maps.Keys(r.spares)) {
		fmt.Fprintf(out, "%-20s %10d %9s  spare\n", fileName(number), r.spares[number], "-")
	}
	d := r.definitions
	fmt.Fprintf(out, "\n%-20s %10s %9s  %s\n", "definitions", "bytes", "entries", "format")
	if d.version > 0 {
		fmt.Fprintf(out, "%-20s %10d %9d  %d\n", definitionsName, d.end, len(r.result.Definitions), d.version)
	}
	fmt.Fprintf(out, "\n%-20s %10s %20s %20s\n", "queue", "messages", "first", "last")
	for _, q := range queues {
		last := q.Entries[len(q.Entries)-1]
		fmt.Fprintf(out, "%-20d %10d %20d %20d\n", q.Queue, len(q.Entries), q.Entries[0].Seq, last.Seq)
	}
	return out.Flush()
}

// Verify reads everything in a data directory, as Open does, and returns the error with
// which Open would refuse it: a *corruptError for damage. It changes nothing. The directory
// must not be in use.
func Verify(dir string, w io.Writer) error {
	r, queues, err := examine(dir)
	if err != nil {
		return err
	}
	defer r.close()
	messages := 0
	for _, q := range queues {
		messages += len(q.Entries)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s, %d bytes read, %s in queues, %s: ok\n",
		english.Plural(len(r.files), "segment", ""), r.result.Bytes, english.Plural(messages, "message", ""), english.Plural(len(r.result.Definitions), "definition", ""))
	if r.result.CutBytes > 0 {
		fmt.Fprintf(out, "%d bytes at offset %d of %s are the end of an interrupted write and will be cut off\n",
			r.result.CutBytes, r.result.CutOffset, r.result.CutFile)
	}
	return out.Flush()
}

// Repair puts right what can be put right in a data directory without a loss. It says on w what
// is wrong and what it is going to do, and does it if ask returns true. The error is the one
// with which Open refuses what is left. The directory must not be in use.
func Repair(dir string, w io.Writer, ask func() bool) error {
	if _, err := existingDir(dir); err != nil {
		return err
	}
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	lock, err := d.Lock(lockName)
	if err != nil {
		return err
	}
	defer lock.Close()
	for repaired := 0; ; repaired++ {
		r := newRecovery(d, zap.NewNop(), nil)
		_, err := r.read()
		r.unmap()
		var found *corruptError
		switch {
		case err == nil && repaired == 0:
			_, err = fmt.Fprintln(w, "nothing to repair")
			return err
		case err == nil:
			_, err = fmt.Fprintln(w, "the store is in order")
			return err
		case !errors.As(err, &found) || found.cure == nil:
			return err
		}
		fmt.Fprintf(w, "%s: %s\nRepair can %s. Nothing that is in the folder is lost by that.\n", found.File, found.Reason, found.plan)
		if !ask() {
			return err
		}
		if err := found.cure(d); err != nil {
			return fmt.Errorf("store: repair %s: %w", found.File, err)
		}
		if err := d.SyncDir(); err != nil {
			return fmt.Errorf("store: sync the data directory: %w", err)
		}
		fmt.Fprintf(w, "%s: repaired\n", found.File)
	}
}

// examination is a recovery that stops before it changes anything.
type examination struct {
	*recovery
	lock io.Closer
}

func examine(dir string) (*examination, []RecoveredQueue, error) {
	d, err := existingDir(dir)
	if err != nil {
		return nil, nil, err
	}
	lock, err := d.Lock(lockName)
	if err != nil {
		return nil, nil, err
	}
	r := &examination{newRecovery(d, zap.NewNop(), nil), lock}
	queues, err := r.read()
	if err != nil {
		r.close()
		return nil, nil, err
	}
	return r, queues, nil
}

func (r *examination) close() {
	r.unmap()
	r.lock.Close()
}
