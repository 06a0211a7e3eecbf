package cli

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
)

// AddFilter adds the flags that select dead letters.
func AddFilter(c *cobra.Command) {
	c.Flags().String("filter", "", `which dead letters, such as 'reason == "expired" && died > ago("2h") && json.customer.id == 7'`)
	c.Flags().String("saved", "", "use this saved filter (see curfew dlq filters); --filter narrows it")
	OffersBy(c, "filter", func(_ *cobra.Command, _ []string, part string) (list []string, _ cobra.ShellCompDirective) {
		begin, words := deadletters.Complete(part)
		for _, w := range words {
			list = append(list, begin+w.Name+"\t"+w.Text)
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// Filter is the filter of the flags of AddFilter, with the saved filter of a queue that they name.
func (a *API) Filter(cmd *cobra.Command, queue string) (deadletters.Filter, error) {
	text, _ := cmd.Flags().GetString("filter")
	saved, _ := cmd.Flags().GetString("saved")
	filter := deadletters.Filter(text)
	if err := filter.Check(); err != nil {
		return "", Usagef("--%w", err)
	}
	if saved == "" {
		return filter, nil
	}
	var list []operate.SavedFilter
	err := a.Call(cmd.Context(), http.MethodGet, Path("curfew", "deadletters", a.VHost, queue, "filters"), nil, &list)
	for _, one := range list {
		if one.Name == saved {
			return one.Filter.And(filter), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("no filter %q is saved for queue %q; %s lists them", saved, queue, deadline.Command("curfew dlq filters", []string{queue}, "--vhost", a.VHost))
	}
	return "", err
}

// confirmed reads the flag --confirm: how many messages the caller expects to be deleted, and, after an @, the position in the queue up to which they
// were counted. Without a position the number is of all messages in the queue.
func confirmed(text string, values map[string]any) error {
	number, position, _ := strings.Cut(text, "@")
	n, err := strconv.Atoi(number)
	if err != nil {
		return Usagef("--confirm: %q is not a number of messages", number)
	}
	values["confirm"], values["position"] = n, position
	if err = new(deadletters.Position).UnmarshalText([]byte(position)); err != nil {
		err = Usagef("--confirm: %w", err)
	}
	return err
}

// unconfirmed says how to confirm an operation that deletes messages of a queue.
func unconfirmed(op *operate.Op, queue string, asks *Error) error {
	which := "match"
	if op.Flags != nil { // it takes no filter
		which = fmt.Sprintf("are ready in %q", queue)
	}
	if asks.Matched == 0 {
		return Exitf(ExitUnconfirmed, "no messages %s: there is nothing to delete", which)
	}
	return Exitf(ExitUnconfirmed, "%d messages %s; to delete them add --confirm %d@%s (later messages stay)", asks.Matched, which, asks.Matched, asks.Position)
}
