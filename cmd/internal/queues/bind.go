package queues

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
)

// binder has the flags of bind and unbind.
type binder struct {
	*cli.API
	key        string
	arguments  []string
	toExchange bool
}

// Bind is the command that binds a queue or an exchange to an exchange.
func Bind() *cobra.Command {
	c, b := newBinder("bind <exchange> <queue>", "Bind a queue to an exchange, or with --to-exchange another exchange")
	c.Example = `  curfew bind events orders --key 'order.*'
  curfew bind alerts orders --arg x-match=any --arg severity=high`
	c.RunE = func(cmd *cobra.Command, args []string) error {
		arguments, err := cli.Pairs("--arg", b.arguments)
		if err != nil {
			return err
		}
		if args[0] == "" || args[0] == "amq.default" {
			return cli.Usagef("the default exchange takes no bindings: it delivers to the queue that the routing key names")
		}
		send := map[string]any{"routing_key": b.key, "arguments": arguments}
		if err := b.Call(cmd.Context(), http.MethodPost, b.path(args), send, nil); err != nil {
			return err
		}
		return b.Say(cmd, send, fmt.Sprintf("%q is bound to exchange %q", args[1], args[0]))
	}
	return c
}

// Unbind is the command that removes a binding.
func Unbind() *cobra.Command {
	c, b := newBinder("unbind <exchange> <queue>", "Remove the binding that has this routing key and these arguments")
	c.Example = `  curfew unbind events orders --key 'order.*'`
	c.RunE = func(cmd *cobra.Command, args []string) error {
		arguments, err := cli.Pairs("--arg", b.arguments)
		if err != nil {
			return err
		}
		var list []struct {
			Key       string         `json:"routing_key"`
			Arguments map[string]any `json:"arguments"`
			Name      string         `json:"properties_key"`
		}
		if err := b.Call(cmd.Context(), http.MethodGet, b.path(args), nil, &list); err != nil {
			return err
		}
		for _, one := range list {
			if one.Key != b.key || !reflect.DeepEqual(normal(one.Arguments), normal(arguments)) {
				continue
			}
			if err := b.Call(cmd.Context(), http.MethodDelete, b.path(args, one.Name), nil, nil); err != nil {
				return err
			}
			return b.Say(cmd, one, fmt.Sprintf("removed the binding of %q to exchange %q", args[1], args[0]))
		}
		return &cli.Error{Status: http.StatusNotFound, Reason: fmt.Sprintf("%q is not bound to exchange %q with routing key %q and these arguments; other bindings between them: %d", args[1], args[0], b.key, len(list))}
	}
	return c
}

func newBinder(use, short string) (*cobra.Command, *binder) {
	c := &cobra.Command{Use: use, Short: short, Args: cli.Exactly(2, "an exchange and a queue")}
	b := &binder{API: cli.WithVHost(c)}
	f := c.Flags()
	f.StringVar(&b.key, "key", "", "routing key")
	f.StringArrayVar(&b.arguments, "arg", nil, "an argument as "+cli.PairsHelp)
	f.BoolVar(&b.toExchange, "to-exchange", false, "the second name is an exchange")
	c.ValidArgsFunction = cli.Arguments(b.Completing("exchange"), func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if b.toExchange {
			return b.Completing("exchange")(cmd, args, begun)
		}
		return b.Completing("queue")(cmd, args, begun)
	})
	return c, b
}

// path is the API's path of the bindings between two names, or of one of them.
func (b *binder) path(ends []string, more ...string) string {
	kind := "q"
	if b.toExchange {
		kind = "e"
	}
	return cli.Path(append([]string{"bindings", b.VHost, "e", ends[0], kind, ends[1]}, more...)...)
}
