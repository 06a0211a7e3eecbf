package queues

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/cmd/internal/cli"
	"curfew/monitor/incident"
)

// queues list, show and purge queues and peek into them.
type queues struct{ *cli.API }

// AddQueues adds commands about queues.
func AddQueues(f *cli.Families) {
	c, api := f.Of("queue")
	c.Aliases = []string{"queues"}
	q := &queues{api}
	c.AddCommand(cli.Watched(q.list()), cli.Watched(q.show()), DeclareQueue(q.API, "declare"))
	q.OffersQueues(c)
}

// orders compare queues in a list: the worst, the largest or the first by name first.
var orders = map[string]func(a, b map[string]any) int{
	"name": func(_, _ map[string]any) int { return 0 },
	"risk": func(a, b map[string]any) int { // after the worst, those with most traffic
		return cmp.Or(standing(a).Compare(standing(b)), cmp.Compare(number(b["in_rate"])+number(b["out_rate"]), number(a["in_rate"])+number(a["out_rate"])))
	},
	"in":      most("in_rate"),
	"out":     most("out_rate"),
	"ready":   most("messages_ready"),
	"unacked": most("messages_unacknowledged"),
	"lost": func(a, b map[string]any) int {
		return cmp.Or(most("lost_last_hour")(a, b), most("dead_lettered_last_hour")(a, b))
	},
	"oldest": most("oldest_message_age"),
	"purpose": func(a, b map[string]any) int {
		return cmp.Compare(slices.Index(deadline.Purposes, word(a["purpose"])), slices.Index(deadline.Purposes, word(b["purpose"])))
	},
}

func most(field string) func(a, b map[string]any) int {
	return func(a, b map[string]any) int { return cmp.Compare(number(b[field]), number(a[field])) }
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

func standing(q map[string]any) *incident.Standing {
	f, _ := q["forecast"].(*deadline.Forecast)
	return &incident.Standing{Level: incident.Level(word(q["incident_level"])), Place: int(number(q["incident_place"])), Forecast: f, Lost: int64(number(q["lost_last_hour"])), Rescued: int64(number(q["dead_lettered_last_hour"]))}
}

func (q *queues) list() *cobra.Command {
	var purpose, order string
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the queues, with rates, deadlines and how many of those will be missed",
		Long: `List the queues of all virtual hosts, or of that in --vhost. PURPOSE is what a queue is for: said by its argument x-curfew-purpose or a
policy, or inferred. IN and OUT are messages a second that come in, dead letters among them, and are delivered. OLDEST is how long the oldest message has been there, P99 how long 99 in 100
of those consumed in the last minutes waited. DEADLINES is how many ready messages have one, AT RISK how many of them nobody will have consumed by then, as
things are, where that is a loss; both take a user who may see the status. LOST is how many expired in the last hour and are gone, TO DLQ how many were dead-lettered instead,
both where an expiry is a loss; MEANT is how many expired where it was none. INCIDENT is the level of the incident that the queue is in; WAITING how many wait for their next try (see curfew retries).`,
		Example: `  curfew queue list --sort risk
  curfew queue list --purpose work --vhost shop`,
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := cli.Everywhere(cmd); err != nil {
				return err
			}
			if purpose != "" && !slices.Contains(deadline.Purposes, purpose) {
				return cli.Usagef("--purpose: %q is invalid: want %s", purpose, strings.Join(deadline.Purposes, ", "))
			}
			by := orders[order]
			if by == nil {
				return cli.Usagef("--sort: %q is invalid: want %s", order, strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
			}
			path, vhost := cli.Path("queues"), "VHOST"
			if cmd.Flags().Changed("vhost") {
				path, vhost = cli.Path("queues", q.VHost), "VHOST?"
			}
			var list []map[string]any
			if err := q.Call(cmd.Context(), http.MethodGet, path, nil, &list); err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(one map[string]any) bool { return purpose != "" && one["purpose"] != purpose })
			forecasts := q.forecasts(cmd.Context())
			for _, one := range list {
				if f := forecasts[incident.QueueName{VHost: cli.Text(one["vhost"]), Name: cli.Text(one["name"])}]; f != nil {
					one["forecast"], one["deadlines"], one["at_risk"] = f, float64(f.Deadlines), float64(f.AtRisk)
				} else if forecasts != nil {
					one["deadlines"], one["at_risk"] = 0.0, 0.0
				}
			}
			slices.SortStableFunc(list, by)
			var rows [][]string
			for _, one := range list {
				waiting := known(one["messages_delayed"])
				if waiting == "0" {
					waiting = "-"
				}
				rows = append(rows, []string{cli.Text(one["vhost"]), cli.Text(one["name"]), cli.OrDash(word(one["purpose"])), cli.Text(one["messages_ready"]), cli.Text(one["messages_unacknowledged"]),
					known(one["at_risk"]), known(one["lost_last_hour"]), known(one["dead_lettered_last_hour"]), known(one["meant_last_hour"]), span(one["oldest_message_age"]), rate(one["in_rate"]), rate(one["out_rate"]), cli.OrDash(word(one["incident_level"])),
					waiting, cli.Text(one["consumers"]), longest(one), known(one["deadlines"]), cli.Text(one["type"]), cli.Text(one["message_bytes"]), cli.Text(one["policy"])})
			}
			traffic := "?"
			if order == "in" || order == "out" { // what it is sorted by is not left out
				traffic = ""
			}
			return q.Print(cmd.OutOrStdout(), list, []string{vhost, "QUEUE", "PURPOSE?", "READY", "UNACKED", "AT RISK!", "LOST!", "TO DLQ", "MEANT?", "OLDEST?", "IN" + traffic, "OUT" + traffic, "INCIDENT?!", "WAITING?", "CONSUMERS?", "P99?", "DEADLINES?", "TYPE?", "BYTES?", "POLICY?"}, rows)
		},
	}
	cli.AllVHosts(c)
	c.Flags().StringVar(&purpose, "purpose", "", "only queues that are for this: "+strings.Join(deadline.Purposes, ", "))
	c.Flags().StringVar(&order, "sort", "name", "the order: name, risk (the worst first), in or out (most traffic first), lost, ready, unacked, oldest or purpose")
	cli.Offers(c, "purpose", deadline.Purposes...)
	cli.Offers(c, "sort", slices.Sorted(maps.Keys(orders))...)
	return c
}

func word(v any) string {
	s, _ := v.(string)
	return s
}

// known is a number, or "-" if it is not known.
func known(v any) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(number(v), 'f', -1, 64)
}

// span is a number of milliseconds as a time.
func span(millis any) string {
	if number(millis) == 0 {
		return "-"
	}
	return cli.Span(time.Duration(number(millis)) * time.Millisecond)
}

// longest is what 99 in 100 of the messages wait at the most.
func longest(queue map[string]any) string {
	waits, _ := queue["time_in_queue"].(map[string]any)
	return span(waits["p99"])
}

// rate is a rate of a queue in messages a second.
func rate(perSecond any) string {
	if perSecond == nil {
		return "-"
	}
	return strconv.FormatFloat(math.Round(10*number(perSecond))/10, 'f', -1, 64)
}

// forecasts are those of the queues that have deadlines, by virtual host and name. nil: they are not known, since there is no monitor or the user
// may not see them.
func (q *queues) forecasts(ctx context.Context) map[incident.QueueName]*deadline.Forecast {
	var list []deadline.Forecast
	if q.Call(ctx, http.MethodGet, cli.Path("curfew", "forecasts"), nil, &list) != nil {
		return nil
	}
	return incident.ByQueue(list)
}
