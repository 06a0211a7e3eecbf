package queues

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/cmd/internal/cli"
)

// deadLetters look at, replay, edit and delete dead letters.
type deadLetters struct{ *cli.API }

// AddDeadLetters adds commands about dead letters.
func AddDeadLetters(f *cli.Families) {
	c, api := f.Of("dlq")
	c.Example = `  curfew dlq list
  curfew dlq groups orders.dead
  curfew dlq search orders.dead --newest --filter 'json.customer.id == 7'
  curfew dlq show orders.dead 17
  curfew dlq replay orders.dead --dry-run
  curfew dlq replay orders.dead --filter 'died > ago("2h")' --rate 100`
	d := &deadLetters{api}
	peek := d.finder("peek <queue>", "Show a queue's first messages with their history; removes nothing", 10, false)
	search := d.finder("search <queue>", "Show the dead letters that the filter selects; removes nothing", 100, true)
	c.AddCommand(cli.Watched(d.groups()), cli.Watched(peek), cli.Watched(search), d.show(), d.filters(), d.replay(), d.resume(), d.edit(), d.purge(), d.export(), d.importFile())
	d.OffersQueues(c)
}

func (d *deadLetters) groups() *cobra.Command {
	var byType bool
	c := &cobra.Command{Use: "groups <queue>", Short: "Count a queue's dead letters by reason, queue, exchange and age, and by message type"}
	d.filtered(c, func(cmd *cobra.Command, queueName string, filter deadletters.Filter) error {
		var list []deadletters.Group
		if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, queueName, "groups"), map[string]any{"filter": filter, "by_type": byType}, &list); err != nil {
			return err
		}
		var rows [][]string
		for _, g := range list {
			if g.Why != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), d.parkedHint(&g))
			}
			row := []string{cli.OrDash(g.Reason + deadletters.ReasonWords(g.Reason)), cli.OrDash(g.Queue), cli.OrDash(g.Exchange), strconv.Itoa(g.Messages)}
			if byType && g.Type != nil {
				row = slices.Insert(row, 3, cli.OrDash(*g.Type))
			} else if byType {
				return errors.New("this Curfew is too old to tell types apart")
			}
			for _, n := range g.Ages {
				row = append(row, strconv.Itoa(n))
			}
			rows = append(rows, append(row, d.Time(g.Oldest), d.Time(g.Newest)))
		}
		if len(list) == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "no dead letter in %q in virtual host %q matches\n", queueName, d.VHost)
		}
		head := []string{"REASON", "QUEUE", "EXCHANGE?", "MESSAGES", "<1M", "<1H", "<1D", "OLDER", "OLDEST", "NEWEST?"}
		if byType {
			head = slices.Insert(head, 3, "TYPE")
		}
		return d.Print(cmd.OutOrStdout(), list, head, rows)
	})
	c.Flags().BoolVar(&byType, "by-type", false, "count those of different message types apart (the property type)")
	return c
}

// parkedHint explains why messages are parked, and what to do about it.
func (d *deadLetters) parkedHint(g *deadletters.Group) string {
	exchange := strconv.Quote(g.Toward)
	if g.Toward == "" {
		exchange = "the default exchange"
	}
	onward := g.Filter().Onward(d.VHost)
	switch {
	case g.Why == deadletters.CauseNoQueue && g.Toward == "":
		return fmt.Sprintf("%d from %s are parked because there is no queue %q. Declare it, then: %s", g.Messages, cli.OrDash(g.Queue), g.Key, onward)
	case g.Why == deadletters.CauseNoExchange:
		return fmt.Sprintf("%d from %s are parked because exchange %s does not exist. Declare it and bind a queue, then: %s", g.Messages, cli.OrDash(g.Queue), exchange, onward)
	case g.Why == deadletters.CauseNoQueue:
		return fmt.Sprintf("%d from %s are parked because no queue is bound to %s for key %q. Bind one, then: %s", g.Messages, cli.OrDash(g.Queue), exchange, g.Key, onward)
	}
	return fmt.Sprintf("%d from %s are parked, but %s leads to a queue now: %s", g.Messages, cli.OrDash(g.Queue), exchange, onward)
}

func (d *deadLetters) finder(use, short string, count int, filtered bool) *cobra.Command {
	var f filterFlags
	truncate, newest, after := 0, false, uint64(0)
	c := &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := f.filter(cmd, d, args[0])
			if err != nil {
				return err
			}
			var answer deadletters.Page
			bodyBytes := bodyBytes(d.API, cmd, truncate, count)
			query := map[string]any{"filter": filter, "after": after, "newest": newest, "count": count, "truncate": bodyBytes}
			if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, args[0], "search"), query, &answer); err != nil {
				return err
			}
			if err := d.Print(cmd.OutOrStdout(), answer.Items, letterHead, d.letterRows(answer.Items)); err != nil {
				return err
			}
			if answer.Next != 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "there are more: raise --count (at most 1000), continue with --after %d, or narrow the search\n", answer.Next)
			}
			return nil
		},
	}
	if filtered {
		f.add(c)
	}
	c.Flags().IntVarP(&count, "count", "n", count, "the most messages")
	c.Flags().BoolVar(&newest, "newest", false, "the newest first")
	c.Flags().Uint64Var(&after, "after", 0, "continue after the message with this number")
	c.Flags().IntVar(&truncate, "truncate", 200, truncateHelp)
	return c
}

