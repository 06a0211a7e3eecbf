package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// queueCommands look at queues.
type queueCommands struct {
	*api
	vhost string
}

func queueCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "queue",
		Short: "List and show queues of a running Curfew, peek into one, purge one",
		RunE:  group("queue", "list, show, peek or purge"),
	}
	q := &queueCommands{api: withAPI(c)}
	c.PersistentFlags().StringVar(&q.vhost, "vhost", "/", "virtual host")
	c.AddCommand(watched(q.list()), watched(q.show()), watched(q.peek()), q.purge())
	q.offersQueues(c, &q.vhost)
	return c
}

func (q *queueCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queues",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []map[string]any
			if err := q.call(cmd.Context(), http.MethodGet, path("queues", q.vhost), nil, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, one := range list {
				rows = append(rows, []string{textOf(one["name"]), textOf(one["type"]), textOf(one["messages_ready"]), textOf(one["messages_unacknowledged"]),
					textOf(one["consumers"]), textOf(one["message_bytes"]), textOf(one["policy"])})
			}
			return q.print(cmd.OutOrStdout(), list, []string{"QUEUE", "TYPE", "READY", "UNACKED", "CONSUMERS", "BYTES", "POLICY"}, rows)
		},
	}
}

// textOf is a JSON value in a table.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case string:
		return orDash(v)
	case map[string]any, []any:
		if b, err := json.Marshal(v); err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(v)
}

func (q *queueCommands) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show <queue>",
		Short: "Show one queue",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var one map[string]any
			if err := q.call(cmd.Context(), http.MethodGet, path("queues", q.vhost, args[0]), nil, &one); err != nil {
				return err
			}
			var rows [][]string
			for _, key := range []string{"name", "vhost", "type", "durable", "auto_delete", "exclusive", "arguments", "policy", "operator_policy", "effective_policy_definition",
				"messages_ready", "messages_unacknowledged", "message_bytes", "consumers", "head_message_timestamp", "idle_since"} {
				rows = append(rows, []string{key, textOf(one[key])})
			}
			return q.print(cmd.OutOrStdout(), one, []string{"WHAT", "VALUE"}, rows)
		},
	}
}

// standingMessage is one as peek shows it.
type standingMessage struct {
	Seq        uint64         `json:"seq"`
	State      string         `json:"state"`
	Exchange   string         `json:"exchange"`
	RoutingKey string         `json:"routing_key"`
	Deadline   *int64         `json:"deadline"`
	Bytes      int            `json:"payload_bytes"`
	Payload    string         `json:"payload"`
	Encoding   string         `json:"payload_encoding"`
	Properties map[string]any `json:"properties"`
}

func (q *queueCommands) peek() *cobra.Command {
	body := map[string]any{}
	var count, offset, truncate int
	var tail bool
	var state string
	c := &cobra.Command{
		Use:   "peek <queue>",
		Short: "Show messages of a queue; nothing is taken or marked",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body["count"], body["offset"], body["truncate"], body["state"] = count, offset, truncate, state
			if tail {
				body["from"] = "tail"
			}
			var list []standingMessage
			if err := q.call(cmd.Context(), http.MethodPost, path("queues", q.vhost, args[0], "peek"), body, &list); err != nil {
				return err
			}
			var rows [][]string
			for _, m := range list {
				deadline, id := "-", ""
				if m.Deadline != nil {
					deadline = time.UnixMilli(*m.Deadline).UTC().Format("2006-01-02T15:04:05.000Z")
				}
				id, _ = m.Properties["message_id"].(string)
				rows = append(rows, []string{strconv.FormatUint(m.Seq, 10), m.State, orDash(m.Exchange), orDash(m.RoutingKey), deadline, strconv.Itoa(m.Bytes), orDash(id), bodyCell(m.Payload, m.Encoding)})
			}
			return q.print(cmd.OutOrStdout(), list, []string{"SEQ", "STATE", "EXCHANGE", "KEY", "DEADLINE", "BYTES", "MESSAGE-ID", "BODY"}, rows)
		},
	}
	f := c.Flags()
	f.IntVarP(&count, "count", "n", 10, "how many at most")
	f.IntVar(&offset, "offset", 0, "pass over so many first")
	f.IntVar(&truncate, "truncate", 200, "how many bytes of each body")
	f.BoolVar(&tail, "tail", false, "the newest first")
	f.StringVar(&state, "state", "", "ready or unacked (default both)")
	offers(c, "state", "ready", "unacked")
	return c
}

// unconfirmed is the answer to a purge without the number of messages, or with a wrong one.
func unconfirmed(matched int, which string) error {
	if matched == 0 {
		return confirmationError{fmt.Errorf("no messages %s: there is nothing to delete", which)}
	}
	return confirmationError{fmt.Errorf("%d messages %s; to delete them add --confirm %d", matched, which, matched)}
}

func (q *queueCommands) purge() *cobra.Command {
	confirm := 0
	c := &cobra.Command{
		Use:   "purge <queue>",
		Short: "Delete the ready messages of a queue; without --confirm it only says how many they are",
		Args:  exactly(1, "a queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := asked{}
			if cmd.Flags().Changed("confirm") {
				body.Confirm = &confirm
			}
			var answer struct {
				Deleted int `json:"deleted"`
			}
			err := q.call(cmd.Context(), http.MethodPost, letters(q.vhost, args[0], "purge"), body, &answer)
			if refused, ok := conflict(err); ok {
				return unconfirmed(refused.matched, fmt.Sprintf("are ready in %q", args[0]))
			}
			if err != nil {
				return err
			}
			return q.print(cmd.OutOrStdout(), answer, []string{"DELETED"}, [][]string{{strconv.Itoa(answer.Deleted)}})
		},
	}
	c.Flags().IntVar(&confirm, "confirm", 0, "how many messages you expect to be deleted")
	return c
}
