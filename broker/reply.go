package broker

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strings"
	"sync"

	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/store"
)

// ReplyQueue is the pseudo-queue by which a client asks for replies without a
// queue (RabbitMQ: Direct Reply-to). Names made up for it begin with it and a dot.
const ReplyQueue = "amq.rabbitmq.reply-to"

// replies are the channels of a virtual host that wait for direct replies. A
// reply goes straight from the publisher to the channel: it is not stored, has no
// time to live and is confirmed at once.
type replies struct{ to sync.Map } // functions by name

// OpenReply makes up a name for replies. Publishes to it, by the default exchange,
// are handed to fn by any goroutine, without a lock held; the message is valid
// during the call.
func (vh *VHost) OpenReply(fn func(*Publication)) (name string) {
	var b [16]byte
	rand.Read(b[:])
	name = ReplyQueue + "." + base64.RawURLEncoding.EncodeToString(b[:])
	vh.replies.to.Store(name, fn)
	return name
}

// CloseReply forgets a name; a call of its function may be under way.
func (vh *VHost) CloseReply(name string) { vh.replies.to.Delete(name) }

// CheckReply answers a declare of a name that begins with ReplyQueue: nil if somebody waits
// for replies to it, otherwise 404.
func (vh *VHost) CheckReply(name string) error {
	if _, ok := vh.replies.to.Load(name); !ok && name != ReplyQueue {
		return delivery.NoQueue(vh.Name(), name)
	}
	return nil
}

// IsReply reports whether a queue's name is reserved for direct replies.
func IsReply(name string) bool { return strings.HasPrefix(name, ReplyQueue) }

var replyPrefix = []byte(ReplyQueue + ".")

// answer hands a publish to those of its routing keys that are names for replies.
// This does not count as routing, even if somebody waits: a mandatory publish that no queue
// takes is returned. A transaction does not hold it back. RabbitMQ does the same.
func (p *Publisher) answer(m *Publication, view *amqp.PropertyView, has message.Marks) {
	if len(m.Exchange) != 0 {
		return
	}
	if len(m.RoutingKey) > len(replyPrefix) && bytes.HasPrefix(m.RoutingKey, replyPrefix) {
		p.vh.reply(m.RoutingKey, m, has)
	}
	if has&message.KeyMarks == 0 {
		return
	}
	for _, key := range message.FurtherKeys(message.HeadersOf(view.Headers)) {
		if strings.HasPrefix(key, ReplyQueue+".") {
			p.vh.reply([]byte(key), m, has)
		}
	}
}

// reply hands a direct reply to whoever waits for it under the name; if nobody does, it is
// lost.
func (vh *VHost) reply(name []byte, m *Publication, has message.Marks) {
	fn, ok := vh.replies.to.Load(string(name))
	if !ok {
		return
	}
	view := *m // otherwise every publish would be moved to the heap
	if has&message.BccMark != 0 {
		view.Properties = message.WithoutBCC(m.Properties)
	}
	fn.(func(*Publication))(&view)
}

// replyDirectly hands one of the broker's own messages to whoever waits for it under its routing key. False: the
// key is not a name for direct replies. Error: nobody waits.
func (vh *VHost) replyDirectly(m *store.Message) (direct bool, err error) {
	if !IsReply(string(m.RoutingKey)) {
		return false, nil
	}
	if err := vh.CheckReply(string(m.RoutingKey)); err != nil {
		return true, err
	}
	vh.reply(m.RoutingKey, &Publication{RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body}, 0)
	return true, nil
}

// nameReplies writes the publisher's reply name where the message says ReplyQueue.
func (p *Publisher) nameReplies(m *Publication, view *amqp.PropertyView) error {
	if view.ReplyTo == nil || string(view.ReplyTo) != ReplyQueue {
		return nil
	}
	if p.ReplyTo == "" {
		return message.BadPublish("fast reply consumer does not exist")
	}
	p.properties = view.WithReplyTo(p.properties[:0], m.Properties, p.ReplyTo)
	m.Properties = p.properties
	return nil
}
