package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/deadline"
)

// Query selects records. An empty field matches all.
type Query struct {
	VHost, Queue, MessageID string
	Path, Outcome           string
	Reason                  string    // Expired, Changed, or another reason of a death
	User                    string    // who made a change
	From, To                time.Time // when they left: not before From, but before To
	MinLateness             time.Duration
	// Limit is the most records to return; 0: all. With Newest these are the last ones, newest
	// first; without it the first ones, oldest first.
	Limit  int
	Newest bool
}

// Check returns an error for a path, an outcome or a reason that no record has.
func (q *Query) Check() error {
	for _, field := range []struct {
		name, value string
		known       []string
	}{{"path", q.Path, Paths}, {"outcome", q.Outcome, Outcomes}, {"reason", q.Reason, Reasons}} {
		if field.value != "" && !slices.Contains(field.known, field.value) {
			return fmt.Errorf("%s: %q is invalid: want one of %s", field.name, field.value, strings.Join(field.known, ", "))
		}
	}
	return nil
}

// texts are the fields that are texts, by the names of their parameters.
func (q *Query) texts() map[string]*string {
	return map[string]*string{
		"vhost": &q.VHost, "queue": &q.Queue, "message_id": &q.MessageID, "path": &q.Path, "outcome": &q.Outcome, "reason": &q.Reason, "user": &q.User,
	}
}

// QueryOf reads the parameters that say which records are wanted, and checks them.
func QueryOf(v url.Values) (q Query, err error) {
	for name, text := range q.texts() {
		*text = v.Get(name)
	}
	if q.From, err = parseTime(v, "from"); err != nil {
		return q, err
	}
	if q.To, err = parseTime(v, "to"); err != nil {
		return q, err
	}
	if text := strings.TrimSpace(v.Get("min_lateness")); text != "" {
		if q.MinLateness, err = deadline.ParseSpan(text); err != nil {
			return q, fmt.Errorf("min_lateness: %w", err)
		}
	}
	return q, q.Check()
}

