package management

import (
	"cmp"

	"curfew/broker"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
)

func vhostObject(r *request, vh *broker.VHost) object {
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
		keys = append(keys, operate.QueueKey(queue.ID()))
		_, _, stats := queue.Load()
		for name, n := range operate.QueueCounts(&stats) {
			c[name] += n
		}
	}
	o["message_stats"] = r.api.counts(c, keys...)
	all, ready, unacked := depthOf(vh)
	r.api.messages(o, all, ready, unacked, keys...)
	addTraffic(r, o, vh.Name())
	return o
}

// addTraffic adds what the virtual host's connections have received and sent.
func addTraffic(r *request, o object, vhost string) {
	var received, sent uint64
	for _, c := range r.api.Server.List() {
		if c.VHost == vhost {
			received, sent = received+c.Received, sent+c.Sent
		}
	}
	for name, n := range map[string]uint64{"recv_oct": received, "send_oct": sent} {
		o[name], o[name+"_details"] = n, object{"rate": rest.Rate(0)}
	}
}

func listVHosts(r *request) error {
	r.api.rates.Refresh()
	list := []object{}
	for _, vh := range r.vhosts() {
		list = append(list, vhostObject(r, vh))
	}
	return r.List(list)
}

func getVHost(r *request) error {
	vh, err := r.vhost()
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	return r.One(vhostObject(r, vh))
}

// protectVHost protects the virtual host from deletion, or lifts that protection.
func protectVHost(protected bool) func(*request) error {
	return func(r *request) error {
		_, err := admin.ChangeVHost.Do(r.HTTP.Context(), r.Operations.Access, r.Actor, admin.VHostChange{VHost: r.Param("vhost"), Protected: &protected})
		return r.Done(err)
	}
}
