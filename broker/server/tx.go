package server

import (
	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

const (
	// maxTxPublishes and maxTxBytes bound what one channel may publish before it
	// commits: the store holds it, and nobody may consume it. A publish above is
	// refused with 406, which closes the channel and so rolls back.
	maxTxPublishes = 1 << 16
	maxTxBytes     = 256 << 20
)

// transaction is what a channel in transaction mode has done since its last
// commit (AMQP 0-9-1 tx; RabbitMQ: AMQP Semantics). Publishes are checked, routed
// and copied into the store as they come, and wait in the channel's publisher;
// settlements wait here, their deliveries still counting against prefetch. Its
// bounds are those above and, for settlements, what the channel held unacked.
//
// A message whose lock lapses before the commit goes back to its queue, and the
// commit is refused: nothing of the transaction takes effect (Service Bus:
// Transactions).
//
// A commit enters the publishes, one lock for each queue, then settles. As with
// RabbitMQ others may see it in one queue before they do in the next; but a crash leaves
// all of it or nothing (broker.Publisher.Transact).
type transaction struct {
	publishes int
	bytes     int
	dropped   int // unroutable and not mandatory
	returns   []unrouted
	held      int64          // bytes, which count as the connection's
	settled   []laterSettled // guarded by ch.mu; h.seq is 0 when its lock has lapsed
}

// lapse marks a settlement as come too late; false if there is none of that message.
// Called with ch.mu held.
func (tx *transaction) lapse(q *broker.Queue, seq queue.Seq) bool {
	if tx == nil {
		return false
	}
	for i := range tx.settled {
		if h := &tx.settled[i].h; h.q == q && h.seq == seq {
			h.seq = 0
			return true
		}
	}
	return false
}

// endTransaction takes out what is to be committed and begins anew. From then on no lock
// lapses any more; one that has is the error, and nothing is taken out.
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

// unrouted is a mandatory publish without a queue, to be returned at the commit.
type unrouted struct {
	exchange, routingKey, properties, body []byte
}

// laterSettled is a delivery that ends at the commit, and its tag, under which it
// stands again after a rollback.
type laterSettled struct {
	how broker.Settlement
	tag uint64
	h   held
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

// checkCommitted refuses a method that comes before the answer to tx.commit.
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
	ch.hold(tx, int64(ch.publisher.Entries()-entries)*broker.EntryBytes)
	if err != nil || routed {
		return err
	}
	if !ch.content.mandatory {
		tx.dropped++
	} else {
		ch.hold(tx, unroutedBytes+int64(len(m.Exchange)+len(m.RoutingKey)+len(m.Properties)+len(m.Body)))
		tx.returns = append(tx.returns, unrouted{
			exchange: clone(m.Exchange), routingKey: clone(m.RoutingKey), properties: clone(m.Properties), body: clone(m.Body),
		})
	}
	return nil
}

// unroutedBytes is what an unrouted takes beside its content.
const unroutedBytes = 160

// hold counts what the transaction makes the connection hold, and letGo that it ended.
func (ch *channel) hold(tx *transaction, n int64) {
	tx.held += n
	ch.conn.holds.Add(n)
}

func (ch *channel) letGo(tx *transaction) {
	ch.conn.holds.Add(-tx.held)
	tx.held = 0
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
			ch.tx.settled = append(ch.tx.settled, laterSettled{how, t, h})
			found = true
		}
	}
	if !found {
		return unknownTag(tag, id)
	}
	return nil
}

// commit lets the transaction take effect and answers when that is as durable as
// the store promises; with 406 when a full queue refused one of its publishes,
// the others standing in theirs.
func (ch *channel) commit() error {
	tx, err := ch.endTransaction()
	if err != nil {
		return err
	}
	for i := range tx.returns {
		r := &tx.returns[i]
		ch.giveBack(r.exchange, r.routingKey, r.properties, r.body)
	}
	ch.releaseSettled(tx)
	ch.refused = ch.publisher.Transact(settlings(tx.settled), ch.refused)
	ch.tally = publishTally{uint64(tx.publishes), uint64(len(tx.returns)), uint64(tx.dropped)}
	ch.fold()
	ch.letGo(tx)
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
		ch.giveCredit(tx.settled[i].h)
		if tx.settled[i].how == broker.Ack {
			ch.counts.Acked++
		}
	}
}

// settlings are what the broker is told, one for each run of a queue, a kind and a
// consumer.
func settlings(settled []laterSettled) (list []broker.Settling) {
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

// committed answers tx.commit. Called by any goroutine.
func (ch *channel) committed() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.committing = false
	if !ch.closed {
		ch.send(&amqp.TxCommitOk{})
	}
}

// rollback forgets the publishes and holds what was settled as unacked again. It
// is not delivered anew (AMQP 0-9-1 tx.rollback).
func (ch *channel) rollback() {
	if ch.tx == nil {
		return
	}
	ch.publisher.Discard()
	ch.letGo(ch.tx)
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
