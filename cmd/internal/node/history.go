package node

import (
	"path/filepath"

	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/monitor"
	"curfew/monitor/audit"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// openHistory makes the history of the last day. It is made before what it samples, so that it misses no expiry.
func (n *Node) openHistory() {
	file := ""
	if n.settings.DataDir != "" {
		file = filepath.Join(n.settings.DataDir, "history")
	}
	n.history = history.New(history.Options{
		Source: sampled{n}, Traffic: n.settings.PrimaryURL == "", File: file, Version: n.build.Version, Log: n.log,
	})
}

// sampled is what the history samples.
type sampled struct{ n *Node }

// Queues implements history.Source.
func (s sampled) Queues(fn func(*history.Queue)) history.Stats {
	return s.n.primary.queues(s.n.incidents.View().Forecasts, fn)
}

// Meant implements history.Source.
func (s sampled) Meant(vhost, queue string) bool { return s.n.primary.meant(vhost, queue) }

// State implements history.Source.
func (s sampled) State() (now history.State) {
	n := s.n
	if n.monitor != nil {
		if health := n.monitor.Health(); health.Schedule == monitor.ScheduleUp || health.Down != "" {
			now.Schedule, now.Since = string(health.Schedule), health.Since
		}
	}
	seen := n.incidents.View()
	for _, i := range seen.Open {
		one := history.Alert{Key: i.ID, Text: i.Summary, Since: i.Since, Minor: i.Level == incident.Info}
		if len(i.Worst) > 0 {
			one.VHost, one.Queue = i.Worst[0].VHost, i.Worst[0].Queue
		}
		now.Firing = append(now.Firing, one)
	}
	now.Over = make(map[string]history.Alert)
	for _, i := range seen.Over {
		now.Over[i.ID] = history.Alert{Text: i.Summary, Since: *i.Ended}
	}
	now.Clients = n.primary.clients()
	return now
}

// policyChanges are the operations that may change which policies are in force.
var policyChanges = map[operate.Operation]string{
	admin.Policies.Set.Name: "policy set", admin.Policies.Clear.Name: "policy removed",
	admin.OperatorPolicies.Set.Name: "operator policy set", admin.OperatorPolicies.Clear.Name: "operator policy removed",
	operate.ImportDefinitions: "definitions imported",
}

// changed records what users do in the audit, and marks changes of policies in the history.
func (n *Node) changed(c operate.Change) {
	if n.audit != nil {
		n.audit.Did(audit.Change{Operation: string(c.Operation), User: c.By.Name, Face: string(c.By.Face), Result: c.Result, Detail: c.Detail}, c.At.VHost, c.At.Name)
	}
	if text, ok := policyChanges[c.Operation]; ok && c.Result == "done" {
		text += " by " + c.By.Name
		if which := admin.ChangedPolicy(c); which != "" {
			text += ": " + which
		}
		n.history.AddNow(history.Mark{Kind: history.PolicyChanged, Text: text, VHost: c.At.VHost})
	}
}
