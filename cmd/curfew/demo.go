package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
)

// demoTTLs are the times to live of the messages behind the one of an hour, in the order of
// publishing.
var demoTTLs = []time.Duration{
	3 * time.Second, 500 * time.Millisecond, 6 * time.Second, time.Second,
	4500 * time.Millisecond, 2 * time.Second, 1500 * time.Millisecond,
}

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Watch deadlines fire on a queue that nobody consumes; needs nothing, takes seconds",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return untilSignal(cmd.Context(), zap.NewNop(), func(ctx context.Context) error {
				return demo(ctx, cmd.OutOrStdout(), demoTTLs)
			})
		},
	}
}

// demo runs a memory-only broker on a free port and tells its story to w. The error says which
// messages were early, late or missing.
func demo(ctx context.Context, w io.Writer, ttls []time.Duration) (err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	c := config{User: "guest", Password: "guest", GuestLoopbackOnly: true, TTL: "on", TTLPrecedence: "min", Unroutable: "park", StoreSync: "group", Monitor: true}
	n, err := openNode(&c, prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		l.Close()
		return fmt.Errorf("demo: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.run(serving, l) }()
	err = tellStory(ctx, w, clientURL(&c, l.Addr()), ttls)
	stop()
	return errors.Join(err, <-ended, n.close())
}

const demoNext = `
Try next
  curfew serve    the same broker on amqp://guest:guest@127.0.0.1:5672/, for any AMQP 0-9-1 client:
                  declare a queue with x-dead-letter-exchange, publish with an expiration
  CURFEW_REDIS_URL=redis://127.0.0.1:6379 curfew serve
                  keeps the schedule of deadlines in Redis
  curl http://127.0.0.1:15692/metrics
                  how late every deadline fired: curfew_deadline_lateness_seconds
  curfew config   every setting
`
