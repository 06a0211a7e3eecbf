package keeper

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/queuefacts"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// message is what the keeper keeps of a delivery.
type message struct {
	fingerprint uint64
	ttl         time.Duration    // the message's own; negative is none
	published   deadline.Instant // by the publisher's timestamp, at the latest; 0 is unknown
	returns     int              // x-delivery-count
	size        int
	redelivered bool
}

// reader turns deliveries into messages. It is not safe for concurrent use.
type reader struct{ fingerprints *Fingerprints }

func newReader() reader { return reader{NewFingerprints()} }

func (r reader) read(d *amqp091.Delivery) message {
	m := message{fingerprint: r.fingerprints.Of(d), ttl: -1, size: len(d.Body), redelivered: d.Redelivered}
	if ms := queuefacts.TimeToLive(d.Expiration); ms >= 0 {
		m.ttl = ms.Duration()
	}
	m.published = Published(d)
	if n, ok := Integer(d.Headers["x-delivery-count"]); ok {
		m.returns = int(n)
	}
	return m
}
