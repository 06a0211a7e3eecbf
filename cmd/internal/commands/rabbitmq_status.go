package commands

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/monitor/printable"
	"curfew/monitor/rabbitmq"
)

const rabbitmqStatusHelp = `Print what a running Curfew does with the queues of its RabbitMQ.

STATE is what the keeper of a queue does (keeping, standing_aside, ...), refused, exact or not_worth if the queue is not to be
kept, or observed. For queues of another Curfew it is what that Curfew last reported. LATE is how late Curfew gave kept messages to RabbitMQ to expire or forward: upper bounds for the median and for 99 in 100. What RabbitMQ takes for that is not in it.`

func rabbitmqStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Print the kept and observed queues: held, due next, lateness, state with its reason, who keeps them",
		Long:  rabbitmqStatusHelp,
		Args:  cli.NoArguments,
	}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var s rabbitmq.Status
		if err := a.Call(cmd.Context(), http.MethodGet, cli.Path("curfew", "rabbitmq"), nil, &s); err != nil {
			return err
		}
		var rows [][]string
		for i := range s.Queues {
			rows = append(rows, rabbitmqRow(&s.Queues[i]))
		}
		headings := []string{"QUEUE", "TYPE", "MODE", "STATE", "KEPT BY", "HELD", "DUE NEXT", "LATE", "MISSED", "WHY"}
		if err := a.Print(cmd.OutOrStdout(), s, headings, rows); err != nil || a.JSON() {
			return err
		}
		return printAround(cmd.ErrOrStderr(), &s)
	}
	return cli.Watched(c)
}

func rabbitmqRow(q *rabbitmq.Queue) []string {
	held, due, lateness, missed, why := "-", "-", "-", "-", strings.TrimSpace(q.Reason+" "+q.Instead)
	if q.Here || q.Reported {
		if held = strconv.Itoa(q.Held); q.Aside > 0 {
			held += fmt.Sprintf(" + %d aside", q.Aside)
		}
	}
	if q.NextDue != 0 {
		due = cli.From(time.Now(), time.UnixMilli(q.NextDue))
	}
	if q.P50 != nil {
		lateness = "<= " + millisBelow(q.P50) + " / " + millisBelow(q.P99)
	}
	if o := q.Observed; o != nil {
		if missed = strconv.FormatUint(o.Missed, 10); !o.Tapped {
			missed = "-"
		}
		if o.Overdue > 0 {
			missed += fmt.Sprintf(" (%d still there)", o.Overdue)
		}
	}
	return []string{q.Queue, cli.OrDash(q.Type), q.Mode, q.State, cli.OrDash(q.Keeper), held, due, lateness, missed, cli.OrDash(why)}
}

// millisBelow is an upper bound in ms; nil: the value is above all bounds.
func millisBelow(bound *float64) string {
	if bound == nil {
		return "more"
	}
	return strconv.FormatFloat(*bound, 'f', -1, 64) + " ms"
}

// printAround prints what is not about a single queue.
func printAround(w io.Writer, s *rabbitmq.Status) error {
	lines := []string{fmt.Sprintf("%s, cluster %s at %s; Curfews: %s; observes: %s; Redis: %s",
		cli.OrDash(s.Broker), cli.OrDash(s.Cluster), s.Address, strings.Join(s.Members, ", "), cli.OrDash(s.Observer), s.Redis)}
	for _, reason := range s.Reasons {
		lines = append(lines, "! "+reason)
	}
	for _, line := range append(lines, s.Notes...) {
		if _, err := fmt.Fprintln(w, printable.Text(line, "")); err != nil {
			return err
		}
	}
	return nil
}

// rabbitmqTurnCommand asks for a change. done says what it has done.
func rabbitmqTurnCommand(use, short, done string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cli.NoArguments}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.Call(cmd.Context(), http.MethodPost, cli.Path("curfew", "rabbitmq", use), nil, nil); err != nil {
			return err
		}
		return a.Say(cmd, map[string]string{"done": done}, done)
	}
	return c
}
