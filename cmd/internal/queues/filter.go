package queues

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
)

// filterFlags are the flags that select dead letters.
type filterFlags struct{ text, saved string }

func (f *filterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.text, "filter", "", `which dead letters, such as 'reason == "expired" && died > ago("2h") && json.customer.id == 7'`)
	c.Flags().StringVar(&f.saved, "saved", "", "use this saved filter (see curfew dlq filters); --filter narrows it")
	cli.OffersBy(c, "filter", func(_ *cobra.Command, _ []string, part string) (list []string, _ cobra.ShellCompDirective) {
		begin, words := deadletters.Complete(part)
		for _, w := range words {
			list = append(list, begin+w.Name+"\t"+w.Text)
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// filtered makes c a command about the dead letters of a queue that its flags select.
func (d *deadLetters) filtered(c *cobra.Command, do func(cmd *cobra.Command, queueName string, filter deadletters.Filter) error) {
	var f filterFlags
	f.add(c)
	c.Args, c.RunE = cli.Exactly(1, "a queue"), func(cmd *cobra.Command, args []string) error {
		filter, err := f.filter(cmd, d, args[0])
		if err != nil {
			return err
		}
		return do(cmd, args[0], filter)
	}
}

// filter is the filter of the flags, with the saved filter that they name.
func (f *filterFlags) filter(cmd *cobra.Command, d *deadLetters, queueName string) (deadletters.Filter, error) {
	filter := deadletters.Filter(f.text)
	if err := filter.Check(); err != nil {
		return "", cli.Usagef("--%w", err)
	}
	if f.saved == "" {
		return filter, nil
	}
	var list []operate.SavedFilter
	err := d.Call(cmd.Context(), http.MethodGet, letters(d.VHost, queueName, "filters"), nil, &list)
	for _, one := range list {
		if one.Name == f.saved {
			return one.Filter.And(filter), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("no filter %q is saved for queue %q; %s lists them", f.saved, queueName, deadline.Command("curfew dlq filters", []string{queueName}, "--vhost", d.VHost))
	}
	return "", err
}

// filters lists, saves and deletes saved filters.
func (d *deadLetters) filters() *cobra.Command {
	var f filterFlags
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
				filter, err := f.filter(cmd, d, args[0])
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
	f.add(c)
	c.Flags().StringVar(&save, "save", "", "save the filter of the other flags under this name")
	c.Flags().StringVar(&remove, "delete", "", "delete the filter with this name")
	return c
}

// letters is the API path of an operation on a queue's dead letters.
func letters(vhost, name, what string) string {
	return cli.Path("curfew", "deadletters", vhost, name, what)
}
