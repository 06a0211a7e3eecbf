package incident

import (
	"cmp"
	"curfew/monitor/printable"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Level is how bad a condition is.
type Level string

const (
	// Critical: messages are lost or late, or nothing is accepted.
	Critical Level = "critical"
	// Warning: messages will be lost, or there is less protection than configured.
	Warning Level = "warning"
	// Info is worth knowing; nobody is notified.
	Info Level = "info"
)

// levels are in order, the worst first.
var levels = []Level{Critical, Warning, Info, ""}

// Rank is lower for what is worse. The empty level, of what is well, has the highest.
func (l Level) Rank() int { return slices.Index(levels, l) }

// Condition is something that can be wrong: how it is seen, how bad it is, whom it affects, and what to do.
type Condition struct {
	Name  string // in snake case
	Level Level
	What  string // in a few words
	Was   string // the same once it is over
	// Averted is the same if it has cost no message, which is added; empty: Was.
	Averted string
	Whom    string // it affects
	Do      string // in a sentence or two
	// Command shows more. {queue} and {vhost} are those of what is worst.
	Command string
	// Page of the dashboard, likewise.
	Page string

	// Begins is how long it has to last before it is an incident, Ends how long it must be gone for that to be over.
	Begins, Ends time.Duration
	// Returns is how long after a start it may take until it is seen again; 0: some seconds.
	Returns time.Duration
	// OfOneRun says that it is over with the process: the next start knows at once whether it holds again.
	OfOneRun bool
	// Unwatched says that nobody may fire some deadlines while it lasts.
	Unwatched bool
	// Loss says what becomes of messages that are or will be lost. Those of a queue are in one incident, whichever of these conditions it has.
	Loss bool
	// PerCause says that each Finding of a cause is the same incident. Otherwise those that begin together are one.
	PerCause bool

	see func(*State) []Finding
}

// Alertname is the name of the condition in Alertmanager.
func (c *Condition) Alertname() string {
	name := "Curfew"
	for word := range strings.SplitSeq(c.Name, "_") {
		name += sentence(word)
	}
	return name
}

// runbooks are the pages that alerts of the same cause share.
var runbooks = map[string]string{
	"CurfewAbsent": "CurfewDown", "CurfewWatchdog": "CurfewDown", "CurfewLoopRestarted": "CurfewPartStuck", "CurfewHeartbeatStale": "CurfewPartStuck",
	"CurfewQueueLockedLong": "CurfewPartStuck", "CurfewLatenessHigh": "CurfewDeadlineFiredLate", "CurfewProcessorStarved": "CurfewDeadlineFiredLate",
	"CurfewDeadlinesUnwatched": "CurfewDeadlineFiredLate", "CurfewDeadLettersDropped": "CurfewDeadLetterUnroutable", "CurfewFsyncSlow": "CurfewDiskSilent",
	"CurfewFileDescriptorsLow": "CurfewConnectionsRefused", "CurfewClockSkew": "CurfewClockOffset", "CurfewQueuesRecovered": "CurfewDataFolderNew",
	"CurfewDiskFillsUp": "CurfewPublishersBlocked", "CurfewAlertRulesRefused": "CurfewAlertSinkFailing",
}

// Runbook is the file in deploy/runbooks that says what to do about an alert.
func Runbook(alertname string) string { return cmp.Or(runbooks[alertname], alertname) + ".md" }

// Finding is a condition that holds now, for one queue or for Curfew itself.
type Finding struct {
	QueueName           // the zero value: Curfew itself
	Cause     string    // within the condition: a virtual host, a connection
	Level     Level     // empty: that of the condition
	Count     int64     // messages, usually
	Toll      int64     // those that were lost or late so far
	Lost      int64     // of Toll: those that are gone
	Losing    time.Time // when the first message was lost; zero: none was
	Who       string    // causes it, if that is a client
	Left      string    // whose consumer was the last to leave, and none has come since: see application
	Joined    time.Time // when its incident first had the queue; filled in there
	Text      string    // what is wrong, without the queue
	Action    string    // what became of the messages
	Do        string    // what to do; "": as always (Condition.Do)
	Command   string    // that shows more, likewise
	Page      string    // likewise
	FirstAt   int64     // the first deadline, Unix ms; 0: none
	Late      time.Duration

	slow    func() Slow   // who consumes it too slowly; nil: that is not the reason
	keeping func() string // what to do besides, so that what expires is not lost; nil: nothing
	parked  bool          // what expires there is parked
	soon    bool          // none has expired yet, but will within worseSoon
	at      time.Time     // when it was found last, or before that when the last message expired
}

// Conditions are all, in the order in which they are listed.
var Conditions = []*Condition{
	{
		Name: "part_stuck", Level: Critical, Unwatched: true, What: "a part of Curfew is stuck", Was: "a part of Curfew was stuck", Whom: "all queues", see: seeStuck,
		Do: "Restart Curfew if this lasts; messages are safe.", Command: "curfew status", Page: "/",
	},
	{
		Name: "data_folder_new", Level: Critical, What: "messages of an earlier run are missing", Was: "messages of an earlier run were missing", Whom: "all queues", OfOneRun: true,
		see: func(s *State) []Finding {
			return counted(s.Orphans, "the data folder was new at this start, and Redis has the deadlines of %s of an earlier run", "message")
		},
		Do: "If they should be here, stop Curfew, mount the volume or correct CURFEW_DATA_DIR, and start it again. If not, this ends with the next start.", Command: "curfew status", Page: "/",
	},
	{
		Name: "disk_silent", Level: Critical, What: "the disk does not answer", Was: "the disk did not answer", Whom: "publishers of persistent messages",
		see: func(s *State) []Finding {
			return one(s.DiskSilent > 0, "for %s; confirms of persistent messages wait for it, deliveries and deadlines go on", printable.Span(s.DiskSilent.Truncate(time.Second)))
		},
		Do: "Check the volume and the machine's log. Deliveries and deadlines go on.", Command: "curfew status", Page: "/",
	},
	{
		Name: "publishers_blocked", Level: Critical, What: "publishers are blocked", Was: "publishers were blocked", Whom: "all publishers", Ends: 5 * time.Second,
		see: func(s *State) []Finding { return one(s.Blocked != "", "%s", s.Blocked) },
		Do:  "Free memory or disk space, or consume messages. Queued messages are still delivered, and still expire.", Command: "curfew status", Page: "/",
	},
	{
		Name: "definitions_unsaved", Level: Critical, What: "definitions cannot be saved", Was: "definitions could not be saved", Whom: "users who declare queues and the like",
		see: func(s *State) []Finding {
			return one(s.Unsaved != nil, "queues, users and the like cannot be created or changed (%v)", s.Unsaved)
		},
		Do: "Make room on the disk. What was deleted would be back after a restart.", Command: "curfew status", Page: "/",
	},
	{
		// Critical once messages were dropped: they are lost.
		Name: "deadline_missed", Level: Warning, Loss: true, What: "messages expire unconsumed", Was: "messages expired unconsumed", Averted: "messages were at risk", Whom: "queues for work", Begins: 3 * time.Second, Returns: recent + 10*time.Second, Ends: 8 * time.Second, see: seeUnconsumed,
		Do:      "Add consumers or make them faster, or give messages more time. What was dead-lettered can be replayed.",
		Command: "curfew queue show {queue} --vhost {vhost}", Page: "/queue?vhost={vhost}&name={queue}",
	},
	{
		// Likewise.
		Name: "held_past_deadline", Level: Warning, Loss: true, What: "a consumer holds messages past their deadlines", Was: "a consumer held messages past their deadlines", Averted: "a consumer took no more messages", Whom: "one client", Begins: 2 * time.Second, Returns: clientsReturn, Ends: 5 * time.Second, PerCause: true, see: seeHeld,
		Do: "See what the consumer is doing, or close its connection: what it gives back then expires.", Command: "curfew consumers --vhost {vhost}", Page: "/consumers",
	},
	{
		Name: "dead_letters_dropped", Level: Critical, What: "dead letters were dropped", Was: "dead letters were dropped", Whom: "queues whose dead letters lead nowhere", see: rose("dead_letters_dropped", "dead letter", "lost: no queue took them, or they came back to one that they had died in"),
		Do: "The log names the queues. Declare the missing dead-letter exchange, or let them be parked (CURFEW_UNROUTABLE=park). Where they go in a circle, consume from one of its queues.", Command: "curfew dlq list", Page: "/dead-letters",
	},
	{
		Name: "dead_letter_unroutable", Level: Critical, Loss: true, What: "dead letters are parked", Was: "dead letters were parked", Whom: "queues whose dead letters lead nowhere", Ends: 2 * time.Second, PerCause: true, see: seeParked,
		Do:      "Declare the exchange or the queue that is missing, or bind a queue to the exchange. Then replay what is parked, or purge it.",
		Command: "curfew dlq groups {queue} --vhost {vhost}", Page: "/dead-letter?vhost={vhost}&name={queue}",
	},
	{
		Name: "deadline_fired_late", Level: Critical, What: "messages expired late", Was: "messages expired late", Whom: "queues", Begins: 2 * time.Second, PerCause: true, see: seeLate,
		Do:      "See whether this machine is short of processor time, and whether its disk and Redis are slow.",
		Command: "curfew audit search --queue {queue} --vhost {vhost} --min-lateness 500ms", Page: "/audit?vhost={vhost}&queue={queue}",
	},
	{
		// Longer than LateWithin: one stall, however many messages it made late, does not begin it.
		Name: "lateness_high", Level: Warning, What: "messages expire late again and again", Was: "messages expired late again and again", Whom: "all queues", Begins: LateWithin + 2*time.Minute, Ends: 10 * time.Second,
		see: func(s *State) []Finding { // what neither seeLate nor seeStarved tells: short stalls without a processor that go on for minutes
			return one(s.LateShare > mostLate && s.Starved < starvedBadly && len(seeLate(s)) == 0, "%.0f %% of what expired in the last minutes did so over a second after its deadline", 100*s.LateShare)
		},
		Do: "Give this machine or container more processor time.", Command: "curfew audit search --min-lateness 1s", Page: "/audit?min_lateness=1s",
	},
	{
		Name: "objective_missed", Level: Warning, What: "messages wait too long", Was: "messages waited too long", Whom: "queues with an objective", Begins: 3 * time.Second, Ends: 10 * time.Second, see: seeObjectives,
		Do:      "Add consumers or make them faster, or change the objective (x-curfew-objective, or the policy key curfew-objective).",
		Command: "curfew queue show {queue} --vhost {vhost}", Page: "/queue?vhost={vhost}&name={queue}",
	},
	{
		Name: "dead_letters_wait", Level: Warning, What: "dead letters wait to be moved", Was: "dead letters waited to be moved", Whom: "queues with a dead-letter exchange", Begins: 30 * time.Second, see: seeLetters,
		Do: "See whether the disk is slow, or a target queue is full.", Command: "curfew status", Page: "/dead-letters",
	},
	{
		Name: "schedule_degraded", Level: Warning, What: "deadlines are met, with less protection than configured", Was: "Redis was away or in trouble", Whom: "all queues", Begins: 4 * time.Second, Ends: 2 * time.Second, see: seeSchedule,
		Do: "Make sure that Redis runs, has memory left, and can be reached at the address in CURFEW_REDIS_URL. Curfew connects again by itself.", Command: "curfew status", Page: "/",
	},
	{
		Name: "connections_refused", Level: Warning, What: "connections are refused", Was: "connections were refused", Whom: "clients that connect", Ends: 5 * time.Second, see: seeRefusals, Command: "curfew connections", Page: "/connections",
		Do: "Close some, or raise the limit on open files (ulimit -n), or CURFEW_MAX_CONNECTIONS if that is lower.",
	},
	{
		// Its text is the client, how often, and why.
		Name: "client_fails", Level: Warning, What: "a client fails again and again", Was: "a client failed again and again", Whom: "one client", Returns: clientsReturn + time.Minute, PerCause: true,
		see: func(s *State) []Finding { return s.ClientErrors },
		Do:  "The reason says what it does wrong: correct the client, or what it asks for.", Command: "curfew connections", Page: "/connections",
	},
	{
		Name: "messages_unrouted", Level: Warning, What: "messages reach no queue", Was: "messages reached no queue", Whom: "publishers to a queue that was deleted", OfOneRun: true, PerCause: true,
		see: func(s *State) []Finding { return s.Unrouted },
		Do:  "Declare the queue as it was, or stop the publisher.", Command: "curfew history", Page: "/audit?reason=changed",
	},
	{
		Name: "clock_offset", Level: Warning, What: "the clock is off", Was: "the clock was off", Whom: "messages with an absolute deadline",
		see: func(s *State) []Finding {
			return one(s.ClockAhead.Abs() > clockLimit, "the clock of deadlines is %s the machine's, which was set or was wrong at a start; times to live are kept, "+
				"absolute times given while it was wrong are off", offBy(s.ClockAhead))
		},
		Do: "Check the machine's time service. The next start with no deadline pending goes by the machine's clock.", Command: "curfew status", Page: "/",
	},
	{
		Name: "clock_skew", Level: Warning, What: "the clocks of Redis and Curfew differ", Was: "the clocks of Redis and Curfew differed", Whom: "readers of what is in Redis", Begins: time.Minute, Ends: 10 * time.Second,
		see: func(s *State) []Finding {
			return one(s.ClockSkew.Abs() > skewLimit, "Redis's is %s Curfew's; no deadline is early or late by that", offBy(s.ClockSkew))
		},
		Do: "Check the time service of both machines. Deadlines go by Curfew's clock.", Command: "curfew status", Page: "/",
	},
	{
		Name: "queues_recovered", Level: Warning, What: "messages were found without the definition of their queue", Was: "messages were found without the definition of their queue", Whom: "queues named curfew.recovered.*",
		see: func(s *State) []Finding {
			return counted(int64(s.Recovered), "they were put into %s named curfew.recovered.*", "queue")
		},
		Do: "Move them, then delete these queues.", Command: "curfew queue list", Page: "/queues?q=curfew.recovered",
	},
	{
		Name: "policy_not_in_force", Level: Warning, What: "policies are not in force", Was: "policies were not in force", Whom: "the queues that they match",
		see: func(s *State) []Finding {
			return counted(int64(s.IdlePolicies), "%s refused; the queues are without them", "policy")
		},
		Do: "They were saved by an earlier version and are refused by this one: correct or delete them.", Command: "curfew policy list", Page: "/policies",
	},
	{
		Name: "queue_locked_long", Level: Warning, What: "a queue is locked for long", Was: "a queue was locked for long", Whom: "clients of the queue", Begins: 2 * time.Second, PerCause: true, see: seeLocked,
		Do:      "See whether this machine is short of processor time or memory. If not, keep the log lines that name the operation for a report.",
		Command: "curfew queue show {queue} --vhost {vhost}", Page: "/queue?vhost={vhost}&name={queue}",
	},
	{
		Name: "loop_restarted", Level: Warning, What: "a loop of the monitor fails", Was: "a loop of the monitor failed", Whom: "all queues", see: rose("loop_restarted", "loop", "of the monitor ended and started again"),
		Do: "Keep the log for a report.", Command: "curfew status", Page: "/",
	},
	{
		Name: "processor_starved", Level: Info, What: "Curfew had no processor", Was: "Curfew had no processor", Whom: "all queues", see: seeStarved, Ends: 10 * time.Second,
		Do: "Give this machine or container more processor time. Deadlines fire late meanwhile.", Command: "curfew status", Page: "/",
	},
	{
		Name: "disk_fills_up", Level: Warning, What: "the disk will be full soon", Was: "the disk was about to be full", Whom: "all publishers", Begins: 15 * time.Minute, Ends: 10 * time.Second,
		see: func(s *State) []Finding {
			return one(s.DiskFullIn > 0 && s.DiskFullIn < fillsSoon, "in about %s, at the rate of the last hour", printable.Span(s.DiskFullIn.Truncate(time.Minute)))
		},
		Do: "Make room, or consume messages: publishers are blocked when it is full.", Command: "curfew status", Page: "/",
	},
	{
		Name: "fsync_slow", Level: Warning, What: "syncs of the message store are slow", Was: "syncs of the message store were slow", Whom: "publishers of persistent messages", Begins: 10 * time.Minute, Ends: 10 * time.Second,
		see: func(s *State) []Finding {
			return one(s.SlowSyncs > mostSlow, "%.0f %% take over half a second", 100*s.SlowSyncs)
		},
		Do: "See what else uses the disk, or give Curfew a faster one. Confirms wait for syncs.", Command: "curfew status", Page: "/",
	},
	{
		Name: "file_descriptors_low", Level: Warning, What: "file descriptors run out", Was: "file descriptors ran out", Whom: "clients that connect", Begins: time.Minute, Ends: 10 * time.Second,
		see: func(s *State) []Finding { return one(s.OpenFiles > mostFiles, "%.0f %% are in use", 100*s.OpenFiles) },
		Do:  "Close connections, or raise the limit on open files (ulimit -n).", Command: "curfew connections", Page: "/connections",
	},
	{
		Name: "audit_incomplete", Level: Warning, What: "the audit has gaps", Was: "the audit had gaps", Whom: "readers of the audit", see: rose("audit_incomplete", "record", "missing in the audit, but for a count"),
		Do: "See whether the disk is slow or full.", Command: "curfew audit search", Page: "/audit?reason=",
	},
	{
		Name: "queue_not_kept", Level: Warning, Unwatched: true, What: "deadlines in RabbitMQ are not kept", Was: "deadlines in RabbitMQ were not kept", Whom: "queues that a rule wants kept", Begins: 2 * time.Second, Returns: clientsReturn, see: seeNotKept,
		Do: "Read the reason. RabbitMQ expires their messages only at the head of the queue.", Command: "curfew rabbitmq status", Page: "/rabbitmq",
	},
	{
		Name: "rabbitmq_overdue", Level: Warning, What: "RabbitMQ leaves messages past their deadlines", Was: "RabbitMQ left messages past their deadlines", Whom: "queues that are observed", Begins: 2 * time.Second, Returns: clientsReturn, Ends: 2 * time.Second, PerCause: true, see: seeOverdue,
		Do:      "RabbitMQ expires a message only at the head of its queue. Have Curfew keep the queue: `curfew rabbitmq plan` shows if and how that goes (docs/beside-rabbitmq.md).",
		Command: "curfew rabbitmq status", Page: "/rabbitmq",
	},
	{
		Name: "rabbitmq_degraded", Level: Warning, Unwatched: true, What: "some deadlines in RabbitMQ are not watched", Was: "some deadlines in RabbitMQ were not watched", Whom: "queues of RabbitMQ", Begins: 5 * time.Second, Returns: clientsReturn,
		see: func(s *State) []Finding { return one(len(s.RabbitMQ) > 0, "%s", strings.Join(s.RabbitMQ, "; ")) },
		Do:  "Make sure that RabbitMQ and its management API can be reached by the user in CURFEW_PRIMARY_URL.", Command: "curfew rabbitmq status", Page: "/rabbitmq",
	},
	{
		Name: "alert_sink_failing", Level: Warning, What: "notifications do not arrive", Was: "notifications did not arrive", Whom: "receivers of notifications", Returns: 2 * sinkLimit, see: seeSinks,
		Do: "Correct the sink's URL, or find out why its service refuses.", Command: "curfew incident test", Page: "/incidents",
	},
	{
		Name: "alert_rules_refused", Level: Warning, What: "the alerts file is not in force", Was: "the alerts file was not in force", Whom: "receivers of notifications",
		see: func(s *State) []Finding {
			return one(s.FileError != nil, "%s", strings.ReplaceAll(fmt.Sprint(s.FileError), "\n", "; "))
		},
		Do: "Correct the file; it is read again when it changes.", Command: "curfew incident rules", Page: "/incidents",
	},
	{
		Name: "heartbeat_stale", Level: Warning, What: "the dead man's switch is silent", Was: "the dead man's switch was silent", Whom: "the service behind its URL",
		see: func(s *State) []Finding {
			return one(s.HeartbeatSilent > heartbeatLimit, "its URL has not answered for %s", printable.Span(s.HeartbeatSilent.Truncate(time.Second)))
		},
		Do: "See whether its URL can be reached from here.", Command: "curfew status", Page: "/incidents",
	},
	{
		Name: "deadlines_unwatched", Level: Info, Unwatched: true, What: "deadlines are not watched", Was: "deadlines were not watched", Whom: "all queues",
		see: func(s *State) []Finding {
			return one(s.Unwatched, "messages expire only when a delivery or a get meets them")
		},
		Do: "The monitor is off: messages expire only when a consumer meets them. Set CURFEW_MONITOR=true.", Command: "curfew status", Page: "/",
	},
}

// clientsReturn is how long clients, and keepers, take to connect again after a start, and to be seen.
const clientsReturn = 25 * time.Second

// ConditionOf finds a condition by its name; nil: there is none.
func ConditionOf(name string) *Condition {
	if i := slices.IndexFunc(Conditions, func(c *Condition) bool { return c.Name == name }); i >= 0 {
		return Conditions[i]
	}
	return nil
}

// AllWatched reports whether all deadlines are watched in spite of these incidents.
func AllWatched(list []Incident) bool {
	return !slices.ContainsFunc(list, func(i Incident) bool { c := ConditionOf(i.Condition); return c != nil && c.Unwatched })
}

// MayBeLate reports whether deadlines may have fired late though no incident counts those that did.
func MayBeLate(list []Incident) bool {
	return slices.ContainsFunc(list, func(i Incident) bool { return i.Condition == "processor_starved" })
}

// Names lists the names of the conditions.
func Names() (names []string) {
	for _, c := range Conditions {
		names = append(names, c.Name)
	}
	return names
}

// Evaluate finds what is wrong in s, by condition. It depends on nothing else.
func Evaluate(s *State) map[*Condition][]Finding {
	s.expires = s.expiring()
	found := make(map[*Condition][]Finding)
	for _, c := range Conditions {
		list := c.see(s)
		if len(list) == 0 {
			continue
		}
		found[c] = list
		if family := strings.Fields(c.Command)[1]; slices.Contains(s.Lacks, family) {
			for i := range list {
				list[i].Command, list[i].Page = "curfew rabbitmq status", "/rabbitmq"
			}
		}
	}
	return found
}
