package node

import (
	"fmt"
	"path/filepath"

	"curfew/broker"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/monitor"
	"curfew/monitor/history"
)

// newHistory makes the history of the last day. It is made before what it samples, so that it misses no expiry.
func newHistory(n *Node) *history.History {
	file := ""
	if n.settings.DataDir != "" {
		file = filepath.Join(n.settings.DataDir, "history")
	}
	return history.New(history.Options{
		Source: historySource{n}, Traffic: n.settings.PrimaryURL == "", File: file, Version: n.build.Version, Log: n.log,
	})
}

// historySource is what the history samples.
type historySource struct{ n *Node }

// Queues implements history.Source: the broker's queues with their forecasts, or beside RabbitMQ those that have a forecast.
func (s historySource) Queues(fn func(*history.Queue)) history.Stats {
	n := s.n
	var forecasts []monitor.Forecast
	if n.monitor != nil {
		forecasts = n.monitor.Forecasts()
	}
	if n.broker == nil {
		for _, f := range forecasts {
			fn(&history.Queue{VHost: f.VHost, Name: f.Queue, Depth: f.Ready, WillExpire: f.WillMiss})
		}
		return history.Stats{}
	}
	expire := make(map[[2]string]int)
	for _, f := range forecasts {
		if f.WillMiss == 0 { // those with most at risk come first
			break
		}
		expire[[2]string{f.VHost, f.Queue}] = f.WillMiss
	}
	var one history.Queue
	published, delivered := n.broker.Loads(func(q *broker.Queue, messages int, c *broker.QueueStats) {
		one = history.Queue{VHost: q.VHost().Name(), Name: q.Name(), Depth: messages, Published: c.Published, Delivered: c.AllDelivered()}
		one.WillExpire = expire[[2]string{one.VHost, one.Name}]
		fn(&one)
	})
	return history.Stats{Published: published, Delivered: delivered}
}

// State implements history.Source.
func (s historySource) State() (now history.State) {
	n := s.n
	if n.monitor != nil && n.redis != nil {
		health := n.monitor.Health()
		now.Schedule, now.Since = string(health.Schedule), health.Since
	}
	if n.alerts == nil {
		return now
	}
	for _, a := range n.alerts.List() {
		if a.State == "firing" {
			now.Firing = append(now.Firing, history.Alert{
				Key: fmt.Sprint(a.Event, "\x00", a.Labels, "\x00", a.StartsAt.UnixMilli()), Text: a.Summary, VHost: a.Labels["vhost"], Queue: a.Labels["queue"], Since: a.StartsAt,
			})
		}
	}
	return now
}

// policyChanges are the operations that may change which policies are in force.
var policyChanges = map[operate.Operation]string{
	admin.Policies.Set.Name: "policy set", admin.Policies.Clear.Name: "policy removed",
	admin.OperatorPolicies.Set.Name: "operator policy set", admin.OperatorPolicies.Clear.Name: "operator policy removed",
	operate.ImportDefinitions: "definitions imported",
}

// changesOf records what users do in the audit, and marks changes of policies in the history.
func changesOf(n *Node) func(operate.Change) {
	record := changesInto(n.audit)
	return func(c operate.Change) {
		if record != nil {
			record(c)
		}
		if text, ok := policyChanges[c.Operation]; ok && c.Result == "done" {
			n.history.AddNow(history.Mark{Kind: history.PolicyChanged, Text: text + " by " + c.By.Name + ": " + c.Detail, VHost: c.At.VHost})
		}
	}
}
