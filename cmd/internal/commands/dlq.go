package commands

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
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
	"curfew/broker/queue"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
	"curfew/cmd/internal/table"
)

// dlqCommands look at, replay, edit and delete dead letters.
type dlqCommands struct{ *cli.API }

func dlqCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dlq",
		Short: "List, search, replay, edit, purge, export and import dead letters of a running Curfew",
		Example: `  curfew dlq list
  curfew dlq groups orders.dead
  curfew dlq search orders.dead --newest --json-value customer.id=7
  curfew dlq show orders.dead 17
  curfew dlq replay orders.dead --dry-run
  curfew dlq replay orders.dead --since 2h --rate 100`,
		RunE: cli.Group,
	}
	d := &dlqCommands{cli.WithVHost(c)}
	c.AddCommand(cli.Watched(d.list()), cli.Watched(d.groups()), cli.Watched(d.peek()), cli.Watched(d.search()), d.show(), d.filters(), d.replay(), cli.Watched(d.runs()), d.cancel(), d.resume(), d.edit(), d.purge(), d.export(), d.importFile())
	d.OffersQueues(c)
	return c
}

func (d *dlqCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues that dead letters go to or are in",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []deadletters.Queue
			if err := d.Call(cmd.Context(), http.MethodGet, client.Path("curfew", "deadletters", d.VHost), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, h := range list {
				from := cli.OrDash(strings.Join(h.From, " "))
				if h.Parked {
					from = "(no queue was bound for them)"
				}
				rows = append(rows, []string{h.Queue, strconv.Itoa(h.Ready), strconv.Itoa(h.Unacked), strconv.FormatInt(h.Bytes, 10), from})
			}
			return d.Print(cmd.OutOrStdout(), list, []string{"QUEUE", "READY", "UNACKED", "BYTES", "FROM"}, rows)
		},
	}
}

func (d *dlqCommands) groups() *cobra.Command {
	var f filterFlags
	c := &cobra.Command{
		Use:   "groups <queue>",
		Short: "Count a queue's dead letters by reason, queue, exchange and age",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd, d, args[0])
			if err != nil {
				return err
			}
			var list []deadletters.Group
			if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, args[0], "groups"), deadLetterRequest{Filter: filter}, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, g := range list {
				if g.Why != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), parkedHint(args[0], &g))
				}
				row := []string{cli.OrDash(g.Reason), cli.OrDash(g.Queue), cli.OrDash(g.Exchange), strconv.Itoa(g.Messages)}
				for _, n := range g.Ages {
					row = append(row, strconv.Itoa(n))
				}
				rows = append(rows, append(row, when(g.Oldest), when(g.Newest)))
			}
			return d.Print(cmd.OutOrStdout(), list, []string{"REASON", "QUEUE", "EXCHANGE", "MESSAGES", "<1M", "<1H", "<1D", "OLDER", "OLDEST", "NEWEST"}, rows)
		},
	}
	f.add(c)
	return c
}

// parkedHint says why messages are parked, and how to go on.
func parkedHint(queueName string, g *deadletters.Group) string {
	exchange := strconv.Quote(g.Toward)
	if g.Toward == "" {
		exchange = "the default exchange"
	}
	onward := "curfew dlq replay " + queueName + " --to onward --from-queue " + cli.OrDash(g.Queue)
	switch g.Why {
	case deadletters.CauseNoExchange:
		return fmt.Sprintf("%d from %s are parked because exchange %s does not exist. Declare it and bind a queue, then: %s", g.Messages, cli.OrDash(g.Queue), exchange, onward)
	case deadletters.CauseNoQueue:
		return fmt.Sprintf("%d from %s are parked because no queue is bound to %s for key %q. Bind one, then: %s", g.Messages, cli.OrDash(g.Queue), exchange, g.Key, onward)
	}
	return fmt.Sprintf("%d from %s are parked, but %s leads to a queue by now: %s", g.Messages, cli.OrDash(g.Queue), exchange, onward)
}

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// letter is a dead letter as the API returns it.
type letter struct {
	Seq         uint64              `json:"seq"`
	Exchange    string              `json:"exchange"`
	RoutingKey  string              `json:"routing_key"`
	Deadline    *int64              `json:"deadline"`
	Properties  map[string]any      `json:"properties"`
	Payload     string              `json:"payload"`
	Encoding    string              `json:"payload_encoding"`
	Bytes       int                 `json:"payload_bytes"`
	Truncated   bool                `json:"payload_truncated,omitempty"` // set here
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
	truncate, newest, after := 0, false, uint64(0)
	c := &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd, d, args[0])
			if err != nil {
				return err
			}
			var answer struct {
				Items []letter `json:"items"`
				Next  uint64   `json:"next"`
			}
			bodyBytes := bodyBytes(d.API, cmd, truncate, count)
			if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, args[0], "search"), deadLetterRequest{
				Filter: filter, After: queue.Seq(after), Newest: newest, Count: count, Truncate: &bodyBytes,
			}, &answer); err != nil {
				return err
			}
			for i := range answer.Items {
				l := &answer.Items[i]
				l.Truncated = isTruncated(l.Payload, l.Encoding, l.Bytes)
			}
			if err := d.Print(cmd.OutOrStdout(), answer.Items, letterHead, letterRows(answer.Items)); err != nil {
				return err
			}
			if answer.Next != 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "there are more: raise --count (at most 1000), go on with --after %d, or narrow the search\n", answer.Next)
			}
			return nil
		},
	}
	if filtered {
		f.add(c)
	}
	c.Flags().IntVarP(&count, "count", "n", count, "how many at most")
	c.Flags().BoolVar(&newest, "newest", false, "the newest first")
	c.Flags().Uint64Var(&after, "after", 0, "go on behind the message with this number")
	c.Flags().IntVar(&truncate, "truncate", 200, truncateHelp)
	return c
}

