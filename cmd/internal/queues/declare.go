package queues

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/cmd/internal/cli"
)

// Declare is the command that declares queues and exchanges.
func Declare() *cobra.Command {
	c := &cobra.Command{
		Use:   "declare",
		Short: "Declare a queue or an exchange",
		Long: `Declare a queue or an exchange. If it already exists with the same arguments, nothing happens. If it has others, that is an error
(exit code 1), and each difference is printed: a queue is never changed; a policy can change most of it (curfew policy set).`,
		RunE: cli.Group,
	}
	d := &declarer{cli.WithVHost(c)}
	c.AddCommand(DeclareQueue(d.API, "queue"), d.exchange())
	return c
}

type declarer struct{ *cli.API }

// declaration is a queue or an exchange as the API takes and shows it.
type declaration struct {
	Type       string         `json:"type,omitempty"` // of an exchange
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Internal   bool           `json:"internal,omitempty"` // of an exchange
	Arguments  map[string]any `json:"arguments"`
}

// difference is one property that differs between the declaration and what exists; nil: it is not set.
type difference struct {
	What string `json:"what"`
	Want any    `json:"want"`
	Have any    `json:"have"`
}

// differences of two declarations, by name. An absent type of queue is the same as classic.
func (d *declaration) differences(have *declaration) (list []difference) {
	add := func(what string, want, have any) {
		if !reflect.DeepEqual(want, have) {
			list = append(list, difference{what, want, have})
		}
	}
	add("durable", d.Durable, have.Durable)
	add("auto-delete", d.AutoDelete, have.AutoDelete)
	if d.Type != "" { // the type of a queue is an argument
		add("type", d.Type, have.Type)
		add("internal", d.Internal, have.Internal)
	}
	want, is := normal(d.Arguments), normal(have.Arguments)
	names := maps.Clone(want)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, want[name], is[name])
	}
	return list
}

// normal are arguments as they come out of JSON, without those that only state a default.
func normal(arguments map[string]any) (all map[string]any) {
	text, err := json.Marshal(arguments)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return arguments
	}
	if all == nil {
		return map[string]any{}
	}
	if all["x-queue-type"] == "classic" {
		delete(all, "x-queue-type")
	}
	return all
}

// declare puts a declaration at a path of the API and prints what became of it.
func (d *declarer) declare(cmd *cobra.Command, what, path string, want *declaration) error {
	var have declaration
	err := d.Call(cmd.Context(), http.MethodGet, path, nil, &have)
	missing := isMissing(err)
	if err != nil && !missing {
		return err
	}
	err = d.Call(cmd.Context(), http.MethodPut, path, want, nil)
	var refused *cli.Error
	if !missing && errors.As(err, &refused) && refused.Status == http.StatusBadRequest {
		if list := want.differences(&have); len(list) > 0 {
			return d.printDifferences(cmd, what, list)
		}
	}
	if err != nil {
		return err
	}
	done := "declared " + what
	if !missing {
		done = what + " already exists, as declared"
	}
	return d.Say(cmd, map[string]bool{"created": missing}, done)
}

// warnOfMissing says that the queue that --dlq names does not exist.
func (d *declarer) warnOfMissing(cmd *cobra.Command, want *declaration) error {
	queue, _ := want.Arguments["x-dead-letter-routing-key"].(string)
	if queue == "" || want.Arguments["x-dead-letter-exchange"] != "" {
		return nil
	}
	err := d.Call(cmd.Context(), http.MethodGet, cli.Path("queues", d.VHost, queue), nil, nil)
	if !isMissing(err) {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "there is no queue %q for its dead letters yet: %s\n", queue, deadline.Command("curfew declare queue", []string{queue}, "--vhost", d.VHost))
	return nil
}

