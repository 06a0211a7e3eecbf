package rabbitmq

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/observe"
)

// Status is the state of the queues of RabbitMQ, as one Curfew knows it.
type Status struct {
	Address  string   `json:"address"`           // without the password
	Broker   string   `json:"broker"`            // its product and version; empty: it was not reached yet
	VHost    string   `json:"vhost"`             // the one that is watched
	Instance string   `json:"instance"`          // this Curfew
	Members  []string `json:"members"`           // all that share the queues, this one among them
	Observer string   `json:"observer"`          // the Curfew that observes for all
	Cluster  string   `json:"cluster"`           // the name that RabbitMQ's cluster has
	Redis    string   `json:"redis"`             // up, down, or none: this Curfew keeps alone
	Reasons  []string `json:"reasons,omitempty"` // what is wrong, for an operator
	Notes    []string `json:"notes,omitempty"`   // what could not be found out about RabbitMQ, and why
	LookedAt int64    `json:"looked_at"`         // when the queues were last listed, Unix ms; 0: never
	Queues   []Queue  `json:"queues"`            // the watched ones, by name

	failing error // why the queues cannot be looked at
}

// Unreached is why nothing is known of RabbitMQ since the start, such as a wrong password; "": something is, or it is still being asked for the first time.
func (s *Status) Unreached() string {
	if s.LookedAt != 0 || s.failing == nil {
		return ""
	}
	return "RabbitMQ cannot be looked at: " + cluster.Words(s.failing)
}

// Queue is the state of one watched queue. If another Curfew keeps or observes it, the state is what that one reported a
// moment ago.
type Queue struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue"`
	Type  string `json:"type"`
	Mode  string `json:"mode"` // keep or observe
	// State is the keeper's (observing, keeping, releasing, standing_aside, refused, stopped); or paused; or, for
	// queues that nobody is to keep, exact, not_worth, refused, observed.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"` // why
	// Code is a fixed word for why it is refused, or has not been kept for ten seconds; empty: neither.
	Code string `json:"code,omitempty"`
	// NotKeptSince is since when a rule has wanted it kept and nobody has kept it, Unix ms; 0: it is kept, or need not be.
	NotKeptSince int64 `json:"not_kept_since,omitempty"`
	// SharedWith is another Curfew that consumes from it although it has no right to: it does not share this one's Redis.
	SharedWith  string   `json:"shared_with,omitempty"`
	SharedSince int64    `json:"shared_since,omitempty"` // Unix ms
	Instead     string   `json:"instead,omitempty"`      // what to do about it
	Mind        []string `json:"mind,omitempty"`         // what to bear in mind if it is kept
	Keeper      string   `json:"keeper,omitempty"`       // the Curfew that keeps it
	Here        bool     `json:"here"`                   // this Curfew keeps it
	// Reported: another Curfew keeps it and has reported what follows.
	Reported bool `json:"reported,omitempty"`
	running  bool // a keeper runs here, or waits for the lease
	// Troubles are what is wrong with a delay queue whose messages are held.
	Troubles []delay.Trouble `json:"troubles,omitempty"`
	// Engine is how messages of a delay queue wait: hold, or aside+hold if RabbitMQ has them put aside until a minute before they are due. Aside is how
	// many are, -1 unknown; AsideKnown how many of them this Curfew can list.
	Engine     string `json:"engine,omitempty"`
	Aside      int64  `json:"aside,omitempty"`
	AsideKnown int    `json:"aside_known,omitempty"`

	CaughtUp  bool     `json:"caught_up"`       // all messages of the queue are held
	Held      int      `json:"held"`            // messages
	HeldBytes int64    `json:"held_bytes"`      // of their bodies
	NextDue   int64    `json:"next_due"`        // Unix ms; 0: none, or not known
	Expired   uint64   `json:"expired"`         // since the keeper began
	P50       *float64 `json:"lateness_p50_ms"` // upper bound; null: nothing expired, or more than a minute late
	P99       *float64 `json:"lateness_p99_ms"` // likewise
	// Stranded is how many messages RabbitMQ gives to nobody, so that they expire late. Mostly it keeps them for consumers of a node that died, until
	// the node is up again and the queue has another leader.
	Stranded      int64 `json:"stranded,omitempty"`
	StrandedSince int64 `json:"stranded_since,omitempty"` // Unix ms
	// UnknownAge is how many of the messages taken may be late because nobody knows when they entered the queue.
	UnknownAge  uint64   `json:"unknown_age"`
	LastRelease *Release `json:"last_release,omitempty"`

	// Seen has the times to live of the messages that were seen; nil: nobody has seen any.
	Seen *cluster.TTLStats `json:"ttl_seen,omitempty"`

	Observed *observe.State `json:"observed,omitempty"` // nil: it is kept, or nobody has reported
}

