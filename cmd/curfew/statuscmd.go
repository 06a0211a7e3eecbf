package main

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "One screen: deadlines, lateness, schedule, store, queues at risk; exit code 4 if something is wrong",
		Args:  noArguments,
	}
	a := withAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var s status
		if err := a.call(cmd.Context(), http.MethodGet, path("curfew", "status"), nil, &s); err != nil {
			return err
		}
		if err := a.print(cmd.OutOrStdout(), s, []string{"CURFEW " + s.Version, s.Health}, statusRows(&s)); err != nil {
			return err
		}
		again, err := cmd.Flags().GetBool("watch")
		if s.Health != "ok" && err == nil && !again {
			return unhealthyError{errors.New(s.Health + ": " + strings.Join(s.Reasons, "; "))}
		}
		return nil
	}
	return watched(c)
}

func statusRows(s *status) [][]string {
	rows := [][]string{}
	add := func(what string, value ...any) { rows = append(rows, []string{what, fmt.Sprint(value...)}) }
	for _, r := range s.Reasons {
		add("!", r)
	}
	add("messages", s.Ready, " ready, ", s.Unacked, " unacked in ", s.Queues, " queues")
	add("clients", s.Connections, " connections, ", s.Consumers, " consumers")
	if s.Monitor {
		next := ""
		if s.Next != nil {
			next = ", next in " + inTime(time.Until(*s.Next)) + " (" + s.Next.Format("2006-01-02T15:04:05.000Z") + ")"
		}
		add("deadlines", s.Pending, " pending", next)
		add("fired", s.Fired, ", missed ", s.Missed)
		add("lateness", "p50 ", lateness(s.LatenessP50), ", p99 ", lateness(s.LatenessP99))
		add("schedule", s.Schedule)
	} else {
		add("deadlines", "monitor off: messages expire only when a delivery or a get meets them")
	}
	publishers := "open to publishers"
	if s.Blocked != "" {
		publishers = "publishers wait: " + s.Blocked
	}
	add("store", publishers)
	add("", s.Segments, " segments, ", about(s.Stored), ", of which messages need ", about(s.Live))
	if s.SyncP99 != nil {
		add("", "syncs p50 ", lateness(s.SyncP50), ", p99 ", lateness(s.SyncP99))
	}
	limit := ""
	if s.MemoryLimit > 0 {
		limit = " of " + about(s.MemoryLimit)
	}
	add("memory", about(s.Memory), limit)
	add("alarms", strconv.Itoa(s.AlarmsFiring))
	for _, f := range s.AtRisk {
		first := ""
		if f.FirstMiss != 0 {
			first = ", the first in " + inTime(time.Until(time.UnixMilli(f.FirstMiss)))
		}
		add("at risk", f.Queue, ": ", f.WillMiss, " of ", f.Deadlines, " deadlines will be missed", first)
	}
	return rows
}

// about is a number of bytes in the largest unit of which it has one.
func about(n int64) string {
	for _, u := range byteUnits {
		if byteSize(n) >= u.size && u.size > 1 {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.suffix)
		}
	}
	return fmt.Sprint(n, " B")
}

// lateness is an upper bound of a share of the lateness, in words.
func lateness(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return "<= " + time.Duration(*seconds*float64(time.Second)).String()
}
