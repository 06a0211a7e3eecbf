package commands

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/client"
)

// completionLimit bounds how long a shell waits for the names of queues.
const completionLimit = 2 * time.Second

// offers makes shells complete a flag of c with the values it takes.
func offers(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // c has no such flag
	}
}

// offersQueues makes shells complete the queue argument of the commands below c with the queues of the
// running Curfew, if one answers. An argument after the queue is completed as a file.
func (a *api) offersQueues(c *cobra.Command, vhost *string) {
	for _, sub := range c.Commands() {
		if !strings.Contains(sub.Use, "queue") {
			continue
		}
		sub.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
			defer cancel()
			var list []struct{ Name string }
			if err := a.Call(ctx, http.MethodGet, client.Path("queues", *vhost)+"?columns=name", nil, &list); err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := make([]string, len(list))
			for i := range list {
				names[i] = list[i].Name
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
	}
}
