package admin

import (
	"context"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/operate"
)

// NewQueue is a queue to be declared. The fields that are arguments have their names, at least in forms.
type NewQueue struct {
	Queue       string        `json:"queue" hide:"command" form:"name" label:"Name" need:"page"`
	VHost       string        `json:"vhost" start:"/"`
	Type        string        `json:"x-queue-type" flag:"type" help:"classic (the default) or quorum" label:"Type" start:"classic" oneof:"classic quorum" texts:"classic|quorum: counts deliveries and limits them" any:""`
	TTL         *int64        `json:"x-message-ttl" flag:"ttl" help:"time to live of its messages, such as 30s" label:"Time to live" is:"span" doc:"For its messages, in ms, or as 90s, 10m or 24h. Empty: as long as each message says."`
	DeadLetters string        `json:"dead_letters" hide:"command" label:"Dead letters go" oneof:"exchange queue" faint:"nowhere: they are dropped" texts:"to the exchange below|to a dead-letter queue of its own" doc:"Messages that expire, are rejected or do not fit."`
	Exchange    string        `json:"dead-letter-exchange" flag:"dlx" help:"exchange that its dead letters go to" form:"x-dead-letter-exchange" label:"Dead-letter exchange" doc:"Empty: the default exchange, which routes to the queue named by the key."`
	Key         string        `json:"x-dead-letter-routing-key" flag:"dlk" help:"routing key of its dead letters (default: their own)" label:"Dead-letter key" doc:"Empty: the message's own."`
	Durable     bool          `json:"durable" help:"keep it over a restart" label:"survives a restart" start:"1"`
	AutoDelete  bool          `json:"auto_delete" help:"delete it with its last consumer" label:"is deleted with its last consumer"`
	Single      bool          `json:"x-single-active-consumer" help:"one consumer at a time receives messages" label:"has one active consumer"`
	Length      *int64        `json:"x-max-length" help:"the most ready messages" label:"Most messages" more:"Limits and other arguments"`
	Bytes       *int64        `json:"x-max-length-bytes" help:"the most bytes of ready messages" label:"Most bytes" more:"Limits and other arguments"`
	Overflow    string        `json:"x-overflow" help:"beyond that: drop-head (the default), reject-publish or reject-publish-dlx" label:"Beyond the limit" oneof:"reject-publish reject-publish-dlx" any:"" faint:"the oldest message is dropped" texts:"new messages are refused|new messages are dead-lettered" more:"Limits and other arguments"`
	Deliveries  *int64        `json:"x-delivery-limit" help:"how often a message may be delivered again" label:"Most deliveries" doc:"For quorum queues." more:"Limits and other arguments"`
	Priority    *int64        `json:"x-max-priority" help:"its highest priority" label:"Highest priority" doc:"1 to 255." more:"Limits and other arguments"`
	Expires     *int64        `json:"x-expires" help:"delete the queue when it has not been used for this time" label:"Expires unused after" is:"span" doc:"In ms, or as 90s, 10m or 24h." more:"Limits and other arguments"`
	Lock        *int64        `json:"x-lock-duration" hide:"command" label:"Deliveries are locked for" is:"span" doc:"In ms, or as 90s, 10m or 24h. Then they go back to the queue." more:"Limits and other arguments"`
	Arguments   operate.Table `json:"arguments" hide:"command" label:"Other arguments" doc:"A JSON object, for example {\"x-auto-delete-on-idle\": 3600000}." more:"Limits and other arguments"`
}

// DeclareQueue makes a queue, or finds one that was declared like this. Errors: the broker's, 406 for a queue with other properties.
var DeclareQueue = operate.Define(operate.Op{
	Name: "declare_queue", Noun: "queue", Title: "Declare a queue", Rule: operate.Rule{Role: operate.Management},
	Routes: []string{"PUT /api/queues/{vhost}/{queue}"},
	Page: operate.Page{On: "/queue/new", Title: "New queue", Tab: "/queues", Parent: "/queues", Up: "Queues", Button: "Create the queue",
		Next: "/queue?vhost={vhost}&name={name}&changed=declared"},
}, func(_ context.Context, c *operate.Call, q NewQueue) (none operate.None, err error) {
	args := declared("declare_queue", q, q.Arguments)
	if q.Type == "classic" {
		delete(args, "x-queue-type") // it is the default
	}
	if given, is := q.Arguments["x-queue-type"]; is {
		args["x-queue-type"] = given
	}
	switch q.DeadLetters {
	case "exchange":
		args["x-dead-letter-exchange"] = q.Exchange
	case "queue":
		args["x-dead-letter-queue"] = true
	}
	name := c.VHost.Queues.NameOf(q.Queue)
	_, missing := c.VHost.Queues.Get(name)
	c.Created = missing != nil
	_, err = c.Rights.DeclareQueue(c.VHost, operate.Nobody{}, name, broker.QueueDeclare{Durable: q.Durable, AutoDelete: q.AutoDelete, Args: args})
	return none, err
})

