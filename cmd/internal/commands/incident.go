package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/settings"
	"curfew/monitor/incident"
	"curfew/monitor/printable"
)

// addIncidents adds the commands about incidents that are not an operation's.
func addIncidents(f *cli.Families) {
	c, a := f.Of("incident")
	c.Aliases = []string{"incidents", "alert"}
	c.AddCommand(cli.Watched(incidentListCommand(a)), maintenanceCommand(a), incidentRulesCommand(a), sinkTestCommand(a))
}

// loadIncidents loads the incidents that the environment configures, without a running process.
func loadIncidents() (*incident.Incidents, error) {
	s, err := settings.Load()
	if err != nil {
		return nil, err
	}
	return configuredIncidents(&s)
}

// configuredIncidents are the incidents that s configures. The error names each mistake in the alerts file.
func configuredIncidents(s *settings.Settings) (*incident.Incidents, error) {
	o := s.AlertOptions()
	o.Log = zap.NewNop()
	o.Dir = "" // only the running process has any
	o.Exchange = elsewhere{}
	a, err := incident.New(o)
	if err == nil {
		err = a.FileError()
	}
	if err != nil {
		return nil, cli.Usage(err)
	}
	return a, nil
}

// elsewhere is the exchange of a broker in another process.
type elsewhere struct{}

var errElsewhere = errors.New("skipped: only the running Curfew publishes there; add --running")

func (elsewhere) Publish(context.Context, incident.Publication) error { return errElsewhere }

func sinkTestCommand(a *cli.API) *cobra.Command {
	var sink string
	var running bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test and its resolution to each configured sink or to one",
		Long: "Send a test, and then its resolution, to each configured sink or to one. No Curfew needs to be\n" +
			"running: the settings in the environment are used. With --running, the running Curfew sends them, by its own settings.",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if running {
				return testRemotely(cmd, a, sink)
			}
			return testSinks(cmd.Context(), cmd.OutOrStdout(), sink)
		},
	}
	cmd.Flags().StringVar(&sink, "sink", "", "only the sink of this name; log always exists")
	cmd.Flags().BoolVar(&running, "running", false, "let the running Curfew send them")
	return cmd
}

var errTest = errors.New("a sink does not work")

func testSinks(ctx context.Context, out io.Writer, sink string) error {
	a, err := loadIncidents()
	if err != nil {
		return err
	}
	tested, err := a.SendTest(ctx, sink)
	if err != nil {
		return cli.Usage(err)
	}
	if len(tested.Sinks) == 0 {
		fmt.Fprintln(out, "no sink but the log is configured: set CURFEW_ALERT_URLS, or name a file in CURFEW_ALERTS")
	}
	return reportTests(out, tested.Sinks)
}

func testRemotely(cmd *cobra.Command, a *cli.API, sink string) error {
	var answer incident.TestResults
	if err := a.Call(cmd.Context(), http.MethodPost, cli.Path("curfew", "incidents", "test"), map[string]string{"sink": sink}, &answer); err != nil {
		return err
	}
	return reportTests(cmd.OutOrStdout(), answer.Sinks)
}

// reportTests writes how the test of each sink went.
func reportTests(out io.Writer, results map[string]string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(results)) {
		result := results[name]
		if strings.HasSuffix(result, errElsewhere.Error()) {
			result = errElsewhere.Error()
		} else if result != "ok" {
			err = errTest
		}
		fmt.Fprintf(out, "%s: %s\n", name, result)
	}
	return err
}

func incidentRulesCommand(a *cli.API) *cobra.Command {
	var conditions bool
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check the alerts file and show which sinks get what, or with --conditions what can be wrong",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := loadIncidents()
			if err != nil {
				return err
			}
			var rows [][]string
			list := all.Rules()
			if conditions {
				for _, c := range list.Conditions {
					rows = append(rows, []string{c.Name, string(c.Level), c.What, c.Whom, c.Begins})
				}
				return a.Print(cmd.OutOrStdout(), list.Conditions, []string{"CONDITION!", "LEVEL!", "WHAT=", "AFFECTS?", "AFTER?"}, rows)
			}
			for _, r := range list.Rules {
				rows = append(rows, []string{r.Name, orAll(r.Events), r.VHost, r.Queue, strings.Join(r.To, " "), cli.OrDash(r.Severity),
					fmt.Sprintf("%d, %s late", r.Count, r.Lateness)})
			}
			return a.Print(cmd.OutOrStdout(), list.Rules, []string{"RULE", "CONDITIONS", "VHOST?", "QUEUE", "TO", "SEVERITY!?", "FROM?"}, rows)
		},
	}
	cmd.Flags().BoolVar(&conditions, "conditions", false, "list what can be wrong")
	return cmd
}

