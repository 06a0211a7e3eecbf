package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

const (
	// maxTxPublishes and maxTxBytes bound what one channel may publish before it commits:
	// the store holds it, and nobody may consume it. A publish beyond that is refused with
	// 406, which closes the channel and so rolls the transaction back.
	maxTxPublishes = 1 << 16
	maxTxBytes     = 256 << 20
)

// transaction is what a transactional channel has done since its last commit (AMQP 0-9-1
// tx; RabbitMQ: AMQP Semantics). Publishes are checked, routed and copied into the store as
// they arrive, and wait in the channel's publisher. Settlements wait here, and their
// deliveries still count against the prefetch limits. The constants above bound the
// publishes; the channel's unacked messages bound the settlements.
//
// A message whose lock lapses before the commit returns to its queue, and the commit is
// refused: nothing of the transaction takes effect (Service Bus: Transactions).
//
// A commit makes the publishes enter their queues, one lock per queue, and then settles. As
// in RabbitMQ, others may see the transaction in one queue before they see it in the next.
// After a crash, all of it is found or nothing (broker.Publisher.Transact).
type transaction struct {
	publishes int
	bytes     int
	dropped   int // unroutable and not mandatory
	returns   []unrouted
	heldBytes int64               // counted in the connection's heldBytes
	settled   []pendingSettlement // guarded by ch.mu; h.seq is 0 if the lock has lapsed
}

// lapseLocked marks the settlement of a message as too late. It returns false if the
// message is not among the settlements. It needs ch.mu.
func (tx *transaction) lapseLocked(id uint64, seq queue.Seq) bool {
	if tx == nil {
		return false
	}
	for i := range tx.settled {
		if h := &tx.settled[i].h; h.seq == seq && h.q.ID() == id {
			h.seq = 0
			return true
		}
	}
	return false
}

// endTransaction takes out what is to be committed and begins a new transaction. From then
// on no lock lapses. If one has lapsed before, it returns an error and takes nothing out.
func (ch *channel) endTransaction() (*transaction, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	tx := ch.tx
	if tx == nil {
		return nil, notTransactional()
	}
	for _, x := range tx.settled {
		if x.h.seq == 0 {
			return nil, lapsedLock(x.tag, x.h.q, amqp.TxCommitID)
		}
	}
	ch.tx = &transaction{}
	return tx, nil
}

// unrouted is a mandatory publish without a queue, which the commit returns to the client.
type unrouted struct {
	exchange, routingKey, properties, body []byte
}

// pendingSettlement is a delivery that ends at the commit. A rollback restores it under its
// tag.
type pendingSettlement struct {
	how broker.Settlement
	tag uint64
	h   unackedDelivery
}

func (ch *channel) txSelect() error {
	if ch.confirm {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "cannot switch from confirm to tx mode")
	}
	if ch.tx == nil {
		ch.mu.Lock()
		ch.tx = &transaction{}
		ch.mu.Unlock()
	}
	ch.send(&amqp.TxSelectOk{})
	return nil
}

// checkCommitted refuses a method that arrives before tx.commit was answered.
func (ch *channel) checkCommitted() error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.committing {
		return amqp.NewException(amqp.ChannelError, 0, 0, "unexpected command while processing 'tx.commit'")
	}
	return nil
}

// publishLater adds a publish to the transaction.
func (ch *channel) publishLater(m *broker.Publication) error {
	tx := ch.tx
	tx.publishes++
	tx.bytes += len(m.Properties) + len(m.Body)
	if tx.publishes > maxTxPublishes || tx.bytes > maxTxBytes {
		return amqp.NewException(amqp.PreconditionFailed, amqp.ClassBasic, amqp.BasicPublishID.Method(),
			"transaction is larger than %d messages or %d bytes; commit more often", maxTxPublishes, maxTxBytes)
	}
	entries := ch.publisher.Entries()
	routed, err := ch.addWhenRoom(m)
	ch.publisher.Pause()
	ch.addHeldBytes(tx, int64(ch.publisher.Entries()-entries)*broker.EntryBytes)
	if err != nil || routed {
		return err
	}
	if !ch.content.mandatory {
		tx.dropped++
	} else {
		ch.addHeldBytes(tx, unroutedBytes+int64(len(m.Exchange)+len(m.RoutingKey)+len(m.Properties)+len(m.Body)))
		tx.returns = append(tx.returns, unrouted{
			exchange: clone(m.Exchange), routingKey: clone(m.RoutingKey), properties: clone(m.Properties), body: clone(m.Body),
		})
	}
	return nil
}

