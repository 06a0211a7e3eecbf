package queues

import (
	"github.com/spf13/cobra"

	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
)

// filters lists, saves and deletes saved filters.
func (d *deadLetters) filters() *cobra.Command {
	var save, remove string
	c := &cobra.Command{
		Use:   "filters <queue>",
		Short: "List the filters saved for a queue's dead letters; save or delete one",
		Long: "List the filters saved for a queue's dead letters. With --save the filter of the other flags is saved under a name, with --delete one is\n" +
			"deleted. Everybody who may read the queue sees them, by this command and on the dashboard.",
		Example: `  curfew dlq filters orders.dead --save night --filter 'reason == "expired" && died > ago("8h")'
  curfew dlq search orders.dead --saved night`,
		Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case save != "" && remove != "":
				return cli.Usagef("--save and --delete cannot be used together")
			case save != "":
				filter, err := d.Filter(cmd, args[0])
				if err != nil {
					return err
				}
				return d.Send(cmd, operate.SaveFilter.Op, map[string]any{"queue": args[0], "name": save, "filter": string(filter)})
			case remove != "":
				return d.Send(cmd, operate.DeleteFilter.Op, map[string]any{"queue": args[0], "name": remove})
			}
			return d.Send(cmd, operate.ListFilters.Op, map[string]any{"queue": args[0]})
		},
	}
	cli.AddFilter(c)
	c.Flags().StringVar(&save, "save", "", "save the filter of the other flags under this name")
	c.Flags().StringVar(&remove, "delete", "", "delete the filter with this name")
	return c
}

// letters is the API path of an operation on a queue's dead letters.
func letters(vhost, name, what string) string {
	return cli.Path("curfew", "deadletters", vhost, name, what)
}
