package cluster

// QueueType is the type of a queue as RabbitMQ calls it. RabbitMQ has more than those named here.
type QueueType string

const (
	// UnknownType: nobody could say.
	UnknownType QueueType = ""
	Classic     QueueType = "classic"
	Quorum      QueueType = "quorum"
	Stream      QueueType = "stream"
)

// Family is a range of versions that treat unacknowledged messages alike.
type Family uint8

const (
	// UnknownFamily: it is not RabbitMQ, or it is older than 3.10.
	UnknownFamily Family = iota
	// Family3: 3.10 to 3.13. Every return to a quorum queue counts against its delivery
	// limit. A channel with a message older than the consumer timeout is closed.
	Family3
	// Family40: 4.0 to 4.2. As 3.x, and the delivery limit is 20 unless another one is set.
	Family40
	// Family43: 4.3 and later. basic.nack does not count against the delivery limit. A
	// passive declare takes some permission on the queue. Quorum queues take back what a
	// consumer holds for too long, and classic queues do not time out.
	Family43
)
