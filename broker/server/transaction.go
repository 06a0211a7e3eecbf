package server

import (
	"slices"
	"sync"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
)

const (
	// maxTxPublishes and maxTxBytes bound what one channel may publish before it commits:
	// the store holds it, and nobody may consume it. A publish beyond that is refused with
	// 406, which closes the channel and so rolls the transaction back.
	maxTxPublishes = 1 << 16
	maxTxBytes     = 256 << 20
)

// transaction is what a transactional channel has published since its last commit (AMQP 0-9-1
// tx; RabbitMQ: AMQP Semantics). Publishes are checked, routed and copied into the store as
// they arrive, and wait in the channel's publisher. Settlements wait in the channel's
// deliveries. The constants above bound the publishes; the deliveries bound the settlements.
//
// A message whose lock lapses before the commit returns to its queue, and the commit is
// refused: nothing of the transaction takes effect (Service Bus: Transactions).
//
// A commit looks up the queues that the publishes were routed to by their names, as in RabbitMQ: bindings that were made or
// removed since are not looked at, and a queue that was deleted and declared again takes what was meant for the old one.
// Then it makes the publishes enter their queues, one lock per queue, and then settles. As
// in RabbitMQ, others may see the transaction in one queue before they see it in the next.
// After a crash, all of it is found or nothing (broker.Publisher.Transact).
type transaction struct {
	// The reader's:
	publishes int
	bytes     int
	dropped   int      // unroutable and not mandatory
	open      []unsure // in the order in which they came
	usedBytes int64    // counted in the connection's deliveries.Memory

	mu         sync.Mutex // comes before the outbox's lock
	committing bool       // tx.commit has not been answered yet
	closed     bool
}

// unsure is a publish of which only the commit decides what becomes of it: it is mandatory, or the default exchange
// found no queue for it.
type unsure struct {
	broker.Publication // a copy; empty if the publish is in the publisher
	number             int
	routed, mandatory  bool
}

// count counts one more publish, and refuses it beyond the bounds.
func (tx *transaction) count(m *broker.Publication) error {
	tx.publishes++
	tx.bytes += len(m.Properties) + len(m.Body)
	if tx.publishes > maxTxPublishes || tx.bytes > maxTxBytes {
		return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(),
			"transaction is larger than %d messages or %d bytes; commit more often", maxTxPublishes, maxTxBytes)
	}
	return nil
}

// unsureBytes is the memory that an unsure publish takes in addition to its content.
const unsureBytes = 160

// keep notes a publish that has been counted until the commit decides, with a copy of it if no queue has been found.
func (tx *transaction) keep(m *broker.Publication, routed, mandatory bool, u *deliveries.Memory) {
	one := unsure{number: tx.publishes - 1, routed: routed, mandatory: mandatory}
	if !routed {
		one.Publication = broker.Publication{
			Exchange: slices.Clone(m.Exchange), RoutingKey: slices.Clone(m.RoutingKey), Properties: slices.Clone(m.Properties), Body: slices.Clone(m.Body),
		}
	}
	tx.use(u, unsureBytes+int64(len(one.Exchange)+len(one.RoutingKey)+len(one.Properties)+len(one.Body)))
	tx.open = append(tx.open, one)
}

// use counts memory of the transaction until its end.
func (tx *transaction) use(u *deliveries.Memory, n int64) {
	tx.usedBytes += n
	u.Add(n)
}

// end forgets what was published, and begins a new transaction.
func (tx *transaction) end(u *deliveries.Memory) {
	u.Add(-tx.usedBytes)
	tx.publishes, tx.bytes, tx.dropped, tx.open, tx.usedBytes = 0, 0, 0, nil, 0
}

// checkCommitted refuses a method that arrives before tx.commit was answered.
func (tx *transaction) checkCommitted() error {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.committing {
		return amqp.NewException(amqp.ChannelError, 0, 0, "unexpected command while processing 'tx.commit'")
	}
	return nil
}

// commit makes checkCommitted refuse methods until committed is called.
func (tx *transaction) commit() {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.committing = true
}

// committed answers tx.commit, unless the channel has been closed. Any goroutine may call
// it.
func (tx *transaction) committed(o *deliveries.Outbox, channel uint16) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.committing = false
	if !tx.closed {
		o.Send(channel, &amqp.TxCommitOk{})
	}
}

func (tx *transaction) close() {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.closed = true
}

func (ch *channel) txSelect() error {
	if ch.confirms.Load() != nil {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot switch from confirm to tx mode")
	}
	if ch.tx.Load() == nil {
		ch.tx.Store(&transaction{})
	}
	ch.send(&amqp.TxSelectOk{})
	return nil
}

// publishLater adds a publish to the transaction.
func (ch *channel) publishLater(tx *transaction, m *broker.Publication) error {
	if err := tx.count(m); err != nil {
		return err
	}
	entries := ch.publisher.Entries()
	routed, err := ch.addWhenRoom(m)
	ch.publisher.Pause()
	tx.use(&ch.conn.usage, int64(ch.publisher.Entries()-entries)*broker.EntryBytes)
	switch {
	case err != nil || routed && !ch.content.mandatory:
	case ch.content.mandatory || len(m.Exchange) == 0:
		tx.keep(m, routed, ch.content.mandatory, &ch.conn.usage)
	default:
		tx.dropped++
	}
	return err
}

// reroute follows what has become of queues since the publishes were routed to them (Publisher.Reroute). It leaves
// those in tx.open that are to be returned to the client.
func (ch *channel) reroute(tx *transaction) (err error) {
	lost, returns := ch.publisher.Reroute(), tx.open[:0]
	for _, one := range tx.open {
		m, gone := lost[one.number]
		if gone {
			one.Publication, one.routed = m, false
		} else if !one.routed && len(one.Exchange) == 0 && ch.conn.user.VHost.Queues.Has(string(one.RoutingKey)) {
			if one.routed, err = ch.addWhenRoom(&one.Publication); err != nil {
				return err
			}
		}
		switch {
		case one.routed:
		case one.mandatory:
			returns = append(returns, one)
		default:
			tx.dropped++
		}
	}
	tx.open = returns
	return nil
}

// commit makes the transaction take effect, and answers when that is as durable as the
// store promises. If a full queue refuses one of the publishes the answer is 406, and the
// other publishes stay in their queues.
func (ch *channel) commit(tx *transaction) error {
	if err := ch.reroute(tx); err != nil {
		return err
	}
	settlements, err := ch.deliveries.TakeDeferred()
	if err != nil {
		return err
	}
	for i := range tx.open {
		ch.conn.out.SendReturn(ch.id, &tx.open[i].Publication)
	}
	ch.refused = ch.publisher.Transact(settlements, ch.refused)
	ch.unflushed = publishCounts{uint64(tx.publishes), uint64(len(tx.open)), uint64(tx.dropped)}
	ch.countPublishes()
	tx.end(&ch.conn.usage)
	ch.deliveries.ServeLine()
	if len(ch.refused) > 0 {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "partial tx completion")
	}
	tx.commit()
	ch.conn.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			tx.committed(&ch.conn.out, ch.id)
		}
	}, broker.Rejecting(settlements)...)
	return nil
}

// rollback forgets the publishes, and makes the settled deliveries unacked again.
func (ch *channel) rollback() {
	tx := ch.tx.Load()
	if tx == nil {
		return
	}
	ch.publisher.Discard()
	tx.end(&ch.conn.usage)
	ch.deliveries.PutBackDeferred()
}
