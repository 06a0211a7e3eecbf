package audit

import (
	"bytes"
	"context"
	"curfew/broker/deadline"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const noon = 1_700_000_000_000

func record(id string, at int64) Record {
	return Record{At: at, Deadline: at - 3, LateMillis: 3, VHost: "/", Queue: "orders", MessageID: []byte(id), Path: "eager", Outcome: "dead_lettered",
		RoutingKey: []byte("dead"), To: []string{"dead"}}
}

// written runs a log, lets fill add to it, and returns it ended.
func written(t *testing.T, o Options, fill func(*Log)) *Log {
	t.Helper()
	l, err := Open(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	fill(l)
	cancel()
	require.NoError(t, <-ended)
	return l
}

func found(t *testing.T, dir string, q Query) (ids []string) {
	t.Helper()
	for r, err := range Search(t.Context(), dir, q) {
		require.NoError(t, err)
		ids = append(ids, string(r.MessageID))
	}
	return ids
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	l := written(t, Options{Dir: t.TempDir()}, func(l *Log) {
		id := []byte("m1")
		l.Add([]Record{{At: noon, Deadline: noon - 250, LateMillis: 250, VHost: "/", Queue: "q \"x\"\n ü \xff", MessageID: id, Path: "lazy", Outcome: "dropped"}, record("m2", noon+1)})
		copy(id, "XX") // what it was given was copied
	})
	var got []Record
	for r, err := range Search(t.Context(), l.Dir, Query{}) {
		require.NoError(t, err)
		got = append(got, r)
	}
	want := record("m2", noon+1)
	assert.Equal(t, []Record{
		{At: noon, Deadline: noon - 250, LateMillis: 250, VHost: "/", Queue: "q \"x\"\n ü \ufffd", MessageID: []byte("m1"), RoutingKey: []byte{}, Path: "lazy", Outcome: "dropped"}, want,
	}, got)
	assert.Equal(t, 250*time.Millisecond, got[0].Lateness())
	assert.InDelta(t, 2, testutil.ToFloat64(l.kept), 0)
}

// A steady trickle does not put the writing off.
func TestWhatWaitsIsWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written(t, Options{Dir: t.TempDir()}, func(l *Log) {
			for n := range 20 {
				l.Add([]Record{record("m", noon+int64(n))})
				time.Sleep(writeEvery / 10)
			}
			synctest.Wait()
			assert.GreaterOrEqual(t, len(found(t, l.Dir, Query{})), 8)
			time.Sleep(writeEvery)
			synctest.Wait()
			assert.Len(t, found(t, l.Dir, Query{}), 20)
		})
	})
}

// A storm is written in small pieces, not all at once when the time comes.
func TestMuchIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written(t, Options{Dir: t.TempDir()}, func(l *Log) {
			synctest.Wait()
			l.Add(slices.Repeat([]Record{record("m", noon)}, writeRecords))
			synctest.Wait()
			assert.Len(t, found(t, l.Dir, Query{}), writeRecords)
		})
	})
}

// What a storm took is given back when it is written.
func TestAStormLeavesNoMemoryBehind(t *testing.T) {
	l, err := Open(Options{Dir: t.TempDir()})
	require.NoError(t, err)
	w := writer{Log: l}
	defer w.end()
	for range 2 {
		l.Add(slices.Repeat([]Record{record("m", noon)}, 2*keepRecords))
		w.write()
	}
	l.Add([]Record{record("last", noon)})
	w.write()
	assert.LessOrEqual(t, cap(l.queue.records), keepRecords)
	assert.LessOrEqual(t, cap(w.taken.records), keepRecords)
	assert.Less(t, cap(w.encoded), 1<<20)
	assert.Len(t, found(t, l.Dir, Query{}), 4*keepRecords+1)
}

