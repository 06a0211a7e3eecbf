package broker

import (
	"crypto/rand"
	"encoding/base64"
	"sync"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/forward"
	"curfew/broker/internal/message"
)

// A command is a publish with the header x-cancel, x-replace or x-reschedule, whose value is the
// message-id of a delayed message that the same user has published to the same exchange. It takes
// effect with the messages of its batch, in their order. A delayed message with the header
// x-schedule-answer has an id that nobody can guess, and that may stand for the message-id whoever
// sends the command. The answer, one word of text, goes to
// reply-to, a queue or a direct reply, once its effect is as safe as a confirm promises. An answer is
// transient and sent once: it is lost with the process, or if nobody takes it.

// delayAnswerType is the type property of an answer.
const delayAnswerType = "curfew.delay-answer"

// answersKept is how many answers wait to be sent. More are dropped.
const answersKept = 1 << 16

// delayAnswers are the answers to commands that wait to be sent by a goroutine of the broker, since
// whoever makes them must not wait.
type delayAnswers struct {
	mu      sync.Mutex // leaf
	waiting []delayAnswer
	wake    chan struct{} // of capacity 1
}

type delayAnswer struct {
	forward.Answer
	vh *VHost
}

// checkCommand notes in the item that the message is a command, or a delayed one whose publisher wants
// its id, and returns when it is due: a replacement without a delay at once. Errors: 406, or 403 if the
// user may not publish to reply-to.
func (p *Publisher) checkCommand(headers amqp.Table, view *amqp.PropertyView, it *delivery.Item, due, stamp deadline.Instant) (deadline.Instant, error) {
	c, err := message.CommandOf(headers)
	if err != nil {
		return 0, err
	}
	wantsID, err := message.WantsID(headers)
	if err != nil {
		return 0, err
	}
	if c.Kind == message.Replace && due == 0 {
		due = stamp
	}
	if it.Command = c.Kind != message.NoCommand || wantsID && due != 0; !it.Command {
		return due, nil
	}
	if len(view.ReplyTo) == 0 || IsReply(string(view.ReplyTo)) {
		return due, nil
	}
	return due, amqp.Answering(p.rights.Exchange(access.Write, ""), amqp.BasicPublishID)
}

// sign has a delayed message that a command may name, or a command, say which user publishes it, and
// gives it the secret of its id if that is wanted: 128 random bits.
func (p *Publisher) sign(m *Publication, view *amqp.PropertyView, has message.Marks) {
	notes := message.Scheduled{User: p.rights.user}
	if has&message.AnswerMark != 0 {
		var secret [16]byte
		rand.Read(secret[:])
		notes.Secret = base64.RawURLEncoding.EncodeToString(secret[:])
	}
	named := len(view.MessageID) > 0 || has&message.CommandMark != 0
	if has&message.PublisherMark != 0 || notes.Secret != "" || named && string(view.UserID) != notes.User {
		m.Properties = notes.In(m.Properties)
	}
}

// answerLater has the answer to a command sent. It does not wait.
func (vh *VHost) answerLater(a forward.Answer) {
	q := &vh.b.delayAnswers
	q.mu.Lock()
	if len(q.waiting) < answersKept {
		q.waiting = append(q.waiting, delayAnswer{a, vh})
	}
	q.mu.Unlock()
	deadline.Wake(q.wake) // it will look again anyway
}

// run sends answers until quit is closed.
func (q *delayAnswers) run(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-q.wake:
		}
		q.mu.Lock()
		list := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		for i := range list {
			list[i].send()
		}
	}
}

func (a *delayAnswer) send() {
	properties := amqp.Properties{ContentType: "text/plain", DeliveryMode: 1, CorrelationID: a.CorrelationID, Type: delayAnswerType, AppID: "curfew"}
	if a.ID != "" {
		properties.Headers = amqp.Table{"x-schedule-id": a.ID}
	}
	p := a.vh.OwnPublisher()
	if _, err := p.Add(&Publication{RoutingKey: []byte(a.To), Properties: properties.Append(nil), Body: []byte(a.Result)}); err != nil {
		a.vh.b.log.Debug("an answer about a delayed message is lost", zap.String("reply_to", a.To), zap.Error(err))
	}
	p.Flush(nil)
}
