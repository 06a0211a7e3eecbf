package queues

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/cmd/internal/cli"
	"curfew/monitor/history"
)

// History shows the history of a queue, or of all.
func History() *cobra.Command {
	span, points := time.Hour, 30
	var a *cli.API
	c := &cobra.Command{
		Use:   "history [queue]",
		Short: "Show the last hour, or up to a day, of one queue or of all: depth, rates, expiries and lateness",
		Long: `Show how many messages waited, came, went and expired, and how late, of one queue or of all. IN and OUT are messages a second. DEPTH and
AT RISK are the most in the time of a row, LATENESS is that of 99 in 100 expired messages in its worst second. MEANT is how many of the expired ones were meant to. In a trend
a space is a time of which nothing is known. It takes a user who may see the status.`,
		Args: cli.Between(0, 1, "at most one queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{"span": {span.String()}, "points": {strconv.Itoa(points)}}
			if len(args) == 1 {
				query.Set("vhost", a.VHost)
				query.Set("queue", args[0])
			}
			text, err := a.Fetch(cmd.Context(), http.MethodGet, cli.Path("curfew", "history")+"?"+query.Encode(), http.NoBody)
			if err != nil {
				return err
			}
			var past history.Answer
			if err := cli.Decode(text, &past); err != nil {
				return err
			}
			if a.JSON() {
				return a.Print(cmd.OutOrStdout(), json.RawMessage(text), nil, nil)
			}
			return printHistory(cmd, a, &past)
		},
	}
	a = cli.WithVHost(c)
	c.Flags().DurationVar(&span, "span", span, "how far back, from 1m to 24h")
	c.Flags().IntVarP(&points, "points", "n", points, "the most rows")
	c.ValidArgsFunction = cli.Arguments(a.Completing("queue"))
	return cli.Watched(c)
}

// pastColumn is one of the numbers of the history; nil is unknown.
type pastColumn struct {
	heading, name string
	of            []*float64
}

// pastColumns are the columns of the numbers that exist. Those of a second are of the time of a row in the answer.
func pastColumns(p *history.Answer) (list []pastColumn) {
	for _, c := range []struct {
		heading, name string
		of            []*int64
		each          int64 // what the numbers are divided by
	}{
		{"DEPTH", "depth", p.Depth, 1}, {"AT RISK!", "at risk", p.AtRisk, 1}, {"IN?", "in/s", p.Published, p.Step}, {"OUT?", "out/s", p.Delivered, p.Step},
		{"EXPIRED", "expired", p.Expired, 1}, {"MEANT?", "meant", p.Meant, 1}, {"LATE!", "late", p.Late, 1},
	} {
		if c.of == nil {
			continue
		}
		one := pastColumn{c.heading, c.name, make([]*float64, len(c.of))}
		for i, n := range c.of {
			if n != nil {
				one.of[i] = new(float64(*n) / float64(c.each))
			}
		}
		list = append(list, one)
	}
	return append(list, pastColumn{"LATENESS", "lateness p99, ms", p.Lateness})
}

func (c *pastColumn) cell(i int) string {
	if i < 0 || i >= len(c.of) || c.of[i] == nil {
		return "-"
	}
	return strconv.FormatFloat(math.Round(*c.of[i]*10)/10, 'f', -1, 64)
}

// printHistory prints the trends, a row for each point, and what else happened.
func printHistory(cmd *cobra.Command, a *cli.API, p *history.Answer) error {
	columns := pastColumns(p)
	trends, rows, head := [][]string{}, [][]string{}, []string{"FROM"}
	for _, c := range columns {
		last, most := len(c.of)-1, 0
		for i, v := range c.of {
			if v != nil && (c.of[most] == nil || *v > *c.of[most]) {
				most = i
			}
		}
		trends = append(trends, []string{c.name, c.cell(last), c.cell(most), sparkline(c.of)})
		head = append(head, c.heading)
	}
	for i := range p.Depth {
		row := []string{a.Time(time.Unix(p.From+int64(i)*p.Step, 0))}
		for _, c := range columns {
			row = append(row, c.cell(i))
		}
		rows = append(rows, row)
	}
	w := cmd.OutOrStdout()
	if err := a.Print(w, nil, []string{"WHAT", "LAST", "MOST", "TREND"}, trends); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nEach row is %v.\n", time.Duration(p.Step)*time.Second)
	if err := a.Print(w, nil, head, rows); err != nil || len(p.Marks) == 0 {
		return err
	}
	marks := [][]string{}
	for _, m := range p.Marks {
		marks = append(marks, []string{a.Time(time.UnixMilli(m.At)), cli.OrDash(m.VHost), m.Text})
	}
	fmt.Fprintln(w)
	return a.Print(w, nil, []string{"WHEN", "VHOST", "WHAT HAPPENED"}, marks)
}

// sparkline draws a number over time, from 0 to the maximum; an unknown number is a space.
func sparkline(values []*float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	bars, most := []rune(levels), 0.0
	for _, v := range values {
		if v != nil {
			most = max(most, *v)
		}
	}
	var line strings.Builder
	for _, v := range values {
		switch {
		case v == nil:
			line.WriteByte(' ')
		case most == 0:
			line.WriteRune(bars[0])
		default:
			line.WriteRune(bars[int(math.Round(*v/most*float64(len(bars)-1)))])
		}
	}
	return line.String()
}