// FuzzJSON: whatever is in a record, its line is one that encoding/json reads, with the same in it.
func FuzzJSON(f *testing.F) {
	f.Add("q", []byte("id\x00\xff"), "to\u2028", int64(5))
	f.Add("\xff\xfe", []byte(nil), "", int64(0))
	f.Fuzz(func(t *testing.T, queue string, id []byte, to string, at int64) {
		r := Record{At: at % (1 << 40), Queue: queue, MessageID: id, To: []string{to}}
		encoded, err := json.Marshal(&r)
		require.NoError(t, err)
		require.NotContains(t, string(encoded), "\n")
		var back Record
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Equal(t, string([]rune(queue)), back.Queue, "each octet that is not UTF-8 is replaced")
		require.Equal(t, r.At, back.At)
		again, err := json.Marshal(&back)
		require.NoError(t, err)
		require.JSONEq(t, string(encoded), string(again))
	})
}

// TestHeld: what came back past its deadline is late by its consumer's doing.
func TestHeld(t *testing.T) {
	require.True(t, (&Record{Path: "requeue"}).Held())
	require.False(t, (&Record{Path: "eager"}).Held())
}

func TestSearchFindsWhatIsWanted(t *testing.T) {
	l := written(t, Options{Dir: t.TempDir()}, func(l *Log) {
		for i := range 10 {
			l.Add([]Record{record(fmt.Sprint("m", i), noon+int64(i)*1000)})
		}
		late := record("late", noon+20_000)
		late.Deadline, late.LateMillis, late.Queue, late.Path, late.Outcome = noon, 20_000, "invoices", "requeue", "parked"
		l.Add([]Record{late})
	})
	at := func(second int64) time.Time { return time.UnixMilli(noon + second*1000) }
	for _, c := range []struct {
		q    Query
		want []string
	}{
		{Query{Limit: 2}, []string{"m0", "m1"}},
		{Query{Limit: 2, Newest: true}, []string{"late", "m9"}},
		{Query{From: at(3), To: at(5)}, []string{"m3", "m4"}},
		{Query{MessageID: "m7"}, []string{"m7"}},
		{Query{Queue: "invoices"}, []string{"late"}},
		{Query{MinLateness: time.Second}, []string{"late"}},
		{Query{Path: "requeue"}, []string{"late"}}, // a consumer held it
		{Query{Outcome: "parked", VHost: "/"}, []string{"late"}},
		{Query{VHost: "other"}, nil},
		{Query{Queue: "order"}, nil},
		{Query{Newest: true, To: at(2)}, []string{"m1", "m0"}},
	} {
		assert.Equal(t, c.want, found(t, l.Dir, c.q), "%+v", c.q)
	}
}

// TestNewestFirst: from the end of a file of many blocks come the same records as from its beginning, and only as much is read as is wanted.
func TestNewestFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit-1.jsonl")
	var text []byte
	for i := range int64(9000) {
		r := record(strings.Repeat("x", int(i*7919%200))+fmt.Sprint(i), noon+i)
		text = append(r.appendJSON(text), '\n')
	}
	text = append(append(text, bytes.Repeat([]byte("y"), 3*readBytes)...), '\n') // no record, and longer than a block
	last := record("last", noon)
	text = append(append(last.appendJSON(text), '\n'), `{"at":"2001-`...)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	forward, backward := found(t, dir, Query{}), found(t, dir, Query{Newest: true})
	require.Len(t, forward, 9001)
	slices.Reverse(backward)
	require.Equal(t, forward, backward)
	require.Equal(t, "last", found(t, dir, Query{Newest: true, Limit: 1})[0])
	require.NoError(t, os.WriteFile(path, text[:len(text)-3*readBytes], 0o600))
	require.Empty(t, found(t, dir, Query{Newest: true, MessageID: "last"}))
	require.NoError(t, os.WriteFile(path, []byte("\n\n{}\n"), 0o600))
	require.Len(t, found(t, dir, Query{Newest: true}), len(found(t, dir, Query{})))
}