func (d *declarer) printDifferences(cmd *cobra.Command, what string, list []difference) error {
	var rows [][]string
	for _, one := range list {
		rows = append(rows, []string{one.What, cell(one.Want), cell(one.Have)})
	}
	if err := d.Print(cmd.OutOrStdout(), list, []string{"WHAT", "ASKED FOR", "IS"}, rows); err != nil {
		return err
	}
	return fmt.Errorf("%s already exists and differs: nothing was changed", what)
}

func cell(v any) string {
	if v == "" {
		return `""`
	}
	return cli.Text(v)
}

func isMissing(err error) bool {
	var failed *cli.Error
	return errors.As(err, &failed) && failed.Status == http.StatusNotFound
}

// DeclareQueue is curfew declare queue, or as "declare" curfew queue declare.
func DeclareQueue(a *cli.API, name string) *cobra.Command {
	c, words := (&declarer{a}).command(admin.DeclareQueue.Op, name, "a queue", a.Completing("queue")), "declare queue"
	if name == "declare" {
		words = "queue declare"
	}
	c.Example = fmt.Sprintf(`  curfew %[1]s orders --ttl 30s --dlq orders.dead
  curfew %[1]s audit --type quorum --max-length 10000 --arg x-overflow=reject-publish`, words)
	c.Flags().String("dlq", "", "queue that its dead letters go to, by the default exchange")
	cli.OffersBy(c, "dlq", a.Completing("queue"))
	cli.OffersBy(c, "dlx", a.Completing("exchange"))
	return c
}

func (d *declarer) exchange() *cobra.Command {
	c := d.command(admin.DeclareExchange.Op, "exchange", "an exchange", d.Completing("exchange"))
	c.Example = `  curfew declare exchange events --type topic
  curfew declare exchange events --type topic --alternate-exchange unrouted`
	cli.OffersBy(c, "alternate-exchange", d.Completing("exchange"))
	return c
}

// command is one that declares what an operation makes. The operation's fields are its flags, and --arg is for other arguments.
func (d *declarer) command(op *operate.Op, name, what string, names cobra.CompletionFunc) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " <" + op.Noun + ">",
		Short: op.Title,
		Args:  cli.Exactly(1, what),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := d.wanted(cmd, op)
			if err != nil {
				return err
			}
			if err := d.declare(cmd, fmt.Sprintf("%s %q", op.Noun, args[0]), cli.Path(op.Noun+"s", d.VHost, args[0]), want); err != nil {
				return err
			}
			return d.warnOfMissing(cmd, want)
		},
		ValidArgsFunction: cli.Arguments(names),
	}
	d.AddFlags(c, op)
	c.Flags().StringArray("arg", nil, "an argument as "+cli.PairsHelp)
	return c
}

// wanted is the declaration by the flags of a command. Fields with a dash in their names are arguments.
func (d *declarer) wanted(cmd *cobra.Command, op *operate.Op) (*declaration, error) {
	flags := cmd.Flags()
	pairs, _ := flags.GetStringArray("arg")
	arguments, err := cli.Pairs("--arg", pairs)
	if err != nil {
		return nil, err
	}
	values, err := d.Values(cmd, op, nil)
	if err != nil {
		return nil, err
	}
	if queue, _ := flags.GetString("dlq"); queue != "" {
		if flags.Changed("dlx") || flags.Changed("dlk") {
			return nil, cli.Usagef("use either --dlq (a queue) or --dlx and --dlk (an exchange and a routing key), not both")
		}
		arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"] = "", queue
	}
	for name, v := range values {
		f := op.Field(name)
		if _, twice := arguments[f.Form]; twice {
			return nil, cli.Usagef("--%s and --arg %s are the same: use one", f.Flag, f.Form)
		}
		if strings.Contains(f.Form, "-") {
			arguments[f.Form] = v
		}
	}
	want := &declaration{Arguments: arguments}
	want.Type, _ = values["type"].(string)
	want.Durable, _ = flags.GetBool("durable")
	want.AutoDelete, _ = flags.GetBool("auto-delete")
	want.Internal, _ = flags.GetBool("internal")
	return want, nil
}
