package delay

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

func TestFailureOf(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	death := func(queue string, count int64, more amqp091.Table) amqp091.Table {
		d := amqp091.Table{"queue": queue, "count": count, "time": at}
		for key, value := range more {
			d[key] = value
		}
		return d
	}
	for name, one := range map[string]struct {
		deaths []any
		want   failure
	}{
		"none":            {nil, failure{}},
		"the first":       {[]any{death("jobs", 1, nil)}, failure{"jobs", 1, deadline.At(at).Add(time.Second)}},
		"the second":      {[]any{death("jobs", 2, nil), death("retry.delay", 1, nil)}, failure{"jobs", 2, 0}},
		"by RabbitMQ 4":   {[]any{death("jobs", 2, amqp091.Table{lastTime: at.Add(time.Hour)})}, failure{"jobs", 2, deadline.At(at.Add(time.Hour)).AddMillis(1)}},
		"moved elsewhere": {[]any{death("mail", 1, nil), death("retry.delay", 3, nil), death("jobs", 3, nil)}, failure{"mail", 1, deadline.At(at).Add(time.Second)}},
		"two reasons":     {[]any{death("jobs", 2, nil), death("retry.delay", 2, nil), death("jobs", 1, nil)}, failure{"jobs", 3, 0}},
		"only its own":    {[]any{death("retry.delay", 3, nil)}, failure{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, one.want, failureOf(amqp091.Table{"x-death": one.deaths}, "retry.delay"))
		})
	}
}

// TestRenew: a work queue and its parking queue are bound again whether or not this Curfew has seen a message of theirs, and so is another queue of a
// message that it has seen. One that does not exist is forgotten.
func TestRenew(t *testing.T) {
	feeds := []cluster.Binding{{Exchange: "retry", Queue: "retry.delay"}}
	leads := func(name, exchange string) cluster.Queue {
		return cluster.Queue{Name: name, Arguments: map[string]any{"x-dead-letter-exchange": exchange}}
	}
	i := &cluster.Inventory{Queues: []cluster.Queue{leads("jobs", "retry"), {Name: "jobs.failed"}, leads("mail", "retry"), leads("other", "dlx"), {Name: "other.failed"}, leads("retry.delay", "back"), {Name: "seen"}}}
	b := &cluster.Backoff{Park: "{queue}.failed"}
	r := &retries{back: "back", ways: map[string]way{"jobs": {open: true}, "seen": {open: true}, "deleted": {open: true}, "never was": {}}}
	require.Equal(t, []string{"jobs", "jobs.failed", "mail", "seen"}, r.renew(i, feeds, "retry.delay", b))
	require.Empty(t, r.ways)
	to := func(queue, header string) cluster.Binding {
		return cluster.Binding{Exchange: "back", Queue: queue, Arguments: map[string]any{toHeader: header}}
	}
	all := append(feeds, to("jobs", "jobs"), to("jobs.failed", "jobs.failed"), to("mail", "another"))
	require.Equal(t, []string{"mail"}, r.renew(i, all, "retry.delay", b))
	require.Len(t, r.ways, 2)
	require.True(t, r.ways["jobs"].open && time.Until(r.ways["jobs"].until) > bindEvery)
}

func TestWrong(t *testing.T) {
	b := &cluster.Backoff{Park: "{queue}.failed"}
	for name, one := range map[string]struct {
		leads        map[string]string // by queue
		park, policy string
	}{
		"all well":       {map[string]string{"retry.delay": "retry.back", "jobs": "retry", "jobs.failed": ""}, "", ""},
		"nowhere to":     {map[string]string{"retry.delay": "retry.back", "jobs": "retry"}, "there is no queue jobs.failed", ""},
		"nobody":         {map[string]string{"retry.delay": "retry.back"}, "", "no queue has its dead letters come here"},
		"not any more":   {map[string]string{"retry.delay": "retry.back", "jobs": "", "jobs.failed": "", "mail": "retry", "mail.failed": ""}, "", "reject in jobs does not"},
		"to another":     {map[string]string{"retry.delay": "retry.back", "jobs": "dlx", "jobs.failed": ""}, "", "reject in jobs does not"},
		"it is gone, to": {map[string]string{"jobs": "retry"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := &cluster.Inventory{}
			for _, queue := range []string{"jobs", "jobs.failed", "mail", "mail.failed", "retry.delay"} {
				if exchange, there := one.leads[queue]; there {
					q := cluster.Queue{Name: queue, Type: cluster.Quorum}
					if exchange != "" {
						q.Policy = map[string]any{"dead-letter-exchange": exchange}
					}
					i.Queues = append(i.Queues, q)
				}
			}
			bindings := []cluster.Binding{{Exchange: "retry", Queue: "retry.delay"}, {Exchange: "retry.back", Queue: "jobs"}, {Exchange: "retry.back", Queue: "jobs.failed"}}
			reasons, bad := wrong(i, bindings, "retry.delay", b)
			require.Equal(t, one.park+one.policy != "", bad)
			require.Contains(t, reasons["park"], one.park)
			require.Contains(t, reasons["policy"], one.policy)
		})
	}
}

// TestRetriesInTheCore: what is parked is acknowledged, and what can go nowhere is looked at again and counts as nothing.
func TestRetriesInTheCore(t *testing.T) {
	s := newStory(t, cluster.CancelOff)
	for _, m := range []message{{id: "parked", parked: true}, {id: "stray", again: true, delay: time.Second}, {id: "later", to: "jobs", delay: 2 * time.Second}} {
		s.tag++
		s.ids[s.tag] = m.id
		s.c.deliver(s.now, s.ch, s.tag, &m)
	}
	s.now = s.now.Add(3 * time.Second)
	s.c.tick(s.now)
	require.Equal(t, []effect{{channel: s.ch, tag: 1, ack: true}, {channel: s.ch, tag: 2, again: true}, {channel: s.ch, tag: 3, to: "jobs"}}, s.c.out)
	require.EqualValues(t, 1, s.c.counts.Expired)
	require.Zero(t, s.ch.held)
}
