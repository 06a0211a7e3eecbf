package rabbitmq

import (
	"context"
	"fmt"
	"time"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// watch sets up that a keeper connects to any node of the cluster, reads the facts of its queue from the management API, and gets events.
func watch(ctx context.Context, c helperConfig, o *keeper.Options) error {
	at, err := cluster.Open(cluster.Options{URL: c.URL, APIURL: c.API, Name: c.Name})
	if err != nil {
		return err
	}
	o.Connect = func(ctx context.Context) (*cluster.Conn, error) { return own(at.Connect(ctx, "keeper", true)) }
	o.Facts = func(ctx context.Context) (keeper.Facts, error) {
		i, err := at.Inventory(ctx, []string{c.Queue}, "")
		if err != nil {
			return keeper.Facts{}, err
		}
		q := i.Queue(c.Queue)
		if q == nil {
			return keeper.Facts{}, fmt.Errorf("queue %s is not in the inventory", c.Queue)
		}
		return factsOf(q, i.Server), nil
	}
	events := make(chan keeper.Event, 64)
	o.Events = events
	tell := func(e keeper.Event) {
		select {
		case events <- e:
		default: // the keeper is not connected, and asks for everything when it is
		}
	}
	go func() {
		_ = at.Events(ctx, func(e cluster.Event) {
			switch {
			case e.Kind == cluster.ConsumerCreated && e.Queue == c.Queue:
				tell(keeper.Event{Kind: keeper.ConsumerCame, ConsumerTag: e.ConsumerTag})
			case e.Kind == cluster.QueueDeleted && e.Queue == c.Queue:
				tell(keeper.Event{Kind: keeper.QueueDeleted})
			case e.Kind == cluster.Changed:
				tell(keeper.Event{Kind: keeper.FactsChanged})
			}
		})
	}()
	go func() { // an event may be lost with a node
		for tick := time.NewTicker(3 * time.Second); ; <-tick.C {
			tell(keeper.Event{Kind: keeper.FactsChanged})
		}
	}()
	return nil
}

func factsOf(q *cluster.Queue, s cluster.Server) keeper.Facts {
	f := keeper.Facts{Type: q.Type, Family: s.Family(), TTL: -1, ConsumerTimeout: 30 * time.Minute}
	if limit, ok := q.DeliveryLimit(s.Family()); ok {
		f.DeliveryLimit = int(limit)
	}
	if ttl, ok := q.TTLMillis(); ok {
		f.TTL = time.Duration(ttl) * time.Millisecond
	}
	return f
}
