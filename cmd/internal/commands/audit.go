package commands

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/cmd/internal/cli"
	"curfew/monitor/audit"
)

// auditCommands read the record of expired messages from a running Curfew, or with --dir from a data folder.
type auditCommands struct {
	*cli.API
	dir         string
	query       audit.Query
	since, till string
}

func auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Search and export the record of what expired and who changed what, from a running Curfew or from a data folder",
		Example: `  curfew audit search --queue orders --since 1h
  curfew audit search --reason changed --since 24h
  curfew audit search --min-lateness 100ms --dir /var/lib/curfew
  curfew audit export --since 24h > expired.jsonl`,
		RunE: cli.Group,
	}
	a := &auditCommands{API: cli.WithAPI(c)}
	f := c.PersistentFlags()
	f.StringVar(&a.dir, "dir", "", "read this data folder (CURFEW_DATA_DIR, whether Curfew runs or not) instead of asking a running Curfew")
	f.StringVar(&a.query.VHost, "vhost", "", "only in this virtual host")
	f.StringVar(&a.query.Queue, "queue", "", "only in this queue")
	f.StringVar(&a.query.MessageID, "message-id", "", "only with this message-id")
	f.StringVar(&a.query.Path, "path", "", "only expiries by this path: eager, index, lazy, requeue, manual or scheduled")
	f.StringVar(&a.query.Outcome, "outcome", "", "only dead_lettered, dropped or parked")
	f.StringVar(&a.query.Reason, "reason", "", "only expired, rejected, maxlen or delivery_limit; changed is what users did")
	f.StringVar(&a.query.User, "by", "", "only what this user changed")
	f.DurationVar(&a.query.MinLateness, "min-lateness", 0, "only with at least this lateness")
	f.StringVar(&a.since, "since", "", "from this instant (RFC 3339), or within this time, such as 2h")
	f.StringVar(&a.till, "before", "", "before this instant, or longer ago than this time")
	cli.Offers(c, "path", audit.Paths...)
	cli.Offers(c, "reason", audit.Reasons...)
	cli.Offers(c, "outcome", audit.Outcomes...)
	c.AddCommand(a.search(), a.export())
	return c
}

// complete reads the flags that are instants and checks the query.
func (a *auditCommands) complete() (err error) {
	if a.query.From, err = deadletters.ParseInstant(a.since, time.Now()); err != nil {
		return cli.Usagef("--since: %w", err)
	}
	if a.query.To, err = deadletters.ParseInstant(a.till, time.Now()); err != nil {
		return cli.Usagef("--before: %w", err)
	}
	if err = a.query.Check(); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// records searches the data folder.
func (a *auditCommands) records(ctx context.Context) (iter.Seq2[audit.Record, error], error) {
	folder := filepath.Join(a.dir, "audit")
	if _, err := os.Stat(folder); err != nil {
		return nil, fmt.Errorf("%w; --dir takes a data folder that was written with CURFEW_AUDIT on", err)
	}
	return audit.Search(ctx, folder, a.query), nil
}

// location is the path of the API with the query's parameters.
func (a *auditCommands) location(format string) string {
	v := a.query.Values()
	v.Set("format", format)
	return cli.Path("curfew", "audit") + "?" + v.Encode()
}

func (a *auditCommands) search() *cobra.Command {
	var count int
	c := &cobra.Command{
		Use:   "search",
		Short: "Show the last records, the newest first",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := cli.Everywhere(cmd); err != nil {
				return err
			}
			a.query.Limit = count
			if err := a.complete(); err != nil {
				return err
			}
			list, err := a.newest(cmd.Context())
			if err != nil {
				return err
			}
			var rows [][]string
			out := make([]*audit.Record, len(list))
			for i := range list {
				out[i], rows = &list[i], append(rows, a.row(&list[i]))
			}
			return a.Print(cmd.OutOrStdout(), out, []string{"AT", "WHAT", "VHOST?", "QUEUE", "MESSAGE-ID", "LATE", "PATH?", "OUTCOME=", "TO="}, rows)
		},
	}
	c.Flags().IntVarP(&count, "count", "n", 20, "the most records")
	cli.AllVHosts(c)
	return cli.Watched(c)
}

// row shows a record. A change has its user where a message has its id.
func (a *auditCommands) row(r *audit.Record) []string {
	at := a.Time(time.UnixMilli(r.At))
	if r.Lost > 0 {
		return []string{at, "-", "-", "-", "-", "-", "-", "-", english.Plural(int(r.Lost), "record", "") + " missing"} // in the column that is wrapped
	}
	if c := r.Change; c != nil {
		return []string{at, operate.Operation(c.Operation).Words(), cli.OrDash(r.VHost), cli.OrDash(r.Queue), "by " + c.User, "-", c.Face, c.Result, cli.OrDash(c.Detail)}
	}
	lateness := "-"
	if r.Died() == audit.Expired {
		if lateness = r.Lateness().String(); r.Held() {
			lateness += ", " + deadline.HeldLong
		}
	}
	return []string{at, r.Died(), r.VHost, r.Queue, cli.OrDash(string(r.MessageID)), lateness, cli.OrDash(r.Path), r.Outcome, cli.OrDash(strings.Join(r.To, " "))}
}

func (a *auditCommands) newest(ctx context.Context) (list []audit.Record, err error) {
	if a.dir == "" {
		return list, a.explain(a.Call(ctx, http.MethodGet, a.location("json"), nil, &list))
	}
	a.query.Newest = true
	records, err := a.records(ctx)
	if err != nil {
		return nil, err
	}
	for r, err := range records {
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// explain adds to an error how to turn the audit on.
func (a *auditCommands) explain(err error) error {
	if r, ok := errors.AsType[*cli.Error](err); ok && r.Status == 404 {
		return &cli.Error{Status: 404, Reason: "this Curfew keeps no audit: that needs CURFEW_AUDIT=true and a CURFEW_DATA_DIR"}
	}
	return err
}

func (a *auditCommands) export() *cobra.Command {
	var format, file string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write all records, the oldest first, as JSON lines or CSV",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" && format != "csv" {
				return cli.Usagef("--format: %q is invalid: want jsonl or csv", format)
			}
			if err := a.complete(); err != nil {
				return err
			}
			out, done, err := cli.Create(cmd.OutOrStdout(), file)
			if err != nil {
				return err
			}
			if a.dir == "" {
				return errors.Join(a.explain(a.Copy(cmd.Context(), 0, http.MethodGet, a.location(format), http.NoBody, out)), done())
			}
			records, err := a.records(cmd.Context())
			if err != nil {
				return errors.Join(err, done())
			}
			if format == "csv" {
				return errors.Join(audit.WriteCSV(out, records), done())
			}
			return errors.Join(audit.WriteJSONLines(out, records), done())
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl or csv")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write; it must not exist")
	return c
}
