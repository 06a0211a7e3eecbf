package management

import (
	"errors"
	"fmt"
	"net/http"

	"curfew/broker"
)

func (q *request) vhostObject(vh *broker.VHost) object {
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
		"tracing":  false, "protected_from_deletion": about.Protected, "cluster_state": object{q.api.Node: "running"},
	}
	var c counts
	var ready, unacked int
	for _, queue := range vh.Queues() {
		r, u, _ := queue.Counts()
		ready, unacked = ready+r, unacked+u
		c = sum(c, queue)
	}
	if c == nil {
		c = queueCounts(&broker.QueueCounts{})
	}
	c["confirm"], c["return_unroutable"], c["drop_unroutable"] = 0, 0, 0 // counted by channel, which may go
	base, known, elapsed := q.api.rates.vhost(vh)
	stats := object{}
	for name, n := range c {
		stats[name], stats[name+"_details"] = n, details(n, base[name], elapsed)
	}
	o["message_stats"] = stats
	for name, n := range map[string]int{"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked} {
		o[name], o[name+"_details"] = n, object{"rate": change(n, base[name], known, elapsed)}
	}
	q.addTraffic(o, vh.Name())
	return o
}

// addTraffic sums up what the virtual host's connections received and sent.
func (q *request) addTraffic(o object, vhost string) {
	var received, sent uint64
	for _, c := range q.api.Server.List() {
		if c.VHost == vhost {
			received, sent = received+c.Received, sent+c.Sent
		}
	}
	for name, n := range map[string]uint64{"recv_oct": received, "send_oct": sent} {
		o[name], o[name+"_details"] = n, object{"rate": rate(0)}
	}
}

// sum adds a queue's counts.
func sum(c counts, queue *broker.Queue) counts {
	of := queue.Counters()
	one := queueCounts(&of)
	if c == nil {
		return one
	}
	for name := range one {
		c[name] += one[name]
	}
	return c
}

// vhost is what the queues of a virtual host had counted at the older sample, if any was
// there, and how many seconds ago that was.
func (r *rates) vhost(vh *broker.VHost) (base counts, known bool, elapsed float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base = counts{}
	for _, queue := range vh.Queues() {
		var one sampled
		var there bool
		one, there, elapsed = r.baseline(queueKey(queue.ID()))
		known = known || there
		for _, c := range one {
			base[c.name] += c.n
		}
	}
	return base, known, elapsed
}

func (q *request) listVHosts() error {
	q.api.rates.refresh()
	list := []object{}
	for _, vh := range q.vhosts() {
		list = append(list, q.vhostObject(vh))
	}
	return q.list(list)
}

func (q *request) getVHost() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	q.api.rates.refresh()
	return q.one(q.vhostObject(vh))
}

func (q *request) putVHost() error {
	f, err := q.fields()
	if err != nil {
		return err
	}
	about := broker.VHostMetadata{}
	if vh, ok := q.api.b.VHost(q.param("vhost")); ok {
		about = vh.Metadata()
	}
	if about.Description, err = f.text("description", about.Description); err != nil {
		return err
	}
	if _, given := f["tags"]; given {
		if about.Tags, err = f.tags("tags"); err != nil {
			return err
		}
	}
	if about.DefaultQueueType, err = f.text("default_queue_type", about.DefaultQueueType); err != nil {
		return err
	}
	tracing, err := f.boolean("tracing", false)
	if err != nil {
		return err
	}
	if tracing {
		return bad("there is no firehose: tracing cannot be on")
	}
	_, created, err := q.api.b.PutVHostAs(q.user.Name, q.param("vhost"), about)
	if err != nil {
		return err
	}
	return q.put(created)
}

func (q *request) deleteVHost() error {
	if _, ok := q.api.b.VHost(q.param("vhost")); !ok {
		return errNotFound
	}
	err := q.api.b.DeleteVHost(q.param("vhost"))
	if errors.Is(err, broker.ErrProtected) {
		return &problem{http.StatusPreconditionFailed, "precondition_failed",
			fmt.Sprintf("Refusing to delete virtual host '%s' because it is protected from deletion", q.param("vhost"))}
	}
	if err != nil {
		return err
	}
	return q.done()
}

// protectVHost has the virtual host refuse to be deleted, or not any more.
func protectVHost(protected bool) func(*request) error {
	return func(q *request) error {
		vh, err := q.vhost()
		if err != nil {
			return err
		}
		if err := vh.SetProtected(protected); err != nil {
			return err
		}
		return q.done()
	}
}

// startVHost: they all run.
func (q *request) startVHost() error {
	if _, err := q.vhost(); err != nil {
		return err
	}
	if err := q.thisNode(); err != nil {
		return err
	}
	return q.done()
}