func parseTime(v url.Values, name string) (time.Time, error) {
	text := v.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := deadline.ParseTime(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return t, err
}

// Values are the parameters of the query, as Handler reads them, without the order.
func (q *Query) Values() url.Values {
	v := url.Values{}
	for name, text := range q.texts() {
		if *text != "" {
			v.Set(name, *text)
		}
	}
	for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.MinLateness > 0 {
		v.Set("min_lateness", q.MinLateness.String())
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// Search reads the records of a directory, to which another process may be writing. Gaps are
// included, unless the query selects by a field of messages. Memory is bounded by Limit. The
// error, if any, comes last: ctx ended, or a file could not be read.
func Search(ctx context.Context, dir string, q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		all, err := list(dir)
		if err == nil {
			s := search{ctx: ctx, q: q, yield: yield}
			s.needles()
			err = s.files(within(all, q))
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Record{}, err)
		}
	}
}

// errStop ends a search that has found enough.
var errStop = errors.New("audit: enough")

// disorder is how much older than the record before it a record may be, since goroutines race.
const disorder = time.Minute

// within leaves out files that were ended before From or begun after To.
func within(all []file, q Query) (some []file) {
	for i, f := range all {
		ended := i+1 < len(all) && !q.From.IsZero() && all[i+1].start < q.From.Add(-disorder).UnixMilli()
		if !ended && (q.To.IsZero() || f.start < q.To.Add(disorder).UnixMilli()) {
			some = append(some, f)
		}
	}
	return some
}

type search struct {
	ctx    context.Context
	q      Query
	yield  func(Record, error) bool
	needle [][]byte // a line without these need not be parsed
	found  int
}

func (s *search) needles() {
	for _, text := range []string{s.q.Queue, s.q.MessageID, s.q.User} {
		if text != "" {
			s.needle = append(s.needle, appendString(nil, text))
		}
	}
	for name, value := range map[string]string{"vhost": s.q.VHost, "path": s.q.Path, "outcome": s.q.Outcome} {
		if value != "" {
			s.needle = append(s.needle, field(nil, name, value))
		}
	}
	if s.q.Reason == Changed { // a few among very many expiries
		s.needle = append(s.needle, field(nil, "reason", Changed))
	}
}

var latenessField = []byte(`,"lateness_ms":`)

// late reports whether the message of a line was late enough, without parsing all of the line: almost none is.
func (q *Query) late(line []byte) bool {
	_, number, _ := bytes.Cut(line, latenessField)
	late := deadline.Millis(0)
	for _, digit := range number {
		if digit < '0' || digit > '9' {
			break
		}
		late = 10*late + deadline.Millis(digit-'0')
	}
	return late.Duration() >= q.MinLateness
}

func (s *search) files(all []file) error {
	if s.q.Newest {
		slices.Reverse(all)
	}
	for _, f := range all {
		r, err := os.Open(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // pruned since
		case err != nil:
			return fmt.Errorf("audit: %w", err)
		case s.q.Newest:
			err = s.backward(r)
		default:
			err = s.forward(r)
		}
		if r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) give(r Record) error {
	s.found++
	if !s.yield(r, nil) || s.found == s.q.Limit {
		return errStop
	}
	return nil
}

// readBytes is how much of a file is read at a time; a longer line is left out.
const readBytes = 256 << 10

// backward yields the matching records of a file, the last one first. It reads the file from its end, and no more of it than needed.
func (s *search) backward(r *os.File) error {
	at, err := r.Seek(0, io.SeekEnd)
	block, rest := make([]byte, readBytes), []byte(nil) // rest is the end of a line that begins in the block before
	for err == nil && at > 0 {
		n := min(at, readBytes)
		at -= n
		if _, err = r.ReadAt(block[:n], at); err != nil {
			break
		}
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		lines := append(block[:n:n], rest...)
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // the last line of the file is being written
		begins := 0
		if at > 0 {
			begins = bytes.IndexByte(lines, '\n') + 1
		}
		if rest = append([]byte(nil), lines[:begins]...); len(rest) > readBytes {
			rest = nil
		}
		if err := s.lastFirst(lines[begins:]); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// lastFirst yields the matching records of some lines, the last one first. Most blocks have none of a few changes among very many expiries.
func (s *search) lastFirst(lines []byte) error {
	if !s.mayMatch(lines) {
		return nil
	}
	for len(lines) > 0 {
		begins := bytes.LastIndexByte(lines[:len(lines)-1], '\n') + 1
		if record, ok := s.parse(lines[begins:]); ok {
			if err := s.give(record); err != nil {
				return err
			}
		}
		lines = lines[:begins]
	}
	return nil
}

// forward yields the matching records of a file.
func (s *search) forward(r io.Reader) error {
	lines := bufio.NewReaderSize(r, readBytes)
	for n := 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil // the last line is being written
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("audit: %w", err)
		}
		if n%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if record, ok := s.parse(line); ok {
			if err := s.give(record); err != nil {
				return err
			}
		}
	}
}

// mayMatch reports whether all is there that a line that matches has.
func (s *search) mayMatch(lines []byte) bool {
	return !slices.ContainsFunc(s.needle, func(needle []byte) bool { return !bytes.Contains(lines, needle) })
}

// parse reads a line; ok is false if it does not match or was cut off.
func (s *search) parse(line []byte) (r Record, ok bool) {
	if !s.mayMatch(line) || !s.q.late(line) || json.Unmarshal(line, &r) != nil {
		return r, false
	}
	return r, s.q.wants(&r)
}

func (q *Query) wants(r *Record) bool {
	is := func(want, value string) bool { return want == "" || want == value }
	if q.User != "" && (r.Change == nil || r.Change.User != q.User) || q.MinLateness > 0 && r.Died() != Expired {
		return false
	}
	return is(q.VHost, r.VHost) && is(q.Queue, r.Queue) && is(q.MessageID, string(r.MessageID)) &&
		is(q.Path, r.Path) && is(q.Outcome, r.Outcome) && (q.Reason == "" || r.Lost == 0 && q.Reason == r.Died()) &&
		r.Lateness() >= q.MinLateness &&
		(q.From.IsZero() || r.At >= q.From.UnixMilli()) && (q.To.IsZero() || r.At < q.To.UnixMilli())
}
