package deadletters_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
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

// TestFilters: what a death, headers, properties and a body say as text or as JSON, however it was written or packed.
func TestFilters(t *testing.T) {
	d := newDesk(t)
	d.publish("", "q", `{"customer": {"id": 7, "name": "Bj\u00f6rn \ud83d\ude00"}, "paid": true, "a.b": "dot", "none": null}`, amqp.Properties{
		CorrelationID: "c", Type: "order.created", AppID: "shop", Priority: 3, Timestamp: 1_900_000_000,
		Headers: amqp.Table{"tenant": "a", "n": int32(5), "big": int64(1) << 60, "ratio": 0.5, "at": amqp.Timestamp(1_900_000_000), "raw": []byte("x"), "in": amqp.Table{"to": []any{"b"}}},
	})
	d.publish("", "q", `{"customer":{"id":"7","name":"Björn"},"items":[{"sku":"x"},{"sku":"y","price":3,"tags":[{"n":1},{"n":2.50}]}]}`, amqp.Properties{ContentType: "application/json"})
	d.publish("", "q", packed(t, "gzip", `{"customer":{"id":70},"note":"packed","large":9007199254740993}`), amqp.Properties{ContentEncoding: "gzip"})
	d.publish("", "q", "not JSON: customer.id=7", amqp.Properties{ContentEncoding: "gzip"})
	d.expire(d.q)
	d.publish("", "dlq", "[]", amqp.Properties{})
	for filter, want := range map[string]int{
		``: 5, ` `: 5,
		`json.customer.id == 7`: 1, `json.customer.id == "7"`: 1, `string(json.customer.id) == "7"`: 2, `json.customer.id == 7.0`: 1, `json["customer"].id >= 7`: 2,
		`json.customer.name == "Björn"`: 1, `json.customer.name == "Björn 😀"`: 1, `json.customer.name matches "^Bj"`: 2, `lower(json.customer.name) startsWith "björn"`: 2,
		`json.large == 9007199254740993`: 1, `json.large == 9007199254740992`: 0,
		`json.paid == true`: 1, `json.paid`: 1, `json != nil`: 4, `json.none == nil`: 5, `json["a.b"] == "dot"`: 1, `json.customer.id.x.y == nil`: 5,
		`json.items[0].sku == "x"`: 1, `json.items[-1].sku == "y"`: 1, `json.items[7].sku == "y"`: 0, `any(json.items, .sku == "y")`: 1, `any(json.items, .price > 2)`: 1,
		`any(json.items, any(.tags, .n == 2.5))`: 1, `count(json.items, .sku in ["x", "y"]) == 2`: 1, `none(json.items, true)`: 4, `all(json.items, .price > 0)`: 4, `len(json.items) == 2`: 1,
		`!(json.total > 10)`: 5, `json.total > 10 || reason == ""`: 1,
		`body contains "Björn"`: 2, `body contains "n 😀"`: 1, `body contains "packed"`: 1, `body matches "\"id\": ?7\\d"`: 1, `body startsWith "not JSON"`: 1,
		`headers["tenant"] == "a"`: 1, `headers.n == 5`: 1, `headers.n > "4"`: 0, `number(string(headers.n)) > 4`: 1, `headers.big == 1152921504606846976`: 1, `headers.ratio < 1`: 1, `headers.ratio > -1.5`: 1, `headers.n == -5`: 0,
		`headers.at > date("2030-01-01")`: 1, `headers.raw == "x"`: 1, `headers.in.to[0] == "b"`: 1, `"tenant" in headers`: 1, `headers.none == nil`: 5,
		`correlation_id == "c" and type == "order.created"`: 1, `type == "order.created" && app_id == "other"`: 0, `priority == 3`: 1, `timestamp > date("2030-01-01T00:00:00Z")`: 1, `timestamp < date("2031-01-01")`: 1,
		`reason == "expired" && queue == "q" && exchange == "" && routing_key == "q"`: 4, `reason == ""`: 1, `deaths[0].queue == "q"`: 4, `any(deaths, "q" in .routing_keys && .count == 1)`: 4,
		`died > ago("1h")`: 4, `died < ago("1h")`: 0, `not (died > ago("1h"))`: 1, `any(deaths, .time > ago("1h"))`: 4,
		`via == "" && replays == 0 && run == "" && !redelivered && bytes > 2`: 4, `seq == 2`: 1, `seq in [1, 3, 99] && reason == "expired"`: 2, `seq in [1] || seq == 2`: 2, `seq == -5`: 0,
	} {
		n, err := count(t.Context(), d.dlq, deadletters.Filter(filter))
		require.NoError(t, err, filter)
		assert.Equal(t, want, n, filter)
	}
	for _, list := range [][]deadletters.Word{deadletters.Functions, deadletters.Operators, fieldWords()} {
		for _, w := range list {
			assert.NoError(t, deadletters.Filter(w.Example).Check(), w.Example)
		}
	}
}

