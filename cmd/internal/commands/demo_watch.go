package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"curfew/cmd/internal/node"
	"curfew/cmd/internal/settings"
)

// TTLs are the times to live of the messages that are behind the one of an hour, in the order in which they
// are published.
var TTLs = []time.Duration{
	3 * time.Second, 500 * time.Millisecond, 6 * time.Second, time.Second,
	4500 * time.Millisecond, 2 * time.Second, 1500 * time.Millisecond,
}

// runDemo runs a memory-only broker on a free port and a client against it, and prints to w what happens. The error names the
// messages that were early, late or missing.
func runDemo(ctx context.Context, w io.Writer, ttls []time.Duration) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	s := settings.Settings{User: "guest", Password: "guest", GuestLoopbackOnly: true, TTL: "on", TTLPrecedence: "min", Unroutable: "park", StoreSync: "group", Monitor: true, IdleMinimum: 5 * time.Minute, ScheduleWindow: 20 * time.Millisecond}
	n, err := node.Open(node.Options{Settings: &s, Metrics: prometheus.NewRegistry(), Log: zap.NewNop()})
	if err != nil {
		l.Close()
		return fmt.Errorf("demo: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(serving, l) }()
	err = runWatcher(ctx, w, "amqp://guest:guest@"+l.Addr().String()+"/", ttls)
	stop()
	if err = errors.Join(err, <-ended, n.Close()); err != nil && ctx.Err() != nil {
		return errors.New("demo: interrupted")
	}
	return err
}

const next = `
Try next
  curfew serve    the same broker on amqp://guest:guest@127.0.0.1:5672/, for any AMQP 0-9-1 client, and its dashboard on
                  http://127.0.0.1:15672/ (log in as guest, guest)
  curfew demo --against http://127.0.0.1:15672
                  fills that one, so that each page of the dashboard has something to show
  CURFEW_REDIS_URL=redis://127.0.0.1:6379 curfew serve
                  keeps the schedule of deadlines in Redis
  curl http://127.0.0.1:15692/metrics
                  how late every deadline fired: curfew_deadline_lateness_seconds
  curfew config   every setting
`
