package faults

import (
	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/faults/history"
)

// The queues of a trial. All are durable; which of them have consumers is the load's.
const (
	work    = "work"    // dead-letters through the default exchange
	waiting = "waiting" // the same through an exchange; nobody consumes, so it expires mid-queue
	brief   = "brief"   // has a time to live, and drops what expires
	bounded = "bounded" // holds few messages
	astray  = "astray"  // its dead-letter exchange does not exist
	dead    = "dead"
	parked  = "curfew.undeliverable"

	both = "both" // fanout exchange to work and waiting
	dlx  = "dlx"
)

const (
	briefMillis   = 400
	boundedLength = 50
)

type queueOf struct {
	name, deadLetters string
	args              amqp091.Table
}

var queues = []queueOf{
	{work, dead, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}},
	{waiting, dead, amqp091.Table{"x-dead-letter-exchange": dlx}},
	{brief, "", amqp091.Table{"x-message-ttl": int64(briefMillis)}},
	{bounded, dead, amqp091.Table{"x-max-length": int64(boundedLength), "x-dead-letter-exchange": dlx}},
	{astray, parked, amqp091.Table{"x-dead-letter-exchange": "nowhere"}},
	{dead, "", amqp091.Table{"x-max-length": int64(10), "x-overflow": "reject-publish"}}, // which holds for publishes, not for dead letters
	{parked, "", nil},
}

// declare makes all there is, or finds that a new life has it as the old one had.
func (tr *trial) declare() {
	tr.t.Helper()
	conn := tr.dial()
	defer conn.Close()
	ch, err := conn.Channel()
	check(tr.t, err)
	check(tr.t, ch.ExchangeDeclare(dlx, "topic", true, false, false, false, nil))
	check(tr.t, ch.ExchangeDeclare(both, "fanout", true, false, false, false, nil))
	for _, q := range queues {
		_, err := ch.QueueDeclare(q.name, true, false, false, false, q.args)
		check(tr.t, err)
	}
	check(tr.t, ch.QueueBind(dead, "#", dlx, false, nil))
	check(tr.t, ch.QueueBind(work, "", both, false, nil))
	check(tr.t, ch.QueueBind(waiting, "", both, false, nil))
}

// tell writes the queues into the log.
func (tr *trial) tell() {
	for _, q := range queues {
		e := history.Event{Kind: history.Declared, At: now(), Queue: q.name, DeadLetters: q.deadLetters, MaxLength: q.name == bounded}
		if q.name == brief {
			e.TTLMillis = new(int64(briefMillis))
		}
		tr.log.Append(e)
	}
}
