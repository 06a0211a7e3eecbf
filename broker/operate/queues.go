package operate

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/memory"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Queue is a queue in a list.
type Queue struct {
	broker.QueueInfo
	Type string
	// DeadLetters reports whether the queue has a dead-letter exchange: DeadLetterExchange ("" is the default one), with the routing key
	// DeadLetterKey ("": their own). ExchangeMissing reports that there is no exchange of that name.
	DeadLetters, ExchangeMissing      bool
	DeadLetterExchange, DeadLetterKey string
	Purpose                           deadline.Purpose
	Wait                              deadline.Wait
}

// Losses are what expired in a queue in the last hour, if an expiry there is a loss. They are -1 if it is none, or that is not known.
type Losses struct {
	Lost    int64 // messages that are gone, since there was nowhere to dead-letter them
	Rescued int64 // messages that were dead-lettered, or parked
	Parked  int64 // of these, those of queues whose dead-letter exchange does not exist
	Meant   int64 // messages besides whose expiry was no loss; 0 if that is not known
}

// Compare says which are worse: first by what is gone, then by what was dead-lettered.
func (l Losses) Compare(o Losses) int {
	return cmp.Or(cmp.Compare(l.Lost, o.Lost), cmp.Compare(l.Rescued, o.Rescued))
}

// LossesOfAll adds up those of queues, and of the deleted ones of virtual hosts.
func LossesOfAll(queues []*Queue, hour deadline.Hour, vhosts map[string]bool) Losses {
	all, named := Losses{Lost: -1, Rescued: -1}, map[[2]string]*Queue{}
	for _, q := range queues {
		named[[2]string{q.VHost, q.Name}] = q
	}
	for name, of := range hour {
		q := named[name]
		if q == nil && vhosts[name[0]] && of.Expired > 0 {
			q = &Queue{QueueInfo: broker.QueueInfo{VHost: name[0], Name: name[1]}, Purpose: deadline.Work}
		}
		if q != nil {
			l := q.LossesIn(hour)
			if all.Meant += l.Meant; l.Lost >= 0 {
				all = Losses{max(all.Lost, 0) + l.Lost, max(all.Rescued, 0) + l.Rescued, all.Parked + l.Parked, all.Meant}
			}
		}
	}
	return all
}

// LossesIn are those of the queue, of what expired in the last hour.
func (q *Queue) LossesIn(hour deadline.Hour) Losses {
	of, known := hour[[2]string{q.VHost, q.Name}]
	if !known || !q.Purpose.Loses() && !q.Wait.Objective.NoneExpires() {
		return Losses{Lost: -1, Rescued: -1, Meant: of.Meant}
	}
	l := Losses{Lost: of.Dropped, Rescued: of.Expired - of.Meant - of.Dropped, Meant: of.Meant}
	if q.ExchangeMissing {
		l.Parked = l.Rescued
	}
	return l
}

// QueueDetail is a queue with its policies.
type QueueDetail struct {
	Queue
	Policy, OperatorPolicy string            // names; "" none
	Effective              policy.Definition // the policies combined
	DepartedMillis         int64             // when the last of its consumers left, Unix ms by the wall clock, if Departed says one has
	OwnDeadLetters         int               // that are deleted with it: no target has taken them, or they are in its dead-letter sub-queue
}

// ListQueues lists the queues of all virtual hosts that the actor may look into, in any order, as they were within the last second. The
// caller must not change the result.
func (o *Operations) ListQueues(_ context.Context, a Actor) ([]*Queue, error) {
	if err := o.permit(&a, ListQueues, ""); err != nil {
		return nil, err
	}
	seen := o.Visible(a)
	all := o.queues.get(&o.epoch, 20*time.Microsecond, func() (all []Queue, n int) {
		for _, vh := range o.Broker.VHosts() {
			for _, q := range vh.Queues.List() {
				all = append(all, o.queueOf(q))
			}
		}
		return all, len(all)
	})
	list := make([]*Queue, 0, len(all))
	for i := range all {
		if seen[all[i].VHost] {
			list = append(list, &all[i])
		}
	}
	return list, nil
}

// Visible returns the names of the virtual hosts that the actor may look into.
func (o *Operations) Visible(a Actor) map[string]bool {
	names := map[string]bool{}
	for _, vh := range o.VHosts(a) {
		names[vh.Name()] = true
	}
	return names
}

func (o *Operations) queueOf(q *broker.Queue) Queue {
	one := Queue{QueueInfo: q.Info(), Type: q.Arguments.Type.String(), Purpose: o.Purpose(q)}
	one.Wait = o.WaitOf(&one.QueueInfo, q)
	one.DeadLetterExchange, one.DeadLetterKey, one.DeadLetters = q.DeadLettersTo()
	_, err := q.VHost().Exchanges.Get(one.DeadLetterExchange)
	one.ExchangeMissing = err != nil
	return one
}

// WaitOf is how long messages wait in a queue.
func (o *Operations) WaitOf(i *broker.QueueInfo, q *broker.Queue) deadline.Wait {
	w := o.Options.Wait(i.ID)
	w.Objective = q.Settings().Objective
	return w
}

