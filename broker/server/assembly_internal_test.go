package server

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/memory"
	"curfew/broker/server/internal/deliveries"
)

// frames returns the frames of b.
func frames(t *testing.T, b []byte) (all []amqp.Frame) {
	for len(b) > 0 {
		f, n, err := amqp.ParseFrame(b, 1<<20)
		require.NoError(t, err)
		all, b = append(all, f), b[n:]
	}
	return all
}

// TestWhatWasCutUpIsWhole, however long the parts are, and no memory stays counted.
func TestWhatWasCutUpIsWhole(t *testing.T) {
	budget := memory.New(0)
	var h deliveries.Memory
	h.Account = budget.Open("u", func(error) {})
	var a assembly
	for _, properties := range [][]byte{{0, 0}, bytes.Repeat([]byte("p"), ownProperties+1)} {
		for _, size := range []int{0, 1, 100, 5000, 100_000} {
			body := bytes.Repeat([]byte("b"), size)
			b := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{Exchange: "e", RoutingKey: "k", Mandatory: true})
			b = amqp.AppendContent(b, 1, properties, body, amqp.MinFrameSize)
			parts := frames(t, b)
			require.NoError(t, a.begin(parts[0].Payload))
			for i, f := range parts[1:] {
				assert.NotEqual(t, nextMethod, a.stage)
				m, err := a.add(f, 1<<20, &h)
				require.NoError(t, err)
				require.Equal(t, i == len(parts)-2, m != nil)
				if m != nil {
					assert.Equal(t, "e k", string(m.Exchange)+" "+string(m.RoutingKey))
					assert.Equal(t, properties, m.Properties)
					assert.True(t, bytes.Equal(body, m.Body))
					assert.True(t, a.mandatory)
				}
			}
			assert.Equal(t, nextMethod, a.stage)
			a.release(&h)
			require.NoError(t, h.Update(0), "nothing is used")
		}
	}
}

func TestFramesOutOfOrder(t *testing.T) {
	publish := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: "k"})
	whole := frames(t, amqp.AppendContent(publish, 1, []byte{0, 0}, []byte("body"), 0))
	for _, c := range []struct {
		frames []amqp.Frame
		code   uint16
	}{
		{[]amqp.Frame{whole[1]}, amqp.UnexpectedFrame},
		{[]amqp.Frame{whole[0], whole[2]}, amqp.UnexpectedFrame},
		{[]amqp.Frame{whole[0], whole[1], whole[1]}, amqp.UnexpectedFrame},
		{[]amqp.Frame{whole[0], whole[1], {Type: amqp.FrameBody, Payload: []byte("too long")}}, amqp.UnexpectedFrame},
		{[]amqp.Frame{whole[0], {Type: amqp.FrameHeader, Payload: whole[1].Payload[:3]}}, amqp.FrameError},
	} {
		var h deliveries.Memory
		var a assembly
		var err error
		for _, f := range c.frames {
			require.NoError(t, err)
			if f.Type == amqp.FrameMethod {
				err = a.begin(f.Payload)
			} else {
				_, err = a.add(f, 100, &h)
			}
		}
		var e *amqp.Exception
		require.True(t, errors.As(err, &e), err)
		assert.Equal(t, c.code, e.Code, e.Text)
	}
}
