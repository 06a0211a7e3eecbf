package queues

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/cli"
)

// deadlines list and change the deadlines of queued messages.
type deadlines struct{ *cli.API }

// AddDeadlines adds the commands that change deadlines.
func AddDeadlines(f *cli.Families) {
	c, api := f.Of("deadlines")
	c.Example = `  curfew deadlines list
  curfew deadlines extend orders 17 --by 10m
  curfew deadlines fire orders --message-id 5f1c`
	d := &deadlines{api}
	c.AddCommand(d.shift("extend", "Give a message more time", 1), d.shift("shorten", "Give a message less time", -1), d.cancel(), d.fire())
	d.OffersQueues(c)
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
			return d.Send(cmd, messages.ChangeDeadline.Op, map[string]any{"queue": args[0], "seq": seq}, send)
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
		return "", &cli.Error{Status: http.StatusNotFound, Reason: fmt.Sprintf("no ready message in %q has message-id %q", args[0], id)}
	case 1:
		return strconv.FormatUint(uint64(answer.Items[0].Seq), 10), nil
	}
	return "", cli.Usagef("several messages in %q have message-id %q; name one by its number (curfew dlq search %s --filter '%s')", args[0], id, args[0], body.Filter)
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
