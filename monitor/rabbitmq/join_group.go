package rabbitmq

import (
	"context"

	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/lease"
)

// join finds its place in Redis, which is named after the cluster: so that is known only when RabbitMQ has been reached.
// An operator may give the cluster another name (rabbitmqctl set_cluster_name). All Curfews see that within half a
// minute, and each begins again under the new name; until the last one has, two may keep a queue, which costs order and no
// message.
func (p *Primary) join(ctx context.Context, name string) {
	at := lease.Space{Cluster: name, VHost: p.vhost()}
	if p.redis == nil || p.group.shared() != nil && p.space == at {
		return
	}
	p.mu.Lock()
	p.space, p.observing.lease = at, lease.New(p.redis, at, "", p.name)
	for _, q := range p.queues {
		q.stopLocked()
	}
	p.mu.Unlock()
	last := p.group.join(lease.NewGroup(p.redis, at, p.name))
	if last == nil {
		close(p.joined)
	} else {
		p.log.Warn("the cluster has another name: queues are kept under the new one from now on", zap.String("cluster", name))
		limited, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		if err := last.Leave(limited); err != nil {
			p.log.Debug("what is said under the old name ends by itself", zap.Error(err))
		}
		p.forgetQueues()
	}
	p.beat(ctx) // so that the share is known before the first lease is taken
}

// forgetQueues drops the kept queues, once their keepers have given everything back: what each has in Redis is elsewhere now.
func (p *Primary) forgetQueues() {
	p.mu.Lock()
	var ending []chan struct{}
	for name, q := range p.queues {
		if q.ended != nil {
			ending = append(ending, q.ended)
		}
		delete(p.queues, name)
	}
	p.mu.Unlock()
	for _, ended := range ending {
		<-ended
	}
}
