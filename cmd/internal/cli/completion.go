package cli

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionLimit bounds how long a shell waits for names.
const completionLimit = 2 * time.Second

// Offers makes shells complete a flag of c with the values it takes.
func Offers(c *cobra.Command, flag string, words ...string) {
	OffersBy(c, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// OffersBy makes shells complete a flag of c with what names returns.
func OffersBy(c *cobra.Command, flag string, names cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, names); err != nil {
		panic(err) // c has no such flag
	}
}

// OffersQueues makes shells complete the queue argument of the commands below c with the queues of the
// running Curfew, if one answers. An argument after the queue is completed as a file.
func (a *API) OffersQueues(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if strings.Contains(sub.Use, "queue") {
			sub.ValidArgsFunction = Arguments(a.Completing("queue"))
		}
	}
}

// Arguments completes each argument by its function, and arguments after them as files.
func Arguments(names ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(names) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return names[len(args)](cmd, args, begun)
	}
}

// Completing completes the name of a queue, an exchange or whatever the kind is, by the API's list of them, in the virtual host if
// they are in one. There is nothing to propose for another kind.
func (a *API) Completing(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		list := map[string]string{
			"connection": Path("connections"), "user": Path("users"), "vhost": Path("vhosts"),
			"exchange": Path("exchanges", a.VHost), "source": Path("exchanges", a.VHost), "policy": Path("policies", a.VHost), "queue": Path("queues", a.VHost),
		}[kind]
		if list == "" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		var all []struct{ Name string }
		if err := a.Call(ctx, http.MethodGet, list+"?columns=name", nil, &all); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, one := range all {
			if one.Name != "" { // the default exchange has none
				names = append(names, one.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
