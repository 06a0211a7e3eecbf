package queues

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
	"curfew/monitor/printable"
)

func (d *deadLetters) replay() *cobra.Command {
	var background bool
	op := operate.StartReplay.Op
	c := &cobra.Command{
		Use:   "replay <queue>",
		Short: "Send dead letters back to where they were published, or elsewhere",
		Long: "Send dead letters back to where they were first published (--to origin), or only into the queue in which they first\n" +
			"died (--to queue). With --to onward, the default for curfew.undeliverable, they go on to the dead-letter exchange that they could\n" +
			"not be routed by; with --exchange and --key, elsewhere. A message leaves the dead-letter queue only together with its\n" +
			"arrival: what cannot be routed, has no room or was replayed too often stays and is counted under its reason.\n" +
			"A replay continues after a restart of Curfew.",
		Example: `  curfew dlq replay orders.dead --dry-run
  curfew dlq replay orders.dead --filter 'reason == "expired"' --ttl none --limit 10
  curfew dlq replay orders.dead --exchange orders --key retry --rate 50`,
	}
	c.Args = cli.Exactly(1, "a queue")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		queueName := args[0]
		values, err := d.Values(cmd, op, nil)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("exchange") || cmd.Flags().Changed("key") {
			values["to"] = deadletters.ToExchange
		}
		request, err := op.Decode(values)
		asked, _ := request.(operate.ReplayRequest)
		if err == nil {
			err = asked.Options.Check()
		}
		if err != nil {
			return cli.Usagef("--%w", err)
		}
		var run deadletters.Replay
		if err := d.Call(cmd.Context(), http.MethodPost, letters(d.VHost, queueName, "replay"), values, &run); err != nil {
			return err
		}
		if !background && !asked.DryRun {
			if run, err = d.follow(cmd.Context(), cmd.ErrOrStderr(), run.ID); err != nil {
				return err
			}
		}
		if asked.DryRun && run.Matched == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "there is nothing to replay: no dead letter in %q in virtual host %q matches\n", queueName, d.VHost)
		}
		if err := d.printRun(cmd, run); err != nil || !asked.DryRun || run.Replayed == 0 {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing has moved; to replay only these, and no later messages, add --position %s\n", run.Position)
		return nil
	}
	d.AddFlags(c, op)
	c.Flags().BoolVar(&background, "background", false, "do not wait for the end")
	return c
}

// printRun prints a replay. It returns an error if the replay failed.
func (d *deadLetters) printRun(cmd *cobra.Command, run deadletters.Replay) error {
	if run.DryRun && !d.JSON() {
		run.State = "dry run"
	}
	if err := d.PrintResult(cmd, operate.ShowReplay.Op, run); err != nil {
		return err
	}
	if run.DryRun && !d.JSON() && len(run.Targets) > 0 {
		fmt.Fprintln(cmd.OutOrStdout())
		if err := d.Print(cmd.OutOrStdout(), nil, targetHead, targetRows(run.Targets)); err != nil {
			return err
		}
	}
	if run.State == deadletters.Failed {
		return fmt.Errorf("the replay stopped: %s; when that is fixed, curfew dlq resume %s", run.Error, run.ID)
	}
	return nil
}

var targetHead = []string{"TO QUEUE", "MESSAGES", "CONSUMERS", "EXPIRE AGAIN", "THEN"}

// targetRows are where the messages of a dry run would go.
func targetRows(targets []deadletters.Target) (rows [][]string) {
	for _, t := range targets {
		expire, then := "-", "-"
		if t.Expiring > 0 {
			first, last := cli.Span(time.Duration(t.FirstMillis)*time.Millisecond), cli.Span(time.Duration(t.LastMillis)*time.Millisecond)
			expire = fmt.Sprintf("%d in %s", t.Expiring, first)
			if t.LastMillis > t.FirstMillis && last != first {
				expire += " to " + last
			}
		}
		if t.Back {
			then = "dead letters come here"
		}
		consumers := strconv.Itoa(t.Consumers)
		if t.Consumers == 0 {
			consumers = "none"
		}
		rows = append(rows, []string{t.Queue, strconv.Itoa(t.Messages), consumers, expire, then})
	}
	return rows
}

// printReview prints what a draft has changed.
func (d *deadLetters) printReview(cmd *cobra.Command, r *deadletters.Review) error {
	out := cmd.OutOrStdout()
	if d.JSON() {
		return d.Print(out, r, nil, nil)
	}
	if r.Diff == "" {
		fmt.Fprintln(out, "Nothing has changed.")
	}
	fmt.Fprintln(out, printable.Text(r.Diff, "\n\t"))
	if r.NotJSON != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "the body is not valid JSON: %s\n", r.NotJSON)
	}
	if r.Skipped != "" {
		return fmt.Errorf("the message would stay where it is: %s", r.Skipped)
	}
	return d.Print(out, nil, targetHead, targetRows(r.Targets))
}

func (d *deadLetters) resume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume <replay>",
		Short: operate.ResumeReplay.Title,
		Args:  cli.Exactly(1, "the ID of a replay"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var run deadletters.Replay
			err := d.Call(cmd.Context(), http.MethodPost, cli.Path("curfew", "replays", args[0], "resume"), nil, &run)
			if err == nil {
				run, err = d.follow(cmd.Context(), cmd.ErrOrStderr(), run.ID)
			}
			if err != nil {
				return cli.Unknown(err, operate.ResumeReplay.Op, args[0])
			}
			return d.printRun(cmd, run)
		},
	}
}

// follow waits for the end of a replay. On a terminal it draws a progress bar.
func (d *deadLetters) follow(ctx context.Context, errOut io.Writer, id string) (run deadletters.Replay, err error) {
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt)
	defer restore()
	bar := cli.OnTerminal(errOut)
	for {
		err = d.Call(ctx, http.MethodGet, cli.Path("curfew", "replays", id), nil, &run)
		if err != nil && ctx.Err() == nil {
			return run, err
		}
		if err == nil && bar {
			fmt.Fprintf(errOut, "\r%s  %d replayed", cli.Bar(run.Share()), run.Replayed)
		}
		if err == nil && run.State != deadletters.Running {
			break
		}
		if !deadline.Sleep(ctx, 100*time.Millisecond) {
			if bar {
				fmt.Fprintln(errOut)
			}
			return run, fmt.Errorf("the replay goes on; curfew dlq replays shows it, curfew dlq cancel %s ends it", id)
		}
	}
	if bar {
		fmt.Fprintln(errOut)
	}
	return run, nil
}
