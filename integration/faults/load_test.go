package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	goamqp "github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	publishers   = 4
	publishEvery = 5 * time.Millisecond
	publishBurst = 6
)

// consumed are the queues with a worker each in a load. Nobody consumes from the
// others, so there eager expiry alone is at work. Every other worker and publisher speaks AMQP 1.0.
var consumed = []string{work, work, brief, dead, dead, astray}

// load is publishers and workers at work in one life.
type load struct {
	tr   *trial
	done sync.WaitGroup
}

// load starts the clients. They end when the process does.
func (tr *trial) load() *load {
	l := &load{tr: tr}
	for i := range publishers {
		random := rand.New(rand.NewPCG(tr.random.Uint64(), 1))
		name := fmt.Sprintf("p%d.%d", tr.life, i)
		l.client(i, func(conn *amqp091.Connection) {
			p, err := newPublisher(tr.log, conn, name)
			l.publish(p, err, random)
		}, func(conn *goamqp.Conn) {
			p, err := newPublisher10(tr, conn, name)
			l.publish(p, err, random)
		})
	}
	for i, queue := range consumed {
		w := &worker{log: tr.log, name: fmt.Sprintf("w%d.%d", tr.life, i), queue: queue, random: rand.New(rand.NewPCG(tr.random.Uint64(), 2))}
		l.client(i, func(conn *amqp091.Connection) {
			w.consume = func(queue string) (channel, <-chan amqp091.Delivery, error) { return consume(conn, queue) }
			w.run()
		}, func(conn *goamqp.Conn) {
			w.consume = func(queue string) (channel, <-chan amqp091.Delivery, error) { return consume10(tr, conn, queue) }
			w.run()
		})
	}
	return l
}

// client runs fn, or fn10 if the number is odd, with a connection of its own. Not to get one is the end of the
// process, which the trial judges.
func (l *load) client(number int, fn func(*amqp091.Connection), fn10 func(*goamqp.Conn)) {
	url := l.tr.process.url()
	l.done.Go(func() {
		if number%2 == 1 {
			if conn, err := goamqp.Dial(context.Background(), url, nil); err == nil {
				defer conn.Close()
				fn10(conn)
			}
			return
		}
		conn, err := amqp091.Dial(url)
		if err != nil {
			return
		}
		defer conn.Close()
		fn(conn)
	})
}

// cut waits for the clients of a process that has ended.
func (l *load) cut() { l.done.Wait() }

func (l *load) publish(p *publisher, err error, random *rand.Rand) {
	if err != nil {
		return
	}
	pace := time.NewTicker(publishEvery)
	defer pace.Stop()
	for {
		select {
		case <-pace.C:
		case <-p.cut:
			return
		}
		for range 1 + random.IntN(publishBurst) {
			if p.send(randomMessage(random)) != nil {
				<-p.cut // what it was told before belongs to this life
				return
			}
		}
	}
}

// noise is what bodies are cut from.
var noise = func() []byte {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}()

func randomMessage(random *rand.Rand) *message {
	m := &message{persistent: random.IntN(6) > 0, body: randomBody(random)}
	m.key = []string{work, work, waiting, waiting, brief, bounded, astray, both}[random.IntN(8)]
	m.queues = []string{m.key}
	if m.key == both {
		m.exchange, m.key, m.queues = both, "", []string{work, waiting}
	}
	switch n := random.IntN(100); {
	case n < 40:
		m.ttlMillis = new(20 + random.Int64N(1480))
	case n < 50:
		m.ttlMillis = new(3000 + random.Int64N(3000)) // often past the end of its process
	case n < 70:
		m.ttlMillis = new(time.Hour.Milliseconds())
	}
	return m
}

// randomBody is small, now and then some pages, rarely more than one frame.
func randomBody(random *rand.Rand) []byte {
	size := random.IntN(2000)
	switch n := random.IntN(400); {
	case n == 0:
		size = 300_000
	case n < 20:
		size = 20_000
	}
	at := random.IntN(len(noise) - size)
	return noise[at : at+size]
}
