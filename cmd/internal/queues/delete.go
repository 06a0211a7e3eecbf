package queues

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
)

// AddDelete adds the command that deletes a queue.
func AddDelete(f *cli.Families) {
	family, d := f.Of("delete")
	confirm, unused := -1, false
	c := &cobra.Command{
		Use:   "queue <queue>",
		Short: "Delete a queue; one that has messages needs --confirm",
		Long: `Delete a queue. One that has messages, ready or unacked, is not deleted unless --confirm says how many there are (exit code 5 otherwise).
Dead letters that go with the queue count, too: those that their target has not taken yet, and those in its own dead-letter queue.
No more are deleted than that: if others arrive before the deletion, the queue stays.`,
		Example: `  curfew delete queue orders
  curfew delete queue orders --confirm 118`,
		Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := cli.Path("queues", d.VHost, args[0])
			var is held
			count := func() error { return d.Call(cmd.Context(), http.MethodGet, path, nil, &is) }
			if confirm >= 0 {
				if err := count(); err != nil {
					return err
				}
				if is.all() != confirm {
					return is.unconfirmed(args[0])
				}
			}
			most := max(confirm, 0)
			condition := fmt.Sprintf("?if-at-most=%d&if-unused=%t", most, unused)
			if confirm < 0 { // an older Curfew, or RabbitMQ, has only this
				condition += "&if-empty=true"
			}
			err := d.Call(cmd.Context(), http.MethodDelete, path+condition, nil, nil)
			var refused *cli.Error
			if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && count() == nil && is.all() > most {
				return is.unconfirmed(args[0])
			}
			if err != nil {
				return err
			}
			return d.Say(cmd, map[string]any{"deleted": args[0]}, fmt.Sprintf("deleted queue %q", args[0]))
		},
		ValidArgsFunction: cli.Arguments(d.Completing("queue")),
	}
	c.Flags().IntVar(&confirm, "confirm", confirm, "how many messages, ready and unacked, and dead letters you expect to be deleted with it")
	c.Flags().BoolVar(&unused, "if-unused", false, "only if it has no consumer")
	family.AddCommand(c)
}

// held is how many messages are deleted with a queue.
type held struct {
	Messages    int `json:"messages"`
	DeadLetters int `json:"dead_letters"` // an older Curfew, or RabbitMQ, does not have it
}

func (h *held) all() int { return h.Messages + h.DeadLetters }

func (h *held) unconfirmed(queue string) error {
	has := fmt.Sprintf("messages: %d", h.Messages)
	if h.DeadLetters > 0 {
		has += fmt.Sprintf(", and dead letters that go with it: %d", h.DeadLetters)
	}
	return cli.Exitf(cli.ExitUnconfirmed, "queue %q has %s; to delete them with it add --confirm %d", queue, has, h.all())
}
