package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Survey fills s with the state of the queue and a sample of its messages: at most 2*samples of
// them, and all of them if there are no more than samples.
func (q *Queue) Survey(samples int, s *deadline.Survey) {
	*s = deadline.Survey{Queue: q.ID, VHost: q.vhost, Name: q.Name, Samples: s.Samples[:0]}
	var at queue.Sampling
	for more := true; more; {
		q.mu.Lock()
		if at.Step == 0 {
			s.At = q.env.Clock.Now()
			s.Ready, s.Consumers = q.core.Ready.Count, q.consumers.count
			c := &q.counters
			s.Delivered, s.Polled = c.AllDelivered()-min(c.Redelivered, c.AllDelivered()), c.Got+c.GotNoAck
			s.Objective = q.Settings().Objective
			at.Step = max(1, s.Ready/samples)
		}
		const chunks = 512 // of messages are walked under one lock
		more = q.core.Sample(&at, chunks, func(ahead int, seq queue.Seq, m queue.Message) {
			s.Samples = append(s.Samples, deadline.Sample{Ref: q.refOf(seq, m.ExpiresAt), Ahead: ahead, Entered: q.ages.entered(seq)})
		})
		q.mu.Unlock()
	}
	s.Step = at.Step
}
