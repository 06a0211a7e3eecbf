package broker

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/exchange"
)

// QueueInfo is what a queue shows of itself, all of one instant.
type QueueInfo struct {
	QueueDeclare
	ID          uint64
	VHost, Name string
	Owner       Owner // of an exclusive queue
	Recovered   bool  // made for messages that were found without the definition of their queue

	Ready, Unacked           int
	ReadyBytes, UnackedBytes int64
	Persistent               int // of Ready and Unacked
	PersistentBytes          int64
	Consumers                int
	ExclusiveConsumer        string    // tag; "" none
	ActiveConsumer           string    // tag of the one that x-single-active-consumer serves; "" none
	HeadTimestamp            time.Time // of the first ready message; zero: none
	TTLMillis                int64     // of messages, by arguments and policies; <0: none
	DeliveryLimit            int64     // failed deliveries a message may have; <0: no limit
	UsedAt                   int64     // Unix µs of the last thing that happened in it
	Counts                   QueueCounts
}

// Info returns what the queue shows of itself.
func (q *Queue) Info() QueueInfo {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.set().core.DeliveryLimit
	i := QueueInfo{
		DeliveryLimit: limit, TTLMillis: q.set().ttlMillis,
		QueueDeclare: q.declared, ID: q.id, VHost: q.vh.name, Name: q.name, Owner: q.owner, Recovered: q.recovered,
		Ready: q.core.Ready(), Unacked: q.core.Unacked(), ReadyBytes: q.core.ReadyBytes(), UnackedBytes: q.core.UnackedBytes(),
		Consumers: q.consumers.count, HeadTimestamp: q.headTimestamp(), UsedAt: q.usedAt, Counts: q.tally.counts(),
	}
	i.Persistent, i.PersistentBytes = q.core.Persistent()
	if q.consumers.exclusive() {
		i.ExclusiveConsumer = q.consumers.first().Tag
	}
	if q.active != nil {
		i.ActiveConsumer = q.active.Tag
	}
	return i
}

// Queues lists the queues by name.
func (vh *VHost) Queues() []*Queue {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	all := make([]*Queue, 0, len(vh.queues))
	for _, q := range vh.queues {
		all = append(all, q)
	}
	slices.SortFunc(all, func(x, y *Queue) int { return cmp.Compare(x.name, y.name) })
	return all
}

// ExchangeInfo is what an exchange shows of itself.
type ExchangeInfo struct {
	ExchangeDeclare
	VHost, Name  string
	Bindings     int    // from it
	PublishedIn  uint64 // messages published to it
	PublishedOut uint64 // queues they went to, summed up
}

// Exchanges lists the exchanges by name, the default one "" first.
func (vh *VHost) Exchanges() []ExchangeInfo {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	all := make([]ExchangeInfo, 0, len(vh.exchanges)+1)
	all = append(all, vh.defaultExchangeInfo())
	for _, x := range vh.exchanges {
		all = append(all, x.info(vh.name))
	}
	slices.SortFunc(all, func(x, y ExchangeInfo) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// Exchange returns the exchange of that name, or a 404 exception.
func (vh *VHost) Exchange(name string) (ExchangeInfo, error) {
	if name == "" {
		return vh.defaultExchangeInfo(), nil
	}
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	x, ok := vh.exchanges[name]
	if !ok {
		return ExchangeInfo{}, vh.noExchange(name)
	}
	return x.info(vh.name), nil
}

func (vh *VHost) defaultExchangeInfo() ExchangeInfo {
	return ExchangeInfo{
		ExchangeDeclare: ExchangeDeclare{Kind: string(exchange.Direct), Durable: true}, VHost: vh.name,
		PublishedIn: vh.defaultExchange.in.Load(), PublishedOut: vh.defaultExchange.out.Load(),
	}
}

func (x *Exchange) info(vhost string) ExchangeInfo {
	return ExchangeInfo{
		ExchangeDeclare: x.declared, VHost: vhost, Name: x.name, Bindings: x.router.Len(),
		PublishedIn: x.tally.in.Load(), PublishedOut: x.tally.out.Load(),
	}
}

// Bindings lists the bindings made, and for each queue the one it has to the
// default exchange without having been bound (AMQP 0-9-1 §3.1.3.1), by source,
// destination and key.
func (vh *VHost) Bindings() []Binding {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	all := make([]Binding, 0, len(vh.queues))
	for name := range vh.queues {
		all = append(all, Binding{Destination: name, RoutingKey: name})
	}
	for _, x := range vh.exchanges {
		x.router.Each(func(b exchange.Binding[destination]) bool {
			one := Binding{Source: x.name, RoutingKey: b.Key, Args: b.Args}
			if to := b.Destination.exchange; to != nil {
				one.Destination, one.ToExchange = to.name, true
			} else {
				one.Destination = b.Destination.queue.name
			}
			all = append(all, one)
			return true
		})
	}
	slices.SortFunc(all, func(x, y Binding) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Destination, y.Destination), cmp.Compare(x.RoutingKey, y.RoutingKey))
	})
	return all
}

// Alarms says whether the disk and memory alarms are on (RabbitMQ: Memory and
// Disk Alarms).
func (b *Broker) Alarms() (memory, disk bool) {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	return b.gate.memory, b.gate.full || b.gate.low
}

// MemoryInUse is what is held against the memory limit, in bytes.
func (b *Broker) MemoryInUse() int64 { return b.opts.MemoryInUse() }

// MemoryLimit is above how many bytes publishers wait; 0: no limit.
func (b *Broker) MemoryLimit() int64 { return b.opts.MemoryLimit }
