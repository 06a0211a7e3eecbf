package monitor

import (
	"context"
	"sync"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// maxNamed bounds the queues whose names are kept next to the schedule. Only the numbers of
// others are known there.
const maxNamed = 10_000

// queueNames writes the names of queues to Redis, next to their shadows and each once, so that
// another instance can report what is overdue when this one is silent. Nothing else depends on
// them: an error is logged, and the names are written when the queues are used after the next
// prune. Safe for concurrent use; a nil queueNames does nothing.
type queueNames struct {
	registry  Registry
	queueName func(uint64) (vhost, name string, ok bool)
	log       *zap.Logger

	naming chan struct{} // holds a token while names are written, so that they are there when note returns

	mu      sync.Mutex
	named   map[uint64]struct{} // by incarnation
	failing bool
}

func newQueueNames(registry Registry, queueName func(uint64) (vhost, name string, ok bool), log *zap.Logger) *queueNames {
	return &queueNames{registry: registry, queueName: queueName, log: log, naming: make(chan struct{}, 1), named: make(map[uint64]struct{})}
}

// note writes the names of the shadows' queues, unless they have been written.
func (n *queueNames) note(ctx context.Context, shadows []deadline.Ref) {
	if n == nil {
		return
	}
	select {
	case n.naming <- struct{}{}:
		defer func() { <-n.naming }()
	case <-ctx.Done():
		return
	}
	if fresh := n.fresh(shadows); len(fresh) > 0 {
		n.report(ctx, within(ctx, func(ctx context.Context) error { return n.registry.NameQueues(ctx, fresh) }))
	}
}

// fresh returns the queues that have not been named, and notes them as named.
func (n *queueNames) fresh(shadows []deadline.Ref) (fresh []scheduler.QueueName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range shadows {
		queue := shadows[i].Queue
		if i > 0 && queue == shadows[i-1].Queue || len(n.named) >= maxNamed {
			continue
		}
		if _, known := n.named[queue]; known {
			continue
		}
		if vhost, name, ok := n.queueName(queue); ok {
			n.named[queue] = struct{}{}
			fresh = append(fresh, scheduler.QueueName{Queue: queue, VHost: vhost, Name: name})
		}
	}
	return fresh
}

// prune removes the names of deleted queues from Redis, and notes which names it has.
func (n *queueNames) prune(ctx context.Context) {
	var kept []uint64
	err := within(ctx, func(ctx context.Context) (err error) {
		kept, err = n.registry.PruneQueues(ctx, func(queue uint64) bool {
			_, _, ok := n.queueName(queue)
			return ok
		})
		return err
	})
	n.report(ctx, err)
	n.reset(kept...)
}

// reset notes that these queues are named, and no others.
func (n *queueNames) reset(kept ...uint64) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.named)
	for _, queue := range kept {
		n.named[queue] = struct{}{}
	}
}

// report logs the first of several errors.
func (n *queueNames) report(ctx context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil && !n.failing && ctx.Err() == nil {
		n.log.Warn("queue names cannot be written to Redis; other instances would report their numbers", zap.Error(err))
	}
	n.failing = err != nil
}
