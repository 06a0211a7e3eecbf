package plan

import (
	"fmt"
	"strings"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/observe"
)

// Plan is what can be done about the deadlines of a virtual host.
type Plan struct {
	Broker string   `json:"broker"`
	VHost  string   `json:"vhost"`
	Rows   []Row    `json:"queues"`
	Notes  []string `json:"notes"` // what could not be found out, and why
	User   string   `json:"-"`     // with which it was made: RabbitMQ has that user

	inventory *cluster.Inventory
	bindings  []cluster.Binding
	watch     cluster.Watch
}

// Row is one queue.
type Row struct {
	Queue string `json:"queue"`
	Type  string `json:"type"`
	// TTLMillis is the queue's time to live by argument and policy; 0: messages have their
	// own or none. Seen has the messages' own; nil: nobody has seen any.
	TTLMillis deadline.Millis   `json:"ttl_ms"`
	Seen      *cluster.TTLStats `json:"ttl_seen,omitempty"`
	Ready     int64             `json:"ready"`
	Unacked   int64             `json:"unacked"`
	Consumers int               `json:"consumers"`
	Rule      string            `json:"rule"` // by CURFEW_WATCH: keep, delay, retry, observe or off; empty: no rule
	// Deadlines is how they can be kept: kept, exact, not_worth or refused.
	Deadlines cluster.Verdict `json:"deadlines"`
	Code      cluster.Code    `json:"code"`
	Reason    string          `json:"reason"`
	Instead   string          `json:"instead,omitempty"` // what to do about it
	Mind      []string        `json:"mind,omitempty"`
	// Untappable is why single messages of the queue cannot be observed; empty: they can.
	Untappable string `json:"untappable,omitempty"`
	// Cost is what keeping would cost; nil unless the queue can be kept.
	Cost *Cost `json:"cost,omitempty"`
	// Topology is how to declare queues that need no keeping.
	Topology string `json:"topology,omitempty"`

	delayed                 string // by its rule: the exchange that a delay queue is bound to
	kept, observed, counted bool   // by its rule: observed message by message, or only counted
}

// Cost is what keeping a queue costs, by measurements with messages of 100 bytes to 1 KiB
// on one machine: an order of magnitude, not a promise.
type Cost struct {
	Held       int64   `json:"held"`         // messages, of the present ones
	Memory     int64   `json:"memory"`       // bytes, in RabbitMQ
	CPU        float64 `json:"cpu_ms"`       // of RabbitMQ, for each message that expires
	Publishing string  `json:"publish_rate"` // the share of the queue's highest publish rate that remains
}

// String is for a table.
func (c *Cost) String() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%d held, %.1f MiB, %.1f ms CPU each", c.Held, float64(c.Memory)/(1<<20), c.CPU)
}

// New makes a plan. exchanges and bindings may be nil if they cannot be known; unknown is
// then the reason.
func New(i *cluster.Inventory, exchanges map[string]cluster.Exchange, bindings []cluster.Binding, unknown error, watch cluster.Watch) *Plan {
	p := &Plan{Broker: i.Server.String(), VHost: i.VHost, Notes: i.Notes, inventory: i, bindings: bindings, watch: watch}
	if unknown != nil {
		p.Notes = append(p.Notes, "exchanges and bindings: "+unknown.Error())
	}
	for at := range i.Queues {
		q := &i.Queues[at]
		if strings.HasPrefix(q.Name, cluster.NamePrefix) {
			continue
		}
		r := Row{Queue: q.Name, Type: string(q.Type), Ready: q.Ready, Unacked: q.Unacked, Consumers: q.Consumers}
		r.TTLMillis, _ = q.TTLMillis()
		rule, watched := watch.Rule(i.VHost, q.Name)
		r.Rule = string(rule.Mode)
		asked, kept := rule, watched && rule.Mode.Holds()
		if !kept {
			asked = keepRule(rule)
		}
		if unknown == nil {
			r.Untappable = observe.Untappable(i, q, exchanges, bindings)
		} else {
			r.Untappable = unknown.Error()
		}
		seen, known := i.Seen[q.Name]
		if known && seen.Messages > 0 {
			r.Seen = &seen
		}
		d := cluster.Decide(q, asked, i.Server, seen, !kept || r.Untappable == "")
		r.Deadlines, r.Code, r.Reason, r.Instead, r.Mind = d.Verdict, d.Code, d.Reason, d.Instead, d.Mind
		if d.Code == cluster.ByRule && !kept {
			r.Reason = "No rule says keep. With one, Curfew would keep its deadlines."
		}
		if d.Verdict == cluster.Kept {
			r.Cost, r.Topology = costOf(q, i.Server.Family()), topologyFor(q, i.Server.Family())
		}
		r.kept = kept && d.Verdict == cluster.Kept
		if r.kept && rule.Mode == cluster.Delay {
			r.delayed, r.Topology = rule.ExchangeOf(q.Name), ""
		}
		if r.kept && rule.Mode == cluster.Retry {
			if r.Topology = ""; i.Server.Family() == cluster.Family43 && rule.Backoff.Linear() {
				r.Topology = nativeRetry
			}
		}
		r.counted = watched && !r.kept && rule.Mode != cluster.Off
		r.observed = r.counted && r.Untappable == ""
		p.Rows = append(p.Rows, r)
	}
	return p
}

// TTLs returns in a word or two how long messages live: by the queue, and by the messages
// seen. "unknown": messages may have times to live of their own, and nobody has seen any.
func (r *Row) TTLs() string {
	var parts []string
	if r.TTLMillis > 0 {
		parts = append(parts, r.TTLMillis.Duration().String())
	}
	if s := r.Seen; s != nil && s.Expiring > 0 {
		own := s.Least.Duration().String()
		if s.Most > s.Least {
			own += ".." + s.Most.Duration().String()
		}
		parts = append(parts, own)
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ",")
	case r.Seen != nil || r.Type == string(cluster.Stream):
		return "-"
	}
	return "unknown"
}

// keepRule returns the rule with mode keep.
func keepRule(r cluster.Rule) cluster.Rule {
	if r.Budget.Messages == 0 { // no rule at all
		r = cluster.DefaultWatch()[0]
	}
	r.Mode = cluster.Keep
	return r
}

// costOf scales what was measured: see Cost.
func costOf(q *cluster.Queue, f cluster.Family) *Cost {
	c := &Cost{Held: q.Ready + q.Unacked, CPU: 0.4, Publishing: "50% to 85%"}
	each := int64(900)
	if q.Type == cluster.Classic {
		c.CPU, each = 0.2, 1900
		if f == cluster.Family43 {
			each = 6800
		}
	}
	c.Memory = c.Held * each
	return c
}

func topologyFor(q *cluster.Queue, f cluster.Family) string {
	if f == cluster.Family43 && q.Type == cluster.Quorum {
		return "If messages here have at most 32 different times to live, give each its own priority: RabbitMQ is then on time by itself."
	}
	return "If messages here have only a few different times to live, declare a queue for each, with that x-message-ttl: RabbitMQ is then on time by itself."
}
