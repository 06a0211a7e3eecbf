package rabbitmq

import (
	"context"
	"errors"

	"curfew/broker/deadline"
)

const (
	// everyQueue stands for all queues among those that were let go of. No queue has this name.
	everyQueue = ""
	// pausedCode is the state of a queue that is not kept since an operator has paused everything.
	pausedCode = "paused"
)

// ErrNotPaused: there is nothing to resume.
var ErrNotPaused = errors.New("nothing is paused")

// errNotJoined: Redis cannot be told yet.
var errNotJoined = errors.New("it is not known yet which cluster this is")

// Pause has every Curfew of the virtual host give back everything in order, and keep nothing until Resume. Observing goes on, since it touches
// no message. Redis remembers that; without Redis, it lasts until this Curfew ends. Calling it again does no harm.
func (p *Primary) Pause(ctx context.Context) error {
	const why = pausedCode + " An operator has paused everything."
	if p.redis != nil {
		shared := p.group.shared()
		if shared == nil {
			return errNotJoined
		}
		if err := shared.LetGo(ctx, everyQueue, why); err != nil {
			return err
		}
	}
	p.group.setPaused(why)
	deadline.Wake(p.looks)
	return nil
}

// Resume ends Pause, for every Curfew. Error: ErrNotPaused, or that Redis does not answer.
func (p *Primary) Resume(ctx context.Context) error {
	was := p.group.setPaused("")
	if p.redis != nil {
		shared := p.group.shared()
		if shared == nil {
			return errNotJoined
		}
		listed, err := shared.Allow(ctx, everyQueue)
		if err != nil {
			return err
		}
		was = was || listed
	}
	if !was {
		return ErrNotPaused
	}
	deadline.Wake(p.looks)
	return nil
}
