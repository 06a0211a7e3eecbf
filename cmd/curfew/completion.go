package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionLimit is how long a shell waits for names of queues.
const completionLimit = 2 * time.Second

// offers has shells complete a flag of c with the words it takes.
func offers(c *cobra.Command, flag string, words ...string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // c has no such flag
	}
}

// offersQueues has shells complete the queue that commands below c take with those of the running
// Curfew, as far as one answers; what comes after the queue is a file or nothing known.
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
			if err := a.call(ctx, http.MethodGet, path("queues", *vhost)+"?columns=name", nil, &list); err != nil {
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