// truncateHelp is the help of the flag --truncate.
const truncateHelp = "how many bytes of each body; with -o json all of it unless this is set"

// wholeBodies is how many bytes of all bodies together are requested for JSON: as many as an answer may have.
const wholeBodies = 16 << 20

// bodyBytes is how many bytes of each body to request: a program that reads JSON wants whole bodies.
func bodyBytes(a *cli.API, cmd *cobra.Command, truncate, count int) int {
	if a.JSON() && !cmd.Flags().Changed("truncate") {
		return wholeBodies / max(count, 1)
	}
	return truncate
}

// isTruncated reports whether a payload is not the whole body.
func isTruncated(payload, encoding string, bodyBytes int) bool {
	n := len(payload)
	if encoding == "base64" {
		n = base64.StdEncoding.DecodedLen(n) - strings.Count(payload, "=")
	}
	return n < bodyBytes
}

// bodyCell is a body for a table.
func bodyCell(payload, encoding string) string {
	if encoding == "base64" {
		return "(base64) " + payload
	}
	return payload
}

var letterHead = []string{"SEQ", "DIED", "REASON", "QUEUE", "EXCHANGE?", "KEY", "TYPE?", "REPLAYS?", "MESSAGE-ID", "BODY"}

func letterRows(items []letter) (rows [][]string) {
	for _, l := range items {
		died, key := deadletters.Death{}, l.RoutingKey
		if len(l.Deaths) > 0 {
			died = l.Deaths[0]
			key = strings.Join(died.Keys, " ")
		}
		id, _ := l.Properties["message_id"].(string)
		kind, _ := l.Properties["type"].(string)
		rows = append(rows, []string{strconv.FormatUint(l.Seq, 10), when(died.Time), cli.OrDash(died.Reason), cli.OrDash(died.Queue), cli.OrDash(died.Exchange), cli.OrDash(key), cli.OrDash(kind),
			strconv.FormatInt(l.Replays, 10), cli.OrDash(id), bodyCell(l.Payload, l.Encoding)})
	}
	return rows
}

func (d *dlqCommands) purge() *cobra.Command {
	var f filterFlags
	var confirm confirmation
	c := &cobra.Command{
		Use:   "purge <queue>",
		Short: "Delete the dead letters that the flags describe",
		Long:  "Delete the dead letters that the flags describe. Without --confirm it only prints how many there are (exit code 5);\nwith it, nothing is deleted unless the number is right. What it prints names the messages it counted, so what arrives\nmeanwhile stays.",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd, d, args[0])
			if err != nil {
				return err
			}
			body := deadLetterRequest{Filter: filter, Confirm: confirm.messages, Position: confirm.position}
			var answer struct {
				Deleted int `json:"deleted"`
			}
			err = d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, args[0], "purge"), body, &answer)
			if failed, ok := conflict(err); ok {
				return unconfirmed(failed, "match")
			}
			if err != nil {
				return err
			}
			return d.Print(cmd.OutOrStdout(), answer, []string{"DELETED"}, [][]string{{strconv.Itoa(answer.Deleted)}})
		},
	}
	f.add(c)
	confirm.addTo(c)
	return c
}