func fieldWords() (words []deadletters.Word) {
	for _, f := range deadletters.Fields {
		words = append(words, f.Word)
	}
	return words
}

// TestWrongFilters: an error names the place and, if one is near, the word that was meant; what would take too long is refused.
func TestWrongFilters(t *testing.T) {
	for filter, want := range map[string]string{
		`reasn == "expired"`:                   `character 1: there is no field "reasn"; did you mean reason?`,
		`reason == "expired" && heders.x == 1`: `character 24: there is no field "heders"; did you mean headers?`,
		`colour == "red"`:                      `character 1: there is no field "colour"; see the fields in docs/reference/filters.md; a text is written in quotes`,
		`agoo("2h") < died`:                    `character 1: there is no function agoo; did you mean ago?`,
		`reason == 7`:                          `character 8: invalid operation: == (mismatched types string and int)`,
		`died > 7`:                             `character 6: invalid operation: > (mismatched types time.Time and int)`,
		`died > ago("yesterday")`:              `character 8: ago wants how long ago, such as ago("2h")`,
		`died > date("2h")`:                    `character 8: date wants an instant`,
		`died > ago(headers.x)`:                `character 8: ago wants`,
		`deaths[0].queu == "q"`:                `character 11: unknown field queu`,
		`reason`:                               `expected bool, but got string`,
		`reason ==`:                            `unexpected token EOF`,
		`reason == "expired`:                   `literal not terminated`,
		`(reason == "a"`:                       `character 14: unexpected token EOF`,
		`body matches "("`:                     `the pattern is not an RE2 expression`,
		`body matches headers.x`:               `a pattern has to be written out`,
		`body matches "((a{30}){30}){30}"`:     `invalid repeat count`,
		`body matches "(` + strings.Repeat("x", 300) + `){100}"`: `too large`,
		`json.a + json.b == 2`:           `there is no operator +: a filter compares and does not calculate`,
		`1..1000000 == nil`:              `there is no operator ..`,
		`let x = body; x == x`:           `a filter cannot have this`,
		`map(json, #) == nil`:            `there is no function map`,
		`repeat("x", 100000000) == body`: `there is no function repeat`,
		`{"a": 1} == nil`:                `a filter cannot have this`,
		`body[1:2] == "a"`:               `a filter cannot have this`,
		`reason == "a" ? true : false`:   `a filter cannot have this`,
		`any(json.a, any(json.a, true))`: `character 13: the list of any inside another has to be a part of the element`,
		`any(json.a, body contains #)`:   `body cannot be read again`,
		`any(json.a, any([1, 2], true))`: `has to be a part of the element`,
		strings.Repeat("(", 8000) + "true" + strings.Repeat(")", 8000): ``,
		strings.Repeat("!", 2000) + "true":                             `exceeds maximum allowed nodes`,
		strings.Repeat("[", 8000):                                      `character`,
		`reason == "` + strings.Repeat("a", 20_000) + `"`:              `more than 16384`,
		strings.Repeat(`seq == 1 || `, 999) + "true":                   `exceeds maximum allowed nodes`,
		"\xff\x00": `character 1`,
	} {
		err := deadletters.Filter(filter).Check()
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		var wrong *deadletters.FilterError
		require.ErrorAs(t, err, &wrong, filter)
		assert.Contains(t, err.Error(), want, filter[:min(len(filter), 100)])
		assert.Positive(t, wrong.At, filter)
	}
	var f deadletters.Filter
	require.NoError(t, json.Unmarshal([]byte(`"reason == 'expired'"`), &f))
	assert.EqualValues(t, "reason == 'expired' && (seq == 1 || seq == 2)", f.And("seq == 1 || seq == 2"))
	for _, f := range []deadletters.Filter{"seq == 1 or\nseq == 2", "(seq == 1)or(seq == 2)", "seq == 1 // not: reason", "seq == 1 /* x */ || seq == 2"} {
		require.NoError(t, f.Check(), f)
		none := f.And("seq == 3")
		require.NoError(t, none.Check(), none)
		d := newDesk(t)
		d.dead(3)
		n, err := count(t.Context(), d.dlq, none)
		require.NoError(t, err)
		require.Zero(t, n, none)
		n, err = count(t.Context(), d.dlq, deadletters.Filter("seq == 3").And(f))
		require.NoError(t, err)
		require.Zero(t, n, f)
	}
	d := newDesk(t)
	for i, id := range []string{`a"b`, "\x00\xff\n\t\\", "é😀\u2028\U000e0001", "'`${}"} {
		d.publish("", "dlq", "", amqp.Properties{MessageID: id})
		found, _, err := deadletters.Search(t.Context(), d.dlq, deadletters.Equals("message_id", id), deadletters.Look{Count: 10})
		require.NoError(t, err, "%q", id)
		require.Len(t, found, 1, "%q", id)
		require.EqualValues(t, i+1, found[0].Seq)
	}
}

