package queues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
)

// Consumer is a consumer, or a channel that holds messages it got with basic.get.
type Consumer struct {
	Tag      string `json:"consumer_tag"`
	Kind     string `json:"kind"` // consumer, get or cancelled
	Prefetch int    `json:"prefetch_count"`
	Status   string `json:"activity_status"`
	Unacked  int    `json:"messages_unacknowledged"`
	Oldest   *int64 `json:"oldest_unacknowledged_at"` // Unix ms
	Past     int    `json:"messages_past_deadline"`
	Queue    struct {
		VHost string `json:"vhost"`
		Name  string `json:"name"`
	} `json:"queue"`
	Channel struct {
		Number     int    `json:"number"`
		Connection string `json:"connection_name"`
		User       string `json:"user"`
	} `json:"channel_details"`
	Client struct {
		Name string `json:"connection_name"`
	} `json:"client"`
}

const consumersHelp = `Show who consumes, those that hold messages past their deadlines first.

UNACKED is how many messages a consumer has and has not settled, OLDEST since when it has the oldest, PAST how many of them are past their
deadlines: they expire only if they are given back. To take them away from a consumer, close its connection (curfew connections close).`

// Consumers is the command that lists consumers.
func Consumers() *cobra.Command {
	c := &cobra.Command{
		Use:   "consumers [queue]",
		Short: "Show who consumes, of one queue or of all, and who holds messages past their deadlines",
		Long:  consumersHelp,
		Example: `  curfew consumers
  curfew consumers -A
  curfew consumers orders --watch`,
		Args: cli.Between(0, 1, "a queue"),
	}
	a := cli.WithVHost(c)
	c.ValidArgsFunction = cli.Arguments(a.Queues)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := cli.Everywhere(cmd, args)
		if err != nil {
			return err
		}
		path, heads := append([]string{a.VHost}, args...), []string{"QUEUE", "CLIENT", "UNACKED", "OLDEST", "PAST!", "STATUS?", "PREFETCH?", "USER?", "CONSUMER?", "CONNECTION?"}
		if all {
			path, heads = nil, append([]string{"VHOST"}, heads...)
		}
		text, list, err := consumers(cmd.Context(), a, path...)
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range list {
			row := list[i].row(a)
			if all {
				row = append([]string{list[i].Queue.VHost}, row...)
			}
			rows = append(rows, row)
		}
		return a.PrintText(cmd.OutOrStdout(), text, heads, rows)
	}
	cli.AllVHosts(c)
	return cli.Watched(c)
}

// ConsumersOf returns the consumers of a queue in the virtual host of a.
func ConsumersOf(ctx context.Context, a *cli.API, queue string) ([]Consumer, error) {
	_, list, err := consumers(ctx, a, a.VHost, queue)
	return list, err
}

// consumers are those of a virtual host and a queue, or of all.
func consumers(ctx context.Context, a *cli.API, of ...string) (text []byte, list []Consumer, err error) {
	text, err = a.Fetch(ctx, http.MethodGet, cli.Path(append([]string{"curfew", "consumers"}, of...)...), http.NoBody)
	if err == nil {
		err = cli.Decode(text, &list)
	}
	return text, list, err
}

// Words says in one line who it is and what it holds.
func (c *Consumer) Words(a *cli.API) string {
	row := c.row(a)
	text := fmt.Sprintf("%s of user %s at %s holds %d", row[8], c.Channel.User, strings.TrimPrefix(c.Client.Name+" "+c.Channel.Connection, " "), c.Unacked)
	if c.Oldest != nil {
		text += ", the oldest since " + row[3]
	}
	if c.Past > 0 {
		text += fmt.Sprintf("; past their deadlines: %d", c.Past)
	}
	return text
}

func (c *Consumer) row(a *cli.API) []string {
	oldest, tag := "-", c.Tag
	if c.Oldest != nil {
		oldest = a.Time(time.UnixMilli(*c.Oldest))
	}
	switch c.Kind {
	case "get":
		tag = "(basic.get)"
	case "cancelled":
		tag += " (cancelled)"
	}
	return []string{
		c.Queue.Name, cmp.Or(c.Client.Name, c.Channel.Connection), strconv.Itoa(c.Unacked), oldest, strconv.Itoa(c.Past), cli.OrDash(c.Status), strconv.Itoa(c.Prefetch),
		c.Channel.User, cli.OrDash(tag), c.Channel.Connection,
	}
}

// connection is a connection as the API shows it.
type connection struct {
	Name       string `json:"name"`
	User       string `json:"user"`
	VHost      string `json:"vhost"`
	State      string `json:"state"`
	Channels   int    `json:"channels"`
	Consumers  int    `json:"consumers"`
	Unacked    int    `json:"messages_unacknowledged"`
	Since      int64  `json:"connected_at"` // Unix ms
	Properties struct {
		Name    string `json:"connection_name"`
		Product string `json:"product"`
	} `json:"client_properties"`
}