// TestFilesAreBoundedAndGoOn: files are ended and the oldest removed; a start goes on with the newest, after a line that was cut.
func TestFilesAreBoundedAndGoOn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "audit-1.jsonl"), []byte(`{"at":"2001-`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("not ours"), 0o600))
	written(t, Options{Dir: dir}, func(l *Log) { l.Add([]Record{record("first", noon)}) })
	assert.Equal(t, []string{"first"}, found(t, dir, Query{}))
	all, err := list(dir)
	require.NoError(t, err)
	require.Len(t, all, 1, "it goes on with the file that is there")

	f := files{dir: dir, fileBytes: 1000, maxBytes: 8000}
	for i := range int64(200) {
		r := record(fmt.Sprint(i), noon+i)
		require.NoError(t, f.append(append(r.appendJSON(nil), '\n'), noon+i))
	}
	require.NoError(t, f.close())
	all, err = list(dir)
	require.NoError(t, err)
	total := int64(0)
	for _, x := range all {
		total += x.bytes
	}
	assert.LessOrEqual(t, total, int64(8200))
	assert.Greater(t, total, int64(6000))
	ids := found(t, dir, Query{})
	assert.Equal(t, "199", ids[len(ids)-1])
	assert.NotContains(t, ids, "first")
	assert.Equal(t, []string{"199", "198"}, found(t, dir, Query{Newest: true, Limit: 2}))
	newest := Query{Newest: true, From: time.UnixMilli(noon + 190)}
	assert.Len(t, found(t, dir, newest), 10)
	assert.FileExists(t, filepath.Join(dir, "notes.txt"))
}

// TestGapsAreRecorded: what does not fit is counted where it is missing.
func TestGapsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	l.Add(slices.Repeat([]Record{record("m", noon)}, bufferRecords+5)) // nobody writes yet
	l.Add([]Record{record("m", noon)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.Run(ctx))
	lost, kept := int64(0), 0
	for r, err := range Search(t.Context(), dir, Query{}) {
		require.NoError(t, err)
		if lost += r.Lost; r.Lost == 0 {
			kept++
		}
	}
	assert.Equal(t, bufferRecords, kept)
	assert.Equal(t, int64(6), lost)
	assert.InDelta(t, 6, testutil.ToFloat64(l.lostCount), 0)
}

// TestManyTargetsAreBounded: what waits is bounded also by the queues that dead letters went to.
func TestManyTargetsAreBounded(t *testing.T) {
	l, err := Open(Options{Dir: t.TempDir()})
	require.NoError(t, err)
	wide := record("m", noon)
	wide.To = slices.Repeat([]string{"dead"}, 1000)
	l.Add(slices.Repeat([]Record{wide}, 1000)) // nobody writes yet
	assert.Len(t, l.queue.records, bufferNames/1000)
	assert.EqualValues(t, 1000-bufferNames/1000, l.Lost.Load())
}

// TestDiskThatFailsIsAGap: nothing waits for the disk, and what it refused is recorded when it is back.
func TestDiskThatFailsIsAGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	w := writer{Log: l}
	require.NoError(t, os.Remove(dir))
	l.Add([]Record{record("refused", noon)})
	w.write()
	require.NoError(t, os.Mkdir(dir, 0o700))
	l.Add([]Record{record("kept", noon)})
	w.write()
	w.end()
	var lost int64
	for r, err := range Search(t.Context(), dir, Query{}) {
		require.NoError(t, err)
		lost += r.Lost
	}
	assert.Equal(t, int64(1), lost)
	assert.Equal(t, []string{"kept"}, found(t, dir, Query{MessageID: "kept"}))
}

