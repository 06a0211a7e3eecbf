package deadletters_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/queue"
)

// packed is a text behind a content-encoding.
func packed(t testing.TB, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "raw":
		w, err = flate.NewWriter(&b, flate.DefaultCompression)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	}
	require.NoError(t, err)
	_, err = io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// TestFiltersByContent: properties, and what a body says as text or as JSON, however it was written or packed.
func TestFiltersByContent(t *testing.T) {
	d := newDesk(t)
	d.publish("", "q", `{"customer": {"id": 7, "name": "Bj\u00f6rn \ud83d\ude00"}, "paid": true, "a.b": "dot", "none": null}`, amqp.Properties{CorrelationID: "c", Type: "order.created", AppID: "shop", Priority: 3})
	d.publish("", "q", `{"customer":{"id":"7","name":"Björn"},"items":[{"sku":"x"},{"sku":"y","tags":[{"n":1},{"n":2.50}]}]}`, amqp.Properties{ContentType: "application/json"})
	d.publish("", "q", packed(t, "gzip", `{"customer":{"id":70},"note":"packed"}`), amqp.Properties{ContentEncoding: "gzip"})
	d.publish("", "q", "not JSON: customer.id=7", amqp.Properties{ContentEncoding: "gzip"})
	d.expire(d.q)
	for _, c := range []struct {
		f    deadletters.Filter
		want int
	}{
		{deadletters.Filter{JSON: map[string]string{"customer.id": "7"}}, 2},
		{deadletters.Filter{JSON: map[string]string{"customer.id": "7.0"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"customer.name": "Björn"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"customer.name": "Björn 😀"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"customer.id": "70"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"customer.id": "7", "paid": "true"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"none": "null"}}, 1},
		{deadletters.Filter{JSON: map[string]string{`a\.b`: "dot"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"a.b": "dot"}}, 0},
		{deadletters.Filter{JSON: map[string]string{"items.0.sku": "x"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"items.0.sku": "y"}}, 0},
		{deadletters.Filter{JSON: map[string]string{"items.#.sku": "y"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"items.#.tags.#.n": "2.5"}}, 1},
		{deadletters.Filter{JSON: map[string]string{"items.#": "2"}}, 0},
		{deadletters.Filter{JSON: map[string]string{"cust*.id": "7"}}, 0},
		{deadletters.Filter{JSON: map[string]string{"@this": "7"}}, 0},
		{deadletters.Filter{Body: "Björn"}, 2},
		{deadletters.Filter{Body: "n 😀"}, 1},
		{deadletters.Filter{Body: "packed"}, 1},
		{deadletters.Filter{Pattern: `"id": ?7\d`}, 1},
		{deadletters.Filter{Body: "not JSON"}, 1},
		{deadletters.Filter{Properties: map[string]string{"correlation-id": "c"}}, 1},
		{deadletters.Filter{Properties: map[string]string{"type": "order.created", "app-id": "shop"}}, 1},
		{deadletters.Filter{Properties: map[string]string{"type": "order.created", "app-id": "other"}}, 0},
		{deadletters.Filter{Properties: map[string]string{"priority": "3"}}, 1},
		{deadletters.Filter{Properties: map[string]string{"timestamp": "0"}}, 0},
		{deadletters.Filter{Key: "q"}, 4},
		{deadletters.Filter{Key: "other"}, 0},
	} {
		n, err := count(t.Context(), d.dlq, &c.f)
		require.NoError(t, err)
		assert.Equal(t, c.want, n, "%+v", c.f)
	}
	for field, f := range map[string]deadletters.Filter{
		"json": {JSON: map[string]string{"a..b": "1"}}, "properties": {Properties: map[string]string{"colour": "red"}}, "reason": {Reason: "old age"}, "pattern": {Pattern: "("},
		"headers": {Headers: func() map[string]string {
			many := map[string]string{}
			for i := range 51 {
				many[fmt.Sprint(i)] = ""
			}
			return many
		}()},
	} {
		var wrong *deadletters.FilterError
		require.ErrorAs(t, f.Check(), &wrong)
		assert.Equal(t, field, wrong.Field)
	}
}

