package commands

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"curfew/broker/deadline"
	"curfew/cmd/internal/cli"
	"curfew/cmd/internal/node"
	"curfew/monitor/incident"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "One screen: deadlines, lateness, schedule, store, incidents, queues at risk; exit code 4 if something is wrong",
		Args:  cli.NoArguments,
	}
	a := cli.WithAPI(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		var s node.Status
		if err := a.Call(cmd.Context(), http.MethodGet, cli.Path("curfew", "status"), nil, &s); err != nil {
			return err
		}
		if err := a.Print(cmd.OutOrStdout(), s, []string{"CURFEW " + narrow(s.Version) + "!", s.Health + "!="}, statusRows(&s)); err != nil {
			return err
		}
		again, err := cmd.Flags().GetBool("watch")
		if s.Health != "ok" && err == nil && !again {
			return cli.Exitf(cli.ExitUnhealthy, "%s", verdict(&s))
		}
		return nil
	}
	return cli.Watched(c)
}

// narrow is a version for the first column: one between two releases is its commit, and whether that was changed, such as 8754e1d2549b+dirty.
func narrow(version string) string {
	if len(version) <= 20 {
		return version
	}
	return version[strings.LastIndexByte(version[:len(version)-len("+dirty")], '-')+1:]
}

// mostReasons is how many incidents the status has.
const mostReasons = 3

// worst are the first incidents, and how many more there are.
func worst(s *node.Status) []string {
	list := slices.Clone(s.Reasons[:min(len(s.Reasons), mostReasons)])
	if more := s.Incidents.Critical + s.Incidents.Warning - mostReasons; more > 0 {
		list = append(list, fmt.Sprintf("and %d more: curfew incident ls", more))
	}
	return list
}

// verdict is how Curfew is and, since its status has them, only how many incidents there are.
func verdict(s *node.Status) string {
	if open := s.Incidents.Critical + s.Incidents.Warning; open > 0 {
		return s.Health + ": " + english.Plural(open, "incident", "") + " (see curfew incident ls)"
	}
	return strings.TrimSuffix(s.Health+": "+strings.Join(worst(s), "; "), ": ")
}

func statusRows(s *node.Status) [][]string {
	rows := [][]string{}
	add := func(what string, value ...any) { rows = append(rows, []string{what, fmt.Sprint(value...)}) }
	for _, r := range worst(s) {
		mark := "!" // which is red
		if s.Incidents.Acknowledged > 0 && strings.Contains(r, incident.AcknowledgedBy) {
			mark = "known"
		}
		add(mark, r)
	}
	if len(s.Reasons) > 0 {
		add("", "each is over a minute after its cause is gone at the latest; curfew incident show says what to do")
	}
	now := time.Now()
	if s.Clock != nil {
		now = *s.Clock
		add("clock", "manual: it stands at ", now.Format("2006-01-02T15:04:05.000Z"), " until it is moved (see curfew clock)")
	}
	if s.Primary != "" {
		add("primary", s.Primary, " (see curfew rabbitmq status)")
	} else {
		add("messages", s.Ready, " ready, ", s.Unacked, " unacked in ", english.Plural(int(s.Queues), "queue", ""))
		add("", english.Plural(s.Dead, "dead letter", ""), ", of these ", s.Parked, " parked (see curfew dlq list)")
		add("", s.Delayed, " delayed (see curfew scheduled list)")
		add("clients", english.Plural(int(s.Connections), "connection", ""), ", ", english.Plural(int(s.Consumers), "consumer", ""))
	}
	switch {
	case s.TTLOff:
		add("deadlines", "none: no message expires (CURFEW_TTL=off)")
	case s.Monitor:
		next := ""
		if s.Next != nil {
			next = ", next " + cli.From(now, *s.Next) + " (" + s.Next.Format("2006-01-02T15:04:05.000Z") + ")"
		}
		held := ""
		if s.Held > 0 {
			held = ", " + english.Plural(s.Held, "held past its deadline", "held past their deadlines") + " (see curfew consumers)"
		}
		add("deadlines", s.Pending, " pending", next, held)
		add("expired", "since the start ", s.Fired, ", of these late ", s.Late, deadline.LateBesides(s.HeldExpired))
		add("", "in the last day ", s.LastDay, " expired, ", s.MeantInADay, " of them meant")
		if s.Lost != nil {
			add("", "in the last hour ", *s.Lost, " lost, ", *s.Rescued, " dead-lettered, ", s.Meant, " as meant")
		}
		add("lateness", "p50 ", lateness(s.LatenessP50), ", p99 ", lateness(s.LatenessP99), " in the last hour")
		add("schedule", s.Fires)
	default:
		add("deadlines", "monitor off: messages expire only when a delivery or a get meets them")
	}
	if s.Primary == "" {
		addStore(s, add)
	}
	see := ""
	if s.Incidents.Acknowledged > 0 {
		see = fmt.Sprintf(", acknowledged %d", s.Incidents.Acknowledged)
	}
	if s.Incidents.Critical+s.Incidents.Warning+s.Incidents.Info > 0 {
		see += " (see curfew incident ls)"
	}
	add("incidents", "critical ", s.Incidents.Critical, ", warning ", s.Incidents.Warning, ", info ", s.Incidents.Info, see)
	meant := ""
	if s.AsMeant > 0 {
		meant = fmt.Sprintf("; %d more expire as meant", s.AsMeant)
	}
	if s.Monitor {
		add("at risk", english.Plural(s.MessagesAtRisk, "message", ""), meant)
	}
	for _, f := range s.AtRisk {
		add("", f.Queue, " (vhost ", f.VHost, "): ", f.AtRisk, " of ", f.Deadlines, " messages with a deadline, the first ", cli.From(now, time.UnixMilli(f.FirstMiss)))
	}
	if more := s.QueuesAtRisk - len(s.AtRisk); more > 0 {
		add("", "and ", english.Plural(more, "queue", ""), " more (see curfew queue list --sort risk)")
	}
	return rows
}

// addStore adds what is about the broker's store and memory.
func addStore(s *node.Status, add func(what string, value ...any)) {
	publishers := "open to publishers"
	if s.Blocked != "" {
		publishers = "publishers wait: " + s.Blocked
	}
	add("store", s.Storage)
	add("", publishers)
	add("", english.Plural(int(s.Segments), "segment", ""), ", ", humanize.IBytes(uint64(s.Stored)), ", of which messages need ", humanize.IBytes(uint64(s.Live)))
	if s.SyncP99 != nil {
		add("", "syncs p50 ", lateness(s.SyncP50), ", p99 ", lateness(s.SyncP99))
	}
	limit := ""
	if s.MemoryLimit > 0 {
		limit = " of " + humanize.IBytes(uint64(s.MemoryLimit))
	}
	add("memory", humanize.IBytes(uint64(s.Memory)), limit)
	add("resource alarms", strconv.Itoa(s.AlarmsFiring))
}

// lateness is a quantile's upper bound, in words.
func lateness(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return "<= " + time.Duration(*seconds*float64(time.Second)).String()
}
