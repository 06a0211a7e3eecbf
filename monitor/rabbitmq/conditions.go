package rabbitmq

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"curfew/monitor/printable"
	"curfew/monitor/rabbitmq/cluster"
)

// Condition is something that is wrong at the moment. Its zero value is none.
type Condition struct {
	Name     string // a fixed word: redis, identity, inventory, statistics, not_kept, stranded, shared, deleted, paused, or that of a delay.Trouble
	Affected string // the queue; "": all
	Reason   string // sentences for an operator, with what to do
}

const (
	// inventoryOld is how old the inventory may be before that is a condition.
	inventoryOld = 2 * time.Minute
	// wantedFor is how long a queue that a rule wants kept may be without a keeper, and RabbitMQ may fail to say how it is.
	wantedFor = 10 * time.Second
	// deletedFor is how long the deletion of a delay queue is a condition, unless it is declared again.
	deletedFor = time.Hour
	// namesInHealth is how many queues Health names of those that have the same condition for the same reason.
	namesInHealth = 5
)

// deletion is when a delay queue was found to be gone, and how many messages it had when it was last seen.
type deletion struct {
	at       time.Time
	messages int64
}

// Conditions returns what is wrong: first what concerns all queues, then by queue. It is safe for concurrent use.
func (p *Primary) Conditions() []Condition { return p.conditions(p.state().Queues) }

func (p *Primary) conditions(rows []Queue) (all []Condition) {
	if p.redis != nil {
		if f := p.group.trouble(); f.err != nil {
			all = append(all, Condition{Name: "redis",
				Reason: fmt.Sprintf("Redis has not answered for %s: queues already kept stay kept; no new ones are taken over (%s)", ago(f.since), f.err)})
		}
	}
	if p.group.isPaused() {
		all = append(all, Condition{Name: "paused", Reason: "an operator has paused everything: no queue is kept. Resume: curfew rabbitmq resume"})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.identity; f.err != nil {
		all = append(all, Condition{Name: "identity",
			Reason: fmt.Sprintf("nothing is kept or observed, since replicas could not tell that they are beside the same cluster: %s", cluster.Words(f.err))})
	}
	switch {
	case p.failing.err != nil:
		all = append(all, Condition{Name: "inventory",
			Reason: fmt.Sprintf("the queues of RabbitMQ have not been looked at for %s: queues already kept stay kept (%s)", ago(p.failing.since), cluster.Words(p.failing.err))})
	case p.lookedAt.IsZero():
		all = append(all, Condition{Name: "inventory", Reason: "the queues of RabbitMQ have not been looked at yet"})
	case time.Since(p.lookedAt) > inventoryOld:
		all = append(all, Condition{Name: "inventory",
			Reason: fmt.Sprintf("the queues of RabbitMQ have not been looked at for %s", ago(p.lookedAt))})
	}
	if p.inventory != nil && len(p.inventory.Unread) > 0 {
		all = append(all, Condition{Name: "statistics",
			Reason: "something that RabbitMQ's management API answers cannot be read, so readers with basic.get may go unseen. " + strings.Join(p.inventory.Unread, "; ")})
	}
	for _, name := range slices.Sorted(maps.Keys(p.deleted)) {
		d := p.deleted[name]
		all = append(all, Condition{Name: "deleted", Affected: name, Reason: fmt.Sprintf("this delay queue was deleted %s ago, with %s in it. Until it is declared again, "+
			"nothing is delayed there: RabbitMQ delivers at once what publishers delay, or drops what was to be tried again. Declare it, or delete its exchange, too",
			printable.Span(ago(d.at)), printable.Plural(d.messages, "message"))})
	}
	for i := range rows {
		all = append(all, rows[i].conditions()...)
	}
	return all
}

// conditions returns what is wrong with a queue that a rule wants kept.
func (q *Queue) conditions() (all []Condition) {
	add := func(name, reason string) {
		all = append(all, Condition{Name: name, Affected: q.Queue, Reason: strings.TrimSpace(reason + " " + q.Instead)})
	}
	switch {
	case q.State == pausedCode:
	case q.NotKeptSince != 0 && time.Since(time.UnixMilli(q.NotKeptSince)) >= wantedFor:
		add("not_kept", strings.TrimRight(strings.ReplaceAll(q.State, "_", " ")+": "+q.Reason, ":. ")+".")
	case q.Stranded > 0:
		add("stranded", fmt.Sprintf("RabbitMQ delivers %d messages to no consumer, so they will expire late.", q.Stranded))
	}
	for _, t := range q.Troubles {
		add(t.Name, t.Reason)
	}
	if q.SharedWith != "" {
		add("shared", fmt.Sprintf("another Curfew, %s, consumes from it too: give all Curfews of this virtual host the same CURFEW_REDIS_URL.", q.SharedWith))
	}
	return all
}

// inWords returns conditions for people. What is wrong with several queues for the same reason is one sentence.
func inWords(all []Condition) (reasons []string) {
	type cause struct{ name, reason string }
	queues := map[cause][]string{}
	for _, c := range all {
		if c.Affected == "" {
			reasons = append(reasons, c.Reason)
			continue
		}
		why := cause{c.Name, c.Reason}
		queues[why] = append(queues[why], c.Affected)
	}
	causes := slices.SortedFunc(maps.Keys(queues), func(a, b cause) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.reason, b.reason)) })
	for _, why := range causes {
		names := queues[why]
		text := strings.Join(names[:min(len(names), namesInHealth)], ", ")
		if more := len(names) - namesInHealth; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		reasons = append(reasons, text+": "+why.reason)
	}
	return reasons
}

func ago(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }
