package management

import (
	"cmp"
	"time"

	"curfew/broker"
	"curfew/broker/definitions"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/server"
)

// queueObject returns a queue with all fields that RabbitMQ's tools read.
func queueObject(r *request, queue *broker.Queue, look Look) object {
	i := queue.Info()
	key := operate.QueueKey(i.ID)
	kind, _ := i.Args["x-queue-type"].(string)
	kind = cmp.Or(kind, "classic")
	o := object{
		"name": i.Name, "vhost": i.VHost, "node": r.api.Node, "type": kind, "state": "running",
		"durable": i.Durable, "auto_delete": i.AutoDelete, "exclusive": i.Exclusive, "internal": false, "arguments": definitions.JSONOf(i.Args),
		"consumers": i.Consumers, "consumer_capacity": rest.Rate(0), "consumer_utilisation": rest.Rate(0), "exclusive_consumer_tag": nil,
		"single_active_consumer_tag": nil, "memory": 240 + 25*(i.Ready+i.Unacked) + 75*i.Waiting, "head_message_timestamp": nil, "oldest_message_age": nil, "idle_since": nil,
		"message_bytes": i.ReadyBytes + i.UnackedBytes + i.WaitingBytes, "message_bytes_ready": i.ReadyBytes, "message_bytes_unacknowledged": i.UnackedBytes,
		"message_bytes_persistent": i.PersistentBytes, "message_bytes_ram": 0, "message_bytes_paged_out": i.ReadyBytes + i.UnackedBytes,
		"messages_persistent": i.Persistent, "messages_ram": 0, "messages_ready_ram": 0, "messages_unacknowledged_ram": 0, "messages_paged_out": i.Ready + i.Unacked,
		"reductions": 0, "reductions_details": object{"rate": rest.Rate(0)}, "recoverable_slaves": nil, "slave_nodes": []any{}, "synchronised_slave_nodes": []any{}, "garbage_collection": noGarbage,
		"backing_queue_status": object{"mode": "default", "len": i.Ready, "version": 1}, "storage_version": 1,
		"message_stats": r.api.counts(operate.QueueCounts(&i.Stats), key), "delivery_limit": i.DeliveryLimit,
	}
	r.api.messages(o, i.Ready+i.Unacked+i.Waiting, i.Ready, i.Unacked, key)
	r.addSamples(o, key, "lengths", messageCounts...)
	r.addStatSamples(o, key)
	o["messages_delayed"] = i.Waiting
	if i.DeliveryLimit < 0 {
		o["delivery_limit"] = "unlimited" // as NServiceBus reads it
	}
	user, operator, effective := queue.Policies()
	o["policy"], o["operator_policy"], o["effective_policy_definition"] = nameOrNull(user), nameOrNull(operator), object{}
	if effective != nil { // what they set together is always an object
		o["effective_policy_definition"] = object(effective)
	}
	addMoments(r, o, &i)
	if kind == "quorum" { // of one node
		o["leader"], o["members"], o["online"] = r.api.Node, []string{r.api.Node}, []string{r.api.Node}
	}
	addAims(r, o, &i, queue, look)
	return o
}

// addAims adds what a queue is for, how bad what is wrong with it is, how long messages wait in it, in ms, and how many
// come in, dead letters among them, and go out a second. These are Curfew's own.
func addAims(r *request, o object, i *broker.QueueInfo, queue *broker.Queue, look Look) {
	w := r.api.Operations.WaitOf(i, queue)
	purpose := r.api.Operations.Purpose(queue)
	o["purpose"], o["objective"], o["lost_last_hour"], o["dead_lettered_last_hour"] = purpose, nameOrNull(w.Objective.String()), nil, nil
	l := (&operate.Queue{QueueInfo: *i, Purpose: purpose, Wait: w}).LossesIn(look.Hour)
	if o["meant_last_hour"] = l.Meant; l.Lost >= 0 {
		o["lost_last_hour"], o["dead_lettered_last_hour"] = l.Lost, l.Rescued
	}
	level, place := look.Concern(i.VHost, i.Name)
	o["looked_at"], o["incident_level"], o["incident_place"] = look.At, nameOrNull(level), place
	o["in_rate"], o["out_rate"] = nil, nil
	if in, out := r.api.rates.Flow(&operate.Queue{QueueInfo: *i}); in.Known {
		o["in_rate"], o["out_rate"] = rest.Rate(in.PerSecond), rest.Rate(out.PerSecond)
	}
	o["time_in_queue"] = object{"oldest_ready": w.Oldest, "p50": w.P50, "p99": w.P99, "objective_missed": w.Missed, "burn_rate": w.Burn}
}

