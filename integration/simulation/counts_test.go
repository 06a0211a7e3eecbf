package simulation

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"curfew/broker"
	"curfew/broker/queue"
)

// stepMost is the most messages that the broker may work on under one lock of a queue, whatever is in it: three times what one
// call of its state machine settles.
const stepMost = 3 * queue.AtOnce

// longestStep is how many messages the broker has worked on at most under one lock of a queue.
func longestStep(b *broker.Broker) int {
	for _, family := range gather(b) {
		if family.GetName() == "curfew_lock_messages_max" {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	panic("the broker does not say it")
}

func gather(b *broker.Broker) []*dto.MetricFamily {
	registry := prometheus.NewRegistry()
	registry.MustRegister(b)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	return families
}

// counts are the totals of one run of the broker.
type counts struct {
	published, unroutable, refused, delivered int
	expiredDropped, parked, cycles, bounded   int
	deadLettersLost                           int
	dead                                      map[ending]int
}

func newCounts() counts { return counts{dead: map[ending]int{}} }

// counted reads these totals from the broker's metrics.
func counted(b *broker.Broker) counts {
	c := newCounts()
	into := map[string]*int{
		"curfew_messages_published_total": &c.published, "curfew_messages_unroutable_total": &c.unroutable,
		"curfew_messages_refused_total": &c.refused, "curfew_messages_delivered_total": &c.delivered,
		"curfew_messages_expired_dropped_total": &c.expiredDropped, "curfew_dead_letters_unroutable_total": &c.parked,
		"curfew_dead_letter_cycles_total": &c.cycles, "curfew_dead_letters_bounded_total": &c.bounded, "curfew_dead_letters_dropped_total": &c.deadLettersLost,
	}
	for _, family := range gather(b) {
		if to := into[family.GetName()]; to != nil {
			*to = int(family.GetMetric()[0].GetCounter().GetValue())
		}
		if family.GetName() == "curfew_dead_letters_total" {
			for _, m := range family.GetMetric() {
				if n := int(m.GetCounter().GetValue()); n > 0 {
					c.dead[ending(m.GetLabel()[0].GetValue())] = n
				}
			}
		}
	}
	return c
}
