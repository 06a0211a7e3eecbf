package history

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// The file begins with the magic. After it, compressed, are a header in JSON on one line, the rings of all, and the rings of each queue in the
// order of the header. gzip's checksum finds damage.
const (
	magic     = "CURFEWH1"
	maxHeader = 4 << 20
)

// header describes the rings in a file.
type header struct {
	Last   int64       `json:"last"` // Unix seconds
	Queues []queueHead `json:"queues"`
	Marks  []Mark      `json:"marks"`
}

type queueHead struct {
	VHost  string `json:"vhost"`
	Name   string `json:"name"`
	Active int64  `json:"active"`
}

// load reads the file, if there is one that can be used.
func (h *History) load(now time.Time) {
	if h.File == "" {
		return
	}
	f, err := os.Open(h.File)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err == nil {
		err = h.read(f, now)
		f.Close()
	}
	if err != nil {
		h.log.Warn("the saved history of the last day cannot be used; the history begins again", zap.String("file", h.File), zap.Error(err))
		clearRecords(h.total.data)
		h.last, h.marks, h.queues, h.unused = 0, marks{}, make(map[[2]string]*series), nil
	}
}

func (h *History) read(from io.Reader, now time.Time) error {
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(from, start); err != nil || string(start) != magic {
		return errors.New("it is not a file of this version")
	}
	unpacked, err := gzip.NewReader(bufio.NewReader(from))
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(unpacked, maxHeader+int64(totalLengths.bytes()+maxQueues*queueLengths.bytes())), 64<<10)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var head header
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	switch age := now.Unix() - head.Last; {
	case age > int64(keep.Seconds()):
		return fmt.Errorf("it ends %s ago", time.Duration(age)*time.Second)
	case age < 0:
		return fmt.Errorf("it ends %s in the future", time.Duration(-age)*time.Second)
	case len(head.Queues) > maxQueues:
		return fmt.Errorf("it has %d queues", len(head.Queues))
	}
	if _, err := io.ReadFull(in, h.total.data); err != nil {
		return err
	}
	h.last = head.Last
	for _, q := range head.Queues {
		s := h.addSeriesLocked(q.VHost, q.Name, head.Last)
		s.active = q.Active
		if _, err := io.ReadFull(in, s.data); err != nil {
			return err
		}
	}
	for _, m := range head.Marks {
		if m.At >= (head.Last-int64(keep.Seconds()))*1000 {
			h.marks.add(m)
		}
	}
	if _, err := in.ReadByte(); err != io.EOF { // and the checksum is right
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
	if err := h.write(); err != nil {
		h.log.Warn("the history of the last day could not be saved; retrying in five minutes", zap.String("file", h.File), zap.Error(err))
	}
}

func (h *History) write() error {
	if err := os.MkdirAll(filepath.Dir(h.File), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.File+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(h.pack(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(h.File+".new", h.File)
}

// pack writes the history as a file has it. The lock is held for one queue at a time, so that nobody waits for the compression; a queue
// that is dropped before its turn is saved empty.
func (h *History) pack(to io.Writer) error {
	if _, err := io.WriteString(to, magic); err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	head, all, data := h.header()
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if _, err := packed.Write(append(line, '\n')); err != nil {
		return err
	}
	for _, s := range append([]*series{&h.total}, all...) {
		h.mu.Lock()
		data = data[:queueLengths.bytes()]
		if s == &h.total {
			data = data[:totalLengths.bytes()]
		}
		clearRecords(data)
		copy(data, s.data)
		h.mu.Unlock()
		if _, err := packed.Write(data); err != nil {
			return err
		}
	}
	return packed.Close()
}

// header describes what is to be saved. data is room for the rings of one.
func (h *History) header() (head header, all []*series, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	head = header{Last: h.last, Marks: append([]Mark{}, h.marks.list...)}
	for _, s := range h.queues {
		head.Queues = append(head.Queues, queueHead{s.vhost, s.name, s.active})
		all = append(all, s)
	}
	return head, all, make([]byte, max(totalLengths.bytes(), queueLengths.bytes()))
}
