package server

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/amqp"
)

func TestWhoLogsIn(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	a := authenticator{Broker: b, Limits: amqp.Limits{Depth: 4, Entries: 128, Values: 256}}
	c := &client{Log: zap.NewNop()}
	table := amqp.AppendTable(nil, amqp.Table{"LOGIN": "guest", "PASSWORD": "guest"})[4:]
	for _, x := range []struct {
		mechanism, response string
		ok, impossible      bool
	}{
		{"PLAIN", "\x00guest\x00guest", true, false},
		{"PLAIN", "other\x00guest\x00guest", true, false},
		{"PLAIN", "\x00guest\x00wrong", false, false},
		{"PLAIN", "guest", false, false},
		{"AMQPLAIN", string(table), true, false},
		{"AMQPLAIN", "no table", false, false},
		{"EXTERNAL", "", false, true},
		{"SCRAM", "", false, true},
	} {
		user, err := a.Authenticate(context.Background(), c, x.mechanism, []byte(x.response))
		assert.Equal(t, x.ok, err == nil, "%s %q: %v", x.mechanism, x.response, err)
		if x.ok {
			assert.Equal(t, "guest", user.Name)
		}
		_, impossible := errors.AsType[*amqp.Exception](err)
		assert.Equal(t, x.impossible, impossible, x.mechanism)
	}
	assert.Equal(t, "PLAIN AMQPLAIN", c.Mechanisms())
}

// TestPasswordInClearText is logged once, and only for what came over the network.
func TestPasswordInClearText(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer b.Close()
	seen, logs := observer.New(zap.WarnLevel)
	a := authenticator{Broker: b}
	for i, address := range []string{"127.0.0.1", "10.0.0.1", "10.0.0.2"} {
		c := &client{Address: netip.MustParseAddr(address), Remote: i > 0, Log: zap.New(seen)}
		_, err := a.Authenticate(context.Background(), c, "PLAIN", []byte("\x00guest\x00guest"))
		assert.Equal(t, c.Remote, err != nil, "guest is let in from this machine")
		assert.Equal(t, min(i, 1), logs.Len())
	}
}
