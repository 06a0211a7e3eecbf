package exchange

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/amqp"
)

func TestHeadersMatch(t *testing.T) {
	pdf := amqp.Table{"format": "pdf", "pages": int32(3)}
	for name, c := range map[string]struct {
		args, headers amqp.Table
		want          bool
	}{
		"all is the default":                 {amqp.Table{"format": "pdf"}, pdf, true},
		"all: every field":                   {amqp.Table{"x-match": "all", "format": "pdf", "pages": int64(3)}, pdf, true},
		"all: one differs":                   {amqp.Table{"x-match": "all", "format": "pdf", "pages": int32(4)}, pdf, false},
		"all: one is absent":                 {amqp.Table{"x-match": "all", "format": "pdf", "colour": "red"}, pdf, false},
		"all: nothing to compare":            {nil, pdf, true},
		"all: no headers":                    {amqp.Table{"format": "pdf"}, nil, false},
		"all: neither":                       {nil, nil, true},
		"any: one field":                     {amqp.Table{"x-match": "any", "format": "pdf", "pages": int32(4)}, pdf, true},
		"any: no field":                      {amqp.Table{"x-match": "any", "format": "txt"}, pdf, false},
		"any: nothing to compare":            {amqp.Table{"x-match": "any"}, pdf, false},
		"all: x- ignored":                    {amqp.Table{"x-a": "1", "format": "pdf"}, pdf, true},
		"any: x- ignored":                    {amqp.Table{"x-match": "any", "x-a": "1"}, amqp.Table{"x-a": "1"}, false},
		"all-with-x: absent":                 {amqp.Table{"x-match": "all-with-x", "x-a": "1", "format": "pdf"}, pdf, false},
		"all-with-x: there":                  {amqp.Table{"x-match": "all-with-x", "x-a": "1"}, amqp.Table{"x-a": "1"}, true},
		"any-with-x":                         {amqp.Table{"x-match": "any-with-x", "x-a": "1", "b": "2"}, amqp.Table{"x-a": "1"}, true},
		"any-with-x: x-match is not a field": {amqp.Table{"x-match": "any-with-x"}, amqp.Table{"x-match": "any-with-x"}, false},
		"void asks for presence":             {amqp.Table{"format": nil}, pdf, true},
		"void: absent":                       {amqp.Table{"colour": nil}, pdf, false},
		"void matches a void header":         {amqp.Table{"colour": nil}, amqp.Table{"colour": nil}, true},
		"a void header has no other value":   {amqp.Table{"colour": "red"}, amqp.Table{"colour": nil}, false},
		"an unknown x-match means all":       {amqp.Table{"x-match": "some", "format": "pdf"}, pdf, true},
		"an x-match that is not text":        {amqp.Table{"x-match": int32(1), "format": "txt"}, pdf, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := New[string](Headers)
			r.Bind("q", "the key does not matter", c.args)
			assert.Equal(t, c.want, len(route(r, "", c.headers)) == 1)
		})
	}
}

func TestHeadersAreOnlyAskedForWhenNeeded(t *testing.T) {
	forbidden := func() amqp.Table { t.Fatal("asked for headers"); return nil }
	for _, k := range kinds {
		r := New[string](k)
		if k != Headers {
			r.Bind("q", "k", amqp.Table{"a": "b"})
		}
		r.Route([]byte("k"), forbidden, nil, nil)
	}
	calls := 0
	r := New[string](Headers)
	r.Bind("p", "", amqp.Table{"a": "b"})
	r.Bind("q", "", amqp.Table{"a": "c"})
	r.Route(nil, func() amqp.Table { calls++; return nil }, nil, nil)
	assert.Equal(t, 1, calls)
}

func TestCheckArgs(t *testing.T) {
	for _, mode := range []string{"all", "any", "all-with-x", "any-with-x"} {
		assert.NoError(t, CheckArgs(Headers, amqp.Table{"x-match": mode}))
	}
	assert.NoError(t, CheckArgs(Headers, nil))
	assert.NoError(t, CheckArgs(Topic, amqp.Table{"x-match": "some"}), "only a headers exchange looks")
	assert.EqualError(t, CheckArgs(Headers, amqp.Table{"x-match": "some"}),
		`Invalid x-match field value <<"some">>; expected all, any, all-with-x, or any-with-x`)
	assert.EqualError(t, CheckArgs(Headers, amqp.Table{"x-match": int32(5)}),
		"Invalid x-match field type signedint (value 5); expected longstr")
	assert.EqualError(t, CheckArgs(Headers, amqp.Table{"x-match": true}),
		"Invalid x-match field type bool (value true); expected longstr")
}

// stepsOf are the steps that a route takes.
func stepsOf(r Router[int], key string, h amqp.Table) (steps int, out []int) {
	p := &Pace{every: 1 << 40}
	out = r.Route([]byte(key), func() amqp.Table { return h }, nil, p)
	return p.done, out
}

// TestHeadersLooksAtFewBindings: only those that have a header in common with the message, and of what many of them have in
// common, something else.
func TestHeadersLooksAtFewBindings(t *testing.T) {
	for _, mode := range []string{"all", "all-with-x", "any", "any-with-x"} {
		r := New[int](Headers)
		for i := range 10_000 {
			r.Bind(i, "", amqp.Table{"x-match": mode, "a": int32(i), "c": int32(i)})
			if strings.HasPrefix(mode, "all") {
				r.Bind(i, "", amqp.Table{"x-match": mode, "same": "for all", "only presence": nil, "b": int32(i)})
			}
		}
		steps, out := stepsOf(r, "", amqp.Table{"a": int32(-1), "b": "b", "same": "for all", "only presence": "p"})
		assert.Empty(t, out)
		assert.LessOrEqual(t, steps, 10, mode)
		steps, out = stepsOf(r, "", amqp.Table{"a": int64(77), "b": int8(77), "c": int32(77), "same": "for all", "only presence": 1})
		assert.Equal(t, []int{77}, out)
		assert.LessOrEqual(t, steps, 20, mode)
	}
}
