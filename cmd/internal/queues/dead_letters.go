package queues

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

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
	c.AddCommand(d.show(), d.filters(), d.replay(), d.resume(), d.edit(), d.export(), d.importFile())
	d.OffersQueues(c)
}

func (d *deadLetters) export() *cobra.Command {
	var file string
	c := &cobra.Command{Use: "export <queue>", Short: "Write dead letters as JSON lines to standard output or a file; they stay in the queue", Args: cli.Exactly(1, "a queue")}
	cli.AddFilter(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := d.Filter(cmd, args[0])
		if err != nil {
			return err
		}
		out, done, err := cli.Create(cmd.OutOrStdout(), file)
		if err != nil {
			return err
		}
		return errors.Join(d.Stream(cmd.Context(), letters(d.VHost, args[0], "export"), map[string]any{"filter": filter}, out), done())
	}
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