// Connections is the command that lists and closes connections.
func Connections() *cobra.Command {
	c := &cobra.Command{
		Use:   "connections",
		Short: "Show the connections of clients; close one",
		Long: `Show the connections of clients. STATE is running, blocked (it may not publish while memory or disk are low) or flow (it is slowed
down).`,
		Example: `  curfew connections
  curfew connections close '127.0.0.1:49152 -> 127.0.0.1:5672'`,
		Args: listArguments,
	}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		text, list, err := connections(a, cmd)
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range list {
			one := &list[i]
			rows = append(rows, []string{one.Name, cli.OrDash(one.Properties.Name), one.User, one.VHost, one.State, strconv.Itoa(one.Channels), strconv.Itoa(one.Consumers),
				strconv.Itoa(one.Unacked), a.Time(time.UnixMilli(one.Since)), cli.OrDash(one.Properties.Product)})
		}
		return a.PrintText(cmd.OutOrStdout(), text, []string{"CONNECTION=", "CLIENT", "USER", "VHOST?", "STATE!", "CHANNELS?", "CONSUMERS", "UNACKED", "SINCE?", "PRODUCT?"}, rows)
	}
	c.AddCommand(closeConnection(a))
	return cli.Watched(c)
}

// listArguments: a command that lists takes no arguments, but has subcommands.
func listArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Group(cmd, args)
	}
	return nil
}

func connections(a *cli.API, cmd *cobra.Command) (text []byte, list []connection, err error) {
	text, err = a.Fetch(cmd.Context(), http.MethodGet, cli.Path("connections"), http.NoBody)
	if err == nil {
		err = cli.Decode(text, &list)
	}
	return text, list, err
}

func closeConnection(a *cli.API) *cobra.Command {
	var why string
	c := &cobra.Command{
		Use:   "close <connection>",
		Short: "Close a connection: what it holds goes back to its queues, or expires",
		Long: `Close a connection, named as "curfew connections" lists it: by its addresses, or by the name that the client gave itself if only one
has it. What it holds goes back to its queues, and what is past its deadline expires. Most clients connect again.`,
		Example: `  curfew connections close '127.0.0.1:49152 -> 127.0.0.1:5672' --reason 'it is stuck'`,
		Args:    cli.Exactly(1, "a connection (curfew connections)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, list, err := connections(a, cmd)
			if err != nil {
				return err
			}
			one, err := find(list, args[0])
			if err != nil {
				return err
			}
			header := http.Header{"X-Reason": {why}}
			if err := a.CallWith(cmd.Context(), header, http.MethodDelete, cli.Path("connections", one.Name)); err != nil {
				return err
			}
			return a.Say(cmd, map[string]any{"closed": one.Name}, fmt.Sprintf("closed %s, of user %s", one.Name, one.User))
		},
		ValidArgsFunction: cli.Arguments(func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			_, list, _ := connections(a, cmd)
			for i := range list {
				names = append(names, list[i].Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}),
	}
	c.Flags().StringVar(&why, "reason", "closed by an operator", "what the client is told")
	return c
}

// find is the connection with that name, or the only one whose client has it.
func find(list []connection, name string) (*connection, error) {
	var found []*connection
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
		if list[i].Properties.Name == name {
			found = append(found, &list[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, &cli.Error{Status: http.StatusNotFound, Reason: fmt.Sprintf("there is no connection %q (curfew connections lists them)", name)}
	case 1:
		return found[0], nil
	}
	var names []string
	for _, one := range found {
		names = append(names, "'"+one.Name+"'")
	}
	return nil, cli.Usage(errors.New(strconv.Itoa(len(found)) + " connections have this name; choose one: " + strings.Join(names, ", ")))
}

// channel is a channel as the API shows it.
type channel struct {
	Name        string `json:"name"`
	User        string `json:"user"`
	VHost       string `json:"vhost"`
	State       string `json:"state"`
	Consumers   int    `json:"consumer_count"`
	Unacked     int    `json:"messages_unacknowledged"`
	Unconfirmed int    `json:"messages_unconfirmed"`
	Prefetch    int    `json:"prefetch_count"`
	Confirm     bool   `json:"confirm"`
}

// Channels is the command that lists channels.
func Channels() *cobra.Command {
	c := &cobra.Command{
		Use:     "channels",
		Short:   "Show the channels of clients",
		Example: `  curfew channels --watch`,
		Args:    cli.NoArguments,
	}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var list []channel
		text, err := a.Fetch(cmd.Context(), http.MethodGet, cli.Path("channels"), http.NoBody)
		if err == nil {
			err = cli.Decode(text, &list)
		}
		if err != nil {
			return err
		}
		var rows [][]string
		for i := range list {
			one := &list[i]
			confirms := "-"
			if one.Confirm {
				confirms = strconv.Itoa(one.Unconfirmed)
			}
			rows = append(rows, []string{one.Name, one.User, one.VHost, one.State, strconv.Itoa(one.Consumers), strconv.Itoa(one.Unacked), strconv.Itoa(one.Prefetch), confirms})
		}
		return a.PrintText(cmd.OutOrStdout(), text, []string{"CHANNEL", "USER", "VHOST?", "STATE!", "CONSUMERS", "UNACKED", "PREFETCH?", "UNCONFIRMED?"}, rows)
	}
	return cli.Watched(c)
}
