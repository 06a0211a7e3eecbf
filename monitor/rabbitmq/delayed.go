package rabbitmq

import (
	"fmt"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
)

// Delays lists up to limit messages of a delay queue that is kept here: those that are due before an instant, zero for all, with an id, "" for any.
// Instants are by the wall clock.
func (p *Primary) Delays(queue, id string, before time.Time, limit int) (all []delay.Waiting, err error) {
	k, err := p.delayKeeper(queue)
	if err != nil {
		return nil, err
	}
	ahead, until := p.ClockOffset(), deadline.Instant(0)
	if !before.IsZero() {
		until = deadline.At(before).Add(ahead)
	}
	all = k.List(until, id, limit)
	for i := range all {
		all[i].Due = all[i].Due.Add(-ahead)
	}
	return all, nil
}

// UnlistedDelays returns how many messages of a delay queue RabbitMQ has put aside that Delays does not know, by statistics that may be seconds
// old; negative: that is not known.
func (p *Primary) UnlistedDelays(queue string) int64 {
	for _, q := range p.Status().Queues {
		if q.Queue == queue {
			if q.Aside < 0 {
				return -1
			}
			return max(0, q.Aside-int64(q.AsideKnown))
		}
	}
	return 0
}

// Conflict is why a delayed message, or a delay queue, is there but cannot be worked on now.
type Conflict struct{ error }

// ChangeDelay has a message wait for that long from now, or cancels it: then it is never delivered. The error says why it cannot: a *Conflict if it can later, or was done already.
func (p *Primary) ChangeDelay(queue, id string, cancel bool, in time.Duration) error {
	k, err := p.delayKeeper(queue)
	if err != nil {
		return err
	}
	var outcome delay.Outcome
	back := "later"
	if waits := k.List(0, id, 1); len(waits) > 0 {
		back = "at " + waits[0].Due.Add(-p.ClockOffset()-delay.HeldFor).Time().UTC().Format(time.RFC3339)
	}
	if cancel {
		outcome = k.Cancel(id)
	} else {
		outcome = k.Reschedule(id, in)
	}
	switch outcome {
	case delay.TooLate:
		return &Conflict{fmt.Errorf("too late: %s has been delivered", id)}
	case delay.PutAside:
		return &Conflict{fmt.Errorf("%s is put aside in RabbitMQ and comes back %s, a minute before it is due: reschedule it then, or cancel it now", id, back)}
	case delay.Unclear:
		return fmt.Errorf("%s is not known here. If RabbitMQ has put it aside since before this Curfew started, it can only be cancelled, which has been noted if you cancelled it", id)
	case delay.Unconfirmed:
		return &Conflict{fmt.Errorf("RabbitMQ has not confirmed that %s is cancelled. Curfew goes on trying; the cancel is lost if Curfew stops before that. curfew rabbitmq status says why", id)}
	case delay.NotFound:
		return fmt.Errorf("no message with the message-id %s waits in %s", id, queue)
	}
	return nil
}

// delayKeeper returns the keeper of a delay queue that holds all of its messages here.
func (p *Primary) delayKeeper(name string) (*delay.Keeper, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		return nil, fmt.Errorf("no rule with mode delay or retry is for a queue %s", name)
	}
	k, ok := q.keeper.(*delay.Keeper)
	if !ok || q.stop == nil {
		return nil, fmt.Errorf("%s is not a queue of delays or retries that is kept: curfew rabbitmq status says why", name)
	}
	s := k.Status()
	if s.State != keeper.Keeping && s.Keeper != "" && s.Keeper != p.name {
		return nil, &Conflict{fmt.Errorf("%s keeps the queue %s: ask that Curfew", s.Keeper, name)}
	}
	if s.State != keeper.Keeping || !s.CaughtUp {
		return nil, &Conflict{fmt.Errorf("not all messages of %s are held yet: try again in a moment", name)}
	}
	return k, nil
}
