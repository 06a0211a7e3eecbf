package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
)

// dlqCommands work on dead letters.
type dlqCommands struct {
	*api
	vhost string
}

func dlqCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dlq",
		Short: "List, search, replay, purge, export and import dead letters of a running Curfew",
		Example: `  curfew dlq list
  curfew dlq groups orders.dead
  curfew dlq search orders.dead --reason expired --body '"customer": 7'
  curfew dlq replay orders.dead --dry-run
  curfew dlq replay orders.dead --since 2h --rate 100`,
		RunE: group("dlq", "list, groups, peek, search, replay, runs, cancel, resume, purge, export or import"),
	}
	d := &dlqCommands{api: withAPI(c)}
	c.PersistentFlags().StringVar(&d.vhost, "vhost", "/", "virtual host")
	c.AddCommand(watched(d.list()), watched(d.groups()), watched(d.peek()), watched(d.search()), d.replay(), watched(d.runs()), d.cancel(), d.resume(), d.purge(), d.export(), d.importFile())
	d.offersQueues(c, &d.vhost)
	return c
}

func (d *dlqCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues that dead letters go to or stand in",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []deadletters.Holder
			if err := d.call(cmd.Context(), http.MethodGet, path("curfew", "deadletters", d.vhost), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, h := range list {
				from := orDash(strings.Join(h.From, " "))
				if h.Parked {
					from = "(no queue was bound for them)"
				}
				rows = append(rows, []string{h.Queue, strconv.Itoa(h.Ready), strconv.Itoa(h.Held), strconv.FormatInt(h.Bytes, 10), from})
			}
			return d.print(cmd.OutOrStdout(), list, []string{"QUEUE", "READY", "UNACKED", "BYTES", "FROM"}, rows)
		},
	}
}

func (d *dlqCommands) groups() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "groups <queue>",
		Short: "Count a queue's dead letters by reason, queue, exchange and age",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			var list []deadletters.Group
			if err := d.call(cmd.Context(), http.MethodPost, letters(d.vhost, args[0], "groups"), asked{Filter: filter}, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, g := range list {
				row := []string{orDash(g.Reason), orDash(g.Queue), orDash(g.Exchange), strconv.Itoa(g.Messages)}
				for _, n := range g.Ages {
					row = append(row, strconv.Itoa(n))
				}
				rows = append(rows, append(row, when(g.Oldest), when(g.Newest)))
			}
			return d.print(cmd.OutOrStdout(), list, []string{"REASON", "QUEUE", "EXCHANGE", "MESSAGES", "<1M", "<1H", "<1D", "OLDER", "OLDEST", "NEWEST"}, rows)
		},
	}
	f.add(c)
	return c
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// letter is a dead letter as the API shows it.
type letter struct {
	Seq         uint64              `json:"seq"`
	Exchange    string              `json:"exchange"`
	RoutingKey  string              `json:"routing_key"`
	Deadline    *int64              `json:"deadline"`
	Properties  map[string]any      `json:"properties"`
	Payload     string              `json:"payload"`
	Encoding    string              `json:"payload_encoding"`
	Bytes       int                 `json:"payload_bytes"`
	Deaths      []deadletters.Death `json:"deaths"`
	Replays     int64               `json:"replays"`
	ReplayRun   string              `json:"replay_run,omitempty"`
	Redelivered bool                `json:"redelivered"`
	State       string              `json:"state"`
}

func (d *dlqCommands) peek() *cobra.Command {
	return d.finder("peek <queue>", "Show a queue's first messages with their history; nothing is taken", 10, false)
}

func (d *dlqCommands) search() *cobra.Command {
	return d.finder("search <queue>", "Show the dead letters that the flags describe; nothing is taken", 100, true)
}

func (d *dlqCommands) finder(use, short string, count int, filtered bool) *cobra.Command {
	var f filterFlags
	truncate := 0
	c := &cobra.Command{
		Use: use, Short: short, Args: exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			var answer struct {
				Items []letter `json:"items"`
				Next  uint64   `json:"next"`
			}
			if err := d.call(cmd.Context(), http.MethodPost, letters(d.vhost, args[0], "search"), asked{Filter: filter, Count: count, Truncate: &truncate}, &answer); err != nil {
				return err
			}
			if err := d.print(cmd.OutOrStdout(), answer.Items, letterHead, letterRows(answer.Items)); err != nil {
				return err
			}
			if answer.Next != 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "there are more: raise --count (at most 1000), or narrow the search\n")
			}
			return nil
		},
	}
	if filtered {
		f.add(c)
	}
	c.Flags().IntVarP(&count, "count", "n", count, "how many at most")
	c.Flags().IntVar(&truncate, "truncate", 200, "how many bytes of each body")
	return c
}

// bodyCell is a body as the API has it, in a table.
func bodyCell(payload, encoding string) string {
	if encoding == "base64" {
		return "(base64) " + payload
	}
	return payload
}

var letterHead = []string{"SEQ", "DIED", "REASON", "QUEUE", "EXCHANGE", "KEY", "REPLAYS", "MESSAGE-ID", "BODY"}

