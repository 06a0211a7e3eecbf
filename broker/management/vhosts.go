package management

import (
	"cmp"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/server"
)

func vhostObject(r *request, vh *broker.VHost, all map[string]traffic) object {
	about := vh.Metadata()
	tags := about.Tags
	if tags == nil {
		tags = []string{}
	}
	kind := cmp.Or(about.DefaultQueueType, "classic")
	o := object{
		"name": vh.Name(), "description": about.Description, "tags": tags, "default_queue_type": kind,
		"metadata": object{"description": about.Description, "tags": tags, "default_queue_type": kind},
		"tracing":  false, "protected_from_deletion": about.Protected, "cluster_state": object{r.api.Node: "running"},
	}
	c := operate.QueueCounts(&broker.QueueStats{})
	c["confirm"], c["return_unroutable"], c["drop_unroutable"] = 0, 0, 0 // counted by channels, which may be gone
	var keys []any
	for _, queue := range vh.Queues.List() {
		keys = append(keys, operate.QueueKey(queue.ID))
		_, _, stats := queue.Messages.Load()
		for name, n := range operate.QueueCounts(&stats) {
			c[name] += n
		}
	}
	o["message_stats"] = r.api.counts(c, keys...)
	messages, ready, unacked := depthOf(vh)
	r.api.messages(o, messages, ready, unacked, keys...)
	of := all[vh.Name()]
	for name, n := range map[string]uint64{"recv_oct": of.received, "send_oct": of.sent} {
		o[name], o[name+"_details"] = n, object{"rate": rest.Rate(0)}
	}
	return o
}

// traffic is what connections have received and sent, in octets.
type traffic struct{ received, sent uint64 }

// trafficOf adds up the connections of each virtual host.
func trafficOf(connections []server.ConnectionInfo) map[string]traffic {
	all := map[string]traffic{}
	for i := range connections {
		c := &connections[i]
		of := all[c.VHost]
		all[c.VHost] = traffic{of.received + c.Received, of.sent + c.Sent}
	}
	return all
}

func listVHosts(r *request) error {
	r.api.rates.Refresh()
	list, all := r.vhosts(), trafficOf(r.api.Server.List())
	return r.Rows(len(list), func(i int) object { return vhostObject(r, list[i], all) })
}

func getVHost(r *request) error {
	vh, err := r.vhost()
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	return r.One(vhostObject(r, vh, trafficOf(r.api.Server.List())))
}

// protectVHost protects the virtual host from deletion, or with DELETE lifts that protection.
func protectVHost(r *request) error {
	protected := r.HTTP.Method == post
	_, err := admin.ChangeVHost.Do(r.HTTP.Context(), r.Operations, r.Actor, admin.VHostChange{VHost: r.Param("vhost"), Protected: &protected})
	return r.Done(err)
}