// TestHostileBodies: whatever a body is, a filter ends soon and without a panic.
func TestHostileBodies(t *testing.T) {
	d := newDesk(t)
	const deep = 8 << 20
	bodies := []string{
		strings.Repeat("[", deep), strings.Repeat(`{"a":`, deep/5), `{"a":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}", `{"a`, `{"a":"`, `{"a":"\`, `{"a":"\u12`, "\x00\xff", `{"a":1e999}`, "",
		strings.Repeat(`{"a":[`, deep/6),
	}
	for _, body := range bodies {
		d.publish("", "q", body, amqp.Properties{})
	}
	d.publish("", "q", packed(t, "gzip", strings.Repeat("\x00", 64<<20)), amqp.Properties{ContentEncoding: "gzip"})
	d.publish("", "q", packed(t, "zstd", strings.Repeat("a", 64<<20)), amqp.Properties{ContentEncoding: "zstd"})
	d.publish("", "q", "plain", amqp.Properties{ContentEncoding: "br"})
	d.expire(d.q)
	for _, path := range []string{"a", "a.b", "a.#.a", "#.#.#.#", "0.0.0", strings.Repeat("#.", 19) + "#", "a.a.a.a.a.a.a"} {
		start := time.Now()
		_, err := count(t.Context(), d.dlq, &deadletters.Filter{JSON: map[string]string{path: "x"}})
		require.NoError(t, err)
		require.Less(t, time.Since(start), 30*time.Second, path)
	}
	n, err := count(t.Context(), d.dlq, &deadletters.Filter{Pattern: "^a{100}"})
	require.NoError(t, err)
	assert.Equal(t, 1, n, "the beginning of what is packed is looked at")
}

func FuzzJSONValue(f *testing.F) {
	for _, path := range []string{"a", "a.b", "#", `a\.b`, "a.#.b", "@x", "a|b", "..", "!", `#(a="b")`, "~true"} {
		f.Add([]byte(`{"a":{"b":[1,"\u00f6",{"b":null}]},"x":"\"}`), path)
	}
	f.Fuzz(func(_ *testing.T, body []byte, path string) {
		deadletters.HasValue(body, path, "7")
	})
}

func TestUnpack(t *testing.T) {
	text := strings.Repeat("hello ", 1000)
	for encoding, body := range map[string]string{
		"": text, "gzip": packed(t, "gzip", text), " X-GZIP": packed(t, "gzip", text), "deflate": packed(t, "deflate", text), "Deflate": packed(t, "raw", text), "zstd": packed(t, "zstd", text), "utf-8": text,
	} {
		plain, more, err := deadletters.Unpack(encoding, []byte(body), 1<<20)
		require.NoError(t, err, encoding)
		assert.False(t, more)
		assert.Equal(t, text, string(plain), encoding)
		if deadletters.IsPacked(encoding) {
			plain, more, err = deadletters.Unpack(encoding, []byte(body), 100)
			require.NoError(t, err)
			assert.True(t, more)
			assert.Equal(t, text[:100], string(plain))
			plain, _, err = deadletters.Unpack(encoding, []byte(body[:len(body)-5]), 1<<20)
			assert.Error(t, err, "cut off")
			assert.True(t, strings.HasPrefix(text, string(plain)))
		}
	}
	_, _, err := deadletters.Unpack("br", []byte("x"), 100)
	assert.ErrorIs(t, err, deadletters.ErrEncoding)
	for _, encoding := range []string{"gzip", "zstd", "deflate"} {
		_, _, err = deadletters.Unpack(encoding, []byte("no such thing"), 100)
		assert.Error(t, err, encoding)
	}
}

// TestNewestFirst goes page by page against the order of delivery, also among those that are named by number.
func TestNewestFirst(t *testing.T) {
	d := newDesk(t)
	d.dead(600)
	var all []queue.Seq
	for _, x := range d.queued(d.dlq) {
		all = append(all, x.Seq)
	}
	for _, f := range []deadletters.Filter{{}, {Seqs: all}, {Reason: "expired"}} {
		for _, newest := range []bool{true, false} {
			after, bodies := queue.Seq(0), []string{}
			for {
				found, next, err := deadletters.Search(t.Context(), d.dlq, &f, deadletters.Look{After: after, Newest: newest, Count: 100, BodyBytes: -1})
				require.NoError(t, err)
				for i := range found {
					bodies = append(bodies, string(found[i].Body))
				}
				if after = next; next == 0 {
					break
				}
			}
			want := d.bodies(d.dlq)
			if newest {
				for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
					want[i], want[j] = want[j], want[i]
				}
			}
			require.Equal(t, want, bodies)
		}
	}
}

// TestSelectedAreOfOneQueue: numbers of messages mean nothing in a queue that was declared again.
func TestSelectedAreOfOneQueue(t *testing.T) {
	d := newDesk(t)
	d.dead(5)
	seqs := []queue.Seq{d.queued(d.dlq)[3].Seq, d.queued(d.dlq)[1].Seq, d.queued(d.dlq)[1].Seq, 99}
	f := &deadletters.Filter{Seqs: seqs, QueueID: d.dlq.ID()}
	found, _, err := deadletters.Search(t.Context(), d.dlq, f, deadletters.Look{Count: 10, BodyBytes: -1})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, "1 3", string(found[0].Body)+" "+string(found[1].Body))
	f.QueueID++
	_, err = deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 2}, nil)
	require.ErrorIs(t, err, deadletters.ErrRedeclared)
	_, err = d.runs("").Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Filter: *f})
	require.ErrorIs(t, err, deadletters.ErrRedeclared)
	f.QueueID--
	n, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 2}, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	assert.Equal(t, []string{"0", "2", "4"}, d.bodies(d.dlq))
}