// Queue returns one queue.
func (o *Operations) Queue(_ context.Context, a Actor, at QueueName) (QueueDetail, error) {
	q, err := o.queue(&a, ListQueues, at)
	if err != nil {
		return QueueDetail{}, err
	}
	d := QueueDetail{Queue: o.queueOf(q), OwnDeadLetters: q.DeadLetters()}
	d.Policy, d.OperatorPolicy, d.Effective = q.Policies()
	d.DepartedMillis = o.Broker.UnixMillis(d.Departed.At)
	return d, nil
}

// Seq is the number of a message in its queue.
type Seq = queue.Seq

// Message is a message as it is in its queue.
type Message struct {
	deadletters.Letter
	DeadlineMillis int64                // Unix ms by the wall clock; 0 none
	QueueID        uint64               // the incarnation of its queue
	UpTo           deadletters.Position // of the queue, if the message was looked up
}

// Body is the beginning of a body, and the size of the whole.
type Body struct {
	Start []byte
	Bytes int
}

// The states of a message that a consumer holds, and of one that waits for another try.
const (
	Unacked = queue.Unacked
	Waiting = queue.Waiting
)

// Message is a message with what pages show of it.
func (o *Operations) Message(q *broker.Queue, x *broker.Browsed) Message {
	return Message{Letter: deadletters.LetterOf(x, nil), DeadlineMillis: o.Broker.UnixMillis(x.Deadline), QueueID: q.ID}
}

// MaxPeekBytes bounds the bodies of one answer with messages that stay in their queue.
const MaxPeekBytes = 16 << 20

// CopiesOfBody is how many times the size of a body a request takes in memory: the body itself, as text, in base64 and in the answer.
const CopiesOfBody = 4

// Look returns one message by its number, ready or unacked, with bodyBytes of its body (<0 all).
func (o *Operations) Look(_ context.Context, a Actor, at QueueName, seq queue.Seq, bodyBytes int) (Message, error) {
	q, err := o.queue(&a, Peek, at)
	if err != nil {
		return Message{}, err
	}
	x, ok := q.Messages.BrowseOne(seq, bodyBytes)
	if !ok {
		return Message{}, ErrMessageGone
	}
	m := o.Message(q, &x)
	m.UpTo = deadletters.PositionOf(q, time.UnixMilli(o.Broker.UnixMillis(o.Broker.Now())))
	return m, nil
}

// Nobody is the owner of what operations declare or read: exclusive queues of others stay closed to them.
type Nobody struct{}

const (
	// maxAnswer bounds the bodies of one answer, in bytes; further messages stay in the queue.
	maxAnswer = 128 << 20
	// messageBytes is what a message takes in an answer in addition to its content.
	messageBytes = 1 << 10
)

// GetRequest says how many messages to take from a queue and how to settle them.
type GetRequest struct {
	Queue QueueName
	Count int
	NoAck bool              // they are gone once they are taken
	After broker.Settlement // of all together, once they were shown; without NoAck
	// Memory is the account for the answer; nil: none. If it is used up, fewer are taken.
	Memory *memory.Account
}

// Get takes messages and shows each, as basic.get does, without a lock; then it settles them. The delivery is valid during the call of show.
func (o *Operations) Get(ctx context.Context, a Actor, r GetRequest, show func(*broker.Delivery)) error {
	n, err := o.get(ctx, &a, &r, show)
	o.Record(a, Get, r.Queue, err, zap.Int("messages", n), zap.Bool("requeued", !r.NoAck && r.After == broker.PutBack))
	return err
}

func (o *Operations) get(ctx context.Context, a *Actor, r *GetRequest, show func(*broker.Delivery)) (n int, err error) {
	vh, err := o.vhost(a, Get, r.Queue.VHost)
	if err != nil {
		return 0, err
	}
	name := vh.Queues.NameOf(r.Queue.Name)
	if err := o.MayOn(a, Get, vh, name); err != nil {
		return 0, err
	}
	q, err := vh.Queues.GetFor(Nobody{}, name)
	if err != nil {
		return 0, err
	}
	seqs, bytes, paid := []queue.Seq{}, 0, 0
	for n < r.Count && bytes < maxAnswer {
		due := CopiesOfBody * bytes
		if r.Memory != nil && !r.Memory.Try(int64(due-paid)) {
			break
		}
		paid = due
		var d broker.Delivery
		var release func()
		got, err := q.Messages.Get(r.NoAck, func(taken *broker.Delivery) { d, release = taken.Keep() })
		if err != nil {
			q.Messages.Settle(broker.PutBack, seqs, nil)
			return 0, err
		}
		if !got {
			break
		}
		show(&d)
		release()
		bytes += messageBytes + len(d.Message.Properties) + len(d.Message.Body)
		seqs = append(seqs, d.Seq)
		n++
	}
	if !r.NoAck {
		q.Messages.Settle(r.After, seqs, nil)
	}
	if n > 0 && (r.NoAck || r.After != broker.PutBack) {
		err = o.Commit(ctx, q)
	}
	return n, err
}