func TestHandler(t *testing.T) {
	l := written(t, Options{Dir: t.TempDir()}, func(l *Log) {
		l.Add([]Record{record("m1", noon), record("=m2", noon+1)})
	})
	get := func(query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		l.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/audit?"+query, nil))
		return w
	}
	var all []Record
	require.NoError(t, json.Unmarshal(get("").Body.Bytes(), &all))
	require.Len(t, all, 2)
	assert.Equal(t, "=m2", string(all[0].MessageID), "newest first")
	require.NoError(t, json.Unmarshal(get("message_id=none").Body.Bytes(), &all))
	assert.Empty(t, all)
	assert.Equal(t, 2, bytes.Count(get("format=jsonl").Body.Bytes(), []byte("\n")))
	assert.Equal(t, "at,vhost,queue,message_id,deadline,lateness_ms,path,outcome,exchange,routing_key,to,lost,reason,operation,user,face,result,detail\n"+
		"2023-11-14T22:13:20.000Z,/,orders,m1,2023-11-14T22:13:19.997Z,3,eager,dead_lettered,,dead,dead,,expired,,,,,\n"+
		"2023-11-14T22:13:20.001Z,/,orders,'=m2,2023-11-14T22:13:19.998Z,3,eager,dead_lettered,,dead,dead,,expired,,,,,\n", get("format=csv").Body.String())
	for query, reason := range map[string]string{
		"limit=0": "limit", "limit=x": "limit", "from=noon": "from", "format=xml": "format", "order=up": "order", "min_lateness=1": "min_lateness", "path=late": "eager", "outcome=lost": "parked", "reason=bored": "rejected", "que=q": "que",
	} {
		w := get(query)
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		assert.Contains(t, w.Body.String(), reason)
	}
}

// TestASearchEndsWithItsReader: where a client has gone, the files are not read to their ends.
func TestASearchEndsWithItsReader(t *testing.T) {
	const all = 10_000
	for name, write := range map[string]func(io.Writer, iter.Seq2[Record, error]) error{"lines": WriteJSONLines, "array": writeArray, "csv": WriteCSV} {
		read := 0
		to, from := io.Pipe()
		require.NoError(t, to.Close())
		err := write(from, func(yield func(Record, error) bool) {
			for read < all && yield(record("m", noon), nil) {
				read++
			}
		})
		require.ErrorIs(t, err, io.ErrClosedPipe, name)
		require.Less(t, read, all/10, name)
	}
}

// deadlined records until when an answer may be written.
type deadlined struct {
	httptest.ResponseRecorder
	until time.Time
}

func (d *deadlined) SetWriteDeadline(until time.Time) error {
	d.until = until
	return nil
}

// TestAFileMayTakeLong: a server's limit for all answers does not cut off a large file.
func TestAFileMayTakeLong(t *testing.T) {
	l := written(t, Options{Dir: t.TempDir()}, func(*Log) {})
	w := &deadlined{ResponseRecorder: *httptest.NewRecorder()}
	l.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/audit?format=csv", nil))
	assert.WithinDuration(t, time.Now().Add(exportTime), w.until, time.Minute)
}

// TestDeathsAndChanges stand beside expiries, and are found by what they are and by whom.
func TestDeathsAndChanges(t *testing.T) {
	dir := t.TempDir()
	written(t, Options{Dir: dir}, func(l *Log) {
		l.Add([]Record{record("expired", noon)})
		l.Died([]deadline.Expiry{{VHost: "/", Queue: "orders", MessageID: []byte("turned down"), Reason: "rejected", Action: deadline.DeadLettered, To: []string{"dead"}}})
		l.Did(Change{Operation: "purge", User: "ann", Face: "dashboard", Result: "done", Detail: `deleted 3, of "them" all`}, "/", "=dead")
		l.Did(Change{Operation: "replay", User: "ben", Face: "api", Result: "refused"}, "/", "dead")
	})
	assert.Equal(t, []string{"expired"}, found(t, dir, Query{Reason: Expired}))
	assert.Equal(t, []string{"turned down"}, found(t, dir, Query{Reason: "rejected"}))
	for r := range Search(t.Context(), dir, Query{Reason: "rejected"}) {
		assert.Zero(t, r.Deadline, "it had none, or not this one")
		assert.Equal(t, []string{"dead"}, r.To)
	}
	var changes []Change
	for r := range Search(t.Context(), dir, Query{Reason: Changed}) {
		changes = append(changes, *r.Change)
	}
	assert.Equal(t, []Change{
		{Operation: "purge", User: "ann", Face: "dashboard", Result: "done", Detail: `deleted 3, of "them" all`},
		{Operation: "replay", User: "ben", Face: "api", Result: "refused"},
	}, changes)
	for r, err := range Search(t.Context(), dir, Query{User: "ann"}) {
		require.NoError(t, err)
		assert.Equal(t, "=dead", r.Queue)
	}
	assert.Empty(t, found(t, dir, Query{User: "nobody"}))
	assert.Equal(t, []string{"expired"}, found(t, dir, Query{MinLateness: time.Millisecond}), "others are never late")
	var csv bytes.Buffer
	require.NoError(t, WriteCSV(&csv, Search(t.Context(), dir, Query{User: "ann"})))
	assert.Contains(t, csv.String(), `,/,'=dead,,,,,,,,,,changed,purge,ann,dashboard,done,"deleted 3, of ""them"" all"`)
}

