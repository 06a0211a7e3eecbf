package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/forward"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
)

// Public names for what the internal packages define, and where each is described.

// Of package topology:
type (
	BacklogEffect   = topology.BacklogEffect
	Binding         = topology.Binding
	Ceilings        = topology.Ceilings
	ExchangeDeclare = topology.ExchangeDeclare
	ExchangeInfo    = topology.ExchangeInfo
	Owner           = topology.Owner
	Queue           = topology.Queue
	QueueDeclare    = topology.QueueDeclare
	QueueInfo       = topology.QueueInfo
	QueueDeletion   = topology.QueueDeletion
)

const DelayedMessageKind = topology.DelayedMessageKind

// Of package catalog:
type (
	LoginGuard    = catalog.Guard
	VHostMetadata = catalog.VHostMetadata
)

var (
	ErrNotSaved  = catalog.ErrNotSaved
	ErrNoUser    = catalog.ErrNoUser
	ErrNoVHost   = catalog.ErrNoVHost
	ErrProtected = catalog.ErrProtected
	ErrRefused   = catalog.ErrRefused
)

// Of package forward:
type (
	DelayedMessage = forward.Message
)

// Of package delivery:
type (
	Browse       = delivery.Browse
	Browsed      = delivery.Browsed
	Consumer     = delivery.Consumer
	Delivery     = delivery.Delivery
	Departure    = delivery.Departure
	Numbered     = delivery.Numbered
	Held         = delivery.Held
	LockHolder   = delivery.LockHolder
	MessageStats = delivery.MessageStats
	MoveOutcome  = delivery.MoveOutcome
	QueueStats   = delivery.QueueStats
	QueueState   = delivery.QueueState
	Rejection    = delivery.Rejection
	Settlement   = delivery.Settlement
	Sink         = delivery.Sink
	Source       = delivery.Source
	Status       = delivery.Status
)

const (
	Ack            = delivery.Ack
	MoveBack       = delivery.MoveBack
	MoveFull       = delivery.MoveFull
	MoveGone       = delivery.MoveGone
	MoveUnroutable = delivery.MoveUnroutable
	Moved          = delivery.Moved
	PutBack        = delivery.PutBack
	Reject         = delivery.Reject
	Release        = delivery.Release
	Requeue        = delivery.Requeue
	Return         = delivery.Return
	SingleActive   = delivery.SingleActive
	Up             = delivery.Up
	Waiting        = delivery.Waiting
)

var (
	ClientsOf = delivery.Clients
	Depart    = delivery.Depart
)

// ParseStored parses the property list of a message that the broker handed out.
func ParseStored(properties []byte) (amqp.Properties, error) {
	return amqp.ParseProperties(properties, message.StoredLimits)
}
