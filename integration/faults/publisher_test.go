package faults

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

// unconfirmed is how many publishes a publisher leaves unanswered.
const unconfirmed = 200

var errCut = errors.New("the connection was cut")

// message is what a publisher is to send: through the exchange both, or to one queue.
type message struct {
	exchange, key string
	queues        []string // that get it
	ttlMillis     *int64
	persistent    bool
	body          []byte
}

// publisher publishes with confirms and writes down both. send is for one goroutine.
type publisher struct {
	log  *history.Log
	name string
	put  func(exchange, key string, m *amqp091.Publishing) error

	slots chan struct{} // one taken by each unanswered publish
	cut   chan struct{} // closed when no more answers will come

	mu  sync.Mutex
	ids []string // by delivery tag less one
}

func newPublisher(log *history.Log, conn *amqp091.Connection, name string) (*publisher, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	p := &publisher{log: log, name: name, slots: make(chan struct{}, unconfirmed), cut: make(chan struct{})}
	p.put = func(exchange, key string, m *amqp091.Publishing) error {
		return ch.Publish(exchange, key, true, false, *m)
	}
	go p.listen(ch.NotifyPublish(make(chan amqp091.Confirmation, unconfirmed)))
	return p, nil
}

func (p *publisher) listen(confirms <-chan amqp091.Confirmation) {
	defer close(p.cut)
	for c := range confirms {
		p.mu.Lock()
		id := p.ids[c.DeliveryTag-1]
		p.mu.Unlock()
		p.answered(id, c.Ack)
	}
}

// answered writes down an answer, which makes room for another publish.
func (p *publisher) answered(id string, accepted bool) {
	kind := history.Confirmed
	if !accepted {
		kind = history.Refused
	}
	p.log.Append(history.Event{Kind: kind, At: now(), ID: id})
	<-p.slots
}

// send publishes one message, waiting while too many are unanswered. Only the end of
// the connection is an error.
func (p *publisher) send(m *message) error {
	select {
	case p.slots <- struct{}{}:
	case <-p.cut:
		return errCut
	}
	p.mu.Lock()
	id := fmt.Sprintf("%s-%d", p.name, len(p.ids))
	p.ids = append(p.ids, id)
	p.mu.Unlock()
	publishing := amqp091.Publishing{
		MessageId: id, ContentType: "application/octet-stream", Type: m.key,
		Headers: amqp091.Table{"publisher": p.name, "size": int64(len(m.body))},
		Body:    m.body,
	}
	if m.persistent {
		publishing.DeliveryMode = amqp091.Persistent
	}
	if m.ttlMillis != nil {
		publishing.Expiration = strconv.FormatInt(*m.ttlMillis, 10)
	}
	p.log.Append(history.Event{
		Kind: history.Publish, At: now(), By: p.name, ID: id, Queues: m.queues, TTLMillis: m.ttlMillis, Persistent: m.persistent,
		Sum: sum(id, publishing.ContentType, publishing.Type, publishing.Headers, m.body),
	})
	return p.put(m.exchange, m.key, &publishing)
}

// many sends n persistent messages of that many bytes to one queue.
func (p *publisher) many(queue string, n, size int) error {
	for i := range n {
		if err := p.send(&message{key: queue, queues: []string{queue}, persistent: true, body: noise[i:][:size]}); err != nil {
			return err
		}
	}
	return nil
}

// settled waits until every publish is answered; false when that will not happen.
func (p *publisher) settled() bool {
	for range unconfirmed {
		select {
		case p.slots <- struct{}{}:
		case <-p.cut:
			return false
		}
	}
	for range unconfirmed {
		<-p.slots
	}
	return true
}

// sum is that of all a message has that dead-lettering leaves alone.
func sum(id, contentType, kind string, headers amqp091.Table, body []byte) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q", id, contentType, kind)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !strings.HasPrefix(name, "x-") {
			fmt.Fprintf(h, " %q %v", name, headers[name])
		}
	}
	h.Write(body)
	return strconv.FormatUint(h.Sum64(), 16)
}
