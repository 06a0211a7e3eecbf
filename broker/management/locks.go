package management

import (
	"net/http"

	"curfew/broker"
)

// renewLock renews the lock of the delivery that came with the x-lock-token in the path
// (Service Bus: Renew-Lock for a Message). It takes the permission to read the queue.
func (q *request) renewLock() error {
	_, from, err := q.queueToRead()
	if err != nil {
		return err
	}
	until, ok := from.RenewLock(q.param("token"))
	if !ok {
		return &problem{http.StatusNotFound, "not_found", "no lock of this queue has this token any more: it has lapsed, or its message was settled"}
	}
	return q.answer(broker.AnswerOf(until, true))
}