func TestComplete(t *testing.T) {
	for part, want := range map[string]string{
		"rea": "reason", `reason == "a" && hea`: `headers`, "(ag": "ago", "json.re": "", `body contains "rea`: "", "died > da": "date", "reason mat": "matches",
	} {
		begin, words := deadletters.Complete(part)
		assert.True(t, strings.HasPrefix(part, begin), part)
		if want == "" {
			assert.Empty(t, words, part)
		} else if assert.NotEmpty(t, words, part) {
			assert.Equal(t, want, words[0].Name)
		}
	}
	_, words := deadletters.Complete("")
	assert.Greater(t, len(words), 20)
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
	d.publish("", "dlq", "["+strings.Repeat("[1,2,3,4],", 100_000)+"0]", amqp.Properties{})
	loops := `any(json, any(#, any(#, any(#, string(#) == "x" || # < 0 || lower(#) contains "x"))))`
	for _, filter := range []string{`json.a == "x"`, `json.a.b == "x"`, `json[0][0][0] == "x"`, loops, strings.Repeat(`json == json && `, 100) + "false", strings.Repeat(`lower(body) contains "x" && `, 100) + "true"} {
		start := time.Now()
		_, err := count(t.Context(), d.dlq, deadletters.Filter(filter))
		require.NoError(t, err)
		require.Less(t, time.Since(start), 30*time.Second, filter)
	}
	n, err := count(t.Context(), d.dlq, `body matches "^a{100}"`)
	require.NoError(t, err)
	assert.Equal(t, 1, n, "the beginning of what is packed is looked at")
}

