package audit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"curfew/broker/deadline"
)

const (
	// What waits to be written is bounded to a quarter of a second of the fastest storm.
	bufferRecords = 1 << 16
	bufferBytes   = 4 << 20 // of ids and keys
	bufferNames   = 1 << 18 // of queues that dead letters went to
	// writeEvery is how long the first record waits before all are written, unless there are
	// writeRecords of them: writing more at a time would keep a processor from firing deadlines.
	writeEvery   = 100 * time.Millisecond
	writeRecords = 512
	// keepRecords is the most records for which memory is kept while none waits.
	keepRecords = 16 * writeRecords
	// defaultMaxBytes is how much space the files may take.
	defaultMaxBytes = 512 << 20
	minMaxBytes     = 1 << 20
)

// Options of a Log. Dir is required.
type Options struct {
	Dir        string // made if it does not exist
	MaxBytes   int64  // of all files; 0: defaultMaxBytes
	Log        *zap.Logger
	Registerer prometheus.Registerer // nil keeps the metrics private
}

// Log is the audit of one process. All methods are safe for concurrent use.
type Log struct {
	Dir  string        // where the files are; it must not be changed
	Lost atomic.Uint64 // counts the records that are only in a gap, since the start

	files files
	log   *zap.Logger
	now   func() time.Time
	begun chan struct{} // something waits
	wake  chan struct{} // writeRecords wait

	kept, lostCount prometheus.Counter

	mu    sync.Mutex
	queue batch
	lost  int64 // since the last gap was recorded
}

// batch is the records that wait, with what they refer to.
type batch struct {
	records []Record
	texts   []byte
	names   []string
}

// Open prepares the audit in o.Dir; nothing is written before Run.
func Open(o Options) (*Log, error) {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	if o.MaxBytes < minMaxBytes {
		return nil, fmt.Errorf("audit: %d bytes are not enough, %d are", o.MaxBytes, minMaxBytes)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	metrics := promauto.With(o.Registerer)
	return &Log{
		Dir: o.Dir, files: files{dir: o.Dir, fileBytes: o.MaxBytes / 8, maxBytes: o.MaxBytes}, log: o.Log.Named("audit"), now: time.Now,
		begun: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		kept: metrics.NewCounter(prometheus.CounterOpts{
			Name: "curfew_audit_records_total", Help: "Records kept in the audit."}),
		lostCount: metrics.NewCounter(prometheus.CounterOpts{
			Name: "curfew_audit_records_lost_total", Help: "Records that the audit counts only as a gap: they came too fast, or the disk failed."}),
	}, nil
}

// lose counts records that are only in a gap.
func (l *Log) lose(n int) {
	l.lostCount.Add(float64(n))
	l.Lost.Add(uint64(n))
}

// Expired records messages that expired: it is a subscriber of a deadline.Stream, with
// deadline.WithMessage.
func (l *Log) Expired(batch []deadline.Expiry) { l.addAll(batch, recordOf) }

// Died records dead letters of messages that did not expire: it is the subscriber of
// deadline.Stream's deaths.
func (l *Log) Died(batch []deadline.Expiry) { l.addAll(batch, deathOf) }

func (l *Log) addAll(batch []deadline.Expiry, record func(*deadline.Expiry) Record) {
	records := scratch.Get().(*[]Record)
	defer scratch.Put(records)
	*records = (*records)[:0]
	for i := range batch {
		*records = append(*records, record(&batch[i]))
	}
	l.Add(*records)
	clear(*records)
}

// maxText bounds each text about what a user did, in bytes. Names that exist are shorter, but a request may name what does not
// exist, and a user without any rights could push out all other records.
const maxText = 1 << 10

func cut(text string) string { return text[:min(len(text), maxText)] }

// Did records what a user did in a virtual host, to a queue; both may be "". Texts are cut to 1 KiB.
func (l *Log) Did(c Change, vhost, queue string) {
	c.User, c.Detail, vhost, queue = cut(c.User), cut(c.Detail), cut(vhost), cut(queue)
	l.Add([]Record{{At: l.now().UnixMilli(), VHost: vhost, Queue: queue, Reason: Changed, Change: &c}})
}

// scratch is what addAll works with.
var scratch = sync.Pool{New: func() any { return new([]Record) }}

// Add adds records, in the order in which they are given. It copies what it keeps, and never
// waits for the disk.
func (l *Log) Add(records []Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.queue
	first := len(b.records) == 0
	for i := range records {
		r := &records[i]
		if len(b.records) >= bufferRecords || len(b.texts)+len(r.MessageID)+len(r.RoutingKey) > bufferBytes || len(b.names)+len(r.To) > bufferNames {
			l.lost += int64(len(records) - i)
			l.lose(len(records) - i)
			break
		}
		b.add(r)
	}
	if first && len(b.records) > 0 {
		deadline.Wake(l.begun)
	}
	if len(b.records) >= writeRecords {
		deadline.Wake(l.wake)
	}
}

func (b *batch) add(r *Record) {
	kept := *r
	kept.MessageID, kept.RoutingKey = b.text(r.MessageID), b.text(r.RoutingKey)
	from := len(b.names)
	b.names = append(b.names, r.To...)
	kept.To = b.names[from:len(b.names):len(b.names)]
	b.records = append(b.records, kept)
}

func (b *batch) text(t []byte) []byte {
	from := len(b.texts)
	b.texts = append(b.texts, t...)
	return b.texts[from:len(b.texts):len(b.texts)]
}

// reset empties the batch, and keeps its memory unless a storm made it large.
func (b *batch) reset() {
	if cap(b.records) > keepRecords {
		*b = batch{}
		return
	}
	clear(b.records)
	clear(b.names)
	b.records, b.texts, b.names = b.records[:0], b.texts[:0], b.names[:0]
}

// Run writes what is added until ctx ends, then the rest, and returns nil. While nothing is
// added it sleeps.
func (l *Log) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	w := writer{Log: l}
	defer w.end()
	for armed := true; ; {
		select {
		case <-l.begun:
			if !armed {
				armed = true
				timer.Reset(writeEvery)
			}
			continue
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
			w.write()
			return nil
		}
		w.write()
		if armed = w.failed; armed { // the gap has to be recorded
			timer.Reset(writeEvery)
		}
	}
}

