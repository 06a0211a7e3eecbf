package queues

import (
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/client"
)

// runs list and cancel operations that may take long.
type runs struct{ *cli.API }

// run is one as the API returns it.
type run struct {
	ID        string     `json:"id"`
	Operation string     `json:"operation"`
	VHost     string     `json:"vhost"`
	Queue     string     `json:"queue"`
	User      string     `json:"user"`
	State     string     `json:"state"`
	Started   time.Time  `json:"started"`
	Ended     *time.Time `json:"ended"`
	Done      int        `json:"done"`
	Total     int        `json:"total"`
	Result    any        `json:"result"`
	Failure   *struct {
		Status int    `json:"status"`
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	} `json:"failure"`
}

// Runs is curfew runs.
func Runs() *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, show and cancel operations that take long: imports, purges and replays",
		RunE:  cli.Group,
	}
	r := &runs{cli.WithAPI(c)}
	c.AddCommand(cli.Watched(r.list()), cli.Watched(r.one("show", "Show one", http.MethodGet)),
		r.one("cancel", "Stop one; what it has done stays done, and an import changes everything or nothing", http.MethodDelete))
	return c
}

func (r *runs) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List those that run, and the last that have ended",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []run
			if err := r.Call(cmd.Context(), http.MethodGet, client.Path("curfew", "runs"), nil, &list); err != nil {
				return err
			}
			return r.print(cmd, list, list)
		},
	}
}

func (r *runs) one(name, short, method string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " <run>",
		Short: short,
		Args:  cli.Exactly(1, "the ID of a run (curfew runs list)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var one run
			if err := r.Call(cmd.Context(), method, client.Path("curfew", "runs", args[0]), nil, &one); err != nil {
				return err
			}
			return r.print(cmd, one, []run{one})
		},
	}
}

func (r *runs) print(cmd *cobra.Command, all any, list []run) error {
	var rows [][]string
	for _, one := range list {
		done, why := strconv.Itoa(one.Done), "-"
		if one.Total > 0 {
			done += " of " + strconv.Itoa(one.Total)
		}
		if one.Failure != nil {
			why = cli.Text(one.Failure.Reason)
		}
		rows = append(rows, []string{one.ID, one.Operation, cli.OrDash(one.VHost), cli.OrDash(one.Queue), one.User, one.State, r.Time(one.Started), done, why})
	}
	return r.Print(cmd.OutOrStdout(), all, []string{"RUN", "OPERATION", "VHOST", "QUEUE?", "BY", "STATE", "STARTED", "DONE", "WHY?"}, rows)
}
