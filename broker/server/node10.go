package server

import (
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/server/internal/manage"
)

// node answers requests that a client sends to an address, with messages from that address. The two
// links are a pair: they have the same name (AMQP Link Pairing 1.0). An error ends the session.
type node func(user *manage.Declarer, request []byte) (answer []byte, err error)

var nodes = map[string]node{"/management": manage.Manage}

const (
	// maxRequest is the size of the largest request, in octets.
	maxRequest = 64 << 10
	// maxAnswers is how many answers may wait for the client's credit and window.
	maxAnswers = 16
)

// request has a node answer a request.
func (s *session10) request(l *link10, request []byte) error {
	var to *link10
	for _, each := range s.links {
		if each.toClient && each.node != nil && each.name == l.name {
			to = each
		}
	}
	if to == nil {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "no link to the client has the name '%s' of the one that the request came by", l.name)
	}
	if len(to.answers) == maxAnswers {
		return amqp.NewException(amqp.PreconditionFailed, 0, 0, "insufficient credit (0) for the link '%s' to the client", l.name)
	}
	s.p.c.flush()
	answer, err := l.node(&s.p.c.user, request)
	if err != nil {
		return err
	}
	s.settle(l, -1, amqp10.State{Kind: amqp10.StateAccepted})
	s.p.c.usage.Add(int64(len(answer)))
	to.answers = append(to.answers, answer)
	s.ch.deliveries.Locked(func(uint64) { to.sendAnswersLocked(&s.p.c.out) })
	return nil
}

// sendAnswersLocked sends the answers that the client has given credit for.
func (l *link10) sendAnswersLocked(o *deliveries.Outbox) {
	for len(l.answers) > 0 && l.Credit() {
		tag := l.s.ch.deliveries.SkipLocked()
		payload := l.begin(tag, true)
		l.s.out = append(l.s.out, l.answers[0]...)
		l.sendLocked(o, tag, true, payload)
		l.s.p.c.usage.Add(-int64(len(l.answers[0])))
		l.answers = l.answers[1:]
	}
	o.FlushLocked()
}
