package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
	"curfew/cmd/internal/settings"
	"curfew/monitor/alert"
)

func alertCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alert",
		Short: "Test sinks, check rules, list firing alerts, silence them",
		RunE:  cli.Group,
	}
	a := cli.WithAPI(cmd)
	cmd.AddCommand(alertTestCommand(a), alertRulesCommand(a), cli.Watched(alertListCommand(a)), silenceCommand(a), unsilenceCommand(a))
	return cmd
}

// loadAlerts loads the alerts that the environment configures, without a running process.
func loadAlerts() (*alert.Alerts, error) {
	s, err := settings.Load()
	if err != nil {
		return nil, err
	}
	return configuredAlerts(&s)
}

// configuredAlerts are the alerts that s configures. The error names each mistake in the alerts file.
func configuredAlerts(s *settings.Settings) (*alert.Alerts, error) {
	o := s.AlertOptions()
	o.Log = zap.NewNop()
	o.Dir = "" // only the running process has silences
	o.Exchange = elsewhere{}
	a, err := alert.New(o)
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

func (elsewhere) Publish(context.Context, alert.Publication) error { return errElsewhere }

func alertTestCommand(a *cli.API) *cobra.Command {
	var sink string
	var running bool
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test alert and its resolution to each configured sink or to one",
		Long: "Send a test alert, and then its resolution, to each configured sink or to one. No Curfew needs to be\n" +
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
	a, err := loadAlerts()
	if err != nil {
		return err
	}
	tested, err := a.SendTest(ctx, sink)
	if err != nil {
		return cli.Usage(err)
	}
	if len(tested) == 0 {
		fmt.Fprintln(out, "no sink but the log is configured: set CURFEW_ALERT_URLS, or name a file in CURFEW_ALERTS")
	}
	for _, t := range tested {
		switch {
		case t.Err == nil:
			fmt.Fprintf(out, "%s: ok\n", t.Sink)
		case errors.Is(t.Err, errElsewhere):
			fmt.Fprintf(out, "%s: %v\n", t.Sink, errElsewhere)
		default:
			fmt.Fprintf(out, "%s: %v\n", t.Sink, t.Err)
			err = errTest
		}
	}
	return err
}

func testRemotely(cmd *cobra.Command, a *cli.API, sink string) error {
	var answer struct{ Sinks map[string]string }
	if err := a.Call(cmd.Context(), http.MethodPost, client.Path("curfew", "alerts", "test"), map[string]string{"sink": sink}, &answer); err != nil {
		return err
	}
	var failed error
	for name, result := range answer.Sinks {
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", name, result)
		if result != "ok" {
			failed = errTest
		}
	}
	return failed
}

func alertRulesCommand(a *cli.API) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check the alerts file and show which sinks get what, in the order of the rules",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			alerts, err := loadAlerts()
			if err != nil {
				return err
			}
			rules := alerts.Rules()
			var rows [][]string
			for _, r := range rules {
				rows = append(rows, []string{r.Name, orAll(r.Events), r.VHost, r.Queue, strings.Join(r.To, " "), cli.OrDash(r.Severity),
					fmt.Sprintf("%d, %s late", r.Count, r.Lateness)})
			}
			return a.Print(cmd.OutOrStdout(), rules, []string{"RULE", "EVENTS", "VHOST?", "QUEUE", "TO", "SEVERITY!?", "FROM?"}, rows)
		},
	}
	return cmd
}

func orAll(events []string) string {
	if len(events) == 0 {
		return "*"
	}
	return strings.Join(events, " ")
}

func alertListCommand(a *cli.API) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short: "List alerts, the most urgent first, then silences and sinks in trouble of the running Curfew",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all struct {
				Alerts   []alert.Status  `json:"alerts"`
				Trouble  []string        `json:"trouble"`
				Silences []alert.Silence `json:"silences"`
			}
			for _, list := range []string{"alerts", "silences"} {
				if err := a.Call(cmd.Context(), http.MethodGet, client.Path("curfew", list), nil, &all); err != nil {
					return err
				}
			}
			var rows [][]string
			for _, s := range all.Alerts {
				rows = append(rows, []string{s.State, s.Severity, a.Time(s.StartsAt), s.Alertname, s.Summary})
			}
			for _, m := range all.Silences {
				rows = append(rows, []string{"silence " + m.ID, "", "until " + m.ExpiresAt.UTC().Format("2006-01-02T15:04:05Z"), cmp.Or(m.Event, "*"), describe(&m)})
			}
			for _, t := range all.Trouble {
				rows = append(rows, []string{"trouble", "", "", "", t})
			}
			return a.Print(cmd.OutOrStdout(), all, []string{"STATE!", "SEVERITY!", "SINCE", "ALERT?", "SUMMARY="}, rows)
		},
	}
	return cmd
}

// describe returns what a silence covers, who made it and why.
func describe(m *alert.Silence) string {
	var parts []string
	for _, p := range [][2]string{{"vhost ", m.VHost}, {"queue ", m.Queue}, {"by ", m.Author}, {"", m.Comment}} {
		if p[1] != "" {
			parts = append(parts, p[0]+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func silenceCommand(a *cli.API) *cobra.Command {
	var m alert.Silence
	var life time.Duration
	var all bool
	cmd := &cobra.Command{
		Use:   "silence --for 2h [--event E] [--vhost V] [--queue Q]",
		Short: "Silence alerts for a time; prints the ID of the silence",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if life <= 0 {
				return cli.Usagef("--for: want a duration such as 30m or 8h")
			}
			if m.Event+m.VHost+m.Queue == "" && !all {
				return cli.Usagef("name what to silence by --event, --vhost or --queue; --all silences everything")
			}
			if m.Author == "" {
				e, err := a.Endpoint()
				if err != nil {
					return err
				}
				m.Author = e.User
			}
			m.ExpiresAt = time.Now().Add(life)
			var made alert.Silence
			if err := a.Call(cmd.Context(), http.MethodPost, client.Path("curfew", "silences"), m, &made); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), made.ID)
			return err
		},
	}
	f := cmd.Flags()
	f.DurationVar(&life, "for", 0, "how long")
	f.StringVar(&m.Event, "event", "", "only this event, such as deadline_missed")
	cli.Offers(cmd, "event", alert.Events()...)
	f.StringVar(&m.VHost, "vhost", "", "only virtual hosts that match this (* stands for any text, ? for any character)")
	f.StringVar(&m.Queue, "queue", "", "only queues that match this")
	f.BoolVar(&all, "all", false, "silence everything")
	f.StringVar(&m.Comment, "comment", "", "why")
	f.StringVar(&m.Author, "author", "", "who made it (default: the user who calls the API)")
	return cmd
}

func unsilenceCommand(a *cli.API) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "unsilence ID...",
		Short: "End silences",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("unsilence takes the IDs of silences (curfew alert ls)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, ids []string) error {
			var errs []error
			for _, id := range ids {
				errs = append(errs, a.Call(cmd.Context(), http.MethodDelete, client.Path("curfew", "silences", id), nil, nil))
			}
			return errors.Join(errs...)
		},
	}
	return cmd
}
