package queues

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"curfew/broker/operate/admin"
	"curfew/broker/operate/messages"
	"curfew/cmd/internal/cli"
	"curfew/monitor/incident"
)

func (q *queues) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show <queue>",
		Short: "Show a queue: its settings, its messages, what will become of them, and its consumers",
		Args:  cli.Exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := q.Fetch(cmd.Context(), http.MethodGet, cli.Path("queues", q.VHost, args[0]), http.NoBody)
			if err != nil {
				return q.Elsewhere(cmd.Context(), args[0], err)
			}
			var all map[string]any
			if err := cli.Decode(text, &all); err != nil {
				return err
			}
			words, _ := all["in_words"].(map[string]any) // an older Curfew has none
			rows := q.wrong(cmd.Context(), args[0], all)
			add := func(what, value string) { rows = append(rows, []string{what, value}) }
			for _, key := range []string{"name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "policy", "operator_policy", "effective_policy_definition"} {
				add(key, cli.Text(all[key]))
			}
			add("time to live", word(words["time_to_live"]))
			add("dead letters", word(words["dead_letters"]))
			for _, key := range []string{"messages_ready", "messages_unacknowledged", "messages_delayed", "message_bytes", "head_message_timestamp", "idle_since"} {
				add(key, cli.Text(all[key]))
			}
			if ms, has := all["oldest_message_age"].(float64); has {
				add("oldest message", cli.Span(time.Duration(ms)*time.Millisecond)+" in the queue")
			}
			add("purpose", word(words["purpose"]))
			if is := word(words["objective"]); is != "" {
				add("objective", is)
			}
			if all["lost_last_hour"] != nil {
				add("last hour", fmt.Sprintf("%s lost, %s dead-lettered", known(all["lost_last_hour"]), known(all["dead_lettered_last_hour"])))
			}
			add("time in queue", word(words["time_in_queue"]))
			add("rates", rate(all["in_rate"])+"/s in, "+rate(all["out_rate"])+"/s out")
			rows = append(rows, q.ahead(cmd.Context(), args[0])...)
			add("consumers", cli.Text(all["consumers"]))
			if last, has := all["last_consumer"].(map[string]any); has {
				add("", word(last["client"])+" left "+cli.Until(time.Now(), time.UnixMilli(int64(number(last["left"])))))
			}
			var holders []admin.Holder
			_ = q.Call(cmd.Context(), http.MethodGet, cli.Path("curfew", "consumers", q.VHost, args[0]), nil, &holders) // an older Curfew does not have them
			for i := range holders {
				add("", q.holds(&holders[i]))
			}
			return q.Print(cmd.OutOrStdout(), json.RawMessage(text), []string{"WHAT", "VALUE="}, rows)
		},
	}
}

// wrong are rows about the incident that a queue is in, and what to do. A user who may not see the status gets only its level.
func (q *queues) wrong(ctx context.Context, name string, queue map[string]any) [][]string {
	level := word(queue["incident_level"])
	if level == "" {
		return nil
	}
	var all incident.Overview
	_ = q.Call(ctx, http.MethodGet, cli.Path("curfew", "incidents"), nil, &all)
	for _, i := range all.Incidents {
		for n, one := range i.Worst {
			if one.VHost != q.VHost || one.Queue != name {
				continue
			}
			text := i.Line()
			if n > 0 { // the incident speaks of another
				text = one.Text + ". " + text
			}
			return [][]string{{"incident", level + ": " + text}, {"what to do", i.Do}}
		}
	}
	return [][]string{{"incident", level}}
}

// holds says in one line who it is and what it holds.
func (q *queues) holds(h *admin.Holder) string {
	tag, _ := h.Cell("consumer_tag")
	text := fmt.Sprintf("%s of user %s at %s holds %d", cmp.Or(tag, cli.OrDash(h.ConsumerTag)), h.User, strings.TrimPrefix(h.Client.Name+" "+h.Connection, " "), h.Unacked)
	if h.Oldest != nil {
		text += ", the oldest since " + q.Time(time.UnixMilli(*h.Oldest))
	}
	if h.PastDeadline > 0 {
		text += fmt.Sprintf("; past their deadlines: %d", h.PastDeadline)
	}
	return text
}

// ahead are the rows about the queue's deadlines. Those that the user may not see are left out.
func (q *queues) ahead(ctx context.Context, name string) (rows [][]string) {
	var next messages.DeadlinePage
	if q.Call(ctx, http.MethodGet, cli.Path("curfew", "deadlines", q.VHost, name)+"?count=1", nil, &next) == nil {
		text := fmt.Sprint(next.Total)
		if len(next.Items) > 0 {
			text += ", " + firstDeadline(q.Now(), &next.Items[0])
		}
		rows = append(rows, []string{"deadlines", text})
	}
	forecasts := q.forecasts(ctx)
	if forecasts == nil {
		return rows
	}
	text := "no ready message has a deadline"
	if f, ok := forecasts[incident.QueueName{VHost: q.VHost, Name: name}]; ok {
		text = fmt.Sprintf("all %d that have a deadline will be consumed before it", f.Deadlines)
		if n := f.AtRisk + f.AsMeant; n > 0 {
			text = fmt.Sprintf("%d of %d that have a deadline %s, the first %s", n, f.Deadlines, map[bool]string{true: "at risk", false: "expire as meant"}[f.AtRisk > 0], cli.From(q.Now(), time.UnixMilli(f.FirstMiss)))
		}
	}
	return append(rows, []string{"forecast", text})
}

// firstDeadline says when the first deadline of a queue comes or came.
func firstDeadline(now time.Time, d *messages.Deadline) string {
	text := cli.Until(now, time.UnixMilli(d.Deadline))
	switch {
	case d.Overdue && d.State == "unacked":
		return "the first " + text + ", held"
	case d.Overdue:
		return "the first " + text
	}
	return "next in " + text
}
