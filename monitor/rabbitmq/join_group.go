package rabbitmq

import (
	"context"
	"time"

	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
)

const (
	// identifyAgain is how soon the identity of the virtual host is asked for again when that has failed.
	identifyAgain = 2 * time.Second
	// identifyTimeout is for one try.
	identifyTimeout = 5 * time.Second
)

// join enters the group of all Curfews beside this virtual host of this cluster. The keys in Redis have its identity (cluster.Identity), so
// join needs to have reached RabbitMQ first. If somebody deletes what the identity is kept in, an instance that starts after that sees another one,
// and keeps the same queues as those that run. That costs order but no message, and is a condition (shared). It reports whether that has now succeeded.
func (p *Primary) join(ctx context.Context) bool {
	if p.redis == nil || p.group.shared() != nil {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, identifyTimeout)
	identity, err := p.rabbitmq.Identity(limited)
	cancel()
	p.mu.Lock()
	if p.identity.note(err) && err != nil {
		p.log.Warn("cannot find out which cluster this is, to share its queues with other Curfews", zap.Error(err))
	}
	if err == nil {
		p.space = lease.Space{Cluster: identity, VHost: p.vhost}
		p.observing.lease = &keeper.Renewal{Lease: lease.New(p.redis, p.space, "", p.name), Log: p.log}
		p.group.mu.Lock()
		p.group.redis = lease.NewGroup(p.redis, p.space, p.name)
		p.group.mu.Unlock()
	}
	p.mu.Unlock()
	if err != nil {
		return false
	}
	close(p.joined)
	p.beat(ctx) // to know the share before the first lease is taken
	return true
}
