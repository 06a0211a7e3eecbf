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
	o := history.Options{State: n.marksOf, Traffic: n.settings.PrimaryURL == "", File: file, Version: n.build.Version, Log: n.log}
	o.Queues = func(fn func(*history.Queue)) history.Stats { return n.primary.queues(n.incidents.View().Forecasts, fn) }
	if own, is := n.primary.(*ownBroker); is { // what a queue of RabbitMQ is for is not known
		o.Meant = own.meant
	}
	n.history = history.New(o)
}

// marksOf is what becomes a mark in the history when it changes.
func (n *Node) marksOf() (now history.State) {
	if n.monitor != nil {
		if health := n.monitor.Health(); health.Schedule == monitor.ScheduleUp || health.Down != "" {
			now.Schedule, now.Since = string(health.Schedule), health.Since
		}
	}
	seen := n.incidents.View()
	for _, i := range seen.Open {
		one := history.Alert{Key: i.ID, Text: i.Summary, Since: i.Since, Minor: i.Level == incident.Info}
		if i.Back != nil {
			one.Text, one.Since = "Back: "+i.Summary, *i.Back
		}
		if len(i.Worst) > 0 {
			one.VHost, one.Queue = i.Worst[0].VHost, i.Worst[0].Queue
		}
		now.Firing = append(now.Firing, one)
	}
	now.Over = make(map[string]history.Alert)
	for _, i := range seen.Over {
		now.Over[i.ID] = history.Alert{Text: i.Summary, Since: *i.Ended}
	}
	if n.clients != nil {
		now.Clients = n.clients()
	}
	return now
}

// marked are the operations that are marks in the history: one of them is often why everything is different since.
var marked = map[operate.Operation]string{
	admin.Policies.Set.Name: "policy set", admin.Policies.Clear.Name: "policy removed",
	admin.OperatorPolicies.Set.Name: "operator policy set", admin.OperatorPolicies.Clear.Name: "operator policy removed",
	operate.ImportDefinitions:  "definitions imported",
	admin.CloseConnection.Name: "connection closed", operate.StartReplay.Name: "replay of dead letters started",
	admin.DeleteQueue.Name: "queue deleted", admin.DeleteExchange.Name: "exchange deleted", admin.Unbind.Name: "binding removed",
	admin.MakeVHost.Name: "virtual host set", admin.DeleteVHost.Name: "virtual host deleted",
	admin.SetUser.Name: "user set", admin.SetUserTags.Name: "tags of a user set", admin.DeleteUser.Name: "user deleted",
	admin.SetPermission.Name: "permission set", admin.ClearPermission.Name: "permission removed",
}

// changed records what users do in the audit, and marks in the history what else may change with it.
func (n *Node) changed(c operate.Change) {
	if n.audit != nil {
		n.audit.Did(audit.Change{Operation: string(c.Operation), User: c.By.Name, Face: string(c.By.Face), Result: c.Result, Detail: c.Detail}, c.At.VHost, c.At.Name)
	}
	client, _ := c.Values["client"].(string)
	if c.Operation == admin.CloseConnection.Name && c.Result == "done" {
		n.looker.noteClosed(client, c.By.Name)
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
			kind, which = history.Changed, cmp.Or(c.At.Name, user, exchange, source, client)
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