// QueueFacts are what a page about a queue tells before something is done to it.
type QueueFacts struct {
	VHost       string `json:"vhost" hide:"page"`
	Name        string `json:"queue" form:"name" hide:"page"`
	ID          uint64 `json:"queue_id" form:"queue" hide:"page"`
	All         int    `json:"all" form:"asked" hide:"page"` // that are deleted with it
	Messages    int    `json:"-" label:"Messages" is:"bad"`
	DeadLetters int    `json:"-" label:"Dead letters" is:"bad" omit:""`
	Consumers   int    `json:"-" label:"Consumers"`
}

// LookAtQueue is the list of one queue.
var LookAtQueue = operate.Define(operate.Op{
	Name: "look_at_queue", Noun: "queue", Title: "What is in a queue", Rule: operate.Rule{Role: operate.Management, Looks: true},
}, func(ctx context.Context, c *operate.Call, r QueuePage) ([]QueueFacts, error) {
	q, err := c.Operations.Queue(ctx, c.Actor, operate.QueueName{VHost: r.VHost, Name: r.Queue})
	messages := q.Ready + q.Unacked + q.Waiting
	return []QueueFacts{{r.VHost, r.Queue, q.ID, messages + q.OwnDeadLetters, messages, q.OwnDeadLetters, q.Consumers}}, err
})

// QueuePage is the queue of a page.
type QueuePage struct {
	VHost string `json:"vhost"`
	Queue string `json:"queue" form:"name"`
}

// QueueDeletion names a queue to be deleted, and on which conditions.
type QueueDeletion struct {
	QueuePage
	ID       uint64 `json:"queue_id" form:"queue" is:"text" seen:"" doc:"the incarnation of the queue; none: any"`
	IfUnused bool   `json:"if-unused" form:"if_unused" label:"only if it has no consumers"`
	IfEmpty  bool   `json:"if-empty" form:"if_empty" label:"only if it is empty"`
	AtMost   *int   `json:"if-at-most" form:"asked" seen:"" doc:"the most messages that may be deleted with it, dead letters included; RabbitMQ has nothing like it"`
}

// DeleteQueue deletes a queue with its messages. Errors: operate.ErrNotFound, or the broker's: 406 for one that is used, is not empty, or has more messages
// than may be deleted.
var DeleteQueue = operate.Define(operate.Op{
	Name: "delete_queue", Noun: "queue", Title: "Delete a queue with its messages", Rule: operate.Rule{Role: operate.Management}, Routes: []string{"DELETE /api/queues/{vhost}/{queue}"},
	Page: operate.Page{On: "/queue/delete", Title: "Delete the queue", Tab: "/queues", Parent: "/queue", Rows: "look_at_queue", Danger: true, Typed: "asked", Next: "/queues?said=queue_deleted",
		May: func(o *operate.Operations, a operate.Actor, row any) bool {
			return operate.MayQueue(o, a, access.Configure, row.(QueueFacts).VHost, row.(QueueFacts).Name)
		},
		Then: "Its messages are lost, and not dead-lettered; so are its dead letters that no queue has taken yet, and those in its own dead-letter queue. Its consumers are cancelled. If more messages arrive before the deletion, the queue stays."},
}, func(_ context.Context, c *operate.Call, r QueueDeletion) (none operate.None, err error) {
	q, err := c.Queue(r.Queue)
	if err == nil && r.ID != 0 && r.ID != q.ID {
		err = operate.ErrNotFound
	}
	messages := 0
	if err == nil {
		messages, err = c.Rights.DeleteQueue(c.VHost, operate.Nobody{}, q.Name, broker.QueueDeletion{IfUnused: r.IfUnused, IfEmpty: r.IfEmpty, AtMost: r.AtMost, QueueID: r.ID})
	}
	c.Log(zap.Int("messages", messages))
	return none, err
})

// Changes change arguments of a queue or, without one, of an exchange; nil removes an argument.
type Changes struct {
	VHost     string        `json:"vhost"`
	Queue     string        `json:"queue"`
	Exchange  string        `json:"exchange" log:"exchange"`
	Arguments operate.Table `json:"arguments"`
}

// ChangeArguments changes what queues and exchanges can have changed. Errors: those of broker.VHost's Queues.Change.
var ChangeArguments = operate.Define(operate.Op{
	Name: "change_arguments", Noun: "queue", Title: "Change the arguments of a queue or an exchange", Rule: operate.Rule{Role: operate.Management},
}, func(_ context.Context, c *operate.Call, q Changes) (none operate.None, err error) {
	if q.Queue == "" {
		if err = c.Rights.Exchange(access.Configure, q.Exchange); err == nil {
			err = c.VHost.Exchanges.Change(q.Exchange, q.Arguments)
		}
		return none, err
	}
	if err = c.Rights.Queue(access.Configure, q.Queue); err == nil {
		err = c.VHost.Queues.Change(operate.Nobody{}, q.Queue, q.Arguments)
	}
	return none, err
})