// TestSearchThatIsCutOff says where it was, so that it can go on.
func TestSearchThatIsCutOff(t *testing.T) {
	d := newDesk(t)
	d.dead(1000)
	ctx, cancel := context.WithCancel(t.Context())
	ctx = &endsAfter{Context: ctx, checks: 2, end: cancel}
	f := &deadletters.Filter{Pattern: "^999$"}
	found, next, err := deadletters.Search(ctx, d.dlq, f, deadletters.Look{Count: 1})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, found)
	require.NotZero(t, next)
	found, _, err = deadletters.Search(t.Context(), d.dlq, f, deadletters.Look{Count: 1, After: next})
	require.NoError(t, err)
	assert.Len(t, found, 1)
	ctx, cancel = context.WithCancel(t.Context())
	groups, seen, err := deadletters.Groups(&endsAfter{Context: ctx, checks: 2, end: cancel}, d.dlq, &deadletters.Filter{}, time.Now())
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, groups[0].Messages, seen)
	assert.Less(t, seen, 1000)
}

// endsAfter ends when it was asked often enough.
type endsAfter struct {
	context.Context
	checks int
	end    func()
}

func (c *endsAfter) Err() error {
	if c.checks--; c.checks < 0 {
		c.end()
	}
	return c.Context.Err()
}

func TestQuery(t *testing.T) {
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	text := "body=x&died_in=orders&header=tenant%3Da%3Db&header=n%3D1&json=customer.id%3D7&key=k&pattern=a%2B&property=message_id%3D5&property=type%3Dt&reason=expired&seq=1&seq=2&since=2h"
	q, err := deadletters.ParseQuery(text + "&exchange=")
	require.NoError(t, err)
	assert.Equal(t, text, q.String())
	f, wrong := q.Filter(now)
	require.Empty(t, wrong)
	assert.Equal(t, deadletters.Filter{
		Seqs: []queue.Seq{1, 2}, Reason: "expired", Queue: "orders", Key: "k", Headers: map[string]string{"tenant": "a=b", "n": "1"},
		Properties: map[string]string{"message-id": "5", "type": "t"}, Since: now.Add(-2 * time.Hour), Body: "x", Pattern: "a+", JSON: map[string]string{"customer.id": "7"},
	}, f)
	_, err = deadletters.ParseQuery("colour=red")
	assert.ErrorContains(t, err, "unknown filter field")
	for field, value := range map[string]string{
		"since": "yesterday", "before": "2030", "header": "tenant", "property": "colour=red", "json": "=7", "seq": "x", "queue_id": "x", "pattern": "(", "reason": "old age",
	} {
		_, wrong := deadletters.QueryOf(url.Values{field: {value}}).Filter(now)
		assert.Len(t, wrong, 1, field)
		assert.Error(t, wrong[field], field)
	}
	_, wrong = deadletters.QueryOf(url.Values{"since": {"1h"}, "before": {"2h"}}).Filter(now)
	assert.Error(t, wrong["before"])
	for text, want := range map[string]time.Time{
		"90m": now.Add(-90 * time.Minute), "2030-01-31": now.Add(-12 * time.Hour), "2030-01-31 12:00": now, "2030-01-31T12:00:00Z": now, "2030-01-31T14:00:00+02:00": now, "": {},
	} {
		at, err := deadletters.ParseInstant(text, now)
		require.NoError(t, err)
		assert.True(t, want.Equal(at), text)
	}
}

// BenchmarkFilter looks through 100,000 dead letters, none of which matches.
func BenchmarkFilter(b *testing.B) {
	d := newDesk(b)
	for i := range 100_000 {
		p := amqp.Properties{DeliveryMode: 1, MessageID: fmt.Sprint("id-", i), Headers: amqp.Table{"tenant": "globex", "attempt": int32(i % 5)}}
		d.publish("", "dlq", fmt.Sprintf(`{"order":%d,"customer":{"id":%d,"name":"Bj\u00f6rn"},"items":[{"sku":"a-1","price":12.5},{"sku":"b-2","price":7}],"note":"none"}`, i, i%1000), p)
	}
	for name, f := range map[string]deadletters.Filter{
		"all": {}, "header": {Headers: map[string]string{"tenant": "other"}}, "body": {Body: "nowhere"}, "pattern": {Pattern: "no+where"}, "json": {JSON: map[string]string{"customer.id": "x"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := count(b.Context(), d.dlq, &f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