// FuzzFilter: whatever the expression, the body and a header are, nothing panics, and an expression that is accepted ends.
func FuzzFilter(f *testing.F) {
	for _, w := range slices.Concat(deadletters.Functions, deadletters.Operators, fieldWords()) {
		f.Add(w.Example, []byte(`{"items":[{"sku":"a","price":1.5}],"paid":true,"total":1e400}`), "globex")
	}
	f.Add(`any(json, any(#, # == 1)) || json.a[0]?.b ?? true`, []byte(`[[1],[]]`), "")
	d := newDesk(f)
	f.Fuzz(func(t *testing.T, filter string, body []byte, header string) {
		d.t = t
		d.dlq.Messages.Purge()
		d.publish("", "dlq", string(body), amqp.Properties{Headers: amqp.Table{"tenant": header}})
		_, _, err := deadletters.Search(t.Context(), d.dlq, deadletters.Filter(filter), deadletters.Look{Count: 1})
		if wrong := (*deadletters.FilterError)(nil); err != nil {
			require.ErrorAs(t, err, &wrong)
		}
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
	for _, f := range []deadletters.Filter{"", deadletters.Numbered(all...), `reason == "expired"`} {
		for _, newest := range []bool{true, false} {
			after, bodies := queue.Seq(0), []string{}
			for {
				found, next, err := deadletters.Search(t.Context(), d.dlq, f, deadletters.Look{After: after, Newest: newest, Count: 100, BodyBytes: -1})
				require.NoError(t, err)
				for i := range found {
					bodies = append(bodies, string(found[i].Message.Body))
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
	f := deadletters.Numbered(seqs...)
	at := deadletters.Position{QueueID: d.dlq.ID, Last: d.dlq.Messages.Tails()}
	found, _, err := deadletters.Search(t.Context(), d.dlq, f, deadletters.Look{Count: 10, BodyBytes: -1, Position: at})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, "1 3", string(found[0].Message.Body)+" "+string(found[1].Message.Body))
	at.QueueID++
	_, err = deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 2, Position: at}, func(int) {})
	require.ErrorIs(t, err, deadletters.ErrRedeclared)
	_, err = d.runs("").Start(t.Context(), deadletters.Request{VHost: "/", Queue: "dlq", Filter: f, Position: at})
	require.ErrorIs(t, err, deadletters.ErrRedeclared)
	at.QueueID--
	n, err := deadletters.Purge(t.Context(), d.b, d.dlq, f, deadletters.Confirmation{Messages: 2, Position: at}, func(int) {})
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
	f := deadletters.Filter(`body matches "^999$"`)
	found, next, err := deadletters.Search(ctx, d.dlq, f, deadletters.Look{Count: 1})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, found)
	require.NotZero(t, next)
	found, _, err = deadletters.Search(t.Context(), d.dlq, f, deadletters.Look{Count: 1, After: next})
	require.NoError(t, err)
	assert.Len(t, found, 1)
	ctx, cancel = context.WithCancel(t.Context())
	groups, seen, err := deadletters.Groups(&endsAfter{Context: ctx, checks: 2, end: cancel}, d.dlq, "", false, time.Now())
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

func TestParseInstant(t *testing.T) {
	now := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"90m": now.Add(-90 * time.Minute), "2030-01-31": now.Add(-12 * time.Hour), "2030-01-31 12:00": now, "2030-01-31T12:00:00Z": now, "2030-01-31T14:00:00+02:00": now, "": {},
	} {
		at, err := deadletters.ParseInstant(text, now)
		require.NoError(t, err)
		assert.True(t, want.Equal(at), text)
	}
}

// A search reads no more headers than its filter names, however many there are, and finds whole messages.
func TestFilterReadsTheHeadersThatItNames(t *testing.T) {
	const letters = 100
	d, headers := newDesk(t), manyHeaders()
	for range letters {
		d.publish("", "dlq", "body", amqp.Properties{Headers: headers})
	}
	for _, f := range []deadletters.Filter{`reason == "maxlen"`, `headers["header-7"] == "other"`, `headers?.none == "x"`} {
		each := testing.AllocsPerRun(1, func() {
			n, err := count(t.Context(), d.dlq, f)
			require.NoError(t, err)
			require.Zero(t, n)
		}) / letters
		assert.Less(t, each, 25.0, f)
	}
	found, _, err := deadletters.Search(t.Context(), d.dlq, `headers["header-7"] == "value-7" && "header-9" in headers`, deadletters.Look{Count: 1})
	require.NoError(t, err)
	require.Equal(t, headers, found[0].Properties.Headers)
	found, _, err = deadletters.Search(t.Context(), d.dlq, `headers["header-7"] == "value-7"`, deadletters.Look{Count: 1})
	require.NoError(t, err)
	require.Equal(t, headers, found[0].Properties.Headers)
}

func manyHeaders() amqp.Table {
	headers := amqp.Table{}
	for i := range 50 {
		headers[fmt.Sprint("header-", i)] = fmt.Sprint("value-", i)
	}
	return headers
}

// BenchmarkManyHeaders looks through 20,000 dead letters with 50 headers each.
func BenchmarkManyHeaders(b *testing.B) {
	d, headers := newDesk(b), manyHeaders()
	for range 20_000 {
		d.publish("", "dlq", "body", amqp.Properties{DeliveryMode: 1, Headers: headers})
	}
	for name, f := range map[string]deadletters.Filter{"reason": `reason == "maxlen"`, "header": `headers["header-7"] == "other"`, "any": `len(headers) == 7`} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := count(b.Context(), d.dlq, f)
				require.NoError(b, err)
			}
		})
	}
	b.Run("groups", func(b *testing.B) {
		for b.Loop() {
			_, n, err := deadletters.Groups(b.Context(), d.dlq, "", false, time.Now())
			require.NoError(b, err)
			require.Equal(b, 20_000, n)
		}
	})
}

// BenchmarkFilter looks through 100,000 dead letters, none of which matches.
func BenchmarkFilter(b *testing.B) {
	d := newDesk(b)
	for i := range 100_000 {
		p := amqp.Properties{DeliveryMode: 1, MessageID: fmt.Sprint("id-", i), Headers: amqp.Table{"tenant": "globex", "attempt": int32(i % 5)}}
		d.publish("", "dlq", fmt.Sprintf(`{"order":%d,"customer":{"id":%d,"name":"Bj\u00f6rn"},"items":[{"sku":"a-1","price":12.5},{"sku":"b-2","price":7}],"note":"none"}`, i, i%1000), p)
	}
	for name, f := range map[string]deadletters.Filter{
		"all": "", "reason": `reason == "maxlen"`, "header": `headers.tenant == "other"`, "body": `body contains "nowhere"`, "pattern": `body matches "no+where"`, "json": `json.customer.id == "x"`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := count(b.Context(), d.dlq, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