func letterRows(items []letter) (rows [][]string) {
	for _, l := range items {
		died, key := deadletters.Death{}, l.RoutingKey
		if len(l.Deaths) > 0 {
			died = l.Deaths[0]
			key = strings.Join(died.Keys, " ")
		}
		id, _ := l.Properties["message_id"].(string)
		rows = append(rows, []string{strconv.FormatUint(l.Seq, 10), when(died.Time), orDash(died.Reason), orDash(died.Queue), orDash(died.Exchange), orDash(key),
			strconv.FormatInt(l.Replays, 10), orDash(id), bodyCell(l.Payload, l.Encoding)})
	}
	return rows
}

func (d *dlqCommands) purge() *cobra.Command {
	var f filterFlags
	confirm := 0
	c := &cobra.Command{
		Use:   "purge <queue>",
		Short: "Delete the dead letters that the flags describe",
		Long:  "Delete the dead letters that the flags describe. Without --confirm it only says how many they are (exit code 5);\nwith it, nothing is deleted unless they are as many as that.",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			body := asked{Filter: filter}
			if cmd.Flags().Changed("confirm") {
				body.Confirm = &confirm
			}
			var answer struct {
				Deleted int `json:"deleted"`
			}
			err = d.call(cmd.Context(), http.MethodPost, letters(d.vhost, args[0], "purge"), body, &answer)
			if refused, ok := conflict(err); ok {
				return unconfirmed(refused.matched, "match")
			}
			if err != nil {
				return err
			}
			return d.print(cmd.OutOrStdout(), answer, []string{"DELETED"}, [][]string{{strconv.Itoa(answer.Deleted)}})
		},
	}
	f.add(c)
	c.Flags().IntVar(&confirm, "confirm", 0, "how many messages you expect to be deleted")
	return c
}

// conflict is the refusal of what has to be confirmed with a number.
func conflict(err error) (*refusal, bool) {
	var r *refusal
	return r, errors.As(err, &r) && r.status == http.StatusConflict && r.kind == "unconfirmed"
}

func (d *dlqCommands) export() *cobra.Command {
	var f filterFlags
	var file string
	c := &cobra.Command{
		Use:   "export <queue>",
		Short: "Write dead letters as JSON lines to standard output or a file; they stay in the queue",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			out, done, err := create(cmd.OutOrStdout(), file)
			if err != nil {
				return err
			}
			return errors.Join(d.stream(cmd.Context(), letters(d.vhost, args[0], "export"), asked{Filter: filter}, out), done())
		},
	}
	f.add(c)
	c.Flags().StringVarP(&file, "file", "f", "", "file to write; it must not exist")
	return c
}

// create opens a new file for writing, out if name is "".
func create(out io.Writer, name string) (io.Writer, func() error, error) {
	if name == "" {
		return out, func() error { return nil }, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return f, func() error { return errors.Join(f.Sync(), f.Close()) }, nil
}

func (d *dlqCommands) importFile() *cobra.Command {
	return &cobra.Command{
		Use:   "import <queue> [file]",
		Short: "Publish messages that were exported into a queue, from a file or standard input",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError{fmt.Errorf("%s takes a queue and a file, got %q", cmd.CommandPath(), args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in := cmd.InOrStdin()
			if len(args) == 2 {
				f, err := os.Open(args[1])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			var answer struct {
				Imported int `json:"imported"`
			}
			var text bytes.Buffer
			if err := d.streamFrom(cmd.Context(), letters(d.vhost, args[0], "import"), in, &text); err != nil {
				return err
			}
			if err := decode(text.Bytes(), &answer); err != nil {
				return err
			}
			return d.print(cmd.OutOrStdout(), answer, []string{"IMPORTED"}, [][]string{{strconv.Itoa(answer.Imported)}})
		},
	}
}

// follow waits for a run's end. On a terminal it draws a bar there.
func (d *dlqCommands) follow(ctx context.Context, errOut io.Writer, id string) (run deadletters.Run, err error) {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt)
	defer restore()
	bar := onTerminal(errOut)
	for {
		err = d.call(ctx, http.MethodGet, path("curfew", "replays", id), nil, &run)
		if err != nil && ctx.Err() == nil {
			return run, err
		}
		if err == nil && bar {
			fmt.Fprint(errOut, "\r", progress(&run))
		}
		if err == nil && run.State != deadletters.Running {
			break
		}
		if !pause(ctx, 100*time.Millisecond) {
			if bar {
				fmt.Fprintln(errOut)
			}
			return run, fmt.Errorf("the run goes on; curfew dlq runs follows it, curfew dlq cancel %s ends it", id)
		}
	}
	if bar {
		fmt.Fprintln(errOut)
	}
	return run, nil
}

const barWidth = 30

// progress is the bar. What was looked at is told by the page, what matched at once; with a limit the
// run may end long before the queue does.
func progress(run *deadletters.Run) string {
	share := 1.0
	if run.State == deadletters.Running && run.Total > 0 {
		share = float64(max(run.Scanned, run.Matched)) / float64(run.Total)
		if run.Limit > 0 {
			share = max(share, float64(run.Replayed)/float64(run.Limit))
		}
		share = min(share, 1)
	}
	full := int(share * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%%  %d replayed", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), share*100, run.Replayed)
}
