package commands

import (
	"cmp"
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
	c.AddCommand(cli.Watched(incidentListCommand(a)), incidentShowCommand(a), maintenanceCommand(a), incidentRulesCommand(a), sinkTestCommand(a))
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
	o.Dir = ""                                                                            // only the running process has any
	o.Publish = func(context.Context, incident.Publication) error { return errElsewhere } // of a broker in another process
	a, err := incident.New(o)
	if err == nil {
		err = a.FileError()
	}
	if err != nil {
		return nil, cli.Usage(err)
	}
	return a, nil
}

var errElsewhere = errors.New("skipped: only the running Curfew publishes there; add --running")

func sinkTestCommand(a *cli.API) *cobra.Command {
	var sink string
	var running bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test and its resolution to each configured sink or to one",
		Long: "Send a test, and then its resolution, to each configured sink or to one. No Curfew needs to be\n" +
			"running: the settings in the environment are used. With --running, the running Curfew sends them, by its own settings.",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var tested incident.TestResults
			if running {
				err = a.Call(cmd.Context(), http.MethodPost, cli.Path("curfew", "incidents", "test"), incident.TestRequest{Sink: sink}, &tested)
			} else {
				var configured *incident.Incidents
				if configured, err = loadIncidents(); err != nil {
					return err
				}
				if tested, err = configured.SendTest(cmd.Context(), sink); err != nil {
					err = cli.Usage(err)
				}
			}
			if err != nil {
				return err
			}
			if len(tested.Sinks) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "no sink but the log is configured: set CURFEW_ALERT_URLS, or name a file in CURFEW_ALERTS")
			}
			return reportTests(cmd.OutOrStdout(), tested.Sinks)
		},
	}
	cmd.Flags().StringVar(&sink, "sink", "", "only the sink of this name; log always exists")
	cmd.Flags().BoolVar(&running, "running", false, "let the running Curfew send them")
	return cmd
}

var errTest = errors.New("a sink does not work")

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
				return a.Print(cmd.OutOrStdout(), list.Conditions, []string{"CONDITION!", "LEVEL!", "WHAT=", "AFFECTS?", "BEGINS AFTER?"}, rows)
			}
			for _, r := range list.Rules {
				rows = append(rows, []string{r.Name, cmp.Or(strings.Join(r.Events, " "), "*"), r.VHost, r.Queue, strings.Join(r.To, " "), cli.OrDash(r.Severity),
					fmt.Sprintf("%d, %s late", r.Count, r.Lateness)})
			}
			return a.Print(cmd.OutOrStdout(), list.Rules, []string{"RULE", "CONDITIONS", "VHOST?", "QUEUE", "TO", "SEVERITY!?", "FROM?"}, rows)
		},
	}
	cmd.Flags().BoolVar(&conditions, "conditions", false, "list what can be wrong")
	return cmd
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
			list := all.Incidents
			if over {
				list = slices.Concat(list, all.Over)
			}
			var rows [][]string
			_, full := cmd.OutOrStdout().(*cli.Screen)
			for _, i := range list {
				what, worst := i.Line(), incident.Affected{}
				if len(i.Worst) > 0 {
					worst = i.Worst[0]
				}
				queue := incident.QueueName{VHost: worst.VHost, Name: worst.Queue}.String() + ": "
				if condition, text, is := strings.Cut(what, ": "+queue); is && full { // which shows the beginning
					what = queue + text + ". " + condition
				}
				rows = append(rows, []string{i.ID, levelOf(&i), a.Time(i.Since), what, worst.VHost, worst.Queue, i.Command, i.Summary + ". " + i.Do})
			}
			for _, w := range all.Windows {
				rows = append(rows, []string{w.ID, "maintenance", a.Time(w.From), "until " + w.Until.UTC().Format("2006-01-02T15:04:05Z") + ": " + describe(&w), "", "", "", ""})
			}
			err := a.Print(cmd.OutOrStdout(), all, []string{"ID!", "LEVEL!", "SINCE", "WHAT=", "VHOST~", "QUEUE~", "SEE~", "ABOUT~"}, rows)
			if !full && !a.JSON() && len(all.Incidents) > 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "curfew incident show says what to do about each")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&over, "over", false, "also those that are over")
	return cmd
}

func incidentShowCommand(a *cli.API) *cobra.Command {
	return &cobra.Command{
		Use:   "show [<incident>...]",
		Short: "Show what to do about incidents, their queues and what happened; without an ID, about all that are not over",
		RunE: func(cmd *cobra.Command, ids []string) error {
			var all incident.Overview
			if err := a.Call(cmd.Context(), http.MethodGet, cli.Path("curfew", "incidents"), nil, &all); err != nil {
				return err
			}
			list := all.Incidents
			if len(ids) > 0 {
				list = slices.DeleteFunc(slices.Concat(list, all.Over), func(i incident.Incident) bool { return !slices.Contains(ids, i.ID) })
			}
			if len(list) < len(ids) {
				return &cli.Error{Status: http.StatusNotFound, Reason: "there is no such incident; curfew incident ls --over lists them"}
			}
			rows, said := [][]string{}, map[string]bool{}
			for _, i := range list {
				do := i.Do
				if said[do] { // an incident above, of the same condition, says what to do
					i.Do = ""
				}
				said[do], rows = true, append(rows, incidentRows(&i, a.Time)...)
			}
			return a.Print(cmd.OutOrStdout(), list, []string{"INCIDENT", "WHAT="}, rows)
		},
	}
}

// incidentRows are all that is known of an incident.
func incidentRows(i *incident.Incident, at func(time.Time) string) (rows [][]string) {
	add := func(what, value string) {
		if value != "" {
			rows = append(rows, []string{what, value})
		}
	}
	state := levelOf(i) + ", " + at(i.Since)
	if i.Losing != nil {
		state += ", losing messages since " + printable.Clock(*i.Losing) + " UTC"
	}
	add(i.ID, state)
	add("what", i.Summary)
	add("do", i.Do)
	add("see", i.Command)
	add("runbook", i.Runbook)
	for _, q := range i.Worst {
		add("queue", incident.QueueName{VHost: q.VHost, Name: q.Queue}.String()+": "+q.Text)
	}
	for _, e := range i.History {
		add(printable.Clock(e.At)+" UTC", e.Text)
	}
	return rows
}

// levelOf is the level of an incident, that it is over, and whether anybody is notified of it.
func levelOf(i *incident.Incident) string {
	level := string(i.Level)
	if i.Ended != nil {
		level = "over"
	} else if i.Ack != nil {
		level += ", acknowledged by " + i.Ack.By
	} else if i.Quiet {
		level += ", in maintenance"
	}
	return level
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
