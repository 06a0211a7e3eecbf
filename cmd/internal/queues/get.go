package queues

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
)

const getHelp = `Show the first ready messages of a queue, with whole bodies. Without --ack nothing is removed or marked, as with
curfew queue peek. With --ack the messages are taken from the queue and are gone once they are printed.

If no message is ready, the exit code is 1.`

// Get is the command that shows or takes messages.
func Get() *cobra.Command {
	var count int
	var ack, body bool
	c := &cobra.Command{
		Use:   "get <queue>",
		Short: "Show the first messages of a queue; with --ack, take them",
		Long:  getHelp,
		Example: `  curfew get orders
  curfew get orders --ack --body > order.json`,
		Args: cli.Exactly(1, "a queue"),
	}
	a := cli.WithVHost(c)
	c.Flags().IntVarP(&count, "count", "n", 1, "the most messages")
	c.Flags().BoolVar(&ack, "ack", false, "take them from the queue")
	c.Flags().BoolVar(&body, "body", false, "print only the bodies, as they are; on a terminal each ends its line")
	c.ValidArgsFunction = cli.Arguments(a.Completing("queue"))
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if count < 1 {
			return cli.Usagef("--count: %d is invalid: want a number of messages", count)
		}
		how, send := "peek", map[string]any{"count": count, "state": "ready", "truncate": operate.MaxPeekBytes / count}
		if ack {
			how, send = "get", map[string]any{"count": count, "ackmode": "ack_requeue_false", "encoding": "auto"}
		}
		var list []deadletters.Message
		if err := a.Call(cmd.Context(), http.MethodPost, cli.Path("queues", a.VHost, args[0], how), send, &list); err != nil {
			return err
		}
		if err := printMessages(a, cmd, list, body); err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("no message is ready in %q", args[0])
		}
		return nil
	}
	return c
}

func printMessages(a *cli.API, cmd *cobra.Command, list []deadletters.Message, bodies bool) error {
	var rows [][]string
	for i := range list {
		m := &list[i]
		if bodies {
			if err := writeBody(cmd, m); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{cli.OrDash(m.Exchange), cli.OrDash(m.RoutingKey), cli.OrDash(m.ID()), strconv.FormatBool(m.Redelivered), strconv.Itoa(m.Bytes), m.Text()})
	}
	if bodies || len(list) == 0 && !a.JSON() {
		return nil
	}
	return a.Print(cmd.OutOrStdout(), list, []string{"EXCHANGE?", "KEY", "MESSAGE-ID", "REDELIVERED?", "BYTES?", "BODY"}, rows)
}

func writeBody(cmd *cobra.Command, m *deadletters.Message) error {
	body, err := bodyOf(m.Payload, m.Encoding)
	if err != nil {
		return fmt.Errorf("unexpected answer: %w", err)
	}
	if cli.OnTerminal(cmd.OutOrStdout()) && !bytes.HasSuffix(body, []byte("\n")) { // a file gets it as it is
		body = append(body, '\n')
	}
	_, err = cmd.OutOrStdout().Write(body)
	return err
}
