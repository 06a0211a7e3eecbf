package management

import (
	"curfew/broker"
	"curfew/broker/server"
)

// queueObject is a queue with all that RabbitMQ's tools look for.
func (q *request) queueObject(queue *broker.Queue) object {
	i := queue.Info()
	key := queueKey(i.ID)
	kind, _ := i.Args["x-queue-type"].(string)
	if kind == "" {
		kind = "classic"
	}
	o := object{
		"name": i.Name, "vhost": i.VHost, "node": q.api.Node, "type": kind, "state": "running",
		"durable": i.Durable, "auto_delete": i.AutoDelete, "exclusive": i.Exclusive, "internal": false, "arguments": jsonOf(i.Args),
		"consumers": i.Consumers, "consumer_capacity": rate(0), "consumer_utilisation": rate(0), "exclusive_consumer_tag": nil,
		"single_active_consumer_tag": nil, "memory": 240 + 25*(i.Ready+i.Unacked), "head_message_timestamp": nil, "idle_since": nil,
		"message_bytes": i.ReadyBytes + i.UnackedBytes, "message_bytes_ready": i.ReadyBytes, "message_bytes_unacknowledged": i.UnackedBytes,
		"message_bytes_persistent": i.PersistentBytes, "message_bytes_ram": 0, "message_bytes_paged_out": i.ReadyBytes + i.UnackedBytes,
		"messages_persistent": i.Persistent, "messages_ram": 0, "messages_ready_ram": 0, "messages_unacknowledged_ram": 0, "messages_paged_out": i.Ready + i.Unacked,
		"reductions": 0, "reductions_details": object{"rate": rate(0)}, "recoverable_slaves": nil, "slave_nodes": []any{}, "synchronised_slave_nodes": []any{}, "garbage_collection": noGarbage,
		"backing_queue_status": object{"mode": "default", "len": i.Ready, "version": 1}, "storage_version": 1,
		"message_stats": q.api.messageStats(key, queueCounts(&i.Counts)), "delivery_limit": deliveryLimit(&i),
	}
	q.api.messages(o, key, i.Ready, i.Unacked)
	addPolicies(o, queue)
	q.addMoments(o, &i)
	return o
}

// addPolicies says which policies apply, and what they come to: an object always.
func addPolicies(o object, queue *broker.Queue) {
	user, operator, effective := queue.Policies()
	o["policy"], o["operator_policy"], o["effective_policy_definition"] = nameOrNull(user), nameOrNull(operator), object{}
	if effective != nil {
		o["effective_policy_definition"] = object(effective)
	}
}

func nameOrNull(name string) any {
	if name == "" {
		return nil
	}
	return name
}

// addMoments adds what is there only at times.
func (q *request) addMoments(o object, i *broker.QueueInfo) {
	if !i.HeadTimestamp.IsZero() {
		o["head_message_timestamp"] = i.HeadTimestamp.Unix()
	}
	if i.UsedAt > 0 {
		o["idle_since"] = isoTime(q.api.b.UnixMillis(i.UsedAt))
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

// deliveryLimit is a number or "unlimited", as NServiceBus reads it.
func deliveryLimit(i *broker.QueueInfo) any {
	if i.DeliveryLimit < 0 {
		return "unlimited"
	}
	return i.DeliveryLimit
}

func (q *request) listQueues() error {
	q.api.rates.refresh()
	var all []*broker.Queue
	for _, vh := range q.vhosts() {
		all = append(all, vh.Queues()...)
	}
	return q.rows(len(all), func(i int) object { return q.queueObject(all[i]) })
}

// queue is the one the path names.
func (q *request) queue() (*broker.VHost, *broker.Queue, error) {
	vh, err := q.vhost()
	if err != nil {
		return nil, nil, err
	}
	queue, err := vh.Queue(q.queueName(vh))
	if err != nil {
		return nil, nil, errNotFound
	}
	return vh, queue, nil
}

// queueName is the name of the queue that the path means.
func (q *request) queueName(vh *broker.VHost) string { return vh.QueueName(q.param("queue")) }

func (q *request) getQueue() error {
	vh, queue, err := q.queue()
	if err != nil {
		return err
	}
	asked, err := q.spans()
	if err != nil {
		return err
	}
	q.api.rates.refresh()
	o := q.queueObject(queue)
	q.samples(o, queueKey(queue.ID()), asked, "lengths", messageCounts...)
	q.statSamples(o, queueKey(queue.ID()), asked)
	o["incoming"], o["deliveries"] = []any{}, []any{}
	consumers := q.consumersBy(vh.Name(), queue.Name())
	o["consumer_details"] = q.consumerObjects(consumers)
	for _, c := range consumers {
		if c.Status == broker.SingleActive {
			o["single_active_consumer_tag"] = c.Tag
		}
	}
	return q.one(o)
}

func (q *request) putQueue() error {
	vh, err := q.vhost()
	if err != nil {
		return err
	}
	d, err := q.queueDeclare()
	if err != nil {
		return err
	}
	_, missing := vh.Queue(q.queueName(vh))
	if _, err := q.declare(vh, q.queueName(vh), d); err != nil {
		return err
	}
	return q.put(missing != nil)
}

func (q *request) queueDeclare() (d broker.QueueDeclare, err error) {
	f, err := q.fields()
	if err != nil {
		return d, err
	}
	if d.Durable, err = f.boolean("durable", false); err != nil {
		return d, err
	}
	if d.AutoDelete, err = f.boolean("auto_delete", false); err != nil {
		return d, err
	}
	d.Args, err = f.table("arguments")
	return d, err
}

func (q *request) declare(vh *broker.VHost, name string, d broker.QueueDeclare) (*broker.Queue, error) {
	return q.rights(vh).DeclareQueue(vh, owner{}, name, d)
}

func (q *request) deleteQueue() error {
	vh, queue, err := q.queue()
	if err == nil {
		_, err = q.rights(vh).DeleteQueue(vh, owner{}, queue.Name(), q.flag("if-unused"), q.flag("if-empty"))
	}
	if err != nil {
		return err
	}
	return q.done()
}

// purge takes read permission, as queue.purge does.
func (q *request) purge() error {
	vh, queue, err := q.queueToRead()
	if err != nil {
		return err
	}
	if queue, err = vh.QueueFor(owner{}, queue.Name()); err != nil {
		return err
	}
	queue.Purge()
	return q.done()
}

// queueAction: there are no mirrors to synchronise.
func (q *request) queueAction() error {
	if _, _, err := q.queue(); err != nil {
		return err
	}
	f, err := q.fields()
	if err == nil {
		err = f.need("action")
	}
	if err != nil {
		return err
	}
	switch action := f["action"]; action {
	case "sync", "cancel_sync":
		return q.done()
	default:
		return bad([]any{"unknown", action})
	}
}

// reset would forget the statistics, which RabbitMQ keeps apart; here they are the
// broker's own counts, which only grow.
func (q *request) reset() error {
	if q.param("node") != "" {
		if err := q.thisNode(); err != nil {
			return err
		}
	}
	return q.done()
}

// rebalance: one node leads every queue.
func (q *request) rebalance() error { return q.done() }