// Release is a giving back of all that was held.
type Release struct {
	At       int64   `json:"at"` // Unix ms
	Millis   float64 `json:"ms"` // how long it took
	Messages int     `json:"messages"`
	Reason   string  `json:"reason"`
}

// Status returns the state of everything.
func (p *Primary) Status() Status {
	s := p.state()
	s.Reasons = inWords(p.conditions(s.Queues))
	return s
}

// state is Status without the reasons.
func (p *Primary) state() Status {
	s := Status{Address: p.address.String(), VHost: p.vhost, Instance: p.name, Members: p.group.names(), Redis: "none", Queues: []Queue{}}
	if p.redis != nil {
		s.Redis = "up"
		if p.group.trouble().err != nil {
			s.Redis = "down"
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Observer, s.failing = p.observing.byLocked(), p.failing.err
	if p.inventory == nil {
		return s
	}
	s.Broker, s.Cluster, s.Notes, s.LookedAt = p.inventory.Server.String(), p.inventory.Server.Cluster, p.inventory.Notes, p.lookedAt.UnixMilli()
	s.Queues = append(s.Queues, p.rowsLocked()...)
	for i := range s.Queues {
		if all := p.seen.known(s.Queues[i].Queue); all.Messages > 0 {
			s.Queues[i].Seen = &all
		}
	}
	p.group.complete(s.Queues)
	return s
}

// rowsLocked returns the watched queues by name, as this Curfew sees them.
func (p *Primary) rowsLocked() (rows []Queue) {
	if p.inventory == nil {
		return nil
	}
	observed := p.observing.statesLocked()
	p.updateSeenLocked(observed)
	for at := range p.inventory.Queues {
		q := &p.inventory.Queues[at]
		if rule, watched := p.rule(q.Name); watched {
			rows = append(rows, p.rowLocked(q, rule, observed[q.Name]))
		}
	}
	slices.SortFunc(rows, func(a, b Queue) int { return cmp.Compare(a.Queue, b.Queue) })
	return rows
}

func (p *Primary) rowLocked(q *cluster.Queue, rule cluster.Rule, observed *observe.State) Queue {
	row := Queue{VHost: p.vhost, Queue: q.Name, Type: string(q.Type), Mode: string(rule.Mode), State: "observed", Observed: observed}
	if observed != nil {
		row.Reason = observed.Reason
	}
	if s := p.seen[q.Name]; s != nil && s.here().Messages > 0 {
		here := s.here()
		row.Seen = &here
	}
	if k := p.queues[q.Name]; k != nil && rule.Mode.Holds() {
		k.describeLocked(&row)
	}
	return row
}

// describeLocked describes a queue that a rule wants kept.
func (q *queue) describeLocked(row *Queue) {
	d := q.decision
	row.Type = string(q.facts.Type)
	row.State, row.Reason, row.Instead, row.Mind = string(d.Verdict), d.Reason, d.Instead, d.Mind
	if d.Verdict == cluster.Refused || d.Verdict == cluster.NotWorth {
		row.Code = string(d.Code)
	}
	if d.Verdict == cluster.Refused || d.Verdict == cluster.Kept {
		row.NotKeptSince = q.unkeptSince()
	}
	row.P50, row.P99 = within(q.late, 0.5), within(q.late, 0.99)
	if q.p.group.isPaused() {
		row.State, row.Code, row.Reason, row.Instead = pausedCode, pausedCode, "An operator has paused everything.", "Resume: curfew rabbitmq resume"
		return
	}
	if q.stop == nil || q.keeper == nil {
		return
	}
	s := q.keeper.Status()
	row.running, row.Here = true, true
	row.State, row.Reason, row.Instead, row.Keeper = strings.ReplaceAll(string(s.State), " ", "_"), s.Reason, "", s.Keeper
	if q.turn == nil {
		row.Keeper = q.p.name
	} else {
		row.Here = q.turn.isHeld()
	}
	unheard := q.p.Now().Sub(s.LookedAt)
	switch kept := s.State == keeper.Keeping || s.State == keeper.Releasing; {
	case s.State == keeper.Refused:
		row.Code = string(s.Code)
	case kept && unheard >= wantedFor:
		row.NotKeptSince, row.Code = s.LookedAt.Add(-q.p.ClockOffset()).UnixMilli(), unheardCode
		row.Reason = fmt.Sprintf("RabbitMQ has not said for %v how many messages and consumers the queue has: it may have no leader", unheard.Round(time.Second))
	case kept:
		row.NotKeptSince = 0
	case time.Since(time.UnixMilli(row.NotKeptSince)) >= wantedFor:
		row.Code = string(s.Code)
	}
	row.CaughtUp = s.State == keeper.Keeping && s.CaughtUp
	row.Held, row.HeldBytes, row.NextDue = s.Held, s.HeldBytes, s.NextDue.Add(-q.p.ClockOffset()).UnixMilli()
	if s.NextDue == 0 {
		row.NextDue = 0
	}
	if n := q.stranded.messages(); n > 0 {
		row.Stranded, row.StrandedSince, row.Code, row.Instead = n, q.stranded.since.UnixMilli(), strandedCode, moveLeader
		if q.facts.Type == cluster.Classic {
			row.Instead = closeConnection
		}
		row.Reason = strings.TrimSpace(fmt.Sprintf("%s RabbitMQ delivers %d more messages to no consumer.", row.Reason, n))
	}
	if q.sharedWith != "" && time.Since(q.sharedAt) >= sharedFor {
		row.SharedWith, row.SharedSince = q.sharedWith, q.sharedAt.UnixMilli()
	}
	if delayed, ok := q.keeper.(*delay.Keeper); ok {
		row.Troubles = q.troublesOf(delayed)
		row.Engine, row.AsideKnown = delayed.Engine()
		found := q.p.inventory.Queue(q.name)
		switch here := row.Engine == "hold"; {
		case found != nil && (!here || found.Delayed > found.Discarded): // they were put aside before
			row.Aside = max(-1, found.Delayed-found.Discarded)
		case !here:
			row.Aside = -1
		}
	}
	row.Expired, row.UnknownAge = s.Counts.Expired, s.Counts.UnknownAge
	if r := s.LastRelease; r.At != 0 {
		row.LastRelease = &Release{At: r.At.Add(-q.p.ClockOffset()).UnixMilli(), Millis: float64(r.Took.Microseconds()) / 1000, Messages: r.Messages, Reason: r.Reason}
	}
}

// troublesOf returns what is wrong with a delay queue that is held.
func (q *queue) troublesOf(k *delay.Keeper) []delay.Trouble {
	all := k.Troubles()
	if q.facts.Others == keeper.Present {
		all = append(all, delay.Trouble{Name: "consumers", Since: q.p.lookedAt.UnixMilli(),
			Reason: "Another application consumes from it, and gets messages that are not due. Have it consume from a queue that is bound to the dead-letter exchange."})
	}
	lost := q.p.inventory.Queue(strings.TrimSuffix(q.name, cluster.DelaySuffix) + cluster.UndeliveredSuffix)
	if lost != nil && q.rule.Mode == cluster.Retry && lost.Ready+lost.Discarded > 0 {
		all = append(all, delay.Trouble{Name: "undelivered", Since: q.p.lookedAt.UnixMilli(), Reason: fmt.Sprintf("%d messages that were to come back have no work queue any more "+
			"and are in %s. Declare the queue again, and they come back within four minutes; or purge them there.", lost.Ready+lost.Discarded, lost.Name)})
	}
	if n := q.stuck.messages(); n > 0 && !slices.ContainsFunc(all, func(t delay.Trouble) bool { return t.Name == delay.Nowhere }) {
		all = append(all, delay.Trouble{Name: "undelivered", Since: q.stuck.since.UnixMilli(), Reason: fmt.Sprintf("%d messages that were due are not delivered: RabbitMQ has 32 of a queue on their way at a time. "+
			"If no queue takes those, they hold up all others: bind a queue to the dead-letter exchange for every message, or give that an alternate-exchange. If it is only slow, raise dead_letter_worker_consumer_prefetch, or spread messages over several delay queues.", n)})
	}
	return all
}

const (
	// unheardCode is the reason in metrics for a queue that RabbitMQ says nothing about.
	unheardCode = "no_answer"
	// strandedCode is the reason in metrics for messages that cannot be taken.
	strandedCode    = "stranded"
	closeConnection = "Curfew tries other consumers by itself. If that does not help, close its connection in RabbitMQ: it connects again and takes all messages again."
	moveLeader      = "When all nodes are up, give the queue another leader: rabbitmq-queues rebalance quorum, or restart the node that leads it."
)
