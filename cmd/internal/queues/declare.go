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
	"time"

	"github.com/spf13/cobra"

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
	for _, name := range slices.Sorted(maps.Keys(joined(want, is))) {
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
	if all["x-queue-type"] == "classic" {
		delete(all, "x-queue-type")
	}
	return all
}

func joined(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
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

// queueFlags are the flags of declare queue, except for --arg.
type queueFlags struct {
	kind, dlx, dlk, dlq, overflow  string
	ttl, expires                   time.Duration
	maxLength, maxBytes            int64
	maxPriority, deliveryLimit     int64
	arguments                      []string
	durable, autoDelete, singleton bool
}

// DeclareQueue is curfew declare queue, or as "declare" curfew queue declare.
func DeclareQueue(a *cli.API, name string) *cobra.Command {
	d, words := &declarer{a}, "declare queue"
	if name == "declare" {
		words = "queue declare"
	}
	var q queueFlags
	c := &cobra.Command{
		Use:   name + " <queue>",
		Short: "Declare a queue",
		Example: fmt.Sprintf(`  curfew %[1]s orders --ttl 30s --dlq orders.dead
  curfew %[1]s audit --type quorum --max-length 10000 --arg x-overflow=reject-publish`, words),
		Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			arguments, err := q.all(cmd)
			if err != nil {
				return err
			}
			want := declaration{Durable: q.durable, AutoDelete: q.autoDelete, Arguments: arguments}
			return d.declare(cmd, fmt.Sprintf("queue %q", args[0]), cli.Path("queues", d.VHost, args[0]), &want)
		},
		ValidArgsFunction: cli.Arguments(d.Queues),
	}
	f := c.Flags()
	f.StringVar(&q.kind, "type", "", "classic (the default) or quorum")
	f.DurationVar(&q.ttl, "ttl", 0, "time to live of its messages, such as 30s")
	f.DurationVar(&q.expires, "expires", 0, "delete the queue when it has not been used for this time")
	f.StringVar(&q.dlq, "dlq", "", "queue that its dead letters go to, by the default exchange")
	f.StringVar(&q.dlx, "dlx", "", "exchange that its dead letters go to")
	f.StringVar(&q.dlk, "dlk", "", "routing key of its dead letters (default: their own)")
	f.Int64Var(&q.maxLength, "max-length", 0, "the most ready messages")
	f.Int64Var(&q.maxBytes, "max-length-bytes", 0, "the most bytes of ready messages")
	f.StringVar(&q.overflow, "overflow", "", "beyond that: drop-head (the default), reject-publish or reject-publish-dlx")
	f.Int64Var(&q.maxPriority, "max-priority", 0, "its highest priority")
	f.Int64Var(&q.deliveryLimit, "delivery-limit", 0, "how often a message may be delivered again")
	f.BoolVar(&q.singleton, "single-active-consumer", false, "one consumer at a time receives messages")
	f.BoolVar(&q.durable, "durable", true, "keep it over a restart")
	f.BoolVar(&q.autoDelete, "auto-delete", false, "delete it with its last consumer")
	f.StringArrayVar(&q.arguments, "arg", nil, "an argument as "+cli.PairsHelp)
	cli.Offers(c, "type", "classic", "quorum")
	cli.Offers(c, "overflow", "drop-head", "reject-publish", "reject-publish-dlx")
	cli.OffersBy(c, "dlq", d.Queues)
	cli.OffersBy(c, "dlx", d.Exchanges)
	return c
}

// all are the arguments of the queue.
func (q *queueFlags) all(cmd *cobra.Command) (map[string]any, error) {
	arguments, err := cli.Pairs("--arg", q.arguments)
	if err != nil {
		return nil, err
	}
	if q.dlq != "" && (q.dlx != "" || q.dlk != "") {
		return nil, cli.Usagef("use either --dlq (a queue) or --dlx and --dlk (an exchange and a routing key), not both")
	}
	given := map[string]any{
		"type": q.kind, "ttl": q.ttl.Milliseconds(), "expires": q.expires.Milliseconds(), "dlx": q.dlx, "dlk": q.dlk, "max-length": q.maxLength,
		"max-length-bytes": q.maxBytes, "overflow": q.overflow, "max-priority": q.maxPriority, "delivery-limit": q.deliveryLimit, "single-active-consumer": q.singleton,
	}
	for flag, v := range given {
		if cmd.Flags().Changed(flag) {
			name := argumentNames[flag]
			if name == "" {
				name = "x-" + flag
			}
			if _, twice := arguments[name]; twice {
				return nil, cli.Usagef("--%s and --arg %s are the same: use one", flag, name)
			}
			arguments[name] = v
		}
	}
	if q.dlq != "" {
		arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"] = "", q.dlq
	}
	return arguments, nil
}

// argumentNames are the names of arguments that are not the flag's with x- in front.
var argumentNames = map[string]string{
	"type": "x-queue-type", "ttl": "x-message-ttl", "dlx": "x-dead-letter-exchange", "dlk": "x-dead-letter-routing-key",
}

func (d *declarer) exchange() *cobra.Command {
	var want declaration
	var alternate string
	var arguments []string
	c := &cobra.Command{
		Use:   "exchange <exchange>",
		Short: "Declare an exchange",
		Example: `  curfew declare exchange events --type topic
  curfew declare exchange events --type topic --alternate-exchange unrouted`,
		Args: cli.Exactly(1, "an exchange"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if want.Arguments, err = cli.Pairs("--arg", arguments); err != nil {
				return err
			}
			if alternate != "" {
				want.Arguments["alternate-exchange"] = alternate
			}
			return d.declare(cmd, fmt.Sprintf("exchange %q", args[0]), cli.Path("exchanges", d.VHost, args[0]), &want)
		},
		ValidArgsFunction: cli.Arguments(d.Exchanges),
	}
	f := c.Flags()
	f.StringVar(&want.Type, "type", "direct", strings.Join(kinds[:3], ", ")+" or "+kinds[3])
	f.BoolVar(&want.Durable, "durable", true, "keep it over a restart")
	f.BoolVar(&want.AutoDelete, "auto-delete", false, "delete it with its last binding")
	f.BoolVar(&want.Internal, "internal", false, "take messages from other exchanges only")
	f.StringVar(&alternate, "alternate-exchange", "", "exchange for messages that no binding takes")
	f.StringArrayVar(&arguments, "arg", nil, "an argument as "+cli.PairsHelp)
	cli.Offers(c, "type", kinds...)
	cli.OffersBy(c, "alternate-exchange", d.Exchanges)
	return c
}

var kinds = []string{"direct", "fanout", "topic", "headers"}
