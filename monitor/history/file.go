package history

import (
	"bufio"
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/printable"
)

// The file has, by encoding/gob and compressed, a header, the savedSeries of all, and that of each queue. gzip's checksum finds damage.
type header struct {
	Last   int64 // Unix seconds
	Queues int
	Marks  []Mark
	Known  state
	Ended  ending // of the process that wrote it, by then
}

type ending uint8

const (
	unknown ending = iota // a version before this one wrote it
	running
	stopped // as asked for
)

type savedSeries struct {
	VHost, Name  string
	Born, Active int64
	Rings        rings
	Tolls        tolls
	Consumers    int // the most, not long ago
	Left         string
	LeftAt       int64
}

// load reads the file, if there is one that can be used. It returns how the process before ended, as the end of a sentence: a killed one has
// touched the file until then.
func (h *History) load(now time.Time) (how string) {
	if h.File == "" {
		return ""
	}
	f, err := os.Open(h.File)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err == nil {
		var about os.FileInfo
		if about, err = f.Stat(); err == nil {
			err = h.read(f, about.ModTime(), now)
		}
		if err == nil {
			how = h.away(about.ModTime(), now)
		}
		f.Close()
	}
	if err != nil {
		h.log.Warn("the saved history of the last day cannot be used; the history begins again", zap.String("file", h.File), zap.Error(err))
		h.total.rings, h.total.tolls = newRings(totalLengths), make(tolls, dayLong)
		h.last, h.marks, h.known, h.queues = 0, marks{}, state{}, make(map[[2]string]*series)
	}
	return how
}

// away says how the process before ended, which lived until an instant.
func (h *History) away(until, now time.Time) string {
	span := ", " + printable.Span(max(now.Sub(until), 0).Truncate(time.Second)) + " after it "
	missing := until.Sub(time.Unix(h.last, 0)).Truncate(time.Second)
	switch {
	case h.before == stopped:
		return span + "was stopped as asked for"
	case h.before == running && missing > stateEvery:
		return span + "was killed or had crashed; the counts of the " + printable.Span(missing) + " before that are missing"
	case h.before == running:
		return span + "was killed or had crashed"
	}
	return ""
}

// read reads a file of a process that lived until an instant.
func (h *History) read(from io.Reader, until, now time.Time) error {
	unpacked, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return err
	}
	in := gob.NewDecoder(unpacked)
	var head header
	if err := in.Decode(&head); err != nil {
		return err
	}
	switch age := now.Unix() - head.Last; {
	case age > int64(keep.Seconds()):
		return fmt.Errorf("it ends %s ago", time.Duration(age)*time.Second)
	case age < 0:
		return fmt.Errorf("it ends %s in the future", time.Duration(-age)*time.Second)
	case head.Queues > maxQueues:
		return fmt.Errorf("it has %d queues", head.Queues)
	}
	h.last, h.known, h.before = head.Last, head.Known, head.Ended
	for n := range 1 + head.Queues {
		s, want := &h.total, totalLengths
		var saved savedSeries
		if err := in.Decode(&saved); err != nil {
			return err
		}
		if n > 0 {
			s, want = h.addSeriesLocked(saved.VHost, saved.Name, now.Unix()), queueLengths
			s.born, s.active = saved.Born, saved.Active
			s.consumers = consumers{most: saved.Consumers, fewer: now.Unix() + returnFor, who: saved.Left, whoAt: now.Unix() + returnFor - steadyFor} // since is long ago; who takes the place of another until all are back is no mark
			s.left, s.leftAt = saved.Left, saved.LeftAt
			if s.leftAt == head.Last { // it consumed then, and on: the file would have news
				s.leftAt = max(s.leftAt, until.Unix())
			}
		}
		for level := range want {
			if n := len(saved.Rings[level]); n < shortest[level] || n > want[level] {
				return errors.New("it is of another version")
			}
		}
		s.rings = saved.Rings
		if saved.Tolls == nil { // of an earlier version
			s.each(head.Last, int64(len(s.tolls)-1)*60, func(second int64, p *Point) { s.tolls.add(second, p.Toll) })
		}
		s.tolls.addAll(saved.Tolls, head.Last)
	}
	for _, m := range head.Marks {
		if m.At >= (head.Last-int64(keep.Seconds()))*1000 {
			h.marks.add(m)
		}
	}
	if err := in.Decode(&head); err != io.EOF { // with io.EOF, the checksum is right
		return fmt.Errorf("it does not end where it should: %w", err)
	}
	return nil
}

// save writes the file. An error is logged, and the history is written again later.
func (h *History) save() {
	h.mu.Lock()
	empty := h.last == 0
	h.mu.Unlock()
	if h.File == "" || empty {
		return
	}
	h.savedAt = h.now()
	defer func() {
		h.saveTook = h.now().Sub(h.savedAt)
		h.touch()
	}()
	if err := h.write(); err != nil {
		h.log.Warn("the history of the last day could not be saved; retrying in five minutes", zap.String("file", h.File), zap.Error(err))
	}
}

// touch notes in the file that the process lives.
func (h *History) touch() {
	if h.File != "" {
		_ = os.Chtimes(h.File, time.Time{}, h.now()) // the disk may be full; the next one tries again
	}
}

func (h *History) write() error {
	if err := os.MkdirAll(filepath.Dir(h.File), 0o700); err != nil {
		return err
	}
	return deadline.ReplaceFile(h.File, h.pack)
}

// pack writes the history as a file has it. The lock is held for one queue at a time, so that nobody waits for the compression.
func (h *History) pack(to io.Writer) error {
	packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := gob.NewEncoder(packed)
	h.mu.Lock()
	all := []*series{&h.total}
	for _, s := range h.queues {
		all = append(all, s)
	}
	h.news, h.saved = false, h.marks.version
	head := header{Last: h.last, Queues: len(h.queues), Marks: slices.Clone(h.marks.list), Known: h.known.clone(), Ended: running}
	if h.ending {
		head.Ended = stopped
	}
	h.mu.Unlock()
	if err := out.Encode(head); err != nil {
		return err
	}
	for _, s := range all {
		h.mu.Lock()
		saved := savedSeries{VHost: s.vhost, Name: s.name, Born: s.born, Active: s.active, Tolls: slices.Clone(s.tolls), Consumers: s.consumers.most, Left: s.left, LeftAt: s.leftAt}
		for level := range s.rings {
			saved.Rings[level] = slices.Clone(s.rings[level])
		}
		h.mu.Unlock()
		if err := out.Encode(saved); err != nil {
			return err
		}
	}
	return packed.Close()
}