// unroutedBytes is the memory that an unrouted takes in addition to its content.
const unroutedBytes = 160

// addHeldBytes counts memory of the transaction; releaseHeldBytes subtracts it at the end.
func (ch *channel) addHeldBytes(tx *transaction, n int64) {
	tx.heldBytes += n
	ch.conn.heldBytes.Add(n)
}

func (ch *channel) releaseHeldBytes(tx *transaction) {
	ch.conn.heldBytes.Add(-tx.heldBytes)
	tx.heldBytes = 0
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// settleLater adds settlements to the transaction.
func (ch *channel) settleLater(how broker.Settlement, tag uint64, multiple bool, id amqp.MethodID) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	tags := []uint64{tag}
	if multiple {
		tags = ch.unacked.tagsUpTo(tag)
	}
	found := multiple && tag == 0
	for _, t := range tags {
		if h, ok := ch.unacked.take(t); ok {
			if h.seq == 0 {
				return lapsedLock(t, h.q, id)
			}
			ch.tx.settled = append(ch.tx.settled, pendingSettlement{how, t, h})
			found = true
		}
	}
	if !found {
		return unknownTag(tag, id)
	}
	return nil
}

// commit makes the transaction take effect, and answers when that is as durable as the
// store promises. If a full queue refuses one of the publishes the answer is 406, and the
// other publishes stay in their queues.
func (ch *channel) commit() error {
	tx, err := ch.endTransaction()
	if err != nil {
		return err
	}
	for i := range tx.returns {
		r := &tx.returns[i]
		ch.returnMessage(r.exchange, r.routingKey, r.properties, r.body)
	}
	ch.releaseSettled(tx)
	ch.refused = ch.publisher.Transact(settlementRuns(tx.settled), ch.refused)
	ch.pendingCounts = publishCounts{uint64(tx.publishes), uint64(len(tx.returns)), uint64(tx.dropped)}
	ch.foldCounts()
	ch.releaseHeldBytes(tx)
	ch.serveStarved()
	if len(ch.refused) > 0 {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "partial tx completion")
	}
	ch.mu.Lock()
	ch.committing = true
	ch.mu.Unlock()
	ch.conn.srv.opts.Broker.Commit(func(err error) {
		if err == nil {
			ch.committed()
		}
	})
	return nil
}

// releaseSettled gives back the credit of the deliveries that the transaction settles.
func (ch *channel) releaseSettled(tx *transaction) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for i := range tx.settled {
		ch.giveCreditLocked(tx.settled[i].h)
		if tx.settled[i].how == broker.Ack {
			ch.counts.Acked++
		}
	}
}

// settlementRuns returns the settlements as the broker takes them: one for each run of the
// same queue, kind and consumer.
func settlementRuns(settled []pendingSettlement) (list []broker.Settling) {
	for i := range settled {
		x := broker.Settling{Queue: settled[i].h.q, How: settled[i].how}
		if c := settled[i].h.c; c != nil {
			x.Consumer = &c.Consumer
		}
		n := len(list)
		if n == 0 || list[n-1].Queue != x.Queue || list[n-1].How != x.How || list[n-1].Consumer != x.Consumer {
			list, n = append(list, x), n+1
		}
		list[n-1].Seqs = append(list[n-1].Seqs, settled[i].h.seq)
	}
	return list
}

// committed answers tx.commit. Any goroutine may call it.
func (ch *channel) committed() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.committing = false
	if !ch.closed {
		ch.send(&amqp.TxCommitOk{})
	}
}

// rollback forgets the publishes, and makes the settled deliveries unacked again. They are
// not delivered again (AMQP 0-9-1 tx.rollback).
func (ch *channel) rollback() {
	if ch.tx == nil {
		return
	}
	ch.publisher.Discard()
	ch.releaseHeldBytes(ch.tx)
	ch.mu.Lock()
	defer ch.mu.Unlock()
	tx := ch.tx
	ch.tx = &transaction{}
	for i := range tx.settled {
		ch.unacked.putBack(tx.settled[i].tag, tx.settled[i].h)
	}
}

func (ch *channel) txRollback() error {
	if ch.tx == nil {
		return notTransactional()
	}
	ch.rollback()
	ch.send(&amqp.TxRollbackOk{})
	return nil
}

func notTransactional() error {
	return amqp.NewException(amqp.PreconditionFailed, 0, 0, "channel is not transactional")
}