var letterHead = []string{"SEQ", "DIED", "REASON", "QUEUE", "EXCHANGE?", "KEY?", "TYPE?", "REPLAYS?", "MESSAGE-ID", "BODY"}

func (d *deadLetters) letterRows(items []deadletters.Item) (rows [][]string) {
	for _, l := range items {
		died, key := deadletters.Death{}, l.RoutingKey
		if len(l.Deaths) > 0 {
			died = l.Deaths[0]
			key = strings.Join(died.Keys, " ")
		}
		id, _ := l.Properties["message_id"].(string)
		kind, _ := l.Properties["type"].(string)
		rows = append(rows, []string{strconv.FormatUint(uint64(l.Seq), 10), d.Time(died.Time), cli.OrDash(died.Reason), cli.OrDash(died.Queue), cli.OrDash(died.Exchange), cli.OrDash(key), cli.OrDash(kind),
			strconv.FormatInt(l.Replays, 10), cli.OrDash(id), bodyCell(l.Payload, l.Encoding)})
	}
	return rows
}

func (d *deadLetters) purge() *cobra.Command {
	var confirm confirmation
	c := &cobra.Command{
		Use:   "purge <queue>",
		Short: "Delete the dead letters that the filter selects",
		Long:  "Delete the dead letters that the filter selects. Without --confirm it only prints how many there are (exit code 5);\nwith it, nothing is deleted unless the number is right. The value it prints also names the messages that it counted, so later\nones stay.",
	}
	d.filtered(c, func(cmd *cobra.Command, queueName string, filter deadletters.Filter) error {
		confirm.Filter = filter
		return confirm.purge(d.API, cmd, letters(d.VHost, queueName, "purge"), "match")
	})
	c.Flags().Var(&confirm, "confirm", confirmHelp)
	return c
}

func (d *deadLetters) export() *cobra.Command {
	var file string
	c := &cobra.Command{Use: "export <queue>", Short: "Write dead letters as JSON lines to standard output or a file; they stay in the queue"}
	d.filtered(c, func(cmd *cobra.Command, queueName string, filter deadletters.Filter) error {
		out, done, err := cli.Create(cmd.OutOrStdout(), file)
		if err != nil {
			return err
		}
		return errors.Join(d.Stream(cmd.Context(), letters(d.VHost, queueName, "export"), map[string]any{"filter": filter}, out), done())
	})
	c.Flags().StringVarP(&file, "file", "f", "", "file to write; it must not exist")
	return c
}

func (d *deadLetters) edit() *cobra.Command {
	var file string
	var dryRun bool
	c := &cobra.Command{
		Use:   "edit <queue> <seq>",
		Short: "Send a dead letter again with another body, key or headers",
		Long: "Without --file it prints the message that a replay would publish, as JSON. Change that and pass it with --file:\n" +
			"it is published, and the dead letter leaves its queue when the message arrives.",
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
	c.Flags().BoolVar(&dryRun, "dry-run", false, "send nothing; print what has changed, and where the message would go")
	return c
}

// messageNumber reads the number of a message in its queue.
func messageNumber(text string) (uint64, error) {
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, cli.Usagef("%q is invalid: want the number of a message in the queue (curfew dlq peek)", text)
	}
	return seq, nil
}

// resend sends the draft in a file.
func (d *deadLetters) resend(cmd *cobra.Command, queue string, seq uint64, file string, dryRun bool) error {
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
	if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, queue, "resend"), draft, nil); err != nil {
		return err
	}
	return d.Say(cmd, map[string]any{"sent_again": seq, "queue": queue, "vhost": d.VHost}, fmt.Sprintf("sent dead letter %d of %q again", seq, queue))
}

func (d *deadLetters) importFile() *cobra.Command {
	return &cobra.Command{
		Use:   "import <queue> [file]",
		Short: "Publish exported messages to a queue, from a file or standard input",
		Args:  cli.Between(1, 2, "a queue and a file"),
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
			if err := d.Copy(cmd.Context(), 0, http.MethodPost, letters(d.VHost, args[0], "import"), in, &text); err != nil {
				return err
			}
			if err := cli.Decode(text.Bytes(), &answer); err != nil {
				return err
			}
			return d.Print(cmd.OutOrStdout(), answer, []string{"IMPORTED"}, [][]string{{strconv.Itoa(answer.Imported)}})
		},
	}
}
