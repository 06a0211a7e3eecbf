package management

import (
	"errors"
	"fmt"
	"net/http"

	"curfew/broker/management/rest"
	"curfew/broker/operate"

	"curfew/broker"
)

func vhostObject(r *request, vh *broker.VHost) object {
	about := vh.Metadata()
	tags := about.Tags
	if tags == nil {
		tags = []string{}
	}
	kind := about.DefaultQueueType
	if kind == "" {
		kind = "classic"
	}
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
		stats := queue.Stats()
		for name, n := range operate.QueueCounts(&stats) {
			c[name] += n
		}
	}
	o["message_stats"] = r.api.counts(c, keys...)
	ready, unacked := depthOf(vh)
	r.api.messages(o, ready, unacked, keys...)
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

func putVHost(r *request) error {
	f, err := r.Fields()
	if err != nil {
		return err
	}
	about := broker.VHostMetadata{}
	if vh, ok := r.api.b.VHost(r.Param("vhost")); ok {
		about = vh.Metadata()
	}
	if about.Description, err = f.Text("description", about.Description); err != nil {
		return err
	}
	if _, given := f["tags"]; given {
		if about.Tags, err = f.Tags("tags"); err != nil {
			return err
		}
	}
	if about.DefaultQueueType, err = f.Text("default_queue_type", about.DefaultQueueType); err != nil {
		return err
	}
	tracing, err := f.Boolean("tracing", false)
	if err != nil {
		return err
	}
	if tracing {
		return rest.Bad("there is no firehose: tracing cannot be enabled")
	}
	return r.Put(r.Operations.MakeVHost(r.Context(), r.Actor, r.Param("vhost"), about))
}

func deleteVHost(r *request) error {
	err := r.Operations.DeleteVHost(r.Context(), r.Actor, r.Param("vhost"))
	if errors.Is(err, broker.ErrProtected) {
		return rest.NewProblem(http.StatusPreconditionFailed, "precondition_failed",
			fmt.Sprintf("Refusing to delete virtual host '%s' because it is protected from deletion", r.Param("vhost")))
	}
	return r.Done(err)
}

// protectVHost protects the virtual host from deletion, or lifts that protection.
func protectVHost(protected bool) func(*request) error {
	return func(r *request) error {
		return r.Done(r.Operations.ProtectVHost(r.Context(), r.Actor, r.Param("vhost"), protected))
	}
}
