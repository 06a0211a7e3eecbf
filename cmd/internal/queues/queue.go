package queues

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
	"curfew/monitor"
)

// queues list, show and purge queues and peek into them.
type queues struct{ *cli.API }

// Queue is curfew queue.
func Queue() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue",
		Short: "List, show, peek into and purge queues of a running Curfew",
		RunE:  cli.Group,
	}
	q := &queues{cli.WithVHost(c)}
	c.AddCommand(cli.Watched(q.list()), cli.Watched(q.show()), cli.Watched(q.peek()), q.purge())
	q.OffersQueues(c)
	return c
}

func (q *queues) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues, with rates, deadlines and how many of those will be missed",
		Long: `List the queues. IN and OUT are messages a second, published and delivered. DEADLINES is how many ready messages have one, WILL EXPIRE
how many of them nobody will have consumed by then, as things are; both take a user who may see the status.`,
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []map[string]any
			if err := q.Call(cmd.Context(), http.MethodGet, client.Path("queues", q.VHost), nil, &list); err != nil {
				return err
			}
			forecasts := q.forecasts(cmd.Context())
			var rows [][]string
			for _, one := range list {
				name, _ := one["name"].(string)
				deadlines, willExpire := "-", "-"
				if f, ok := forecasts[name]; ok {
					deadlines, willExpire = strconv.Itoa(f.Deadlines), strconv.Itoa(f.WillMiss)
					one["forecast"] = f
				} else if forecasts != nil {
					deadlines, willExpire = "0", "0"
				}
				rows = append(rows, []string{name, cli.Text(one["type"]), cli.Text(one["messages_ready"]), cli.Text(one["messages_unacknowledged"]),
					cli.Text(one["consumers"]), rate(one, "publish_details"), rate(one, "deliver_get_details"), deadlines, willExpire, cli.Text(one["message_bytes"]), cli.Text(one["policy"])})
			}
			return q.Print(cmd.OutOrStdout(), list, []string{"QUEUE", "TYPE?", "READY", "UNACKED", "CONSUMERS?", "IN?", "OUT?", "DEADLINES", "WILL EXPIRE!", "BYTES?", "POLICY?"}, rows)
		},
	}
}

// rate is a rate of a queue in messages a second.
func rate(queue map[string]any, of string) string {
	stats, _ := queue["message_stats"].(map[string]any)
	details, _ := stats[of].(map[string]any)
	perSecond, _ := details["rate"].(float64)
	return strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64)
}

// forecasts are those of the virtual host's queues that have deadlines. nil: they are not known, since there is no monitor or the user may not
// see them.
func (q *queues) forecasts(ctx context.Context) map[string]monitor.Forecast {
	var list []monitor.Forecast
	if q.Call(ctx, http.MethodGet, client.Path("curfew", "forecasts"), nil, &list) != nil {
		return nil
	}
	byName := map[string]monitor.Forecast{}
	for _, f := range list {
		if f.VHost == q.VHost {
			byName[f.Queue] = f
		}
	}
	return byName
}

// queuedMessage is a message as the API returns it to a peek.
type queuedMessage struct {
	Seq        uint64         `json:"seq"`
	State      string         `json:"state"`
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key"`
	Deadline   *int64         `json:"deadline"`
	Bytes      int            `json:"payload_bytes"`
	Payload    string         `json:"payload"`
	Encoding   string         `json:"payload_encoding"`
	Truncated  bool           `json:"payload_truncated,omitempty"` // set here
	Properties map[string]any `json:"properties"`
}

func (q *queues) peek() *cobra.Command {
	body := map[string]any{}
	var count, offset, truncate int
	var tail bool
	var state string
	c := &cobra.Command{
		Use:   "peek <queue>",
		Short: "Show messages of a queue; removes and marks nothing",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body["count"], body["offset"], body["truncate"], body["state"] = count, offset, bodyBytes(q.API, cmd, truncate, count), state
			if tail {
				body["from"] = "tail"
			}
			var list []queuedMessage
			if err := q.Call(cmd.Context(), http.MethodPost, client.Path("queues", q.VHost, args[0], "peek"), body, &list); err != nil {
				return err
			}
			var rows [][]string
			for i := range list {
				m := &list[i]
				m.Truncated = isTruncated(m.Payload, m.Encoding, m.Bytes)
				deadline := "-"
				if m.Deadline != nil {
					deadline = q.Time(time.UnixMilli(*m.Deadline))
				}
				id, _ := m.Properties["message_id"].(string)
				rows = append(rows, []string{strconv.FormatUint(m.Seq, 10), m.State, cli.OrDash(m.Exchange), cli.OrDash(m.RoutingKey), deadline, strconv.Itoa(m.Bytes), cli.OrDash(id), bodyCell(m.Payload, m.Encoding)})
			}
			return q.Print(cmd.OutOrStdout(), list, []string{"SEQ", "STATE", "EXCHANGE?", "KEY?", "DEADLINE", "BYTES?", "MESSAGE-ID", "BODY"}, rows)
		},
	}
	f := c.Flags()
	f.IntVarP(&count, "count", "n", 10, "the most messages")
	f.IntVar(&offset, "offset", 0, "how many messages to skip first")
	f.IntVar(&truncate, "truncate", 200, truncateHelp)
	f.BoolVar(&tail, "tail", false, "the newest first")
	f.StringVar(&state, "state", "", "ready or unacked (default both)")
	cli.Offers(c, "state", "ready", "unacked")
	return c
}

func (q *queues) purge() *cobra.Command {
	var confirm confirmation
	c := &cobra.Command{
		Use:   "purge <queue>",
		Short: "Delete the ready messages of a queue; without --confirm it only prints how many there are",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return confirm.purge(q.API, cmd, letters(q.VHost, args[0], "purge"), fmt.Sprintf("are ready in %q", args[0]))
		},
	}
	confirm.addTo(c)
	return c
}
