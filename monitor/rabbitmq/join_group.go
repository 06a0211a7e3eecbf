package rabbitmq

import (
	"context"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/lease"
)

const (
	// identifyEvery is how often the identity of the virtual host is asked for again (each time RabbitMQ logs an error), identifyAgain when that has failed.
	identifyEvery = 10 * time.Minute
	identifyAgain = 2 * time.Second
	// identifyTimeout is for one try.
	identifyTimeout = 5 * time.Second
)

// join enters the group of all Curfews beside this virtual host of this cluster. The keys in Redis have its identity (cluster.Identity), so
// join needs to have reached RabbitMQ first. If somebody deletes what the identity is kept in, all Curfews see another one within eleven minutes,
// and each begins again under it. Until the last one has done so, two may keep the same queue, which costs order but no message.
func (p *Primary) join(ctx context.Context) {
	p.mu.Lock()
	known := time.Since(p.identifiedAt) < identifyEvery
	p.mu.Unlock()
	if p.redis == nil || known {
		return
	}
	limited, cancel := context.WithTimeout(ctx, identifyTimeout)
	identity, err := p.rabbitmq.Identity(limited)
	cancel()
	p.mu.Lock()
	if p.identity.note(err) && err != nil {
		p.log.Warn("cannot find out which cluster this is, to share its queues with other Curfews", zap.Error(err))
	}
	if err == nil {
		p.identifiedAt = time.Now()
	}
	p.mu.Unlock()
	if err != nil {
		time.AfterFunc(identifyAgain, func() { deadline.Wake(p.looks) })
		return
	}
	at := lease.Space{Cluster: identity, VHost: p.vhost()}
	if p.space == at {
		return
	}
	p.mu.Lock()
	p.space = at
	p.observing.useLocked(lease.New(p.redis, at, "", p.name))
	for _, q := range p.queues {
		q.stopLocked(nil)
	}
	p.mu.Unlock()
	last := p.group.join(lease.NewGroup(p.redis, at, p.name))
	if last == nil {
		close(p.joined)
	} else {
		p.log.Warn("the virtual host has another identity: leases are under the new one from now on", zap.String("identity", identity))
		limited, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		if err := last.Leave(limited); err != nil {
			p.log.Debug("cannot leave the group of the old identity; its entries end by themselves", zap.Error(err))
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
