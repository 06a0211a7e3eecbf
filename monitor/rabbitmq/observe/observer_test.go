package observe

import (
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

func TestExpiry(t *testing.T) {
	w := &watched{name: "q", lines: new(atomic.Uint64), ttl: 3_000_000, deadLettered: true, from: &tap{}}
	w.beginLocked()
	w.enter(w.from, &amqp091.Delivery{MessageId: "a", Expiration: "5000000"})
	require.EqualValues(t, 3_000_000, w.line.due.Items[0].ttl, "the lower one")
	w.enter(w.from, &amqp091.Delivery{MessageId: "b", Expiration: "2000000"})
	require.EqualValues(t, 2_000_000, w.line.due.Items[0].ttl)
	due := w.line.due.Items[0].deadline
	require.Empty(t, w.judge("/", count{Asked: due, Answered: due, Ready: 2, Before: 2, After: 2}, nil), "it still waits")
	left := w.judge("/", count{Asked: due, Answered: due.AddMillis(4), Before: 2, After: 2}, nil)
	require.Equal(t, "b", string(left[0].MessageID))
	require.Equal(t, 4*time.Millisecond, left[0].Lateness())
	require.Equal(t, "dead_lettered", left[0].Action.String())
	require.Equal(t, deadline.Ref{Deadline: due, Queue: 1, Seq: 1}, left[0].Ref)
}

func TestUntappable(t *testing.T) {
	exchanges := map[string]cluster.Exchange{
		"topic":        {Type: "topic"},
		"hash":         {Type: "x-consistent-hash"},
		"delayed":      {Type: "x-delayed-message", Arguments: map[string]any{"x-delayed-type": "fanout"}},
		"delayed-hash": {Type: "x-delayed-message", Arguments: map[string]any{"x-delayed-type": "x-consistent-hash"}},
	}
	for _, c := range []struct {
		name     string
		q        cluster.Queue
		bound    []string
		others   []cluster.Queue
		contains string // empty: it can be tapped
	}{
		{"topic", cluster.Queue{}, []string{"topic"}, nil, ""},
		{"delayed", cluster.Queue{}, []string{"topic", "delayed"}, nil, ""},
		{"drop-head", cluster.Queue{Arguments: map[string]any{"x-max-length": int64(1)}}, []string{"topic"}, nil, ""},
		{"nothing", cluster.Queue{}, nil, nil, "default exchange"},
		{"hash", cluster.Queue{}, []string{"topic", "hash"}, nil, "Exchange hash"},
		{"delayed hash", cluster.Queue{}, []string{"delayed-hash"}, nil, "Exchange delayed-hash"},
		{"an exchange that is gone", cluster.Queue{}, []string{"gone"}, nil, "Exchange gone"},
		{"stream", cluster.Queue{Type: cluster.Stream}, []string{"topic"}, nil, "stream"},
		{"exclusive", cluster.Queue{Exclusive: true}, []string{"topic"}, nil, "exclusive"},
		{"priorities", cluster.Queue{Arguments: map[string]any{"x-max-priority": int64(5)}}, []string{"topic"}, nil, "priorities"},
		{"refuses", cluster.Queue{Policy: map[string]any{"max-length": int64(5), "overflow": "reject-publish"}}, []string{"topic"}, nil, "refuses"},
		{"dead letters", cluster.Queue{}, []string{"topic"}, []cluster.Queue{{Name: "a", Policy: map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": "q"}}}, "Dead letters of queue a"},
	} {
		c.q.Name = "q"
		var bindings []cluster.Binding
		for _, x := range c.bound {
			bindings = append(bindings, cluster.Binding{Exchange: x, Queue: "q"})
		}
		why := Untappable(&cluster.Inventory{Queues: append(c.others, c.q)}, &c.q, exchanges, append(bindings, cluster.Binding{Exchange: "hash", Queue: "other"}))
		if c.contains == "" {
			require.Empty(t, why, c.name)
		} else {
			require.Contains(t, why, c.contains, c.name)
		}
	}
}

// TestATapThatIsBehind: when it is behind for a moment, nothing is lost; when messages bypass it, counting starts over.
func TestATapThatIsBehind(t *testing.T) {
	w := &watched{name: "q", lines: new(atomic.Uint64)}
	w.beginLocked()
	count := func(second float64, entered uint64, ready int) {
		at := deadline.Instant(second * 1e6)
		for w.line.entered < entered {
			w.line.Enter(at, -1, "")
		}
		w.judge("/", count{Asked: at, Answered: at, Ready: ready, Before: entered, After: entered}, nil)
	}
	count(1, 500, 500)
	count(2, 500, 510) // ten that the tap has not read yet
	count(2.9, 500, 510)
	require.Zero(t, w.restarts)
	count(3, 510, 510)
	count(4, 510, 512)
	require.Zero(t, w.restarts, "it was not behind between")
	count(4.5, 510, 512)
	count(5, 510, 512)
	require.Equal(t, 1, w.restarts)
	require.Equal(t, 1, w.strangers)
	require.Zero(t, w.line.entered, "counting starts over")
}
