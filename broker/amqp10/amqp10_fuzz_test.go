package amqp10_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/amqp10"
)

// FuzzPerformative: what was parsed is the same when it is written and parsed once more.
func FuzzPerformative(f *testing.F) {
	for _, p := range performatives {
		f.Add(amqp10.AppendPerformative(nil, p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _, err := amqp10.ParsePerformative(b)
		if err != nil {
			return
		}
		once := amqp10.AppendPerformative(nil, p)
		again, rest, err := amqp10.ParsePerformative(once)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, once, amqp10.AppendPerformative(nil, again))
	})
}

// FuzzMessage: the parts of a message are parts of it, and each that is a value can be written.
func FuzzMessage(f *testing.F) {
	f.Add(whole(amqp10.AppendSection(nil, amqp10.SectionData, []byte("body"))))
	f.Add(whole(amqp10.AppendSection(nil, amqp10.SectionValue, amqp10.List{"a", amqp10.Array{int64(1)}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := amqp10.Split(b)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(m.Body), len(m.Bare))
		new(amqp10.Header).Read(m.Header)
		new(amqp10.Properties).Read(m.Properties)
		for _, section := range [][]byte{m.MessageAnnotations, m.ApplicationProperties} {
			v, _, err := amqp10.Parse(section)
			if err != nil {
				continue
			}
			again, _, err := amqp10.Parse(amqp10.Append(nil, v))
			require.NoError(t, err)
			require.Equal(t, amqp10.Append(nil, v), amqp10.Append(nil, again))
		}
	})
}

// FuzzFrame: a frame is a part of what was read, however it is cut.
func FuzzFrame(f *testing.F) {
	f.Add(amqp10.AppendFrame(nil, 1, &amqp10.End{}, nil))
	f.Add(amqp10.Heartbeat)
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, n, err := amqp10.ParseFrame(b, 4096)
		require.LessOrEqual(t, n, len(b))
		if err == nil && n > 0 {
			require.LessOrEqual(t, len(fr.Body), n-8)
		}
	})
}
