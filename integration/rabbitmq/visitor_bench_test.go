package rabbitmq

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"curfew/monitor/rabbitmq/keeper"
)

// BenchmarkVisitor measures a queue from the view of an application that consumes for a moment now and then, once with RabbitMQ
// alone and once kept: messages per second while it consumes, how long it waits for the first one, whether the order is
// kept, and how many of the messages that fall due meanwhile are dead-lettered, and how late.
func BenchmarkVisitor(b *testing.B) {
	for _, kind := range queueTypes {
		for _, by := range []string{"alone", "kept"} {
			b.Run(fmt.Sprintf("%s/%s", kind, by), func(b *testing.B) {
				n := sharedNode(b)
				for i := range b.N {
					_, url := n.vhost(b)
					q := declareKept(b, url, string(kind)+strconv.Itoa(i), kind, nil)
					if by == "kept" {
						r := q.keep(b, func(o *keeper.Options) {
							check(b, watch(b.Context(), helperConfig{URL: url, API: n.http, Queue: q.name, Name: "curfew"}, o))
						})
						r.reach(b, keeper.Keeping, 0)
					}
					visits(b, q)
				}
			})
		}
	}
}

// visits fills the queue behind a message that stays, and consumes for half a second five times, three seconds apart.
func visits(b *testing.B, q *keptQueue) {
	const count, visits, long, pause = 20_000, 5, 500 * time.Millisecond, 3 * time.Second
	ttl := mixed(8, 15*time.Second)
	q.fill(count, strconv.Itoa, func(i int) time.Duration {
		if d := ttl(i); d > time.Minute {
			return d
		} else {
			return d + 8*time.Second // the fill takes less
		}
	})
	conn := dial(b, q.url)
	consumed, order := map[string]bool{}, 0
	var first []time.Duration
	for range visits {
		ch := openChannel(b, conn)
		check(b, ch.Qos(100, 0, false))
		begin := time.Now()
		deliveries, err := ch.Consume(q.name, "visitor", false, false, false, false, nil)
		check(b, err)
		var ids []string
		for end := time.After(long); end != nil; {
			select {
			case d := <-deliveries:
				if len(ids) == 0 {
					first = append(first, time.Since(begin))
				}
				ids = append(ids, d.MessageId)
				consumed[d.MessageId] = true
				<-time.After(time.Millisecond) // its work; without it the application would empty the queue
				check(b, d.Ack(false))
			case <-end:
				end = nil
			}
		}
		order += breaks(ids)
		check(b, ch.Close())
		<-time.After(pause)
	}
	due := 0
	q.mu.Lock()
	last := time.Now()
	for id, at := range q.deadline {
		if !consumed[id] && time.Until(at) < time.Minute {
			due++
			if at.After(last) {
				last = at
			}
		}
	}
	q.mu.Unlock()
	<-time.After(time.Until(last.Add(time.Second))) // those that RabbitMQ alone expires have gone by then
	slices.Sort(first)
	late := q.lateness()
	b.ReportMetric(float64(len(consumed))/(visits*long.Seconds()), "consumed/s")
	b.ReportMetric(float64(len(first)), "visits-served")
	b.ReportMetric(percentile(first, 0.5).Seconds()*1000, "first-p50-ms")
	b.ReportMetric(percentile(first, 1).Seconds()*1000, "first-max-ms")
	b.ReportMetric(float64(order), "breaks")
	b.ReportMetric(float64(due), "due")
	b.ReportMetric(float64(len(late)), "dead-lettered")
	b.ReportMetric(percentile(late, 0.5).Seconds()*1000, "late-p50-ms")
	b.ReportMetric(0, "ns/op")
}
