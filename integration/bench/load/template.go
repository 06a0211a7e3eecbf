package load

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"curfew/broker/amqp"
)

// template is a ring of framed publishes of equal length, which is written over and over.
type template struct {
	frames []byte
	length int // of one publish
	body   int // offset of the body in a publish
	count  int
	at     int // the next publish to be sent
}

const (
	// writeSize is the maximum size of one write, in octets.
	writeSize = 64 << 10
	stampSize = 8
)

// newTemplate frames publishes to each of the keys in turn.
func newTemplate(s *Spec, keys []string) *template {
	t := new(template)
	properties := (&amqp.Properties{DeliveryMode: mode(s.Persist), Expiration: expiration(s)}).Append(nil)
	body := make([]byte, s.Size)
	for i := range body {
		body[i] = byte('a' + i%26)
	}
	for i := 0; i < len(keys) || len(t.frames) < writeSize; i++ {
		start := len(t.frames)
		t.frames = amqp.AppendMethod(t.frames, channel, &amqp.BasicPublish{Exchange: s.exchangeName(), RoutingKey: keys[i%len(keys)]})
		header := len(t.frames) - start
		t.frames = amqp.AppendContent(t.frames, channel, properties, body, frameMax)
		t.length = len(t.frames) - start
		t.body = header + amqp.FrameOverhead + 12 + len(properties) + 7
		t.count++
	}
	return t
}

func mode(persistent bool) uint8 {
	if persistent {
		return 2
	}
	return 1
}

func expiration(s *Spec) string {
	if s.TTL <= 0 {
		return ""
	}
	return strconv.FormatInt(s.TTL.Milliseconds(), 10)
}

// most returns how many publishes one write may carry now.
func (t *template) most() int { return min(t.count-t.at, max(1, writeSize/t.length)) }

// next returns the next n publishes, with the time of sending in their bodies. n is at most
// most().
func (t *template) next(n int, now int64) []byte {
	out := t.frames[t.at*t.length : (t.at+n)*t.length]
	if t.length-t.body > stampSize {
		for at := t.body; at < len(out); at += t.length {
			binary.BigEndian.PutUint64(out[at:], uint64(now))
		}
	}
	if t.at += n; t.at == t.count {
		t.at = 0
	}
	return out
}

// exchangeName returns the exchange to publish to.
func (s *Spec) exchangeName() string {
	if s.Exchange == "" {
		return ""
	}
	return s.Name + s.Exchange
}

// QueueName returns the name of the i-th queue, for callers that know the Spec's Name. All
// names and keys have the same length, so all publishes do.
func (s *Spec) QueueName(i int) string { return fmt.Sprintf("%s%05d", s.Name, i) }

// key returns the routing key of queue i.
func (s *Spec) key(i int) string {
	switch s.Exchange {
	case "":
		return s.QueueName(i)
	case "topic":
		return fmt.Sprintf("orders.%05d.created", i)
	}
	return fmt.Sprintf("%05d", i)
}

// pattern returns the binding key of queue i.
func (s *Spec) pattern(i int) string {
	if s.Exchange == "topic" {
		return fmt.Sprintf("orders.%05d.#", i)
	}
	return s.key(i)
}