// conflict returns err as an answer of the API if the caller has to confirm a number.
func conflict(err error) (*client.Error, bool) {
	var r *client.Error
	return r, errors.As(err, &r) && r.Status == http.StatusConflict && r.Kind == "unconfirmed"
}

func (d *dlqCommands) export() *cobra.Command {
	var f filterFlags
	var file string
	c := &cobra.Command{
		Use:   "export <queue>",
		Short: "Write dead letters as JSON lines to standard output or a file; they stay in the queue",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd, d, args[0])
			if err != nil {
				return err
			}
			out, done, err := create(cmd.OutOrStdout(), file)
			if err != nil {
				return err
			}
			return errors.Join(d.Stream(cmd.Context(), letters(d.VHost, args[0], "export"), deadLetterRequest{Filter: filter}, out), done())
		},
	}
	f.add(c)
	c.Flags().StringVarP(&file, "file", "f", "", "file to write; it must not exist")
	return c
}

func (d *dlqCommands) edit() *cobra.Command {
	var file string
	var dryRun bool
	c := &cobra.Command{
		Use:   "edit <queue> <seq>",
		Short: "Send one dead letter with another body, key or headers",
		Long: "Without --file it prints what a replay would publish of the message, as JSON. Change that and give it back with --file:\n" +
			"it is published, and the dead letter leaves its queue together with its arrival.",
		Example: `  curfew dlq edit orders.dead 17 > draft.json
  curfew dlq edit orders.dead 17 --file draft.json --dry-run
  curfew dlq edit orders.dead 17 --file draft.json`,
		Args: cli.Exactly(2, "a queue and the number of a message (curfew dlq peek)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := messageNumber(args[1])
			if err != nil {
				return err
			}
			if file != "" {
				return d.resend(cmd, args[0], seq, file, dryRun)
			}
			return d.Stream(cmd.Context(), letters(d.VHost, args[0], "draft"), map[string]any{"seq": seq}, cmd.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", `the changed draft; "-" is standard input`)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "send nothing; print what has changed, and where it would go")
	return c
}

// messageNumber reads the number of a message in its queue.
func messageNumber(text string) (uint64, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, cli.Usagef("a message is named by its number in the queue (curfew dlq peek), not %q", text)
	}
	return seq, nil
}

// resend sends the draft in a file.
func (d *dlqCommands) resend(cmd *cobra.Command, queue string, seq uint64, file string, dryRun bool) error {
	text, err := cli.ReadFile(cmd, file)
	if err != nil {
		return err
	}
	var draft map[string]json.RawMessage
	if err := json.Unmarshal(text, &draft); err != nil {
		return cli.Usagef("the draft is not valid JSON: %w", err)
	}
	draft["seq"] = json.RawMessage(strconv.FormatUint(seq, 10))
	if dryRun {
		draft["dry_run"] = json.RawMessage("true")
		var review deadletters.Review
		if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, queue, "resend"), draft, &review); err != nil {
			return err
		}
		return d.printReview(cmd, &review)
	}
	return d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, queue, "resend"), draft, nil)
}

// create makes a file to write to. If name is "", it returns out.
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
		Short: "Publish exported messages to a queue, from a file or standard input",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return cli.Usagef("%s takes a queue and a file, got %q", cmd.CommandPath(), args)
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
			if err := d.Upload(cmd.Context(), letters(d.VHost, args[0], "import"), in, &text); err != nil {
				return err
			}
			if err := client.Decode(text.Bytes(), &answer); err != nil {
				return err
			}
			return d.Print(cmd.OutOrStdout(), answer, []string{"IMPORTED"}, [][]string{{strconv.Itoa(answer.Imported)}})
		},
	}
}

// follow waits for the end of a run. On a terminal it draws a progress bar.
func (d *dlqCommands) follow(ctx context.Context, errOut io.Writer, id string) (run deadletters.Replay, err error) {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt)
	defer restore()
	bar := table.OnTerminal(errOut)
	for {
		err = d.Call(ctx, http.MethodGet, client.Path("curfew", "replays", id), nil, &run)
		if err != nil && ctx.Err() == nil {
			return run, err
		}
		if err == nil && bar {
			fmt.Fprint(errOut, "\r", progress(&run))
		}
		if err == nil && run.State != deadletters.Running {
			break
		}
		if !cli.Pause(ctx, 100*time.Millisecond) {
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

// progress is the progress bar. The number of scanned messages grows page by page, that of matches at
// once. With a limit the run may end long before it reaches the end of the queue.
func progress(run *deadletters.Replay) string {
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
