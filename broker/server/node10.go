package server

import (
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
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
	s.accept(l)
	s.answer(to, answer)
	return nil
}

// accept tells the client at once that its request has come. That is before the answer: with the answer, Microsoft's SDK for Python forgets the request,
// and an outcome that comes later makes it use memory that it has given back.
func (s *session10) accept(l *link10) {
	if !l.first.Settled {
		id := l.first.DeliveryID.Value
		s.sendUnlessEnded(&amqp10.Disposition{Role: amqp10.RoleReceiver, First: id, Last: amqp10.Uint(id), Settled: true, State: &amqp10.State{Kind: amqp10.StateAccepted}})
	}
}

// answer sends the answer of a node once the client has given credit for it.
func (s *session10) answer(l *link10, answer []byte) {
	s.ch.deliveries.Locked(func() {
		if s.ended || l.ended || s.p.c.out.Dead {
			return
		}
		if l.bus != nil && len(l.answers) > 0 && l.waiting+len(answer) > maxBusAnswers { // a single one may be larger
			l.dropAnswersLocked()
			l.endLocked(&s.p.c.out, &amqp10.Error{Condition: "amqp:resource-limit-exceeded", Description: "too many answers wait for credit"})
			return
		}
		l.answers = append(l.answers, answer)
		l.waiting += len(answer)
		s.p.c.usage.Add(int64(len(answer)))
		l.sendAnswersLocked()
	})
}

// sendAnswersLocked sends the answers that the client has given credit for.
func (l *link10) sendAnswersLocked() {
	o := &l.s.p.c.out
	for len(l.answers) > 0 && l.Credit() {
		answer, tag := l.answers[0], l.s.ch.deliveries.SkipLocked()
		l.answers, l.waiting = l.answers[1:], l.waiting-len(answer)
		l.s.p.c.usage.Add(-int64(len(answer)))
		l.sendPartsLocked(o, tag, true, answer)
	}
	o.FlushLocked()
}

// dropAnswersLocked gives up the answers that have not been sent.
func (l *link10) dropAnswersLocked() {
	l.s.p.c.usage.Add(-int64(l.waiting))
	l.answers, l.waiting = nil, 0
}