// writer is what Run works with.
type writer struct {
	*Log
	taken   batch
	encoded []byte
	failed  bool // the last write did
}

// write takes what waits and writes it.
func (w *writer) write() {
	w.mu.Lock()
	w.taken, w.queue = w.queue, w.taken
	lost := w.lost
	w.lost = 0
	w.mu.Unlock()
	defer w.taken.reset()
	if len(w.taken.records) == 0 && lost == 0 {
		return
	}
	w.encoded = w.encoded[:0]
	gap := Record{At: w.now().UnixMilli(), Lost: lost}
	first := gap.At
	if len(w.taken.records) > 0 {
		first = w.taken.records[0].At
	}
	for i := range w.taken.records {
		w.encoded = append(w.taken.records[i].appendJSON(w.encoded), '\n')
	}
	if lost > 0 {
		w.encoded = append(gap.appendJSON(w.encoded), '\n')
	}
	w.store(first, len(w.taken.records), lost)
	if len(w.taken.records) > keepRecords {
		w.encoded = nil
	}
}

// store writes what is encoded. What cannot be written becomes a gap.
func (w *writer) store(first int64, records int, lost int64) {
	err := w.files.append(w.encoded, first)
	if err == nil {
		w.failed = false
		w.kept.Add(float64(records))
		return
	}
	if !w.failed {
		w.failed = true
		w.log.Error("the audit has gaps; make room on the disk, or turn the audit off", zap.Error(err))
	}
	w.lose(records)
	w.mu.Lock()
	w.lost += lost + int64(records)
	w.mu.Unlock()
}

func (w *writer) end() {
	if err := w.files.close(); err != nil {
		w.log.Error("close", zap.Error(err))
	}
}
