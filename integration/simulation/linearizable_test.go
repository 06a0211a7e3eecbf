package simulation

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

const (
	histories     = 300
	raceClients   = 4
	raceCalls     = 18 // per client
	raceMessages  = 40 // per history, at most
	historyStarts = 1_000_000
	checkFor      = time.Minute // a history takes a millisecond
)

// TestHistoriesAreLinearizable lets clients race on one queue, and checks that some order
// of the calls explains every answer.
func TestHistoriesAreLinearizable(t *testing.T) {
	model := perMessage(historyStarts)
	for i := range uint64(histories) {
		history := newRace(t).run(i)
		result, info := porcupine.CheckOperationsVerbose(model, history, checkFor)
		if result != porcupine.Ok {
			path := filepath.Join(t.ArtifactDir(), "history.html")
			require.NoError(t, porcupine.VisualizePath(model, info, path))
			t.Fatalf("history %d is %s; see %s (go test -artifacts keeps it)", i, result, path)
		}
	}
}

// race is one broker with a queue, its dead-letter queue, and clients that call it at the
// same time. Each message has a priority of its own, so its sequence number is known before
// it is published, and a reference to it can be constructed.
type race struct {
	t           *testing.T
	broker      *broker.Broker
	vhost       *broker.VHost
	queue, dead *broker.Queue
	nowMicros   atomic.Int64
	ticker      atomic.Int64 // stamps calls and returns
	published   atomic.Int64

	mu       sync.Mutex
	history  []porcupine.Operation
	expiring []deadline.Ref     // as reported by the feed
	stop     context.CancelFunc // ends the reading of the feed
	read     chan struct{}      // closed when the reading has ended
}

func newRace(t *testing.T) *race {
	r := &race{t: t, read: make(chan struct{})}
	r.nowMicros.Store(historyStarts)
	var err error
	r.broker, err = broker.New(broker.Options{Clock: func() int64 { return r.nowMicros.Load() * microsecond }})
	require.NoError(t, err)
	r.vhost, _ = r.broker.VHost("/")
	r.dead, err = r.vhost.Queues.Declare(nil, "dead", broker.QueueDeclare{})
	require.NoError(t, err)
	r.queue, err = r.vhost.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{
		"x-max-priority": int64(255), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
	}})
	require.NoError(t, err)
	return r
}

// run returns what the clients recorded, and the state at the end.
func (r *race) run(seed uint64) []porcupine.Operation {
	r.readFeed()
	var clients sync.WaitGroup
	for id := range raceClients {
		c := r.client(id, seed)
		clients.Go(func() {
			for range raceCalls {
				c.call()
			}
		})
	}
	clients.Wait()
	last := r.client(raceClients, seed)
	for last.get(true) {
	}
	last.dig()
	r.stop()
	<-r.read
	require.NoError(r.t, r.broker.Close())
	return r.history
}

// readFeed reads deadlines from the feed, as a monitor does.
func (r *race) readFeed() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	require.NoError(r.t, r.broker.Deadlines().Snapshot(ctx, func([]deadline.Ref) error { return nil }))
	go func() {
		defer close(r.read)
		var buf [8]deadline.Event
		for {
			n, _, err := r.broker.Deadlines().Events(ctx, buf[:])
			if err != nil {
				return
			}
			r.mu.Lock()
			for _, e := range buf[:n] {
				r.expiring = append(r.expiring, e.Ref)
			}
			r.mu.Unlock()
		}
	}()
}
