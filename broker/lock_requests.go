package broker

import (
	"bytes"
	"encoding/json"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/topology"
)

// LockQueue is the routing key with which requests to renew a lock are published to the
// default exchange. It is not a queue. The body of a request is the x-lock-token that came with the
// delivery; whoever published it needs the permission to read the delivery's queue. The answer
// goes to the request's reply-to, a queue or a direct reply, with its correlation-id; a
// request without one gets none.
//
// Whoever may not read the queue gets the same answer as for a lock that is lost. Any
// channel can ask, since channels may be busy with other things while a consumer works. In a
// transaction the lock is renewed at once; an answer to a queue enters it with the commit.
const LockQueue = topology.LockQueue

// LockAnswer is the answer to a request to renew a lock.
type LockAnswer struct {
	Outcome     string `json:"outcome"`                // renewed or lost
	LockedUntil int64  `json:"locked_until,omitempty"` // of a lock that was renewed: Unix ms
}

// lockAnswerType is the type property of an answer.
const lockAnswerType = "curfew.lock-answer"

// AnswerOf makes the answer from the results of delivery.Locks.Renew.
func AnswerOf(lockedUntil int64, renewed bool) LockAnswer {
	if !renewed {
		return LockAnswer{Outcome: "lost"}
	}
	return LockAnswer{"renewed", lockedUntil}
}

// renewLock carries out a request and adds its answer to the batch in place of the request.
// Error: ErrFull, after which it may be tried again.
func (p *Publisher) renewLock(m *Publication, view *amqp.PropertyView) error {
	answer, err := json.Marshal(AnswerOf(p.renewLockOf(string(bytes.TrimSpace(m.Body)))))
	if err != nil { // a string and a number
		panic("broker: answer to a lock's request: " + err.Error())
	}
	if len(view.ReplyTo) > 0 {
		to := string(view.ReplyTo)
		if to == ReplyQueue { // permit has checked that somebody waits
			to = p.ReplyTo
		}
		properties := amqp.Properties{ContentType: "application/json", DeliveryMode: 1, CorrelationID: string(view.CorrelationID), Type: lockAnswerType, AppID: "curfew"}
		err = p.addAnswer(&Publication{RoutingKey: []byte(to), Properties: properties.Append(nil), Body: answer})
	}
	if err == nil {
		p.count++
		p.counts.add(p, m, 1)
	}
	return err
}

func (p *Publisher) renewLockOf(token string) (lockedUntil int64, ok bool) {
	t, ok := delivery.ParseLockToken(token)
	if !ok {
		return 0, false
	}
	q := p.vh.b.registry.ByID(t.Queue)
	if q == nil || q.VHost() != p.vh.VHost || p.rights.Queue(access.Read, q.Name) != nil {
		return 0, false
	}
	return q.Messages.Locks.Renew(token)
}

// addAnswer hands an answer over, or adds it to the batch; an answer that is routed nowhere is
// lost.
func (p *Publisher) addAnswer(m *Publication) error {
	if IsReply(string(m.RoutingKey)) {
		p.vh.reply(m.RoutingKey, m, 0)
		return nil
	}
	targets, err := p.routes.Find(p.vh.VHost, nil, m.RoutingKey, topology.ByClient, topology.Headers{}, false)
	if err != nil {
		return nil
	}
	it := delivery.Item{TTLMillis: -1, Number: p.count, Move: -1}
	it.Message.Bytes = uint32(len(m.Body))
	_, err = p.put(m, &it, moveTargets{queues: targets})
	return err
}
