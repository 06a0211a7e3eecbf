package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Standing is where one ready message stands.
type Standing struct {
	Ref   MessageRef // its Deadline is 0 if it has none
	Ahead int        // ready messages that are delivered before it
}

// Survey is how a queue stands: every Step-th of its ready messages, in the order
// of delivery.
type Survey struct {
	Queue            uint64 // incarnation
	VHost, Name      string
	Ready, Consumers int
	Delivered        uint64 // messages handed out so far, each counted once however often it came back
	Polled           uint64 // deliveries by basic.get so far
	Step             int
	Standings        []Standing
}

// surveyChunks is how many chunks of messages are walked under one lock.
const surveyChunks = 512

// Survey calls fn with each queue's state, sampled: at most 2*samples standings for
// each, all of them where there are no more than samples. What fn is given is valid
// during the call. It costs a step for each sample and each 128 messages, and no
// queue is locked for long; a large queue may change meanwhile.
func (b *Broker) Survey(samples int, fn func(*Survey)) {
	var s Survey
	for _, q := range b.allQueues() {
		q.survey(samples, &s)
		fn(&s)
	}
}

func (q *Queue) survey(samples int, s *Survey) {
	*s = Survey{Queue: q.id, VHost: q.vh.name, Name: q.name, Standings: s.Standings[:0]}
	var at queue.Sampling
	for more := true; more; {
		more = q.surveyOn(samples, &at, s)
	}
	s.Step = at.Step
}

func (q *Queue) surveyOn(samples int, at *queue.Sampling, s *Survey) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at.Step == 0 {
		s.Ready, s.Consumers = q.core.Ready(), q.consumers.count
		c := q.tally.counts()
		s.Delivered = c.AllDelivered() - min(c.Redelivered, c.AllDelivered())
		s.Polled = c.Got + c.GotNoAck
		at.Step = max(1, s.Ready/samples)
	}
	return q.core.Sample(at, surveyChunks, func(ahead int, seq queue.Seq, m queue.Message) {
		s.Standings = append(s.Standings, Standing{q.ref(seq, m.ExpiresAt), ahead})
	})
}

// TimeToLive is how long the message lived, or is to live, from when it entered its
// queue, in ms, by its own expiration and the queue's present time to live. False: it
// is gone, or neither says.
func (b *Broker) TimeToLive(ref MessageRef) (ttlMillis int64, ok bool) {
	q := b.queueByID(ref.Queue)
	if q == nil {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	m, _, ok := q.core.Find(queue.Seq(ref.Seq))
	if !ok || m.ExpiresAt != ref.Deadline {
		return 0, false
	}
	own := int64(-1)
	view, err := amqp.ViewProperties(b.store.View(store.Pos(m.Pos)).Properties)
	if err == nil && view.Has&amqp.HasExpiration != 0 {
		if own, err = parseExpiration(view.Expiration); err != nil {
			own = -1
		}
	}
	set := q.set()
	ttl := set.precedence.effectiveTTL(set.ttlMillis, own)
	return ttl, ttl >= 0
}
