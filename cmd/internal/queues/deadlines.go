package queues

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
	"curfew/cmd/internal/table"
)

// deadlines list and change the deadlines of queued messages.
type deadlines struct{ *cli.API }

// Deadlines is curfew deadlines.
func Deadlines() *cobra.Command {
	c := &cobra.Command{
		Use:   "deadlines",
		Short: "List the next deadlines of a running Curfew; extend, shorten, cancel or fire one",
		Example: `  curfew deadlines list
  curfew deadlines extend orders 17 --by 10m
  curfew deadlines fire orders --message-id 5f1c`,
		RunE: cli.Group,
	}
	d := &deadlines{cli.WithVHost(c)}
	c.AddCommand(cli.Watched(d.list()), d.extend(), d.shorten(), d.cancel(), d.fire())
	d.OffersQueues(c)
	return c
}

// queuedDeadline is a deadline as the API shows it.
type queuedDeadline struct {
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Seq       uint64 `json:"seq"`
	Deadline  int64  `json:"deadline"`
	State     string `json:"state"`
	Overdue   bool   `json:"overdue"`
	MessageID string `json:"message_id"`
	Bytes     int    `json:"payload_bytes"`
}

// in is how long it is until the deadline, or how long ago it passed.
func (q *queuedDeadline) in() string {
	text := table.Until(time.UnixMilli(q.Deadline))
	if q.State == "unacked" && q.Overdue {
		text += ", held"
	}
	return text
}

// first is the same as a phrase about the first deadline of a queue.
func (q *queuedDeadline) first() string {
	if q.Overdue {
		return "the first " + q.in()
	}
	return "next in " + q.in()
}

func (d *deadlines) list() *cobra.Command {
	count, overdue := 20, false
	c := &cobra.Command{
		Use:   "list [queue]",
		Short: "List the next deadlines, of one queue or of all",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("%s takes one queue, got %q", cmd.CommandPath(), args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"count": {strconv.Itoa(count)}, "overdue": {strconv.FormatBool(overdue)}}
			var answer struct {
				Items []queuedDeadline `json:"items"`
				Total int              `json:"total"`
			}
			where := client.Path(append([]string{"curfew", "deadlines", d.VHost}, args...)...)
			if err := d.Call(cmd.Context(), http.MethodGet, where+"?"+query.Encode(), nil, &answer); err != nil {
				return err
			}
			var rows [][]string
			for _, one := range answer.Items {
				at := time.UnixMilli(one.Deadline)
				rows = append(rows, []string{one.Queue, strconv.FormatUint(one.Seq, 10), at.UTC().Format("2006-01-02T15:04:05.000Z"), one.in(), one.State, cli.OrDash(one.MessageID)})
			}
			if err := d.Print(cmd.OutOrStdout(), answer, []string{"QUEUE", "SEQ", "DEADLINE?", "IN", "STATE", "MESSAGE-ID"}, rows); err != nil {
				return err
			}
			if more := answer.Total - len(answer.Items); more > 0 && !d.JSON() {
				fmt.Fprintf(cmd.ErrOrStderr(), "and %d later (--count)\n", more)
			}
			return nil
		},
	}
	c.Flags().IntVarP(&count, "count", "n", count, "the most deadlines")
	c.Flags().BoolVar(&overdue, "overdue", false, "only deadlines that have passed: a consumer holds the message, or it has not expired yet")
	return c
}

// change makes a command that changes the deadline of one message.
func (d *deadlines) change(use, short string, body func() (map[string]any, error)) *cobra.Command {
	var id string
	c := &cobra.Command{
		Use: use + " <queue> [seq]", Short: short + ", by its number in the queue or by --message-id",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 && (len(args) != 1 || id == "") {
				return cli.Usagef("%s takes a queue and the number of a message (curfew deadlines list), or --message-id", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			send, err := body()
			if err != nil {
				return err
			}
			seq, err := d.find(cmd, args, id)
			if err != nil {
				return err
			}
			var answer struct {
				Outcome  string `json:"outcome"`
				Deadline int64  `json:"deadline"`
			}
			if err := d.Call(cmd.Context(), http.MethodPost, client.Path("curfew", "deadlines", d.VHost, args[0], seq), send, &answer); err != nil {
				return err
			}
			deadline := "-"
			if answer.Deadline != 0 {
				deadline = time.UnixMilli(answer.Deadline).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			return d.Print(cmd.OutOrStdout(), answer, []string{"OUTCOME", "DEADLINE"}, [][]string{{answer.Outcome, deadline}})
		},
	}
	c.Flags().StringVar(&id, "message-id", "", "the ready message with this message-id; it has to be the only one")
	return c
}

// find returns the number of the message: the second argument, or the number of the message with that ID.
func (d *deadlines) find(cmd *cobra.Command, args []string, id string) (string, error) {
	if len(args) == 2 {
		if _, err := strconv.ParseUint(args[1], 10, 64); err != nil {
			return "", cli.Usagef("%q is invalid: want the number of a message in the queue (curfew deadlines list)", args[1])
		}
		return args[1], nil
	}
	var answer deadletters.Page
	body := deadletters.Query{Filter: deadletters.Equals("message_id", id), Count: 2}
	if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, args[0], "search"), body, &answer); err != nil {
		return "", err
	}
	switch len(answer.Items) {
	case 0:
		return "", &client.Error{Status: http.StatusNotFound, Reason: fmt.Sprintf("no ready message in %q has message-id %q", args[0], id)}
	case 1:
		return strconv.FormatUint(uint64(answer.Items[0].Seq), 10), nil
	}
	return "", cli.Usagef("several messages in %q have message-id %q; name one by its number (curfew dlq search %s --filter '%s')", args[0], id, args[0], body.Filter)
}

func (d *deadlines) extend() *cobra.Command {
	return d.shift("extend", "Give a message more time", 1)
}

func (d *deadlines) shorten() *cobra.Command {
	return d.shift("shorten", "Give a message less time", -1)
}

func (d *deadlines) shift(use, short string, sign int64) *cobra.Command {
	var by time.Duration
	var at string
	c := d.change(use, short, func() (map[string]any, error) {
		if at != "" && by != 0 {
			return nil, cli.Usagef("use either --by (by how much) or --at (until when), not both")
		}
		if at != "" {
			when, err := time.Parse(time.RFC3339, at)
			if err != nil {
				return nil, cli.Usagef("--at: %q is invalid: want an instant such as 2006-01-02T15:04:05Z", at)
			}
			return map[string]any{"at": when.UnixMilli()}, nil
		}
		if by < time.Millisecond {
			return nil, cli.Usagef("use --by with a duration such as 10m, or --at with an instant")
		}
		return map[string]any{"by_millis": sign * by.Milliseconds()}, nil
	})
	c.Flags().DurationVar(&by, "by", 0, "by how much, such as 90s or 10m")
	c.Flags().StringVar(&at, "at", "", "the new deadline (RFC 3339, such as 2006-01-02T15:04:05Z)")
	return c
}

func (d *deadlines) cancel() *cobra.Command {
	return d.change("cancel", "Remove a message's deadline; the message then stays until it is consumed", func() (map[string]any, error) {
		return map[string]any{"cancel": true}, nil
	})
}

func (d *deadlines) fire() *cobra.Command {
	drop := false
	c := d.change("fire", "Make a message expire now", func() (map[string]any, error) {
		return map[string]any{"fire": true, "drop": drop}, nil
	})
	c.Flags().BoolVar(&drop, "drop", false, "drop it, even if its queue has a dead-letter exchange")
	return c
}
