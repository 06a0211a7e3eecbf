package broker

import (
	"sync"
	"sync/atomic"

	"curfew/broker/deadline"
	"curfew/broker/internal/catalog"
	"curfew/broker/internal/forward"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
)

// delayedName names the delayed messages of a virtual host where the name of a queue is
// needed. No queue has that name: nothing can be bound to it, published to
// it or consumed from it.
const delayedName = "curfew.delayed"

// delays are the delayed messages of a virtual host.
type delays struct {
	forward.Schedule
	vh    *VHost
	saved atomic.Bool // its definition is on disk
}

// schedule returns the delayed messages of the virtual host, and makes them if there are
// none yet.
func (vh *VHost) schedule() (*delays, error) {
	if d := vh.delays.Load(); d != nil && d.saved.Load() {
		return d, nil
	}
	return vh.makeDelays(topology.NewIncarnation())
}

// makeDelays makes the delayed messages of the virtual host unless they exist. With an error
// they may exist without being saved: no durable message may wait there before they are.
func (vh *VHost) makeDelays(id uint64) (d *delays, err error) {
	err = vh.Define(func() *catalog.Queue {
		if d = vh.delays.Load(); d != nil {
			return nil
		}
		d = &delays{vh: vh}
		d.Init(&vh.b.env, id, delayedName, vh.letters.Lines(), vh.answerLater)
		vh.b.delays.byID.Store(id, d)
		vh.delays.Store(d)
		return d.definition()
	})
	if err == nil {
		d.saved.Store(true)
	}
	return d, err
}

func (d *delays) definition() *catalog.Queue {
	return &catalog.Queue{VHost: d.vh.Name(), Name: delayedName, ID: d.ID(), Delayed: true, Args: catalog.SaveArgs(nil)}
}

// Delayed lists up to most delayed messages in the order of publishing, from a
// sequence number on (0: the first); next is where to continue, 0 at the end. Their properties
// are without what the broker noted for commands.
func (vh *VHost) Delayed(from uint64, most int) (page []DelayedMessage, next uint64) {
	if d := vh.delays.Load(); d != nil {
		page, next = d.Waiting(from, most)
	}
	for i := range page {
		page[i].Properties = message.WithoutScheduled(page[i].Properties)
	}
	return page, next
}

// DelayedBody is the body of a delayed message; nil: it is gone.
func (vh *VHost) DelayedBody(ref deadline.Ref) []byte {
	if d := vh.delays.Load(); d != nil {
		return d.Body(ref)
	}
	return nil
}

// ScheduledKey is the routing key of the newest delayed message with a message-id that a user has
// published to an exchange; empty: there is none.
func (vh *VHost) ScheduledKey(exchange, user, id string) string {
	if d := vh.delays.Load(); d != nil {
		return d.RoutingKey(exchange, user, id)
	}
	return ""
}

// leaving lists those that are due and on their way, up to most from a sequence number on
// (0: the first); next is where to continue, 0 at the end.
func (vh *VHost) leaving(from uint64, most int) (page []DelayedMessage, next uint64) {
	if d := vh.delays.Load(); d != nil {
		return d.Leaving(from, most)
	}
	return nil, 0
}

// delayedMessages is the number of delayed messages in all virtual hosts.
func (t *vhostTable) delayedMessages() (n int) {
	for _, vh := range t.VHosts() {
		if d := vh.delays.Load(); d != nil {
			n += d.Count()
		}
	}
	return n
}

// DelayedFor is the number of delayed messages for an exchange.
func (vh *VHost) DelayedFor(exchange string) int {
	if d := vh.delays.Load(); d != nil {
		return d.CountFor(exchange)
	}
	return 0
}

// CancelDelayed drops a delayed message; false if it is gone: enqueued or
// cancelled.
func (vh *VHost) CancelDelayed(ref deadline.Ref) bool {
	d := vh.delays.Load()
	return d != nil && d.ID() == ref.Queue && d.Cancel(ref)
}

// delayTable holds the delayed messages of the virtual hosts by incarnation.
type delayTable struct{ byID sync.Map }

// find returns nil if there is none.
func (t *delayTable) find(id uint64) *delays {
	d, _ := t.byID.Load(id)
	found, _ := d.(*delays)
	return found
}
