package operate

import (
	"context"

	"go.uber.org/zap"

	"curfew/broker"
)

// ExchangeName names an exchange; "" is the default one.
type ExchangeName struct{ VHost, Name string }

// QueueDeletion has the conditions under which a queue is not deleted.
type QueueDeletion = broker.QueueDeletion

// DeleteQueue deletes a queue with its messages, and returns how many were ready. Errors: ErrNotFound, or the broker's: 406 for one that is used,
// is not empty, or has more messages than d allows.
func (o Topology) DeleteQueue(_ context.Context, a Actor, at QueueName, d QueueDeletion) (messages int, err error) {
	q, vh, err := o.incarnation(&a, DeleteQueue, at, d.QueueID)
	if err == nil {
		messages, err = o.rights(&a, vh).DeleteQueue(vh, Nobody{}, q.Name(), d)
	}
	o.Record(a, DeleteQueue, at, err, zap.Int("messages", messages))
	return messages, err
}

// rights are what the actor may do in a virtual host, as over AMQP.
func (o *Access) rights(a *Actor, vh *broker.VHost) *broker.Rights {
	return o.Broker.RightsOf(a.Name, vh.Name())
}