func TestAddAllocatesNothing(t *testing.T) {
	l, err := Open(Options{Dir: t.TempDir()})
	require.NoError(t, err)
	batch := slices.Repeat([]Record{record("message-17", noon)}, 64)
	w := writer{Log: l}
	defer w.end()
	pass := func() {
		l.Add(batch)
		w.write()
	}
	for range 10 {
		pass()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, pass), 1.0)
}

func BenchmarkAdd(b *testing.B) {
	l, err := Open(Options{Dir: b.TempDir()})
	require.NoError(b, err)
	w := writer{Log: l}
	defer w.end()
	batch := slices.Repeat([]Record{record("message-17", noon)}, 256)
	b.ReportAllocs()
	for b.Loop() {
		l.Add(batch)
		w.write()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*256), "ns/record")
}

// BenchmarkSearch looks through half an hour of 1,000 expiries a second, which is about as much as the files may take, for something that is not there,
// and for the last page of what is.
func BenchmarkSearch(b *testing.B) {
	dir := b.TempDir()
	l, err := Open(Options{Dir: dir})
	require.NoError(b, err)
	w := writer{Log: l}
	for second := range int64(1800) {
		batch := make([]Record, 0, 1000)
		for n := range int64(1000) {
			batch = append(batch, record(fmt.Sprintf("message-%d", second*1000+n), noon+second*1000+n))
		}
		l.Add(batch)
		w.write()
	}
	w.end()
	for name, q := range map[string]Query{
		"message id": {MessageID: "message-x"}, "user": {User: "ann"}, "lateness": {MinLateness: time.Second}, "path": {Path: "lazy"}, "vhost": {VHost: "shop"}, "all are parsed": {Reason: "rejected"},
		"two minutes": {From: time.UnixMilli(noon + 600_000), To: time.UnixMilli(noon + 720_000), MinLateness: time.Second}, "newest": {VHost: "/"},
	} {
		q.Newest, q.Limit = true, 100
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range Search(b.Context(), dir, q) {
					require.NoError(b, err)
				}
			}
		})
	}
}

// TestLongNamesAreCut, whoever asks for them.
func TestLongNamesAreCut(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("x", 1<<20)
	written(t, Options{Dir: dir}, func(l *Log) {
		l.Did(Change{Operation: "purge", User: "ann", Face: "api", Result: "refused", Detail: long}, long, long)
	})
	for r, err := range Search(t.Context(), dir, Query{Reason: Changed}) {
		require.NoError(t, err)
		assert.Equal(t, []string{long[:1024], long[:1024], long[:1024]}, []string{r.VHost, r.Queue, r.Change.Detail})
	}
	assert.Len(t, found(t, dir, Query{Reason: Changed}), 1)
}

// TestAQueryIsItsParameters: the page, the command and the API mean the same.
func TestAQueryIsItsParameters(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	q := Query{
		VHost: "/", Queue: "q & p", MessageID: "m", Path: "eager", Outcome: "dropped", Reason: Expired, User: "u", From: at, To: at.Add(time.Hour), MinLateness: 1500 * time.Microsecond,
	}
	read, err := QueryOf(q.Values())
	require.NoError(t, err)
	require.Equal(t, q, read)
	q.Limit = 7
	require.Equal(t, "7", q.Values().Get("limit"))
	_, err = QueryOf(url.Values{"path": {"backwards"}})
	require.ErrorContains(t, err, `path: "backwards" is invalid`)
}
