package amqp

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWalkTableNamesEveryEntry(t *testing.T) {
	table := everyType()
	raw := AppendTable(nil, table)
	var names []string
	for f := WalkTable(raw); f.Next(); {
		names = append(names, string(f.Name))
	}
	var want []string
	for name := range table {
		want = append(want, name)
	}
	slices.Sort(want)
	require.Equal(t, want, names)
	for cut := range raw { // as it ends, whatever it is
		for f := WalkTable(raw[:cut]); f.Next(); {
			f.Text()
		}
	}
}

func TestWalkTableReadsText(t *testing.T) {
	raw := AppendTable(nil, Table{"a": "text", "b": []byte("bytes"), "c": int32(1), "d": Table{"e": "inner"}, "f": "", "g": nil})
	got := map[string]string{}
	for f := WalkTable(raw); f.Next(); {
		if text, ok := f.Text(); ok {
			got[string(f.Name)] = string(text)
		}
	}
	require.Equal(t, map[string]string{"a": "text", "b": "bytes", "f": ""}, got)
}

func FuzzWalkTable(f *testing.F) {
	f.Add(AppendTable(nil, everyType()))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var names []string
		texts := map[string][]byte{}
		for f := WalkTable(raw); f.Next(); {
			names = append(names, string(f.Name))
			if text, ok := f.Text(); ok && texts[string(f.Name)] == nil {
				texts[string(f.Name)] = append([]byte{}, text...)
			}
		}
		if ValidateTable(raw, Limits{}) != nil {
			return
		}
		table, _, err := ParseTable(raw, Limits{})
		require.NoError(t, err)
		slices.Sort(names)
		require.Len(t, table, len(slices.Compact(names)))
		for name, value := range table {
			switch v := value.(type) {
			case string:
				require.Equal(t, v, string(texts[name]))
			case []byte:
				require.Equal(t, v, texts[name])
			}
		}
	})
}

func TestWithReplyTo(t *testing.T) {
	p := everyProperty()
	for _, has := range []PropertySet{^undefinedProperties, HasReplyTo, HasReplyTo | HasHeaders | HasPriority} {
		if has != ^undefinedProperties {
			q := Properties{Has: has, ReplyTo: p.ReplyTo}
			if has&HasHeaders != 0 {
				q.Headers, q.Priority = p.Headers, p.Priority
			}
			p = q
		}
		raw := p.Append(nil)
		v, err := ViewProperties(raw)
		require.NoError(t, err)
		want := p
		want.ReplyTo = "amq.rabbitmq.reply-to.x"
		require.Equal(t, want.Append(nil), v.WithReplyTo(nil, raw, want.ReplyTo))
	}
}
