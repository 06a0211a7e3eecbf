package faults

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	publishers   = 3
	publishEvery = 5 * time.Millisecond
	publishBurst = 6
)

// consumed are the queues with a worker each in a load. Nobody consumes from the
// others, so there eager expiry alone is at work.
var consumed = []string{work, work, brief, astray, dead}

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
		l.client(func(conn *amqp091.Connection) { l.publish(conn, fmt.Sprintf("p%d.%d", tr.life, i), random) })
	}
	for i, queue := range consumed {
		w := &worker{log: tr.log, name: fmt.Sprintf("w%d.%d", tr.life, i), queue: queue, random: rand.New(rand.NewPCG(tr.random.Uint64(), 2))}
		l.client(func(conn *amqp091.Connection) {
			w.conn = conn
			w.run()
		})
	}
	return l
}

// client runs fn with a connection of its own. Not to get one is the end of the
// process, which the trial judges.
func (l *load) client(fn func(*amqp091.Connection)) {
	url := l.tr.process.url()
	l.done.Go(func() {
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

func (l *load) publish(conn *amqp091.Connection, name string, random *rand.Rand) {
	p, err := newPublisher(l.tr.log, conn, name)
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
