package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/operate"
	"curfew/broker/policy"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

func policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Set, clear and list policies of a running Curfew",
		RunE:  cli.Group,
	}
	p := policyCommands{API: cli.WithVHost(c)}
	c.PersistentFlags().BoolVar(&p.operator, "operator", false, "operator policies")
	c.AddCommand(p.set(), p.clear(), p.list())
	return c
}

type policyCommands struct {
	*cli.API
	operator bool
}

func (p *policyCommands) kind() string {
	if p.operator {
		return "operator-policies"
	}
	return "policies"
}

func (p *policyCommands) set() *cobra.Command {
	var applyTo string
	var priority int64
	var dryRun, retroactive bool
	c := &cobra.Command{
		Use:   "set <name> <pattern> <definition>",
		Short: "Create or replace a policy",
		Example: `  curfew policy set ttl '^orders\.(?!dead$)' '{"message-ttl":60000}' --apply-to queues
  curfew policy set ttl '^orders\.(?!dead$)' '{"message-ttl":60000}' --retroactive --dry-run`,
		Args: cli.Exactly(3, "a name, a pattern and a definition"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var definition policy.Definition
			if err := json.Unmarshal([]byte(args[2]), &definition); err != nil {
				return cli.Usagef("the definition has to be a JSON object: %w", err)
			}
			body := policy.Policy{Name: args[0], Pattern: args[1], ApplyTo: applyTo, Priority: priority, Definition: definition}
			if !dryRun && !retroactive {
				return p.Call(cmd.Context(), http.MethodPut, client.Path(p.kind(), p.VHost, args[0]), body, nil)
			}
			var done operate.PolicyEffect
			err := p.Call(cmd.Context(), http.MethodPut, client.Path("curfew", p.kind(), p.VHost, args[0])+"?dry_run="+strconv.FormatBool(dryRun), body, &done)
			if err != nil {
				return err
			}
			return p.printEffect(cmd, done)
		},
	}
	c.Flags().StringVar(&applyTo, "apply-to", policy.All, "all, queues, classic_queues, quorum_queues, streams or exchanges")
	c.Flags().Int64Var(&priority, "priority", 0, "of the policies that match, the one with the highest priority applies")
	c.Flags().BoolVar(&retroactive, "retroactive", false, "apply its message-ttl also to messages that are already queued, counted from now")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing; print what --retroactive would do")
	return c
}

func (p *policyCommands) printEffect(cmd *cobra.Command, done operate.PolicyEffect) error {
	notes := cmd.ErrOrStderr()
	if names := strings.Join(done.Names, ", "); names != "" {
		if n := done.Queues - len(done.Names); n > 0 {
			names += fmt.Sprintf(" and %d more", n)
		}
		fmt.Fprintf(notes, "queues: %s\n", names)
	}
	for _, name := range done.DeadLetterQueues {
		fmt.Fprintf(notes, "warning: dead letters go to %q, and with this policy they expire there; exclude it from the pattern unless you want that\n", name)
	}
	return p.Print(cmd.OutOrStdout(), done, []string{"QUEUES", "EARLIER", "EXPIRED"},
		[][]string{{strconv.Itoa(done.Queues), strconv.Itoa(done.Earlier), strconv.Itoa(done.Expired)}})
}

func (p *policyCommands) clear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear <name>",
		Short: "Remove a policy",
		Args:  cli.Exactly(1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.Call(cmd.Context(), http.MethodDelete, client.Path(p.kind(), p.VHost, args[0]), nil, nil)
		},
	}
}

func (p *policyCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the policies",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list := []policy.Policy{}
			if err := p.Call(cmd.Context(), http.MethodGet, client.Path(p.kind(), p.VHost), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, one := range list {
				definition, err := json.Marshal(one.Definition)
				if err != nil {
					return err
				}
				rows = append(rows, []string{one.Name, one.Pattern, one.ApplyTo, strconv.FormatInt(one.Priority, 10), string(definition)})
			}
			for _, one := range list {
				if one.NotInForce != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "policy %s is not in force: %s\n", one.Name, one.NotInForce)
				}
			}
			return p.Print(cmd.OutOrStdout(), list, []string{"NAME", "PATTERN", "APPLY TO", "PRIORITY", "DEFINITION"}, rows)
		},
	}
}