func orAll(events []string) string {
	if len(events) == 0 {
		return "*"
	}
	return strings.Join(events, " ")
}

func incidentListCommand(a *cli.API) *cobra.Command {
	var over bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List what is wrong in the running Curfew, the worst first, and maintenance windows",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all incident.Overview
			if err := a.Call(cmd.Context(), http.MethodGet, cli.Path("curfew", "incidents"), nil, &all); err != nil {
				return err
			}
			var rows [][]string
			for _, i := range all.Incidents {
				state := string(i.Level)
				if i.Quiet {
					state += ", quiet"
				}
				worst := incident.Affected{}
				if len(i.Worst) > 0 {
					worst = i.Worst[0]
				}
				rows = append(rows, []string{i.ID, state, a.Time(i.Since), i.Summary + about(&i), worst.VHost, worst.Queue, i.Command})
			}
			for _, w := range all.Windows {
				rows = append(rows, []string{w.ID, "maintenance", a.Time(w.From), "until " + w.Until.UTC().Format("2006-01-02T15:04:05Z") + ": " + describe(&w), "", "", ""})
			}
			if over {
				for _, i := range all.Over {
					rows = append(rows, []string{i.ID, "over", a.Time(i.Since), i.Summary, "", "", ""})
				}
			}
			return a.Print(cmd.OutOrStdout(), all, []string{"ID!", "LEVEL!", "SINCE", "WHAT=", "VHOST~", "QUEUE~", "SEE~"}, rows)
		},
	}
	cmd.Flags().BoolVar(&over, "over", false, "also those that are over")
	return cmd
}

// about is since when an incident loses messages, and who has taken it over, or the command that shows more and, if that is known, those that end it.
func about(i *incident.Incident) (text string) {
	if i.Losing != nil {
		text = "; losing since " + printable.Clock(*i.Losing) + " UTC"
	}
	if i.Ack != nil {
		return text + "; acknowledged by " + i.Ack.By
	}
	text += "; see `" + i.Command + "`"
	if strings.Contains(i.Do, "`") {
		text += ". " + i.Do
	}
	return text
}

// describe returns what a maintenance window covers, who made it and why.
func describe(w *incident.Window) string {
	var parts []string
	for _, p := range [][2]string{{"", w.Condition}, {"vhost ", w.VHost}, {"queue ", w.Queue}, {"by ", w.Author}, {"", w.Comment}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func maintenanceCommand(a *cli.API) *cobra.Command {
	var w incident.Window
	var life, in time.Duration
	var all bool
	cmd := &cobra.Command{
		Use: "maintenance --for 2h [--in 1h] [--condition C] [--vhost V] [--queue Q]", Aliases: []string{"silence"},
		Short: "Notify nobody for a time of incidents of some queues; prints the ID of the window",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if life <= 0 {
				return cli.Usagef("--for: want a duration such as 30m or 8h")
			}
			if w.Condition+w.VHost+w.Queue == "" && !all {
				return cli.Usagef("name what it is about by --condition, --vhost or --queue; --all covers everything")
			}
			w.From = time.Now().Add(in)
			w.Until = w.From.Add(life)
			var made incident.Window
			if err := a.Call(cmd.Context(), http.MethodPost, cli.Path("curfew", "maintenance"), w, &made); err != nil {
				return err
			}
			return a.Say(cmd, made, made.ID)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&life, "for", 0, "how long")
	f.DurationVar(&in, "in", 0, "in how long it begins (default: now)")
	f.StringVar(&w.Condition, "condition", "", "only this condition, such as deadline_missed")
	cli.Offers(cmd, "condition", incident.Names()...)
	f.StringVar(&w.VHost, "vhost", "", "only virtual hosts that match this (* stands for any text, ? for any character)")
	f.StringVar(&w.Queue, "queue", "", "only queues that match this")
	f.BoolVar(&all, "all", false, "everything")
	f.StringVar(&w.Comment, "comment", "", "why")
	f.StringVar(&w.Author, "author", "", "who made it (default: the user who calls the API)")
	return cmd
}
