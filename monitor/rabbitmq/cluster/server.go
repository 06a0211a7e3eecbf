package cluster

import (
	"fmt"
	"strconv"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Server is what a broker says about itself when a client connects.
type Server struct {
	Product string // "RabbitMQ"
	Version string // as it says it: "3.10.8", "4.1.0-rc.1"
	Cluster string // the name of its cluster
}

func serverOf(properties amqp091.Table) (s Server) {
	s.Product, _ = properties["product"].(string)
	s.Version, _ = properties["version"].(string)
	s.Cluster, _ = properties["cluster_name"].(string)
	return s
}

// Family is a range of versions that treat unacknowledged messages alike.
type Family uint8

const (
	// UnknownFamily: it is not RabbitMQ, or one older than 3.10.
	UnknownFamily Family = iota
	// Family3: 3.10 to 3.13. Every return to a quorum queue counts against its delivery
	// limit. A channel with a message older than the consumer timeout is closed.
	Family3
	// Family40: 4.0 to 4.2. The delivery limit is 20 if nothing else is said, and every
	// return counts.
	Family40
	// Family43: 4.3 and later. basic.nack does not count against the delivery limit. A
	// passive declare takes a permission on the queue, whichever. Quorum queues return what a
	// consumer holds for too long, and classic queues do not time out.
	Family43
)

// String is the range: "3.10 to 3.13", "4.0 to 4.2", "4.3 or later", "unknown".
func (f Family) String() string {
	return [...]string{"unknown", "3.10 to 3.13", "4.0 to 4.2", "4.3 or later"}[f]
}

// Family is the range that the version belongs to.
func (s Server) Family() Family {
	if s.Product != "RabbitMQ" {
		return UnknownFamily
	}
	parts := strings.SplitN(s.Version, ".", 3)
	if len(parts) < 2 {
		return UnknownFamily
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return UnknownFamily
	}
	minor, err := strconv.Atoi(parts[1])
	switch {
	case err != nil, major < 3, major == 3 && minor < 10:
		return UnknownFamily
	case major == 3:
		return Family3
	case major == 4 && minor < 3:
		return Family40
	}
	return Family43
}

// returnsCount reports whether giving a message back with basic.nack counts against the
// delivery limit of its quorum queue.
func (f Family) returnsCount() bool { return f != Family43 }

// defaultDeliveryLimit is that of a quorum queue for which nothing else is said; false:
// there is none.
func (f Family) defaultDeliveryLimit() (limit int64, ok bool) {
	return 20, f == Family40 || f == Family43
}

// String is for people: "RabbitMQ 3.10.8".
func (s Server) String() string { return fmt.Sprintf("%s %s", s.Product, s.Version) }
