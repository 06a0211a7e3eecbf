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
			sub.ValidArgsFunction = Arguments(a.Queues)
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

// Queues completes the name of a queue of the virtual host.
func (a *API) Queues(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, Path("queues", a.VHost))
}

// Exchanges completes the name of an exchange of the virtual host.
func (a *API) Exchanges(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, Path("exchanges", a.VHost))
}

// VHosts completes the name of a virtual host.
func (a *API) VHosts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, Path("vhosts"))
}

// names completes with the names in a list of the API. Empty names are left out.
func (a *API) names(cmd *cobra.Command, list string) (names []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
	defer cancel()
	var all []struct{ Name string }
	if err := a.Call(ctx, http.MethodGet, list+"?columns=name", nil, &all); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, one := range all {
		if one.Name != "" {
			names = append(names, one.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
