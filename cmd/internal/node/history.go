package node

import (
	"cmp"
	"fmt"
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

// marked are the operations that are marks in the history: one of them is often why everything is different since.
var marked = map[operate.Operation]string{
	admin.Policies.Set.Name: "policy set", admin.Policies.Clear.Name: "policy removed",
	admin.OperatorPolicies.Set.Name: "operator policy set", admin.OperatorPolicies.Clear.Name: "operator policy removed",
	operate.ImportDefinitions: "definitions imported",
	operate.DeleteQueue:       "queue deleted", admin.DeleteExchange.Name: "exchange deleted", admin.Unbind.Name: "binding removed",
	admin.MakeVHost.Name: "virtual host set", admin.DeleteVHost.Name: "virtual host deleted",
	admin.SetUser.Name: "user set", admin.SetUserTags.Name: "tags of a user set", admin.DeleteUser.Name: "user deleted",
	admin.SetPermission.Name: "permission set", admin.ClearPermission.Name: "permission removed",
}

// changed records what users do in the audit, and marks in the history what else may change with it.
func (n *Node) changed(c operate.Change) {
	if n.audit != nil {
		n.audit.Did(audit.Change{Operation: string(c.Operation), User: c.By.Name, Face: string(c.By.Face), Result: c.Result, Detail: c.Detail}, c.At.VHost, c.At.Name)
	}
	if text, ok := marked[c.Operation]; ok && c.Result == "done" {
		text += " by " + c.By.Name
		kind, which := history.PolicyChanged, admin.ChangedPolicy(c)
		if which == "" && c.Operation != operate.ImportDefinitions {
			user, _ := c.Values["name"].(string)
			exchange, _ := c.Values["exchange"].(string)
			source, _ := c.Values["source"].(string)
			if source != "" {
				source += fmt.Sprintf(" → %v, key %q", c.Values["destination"], c.Values["routing_key"])
			}
			kind, which = history.Changed, cmp.Or(c.At.Name, user, exchange, source)
			if which != "" && c.At.VHost != "" {
				which += " (vhost " + c.At.VHost + ")"
			}
			which = cmp.Or(which, c.At.VHost)
		}
		if which != "" {
			text += ": " + which
		}
		n.history.AddNow(history.Mark{Kind: kind, Text: text, VHost: c.At.VHost, Queue: c.At.Name})
	}
}
