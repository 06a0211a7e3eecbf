package operate

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

// The broker's types for what faces declare.
type (
	Delivery   = broker.Delivery
	Connection = server.ConnectionInfo
	Table      = amqp.Table
	Properties = amqp.Properties
)

// How messages taken by Get are settled.
const (
	Requeue = broker.PutBack
	Reject  = broker.Reject
)

// ParseProperties reads the properties of a message that an operation returned.
func ParseProperties(b []byte) (Properties, error) { return broker.ParseStored(b) }
