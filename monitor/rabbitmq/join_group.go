package rabbitmq

import (
	"context"

	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/lease"
)

// join enters the group of the cluster. The keys in Redis name the cluster, so join needs to have reached RabbitMQ first.
// An operator may give the cluster another name (rabbitmqctl set_cluster_name). All Curfews see that within half a minute,
// and each begins again under the new name. Until the last one has done so, two may keep the same queue, which costs order
// but no message.
func (p *Primary) join(ctx context.Context, name string) {
	at := lease.Space{Cluster: name, VHost: p.vhost()}
	if p.redis == nil || p.group.shared() != nil && p.space == at {
		return
	}
	p.mu.Lock()
	p.space, p.observing.lease = at, lease.New(p.redis, at, "", p.name)
	for _, q := range p.queues {
		q.stopLocked(nil)
	}
	p.mu.Unlock()
	last := p.group.join(lease.NewGroup(p.redis, at, p.name))
	if last == nil {
		close(p.joined)
	} else {
		p.log.Warn("the cluster has another name: leases are under the new name from now on", zap.String("cluster", name))
		limited, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		if err := last.Leave(limited); err != nil {
			p.log.Debug("cannot leave the group of the old name; its entries end by themselves", zap.Error(err))
		}
		p.forgetQueues()
	}
	p.beat(ctx) // to know the share before the first lease is taken
}

// forgetQueues drops the kept queues and waits until their keepers have given everything back: their keys in Redis have
// other names now.
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
