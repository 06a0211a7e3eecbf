package server

import (
	"errors"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server/internal/convert"
	"curfew/broker/servicebus"
)

// busNode is what a link has to or from $cbs, or the $management of an entity.
type busNode struct {
	entity string
	cbs    bool
	names  [2]string // to the client: by which requests name the link
}

// maxBusAnswers bounds the answers that wait for a client's credit, in octets.
const maxBusAnswers = 1 << 20

// busRequest carries out a request. The answer goes to another link of the session.
func (s *session10) busRequest(l *link10, message []byte) error {
	s.accept(l)
	r, err := servicebus.ParseRequest(message, l.bus.cbs)
	if err != nil {
		return amqp.NewException(amqp.SyntaxError, 0, 0, "%s", err)
	}
	to := s.answering(l.bus, r.ReplyTo)
	if to == nil {
		return amqp.NewException(amqp.NotFound, 0, 0, "no link from this node has the reply-to '%s' of the request as its target or name", r.ReplyTo)
	}
	s.p.c.flush()
	s.p.c.out.WaitRoom() // a single read may bring very many requests, and an answer is up to 1 MiB
	runtime.Gosched()    // so others have their turn in between, and before it is written
	var a servicebus.Answer
	var from []*broker.Queue
	if l.bus.cbs {
		a = s.putToken(r)
	} else {
		a, from, err = s.manage(l.bus.entity, r)
	}
	if e, refused := errors.AsType[*amqp.Exception](err); refused {
		a = refusal(e)
	} else if err != nil {
		return err
	}
	runtime.Gosched()
	answer := r.Message(a)
	if op := r.Operation(); l.bus.cbs || op == "renew-lock" || op == "peek-message" || op == "enumerate-rules" { // nothing has to be stored
		s.answer(to, answer)
		return nil
	}
	// The reader waits, so that there is one answer at a time, and copies it: others' confirms come after what Commit calls.
	stored := make(chan error, 1)
	s.p.c.srv.opts.Broker.Commit(func(err error) { stored <- err }, from...)
	select {
	case err := <-stored:
		if err == nil {
			s.answer(to, answer)
		}
	case <-s.p.c.ctx.Done():
	}
	return nil
}

// refusal answers a request with an error.
func refusal(e *amqp.Exception) servicebus.Answer {
	a := servicebus.Answer{Status: int32(e.Code), Description: e.Text, Condition: convert.ErrorOf(e).Condition}
	switch e.Code {
	case amqp.AccessRefused:
		a.Status = 401
	case amqp.NotFound:
	case amqp.NotImplemented:
		a.Status = 501
	default:
		a.Status = 400
	}
	return a
}

// answering finds the link that answers of a node go to: the one that replyTo names. Microsoft's SDK for Python names none; then it is the newest one
// of the node on this session.
func (s *session10) answering(of *busNode, replyTo string) (to *link10) {
	for _, l := range s.links {
		switch {
		case !l.toClient || l.bus == nil:
		case replyTo != "" && (l.bus.names[0] == replyTo || l.bus.names[1] == replyTo):
			return l
		case replyTo == "" && l.bus.cbs == of.cbs && strings.EqualFold(l.bus.entity, of.entity) && (to == nil || l.handle > to.handle):
			to = l
		}
	}
	return to
}

// putToken checks a token (Service Bus: Claims-based security).
func (s *session10) putToken(r *servicebus.Request) servicebus.Answer {
	name := r.Field("name")
	entity, _ := servicebus.Managed(servicebus.PathOf(name))
	c := s.p.c
	claims, until, err := c.srv.opts.ServiceBus.Check(r.Text(), name, s.p.bus.local, time.Now())
	switch {
	case r.Operation() != "put-token":
		return servicebus.Answer{Status: 501, Description: "the operation is not known: only put-token is"}
	case err != nil:
		c.log.Warn("token refused", zap.String("entity", entity[:min(len(entity), 255)]), zap.Error(err))
		return servicebus.Answer{Status: 401, Description: err.Error(), Condition: "amqp:unauthorized-access"}
	}
	if entity != "" {
		if _, err := s.busEntity(entity); err != nil {
			e, _ := errors.AsType[*amqp.Exception](err)
			return refusal(e)
		}
	}
	key := strings.ToLower(entity)
	if _, known := s.p.bus.claims[key]; !known && len(s.p.bus.claims) >= maxBusClaims {
		return servicebus.Answer{Status: 403, Description: "too many tokens on one connection", Condition: "amqp:resource-limit-exceeded"}
	}
	s.p.bus.claims[key] = busClaims{claims, until}
	s.p.bus.idle.Stop()
	return servicebus.Answer{Status: 202, Description: "Accepted"}
}