func nameOrNull(name string) any {
	if name == "" {
		return nil
	}
	return name
}

// addMoments adds the fields that a queue has only at times.
func addMoments(r *request, o object, i *broker.QueueInfo) {
	if !i.HeadTimestamp.IsZero() {
		o["head_message_timestamp"] = i.HeadTimestamp.Unix()
	}
	if i.Ready+i.Unacked+i.Waiting > 0 {
		o["oldest_message_age"] = i.OldestAge.Milliseconds() // Curfew's own
	}
	if i.LastActiveAt > 0 {
		o["idle_since"] = time.UnixMilli(r.api.b.UnixMillis(i.LastActiveAt)).UTC().Format("2006-01-02T15:04:05.000+00:00")
	}
	if i.Departed.Client != "" {
		o["last_consumer"] = object{"client": i.Departed.Client, "left": r.api.b.UnixMillis(i.Departed.At)} // Curfew's own
	}
	if i.ExclusiveConsumer != "" {
		o["exclusive_consumer_tag"] = i.ExclusiveConsumer
	}
	if i.Recovered {
		o["recovered"] = true // Curfew's own
	}
	if c, ok := i.Owner.(interface{ Peer() server.Peer }); ok {
		p := c.Peer()
		o["owner_pid_details"] = object{"name": p.Name, "peer_host": p.Host, "peer_port": p.Port}
	}
}

func listQueues(r *request) error {
	r.api.rates.Refresh()
	var all []*broker.Queue
	for _, vh := range r.vhosts() {
		all = append(all, vh.Queues.List()...)
	}
	look := r.api.Look()
	return r.Rows(len(all), func(i int) object { return queueObject(r, all[i], look) })
}

// queue returns the queue in the path.
func (r *request) queue() (*broker.VHost, *broker.Queue, error) {
	vh, err := r.vhost()
	if err != nil {
		return nil, nil, err
	}
	queue, err := vh.Queues.Get(vh.Queues.NameOf(r.Param("queue")))
	if err != nil {
		return nil, nil, rest.ErrNotFound
	}
	return vh, queue, nil
}

func getQueue(r *request) error {
	vh, queue, err := r.queue()
	if err != nil {
		return err
	}
	r.api.rates.Refresh()
	o := queueObject(r, queue, r.api.Look())
	o["incoming"], o["deliveries"] = []any{}, []any{}
	if d, err := r.Operations.Queue(r.HTTP.Context(), r.Actor, operate.QueueName{VHost: vh.Name(), Name: queue.Name}); err == nil {
		o["dead_letters"], o["in_words"] = d.OwnDeadLetters, d.InWords() // Curfew's own: the first are deleted with the queue
	}
	consumers, _ := r.Operations.ListConsumers(r.HTTP.Context(), r.Actor, vh.Name(), queue.Name) // the route was permitted
	o["consumer_details"] = consumerObjects(r, consumers)
	for _, c := range consumers {
		if c.Status == broker.SingleActive {
			o["single_active_consumer_tag"] = c.Tag
		}
	}
	return r.One(o)
}

func purgeQueue(r *request) error {
	_, err := operate.PurgeQueue.Do(r.HTTP.Context(), r.Operations, r.Actor, operate.PurgeRequest{VHost: r.Param("vhost"), Queue: r.Param("queue"), All: true})
	return r.Done(err)
}
