package broker_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

func (x *testBroker) policy(k policy.Kind, p policy.Policy) {
	x.t.Helper()
	_, err := x.vh.Policies.Set(k, p)
	require.NoError(x.t, err)
}

// govern sets the policy "p" for all queues whose name starts with q.
func (x *testBroker) govern(d policy.Definition) {
	x.t.Helper()
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^q", ApplyTo: policy.Queues, Definition: d})
}

func (x *testBroker) ready(q *broker.Queue) int {
	ready, _, _ := q.Messages.Counts()
	return ready
}

func TestPolicyTTLHoldsForWhatIsPublishedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", nil)
		x.publish("", "q", "before", "", nil)
		x.govern(policy.Definition{"message-ttl": int64(500)})
		x.publish("", "q", "after", "", nil)
		x.publish("", "q", "shorter", "100", nil)
		refs := x.deadlines()
		require.Len(t, refs, 2)
		require.Equal(t, 400*time.Millisecond, refs[0].Deadline.Sub(refs[1].Deadline))
		_, err := x.vh.Policies.Clear(policy.User, "p")
		require.NoError(t, err)
		x.publish("", "q", "later", "", nil)
		require.Equal(t, refs, x.deadlines(), "stamped deadlines stay, the next has none")
		time.Sleep(time.Second)
		require.Equal(t, []string{"before", "later"}, x.drain(q))
	})
}

// TestParkedMessagesOutliveAPolicyForAll: a time to live bounds their life only where the pattern names their queue.
func TestParkedMessagesOutliveAPolicyForAll(t *testing.T) {
	for _, kind := range []policy.Kind{policy.User, policy.Operator} {
		for pattern, left := range map[string]int{".*": 2, "^curfew[.]": 2, `^(orders|curfew\.undeliverable)$`: 1, "^curfew.undeliverable": 1} {
			synctest.Test(t, func(t *testing.T) {
				x := newTestBroker(t, broker.Options{})
				q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "missing"})
				park := func() {
					x.publish("", "q", "m", "", nil)
					x.rejectAll(q)
					x.expire(nil)
				}
				park()
				x.policy(kind, policy.Policy{Name: "p", Pattern: pattern, Definition: policy.Definition{"message-ttl": int64(500), "max-length": int64(9)}})
				park()
				_, _, effective := x.undeliverable().Policies()
				_, bounded := effective["message-ttl"]
				assert.Equal(t, left == 1, bounded, pattern)
				assert.EqualValues(t, 9, effective["max-length"], "the rest of the policy counts")
				time.Sleep(time.Second)
				x.expire(x.deadlines())
				assert.Equal(t, left, x.ready(x.undeliverable()), pattern)
			})
		}
	}
}

func TestPolicyBoundsLengthAtOnce(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q, dlq := x.queue("q", nil), x.queue("dlq", nil)
	for _, body := range []string{"1", "2", "3", "4", "5"} {
		x.publish("", "q", body, "", nil)
	}
	x.govern(policy.Definition{"max-length": int64(2), "dead-letter-exchange": "", "dead-letter-routing-key": "dlq"})
	require.Equal(t, 2, x.ready(q))
	x.forwarded()
	require.Equal(t, []string{"1", "2", "3"}, x.drain(dlq), "dead-lettered by the policy that dropped them")
	x.publish("", "q", "6", "", nil)
	require.Equal(t, []string{"4"}, x.drain(dlq))
	x.govern(policy.Definition{"max-length-bytes": int64(1)})
	require.Equal(t, []string{"6"}, x.drain(q))
	require.Empty(t, x.drain(dlq))
	x.govern(policy.Definition{"max-length": int64(1), "overflow": "reject-publish"})
	x.publish("", "q", "7", "", nil)
	x.publish("", "q", "8", "", nil)
	require.Equal(t, []string{"7"}, x.drain(q))
}

func TestArgumentsAndPolicies(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{
		"max-length": int64(3), "dead-letter-exchange": "", "dead-letter-routing-key": "of-policy", "overflow": "reject-publish"}})
	low, high := x.queue("q.low", amqp.Table{"x-max-length": int32(2)}), x.queue("q.high", amqp.Table{"x-max-length": int32(9)})
	own := x.queue("q.own", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "of-argument", "x-overflow": "drop-head"})
	ofPolicy, ofArgument := x.queue("of-policy", nil), x.queue("of-argument", nil)
	for range 5 {
		for _, q := range []string{"q.low", "q.high", "q.own"} {
			x.publish("", q, "m", "", nil)
		}
	}
	assert.Equal(t, 2, x.ready(low), "the lower of two limits")
	assert.Equal(t, 3, x.ready(high), "the lower of two limits")
	assert.Equal(t, 3, x.ready(own))
	assert.Equal(t, 2, x.ready(ofArgument), "what was declared wins")
	assert.Zero(t, x.ready(ofPolicy))
	_, err := x.vh.Queues.Declare(nil, "q.low", broker.QueueDeclare{Args: amqp.Table{"x-max-length": int32(3)}})
	assert.Equal(t, "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q.low' in vhost '/': received '3' but current is '2'", text(err))
}

func TestQuorumDeliveryLimitOfAPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		args   amqp.Table
		policy int64
		want   int // deliveries of a message that always fails, 0: no end
	}{
		"in place of the default":       {amqp.Table{}, 1, 2},
		"above the default":             {amqp.Table{}, 30, 31},
		"the argument is lower":         {amqp.Table{"x-delivery-limit": int32(2)}, 30, 3},
		"the policy is lower":           {amqp.Table{"x-delivery-limit": int32(30)}, 2, 3},
		"a policy without limit":        {amqp.Table{}, -1, 0},
		"the argument and no limit":     {amqp.Table{"x-delivery-limit": int32(2)}, -1, 3},
		"no limit asked, one by policy": {amqp.Table{"x-delivery-limit": int32(-1)}, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTestBroker(t, broker.Options{})
			q := x.quorum("q", c.args)
			x.govern(policy.Definition{"delivery-limit": c.policy})
			x.publish("", "q", "m", "", nil)
			got := 0
			for got < 50 {
				m, ok := x.get(q, false)
				if !ok {
					break
				}
				got++
				q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
			}
			if c.want == 0 {
				require.Equal(t, 50, got)
			} else {
				require.Equal(t, c.want, got)
			}
		})
	}
}

func TestOperatorPolicyBoundsTheOther(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	x.govern(policy.Definition{"max-length": int64(9), "expires": int64(60000)})
	x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: ".*", Definition: policy.Definition{"max-length": int64(3), "message-ttl": int64(50000)}})
	user, operator, effective := q.Policies()
	require.Equal(t, "p", user)
	require.Equal(t, "o", operator)
	require.Equal(t, policy.Definition{"max-length": int64(3), "expires": int64(60000), "message-ttl": int64(50000)}, effective)
	for range 5 {
		x.publish("", "q", "m", "", nil)
	}
	require.Equal(t, 3, x.ready(q))
	require.Len(t, x.deadlines(), 3)
	existed, err := x.vh.Policies.Clear(policy.Operator, "o")
	require.NoError(t, err)
	require.True(t, existed)
	existed, err = x.vh.Policies.Clear(policy.Operator, "o")
	require.NoError(t, err)
	require.False(t, existed)
	_, operator, effective = q.Policies()
	require.Empty(t, operator)
	require.Equal(t, policy.Definition{"max-length": int64(9), "expires": int64(60000)}, effective)
	_, err = x.vh.Policies.Clear(policy.User, "p")
	require.NoError(t, err)
	_, _, effective = q.Policies()
	require.Nil(t, effective)
}

func TestPolicyExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		x.queue("q.long", amqp.Table{"x-expires": int32(3_600_000)})
		x.queue("q.none", nil)
		x.queue("q.kept", nil)
		there := func(name string) bool {
			_, err := x.vh.Queues.Get(name)
			return err == nil
		}
		x.govern(policy.Definition{"expires": int64(60_000)})
		time.Sleep(30 * time.Second)
		x.policy(policy.User, policy.Policy{Name: "kept", Pattern: "kept", Priority: 1, Definition: policy.Definition{"max-length": int64(1)}})
		time.Sleep(29 * time.Second)
		synctest.Wait()
		require.True(t, there("q.long") && there("q.none") && there("q.kept"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.False(t, there("q.long"), "the lower of two periods")
		require.False(t, there("q.none"))
		require.True(t, there("q.kept"), "its policy was withdrawn in time")
	})
}

func TestAlternateExchangeOfAPolicy(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	lost, found, other := x.queue("lost", nil), x.queue("found", nil), x.queue("other", nil)
	for name, q := range map[string]string{"alt": "found", "declared": "other"} {
		require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: name, Destination: q}))
	}
	require.NoError(t, x.vh.Exchanges.Declare("own", broker.ExchangeDeclare{Kind: "direct", Args: amqp.Table{"alternate-exchange": "declared"}}))
	send := func() {
		x.publish("amq.direct", "nowhere", "m", "", nil)
		x.publish("own", "nowhere", "m", "", nil)
	}
	send()
	require.Zero(t, x.ready(found))
	x.policy(policy.User, policy.Policy{Name: "ae", Pattern: ".*", ApplyTo: policy.Exchanges, Definition: policy.Definition{"alternate-exchange": "alt"}})
	send() // by the same publisher, whose routes were known
	require.Equal(t, []string{"m"}, x.drain(found))
	require.Equal(t, []string{"m", "m"}, x.drain(other), "what was declared wins")
	user, _, _, ok := x.vh.Exchanges.PoliciesOf("amq.direct")
	require.True(t, ok)
	require.Equal(t, "ae", user)
	_, err := x.vh.Policies.Clear(policy.User, "ae")
	require.NoError(t, err)
	send()
	require.Zero(t, x.ready(found))
	require.Zero(t, x.ready(lost))
}

// TestPolicyWhileMessagesDie: a dead letter goes where the queue sent it when it left, whatever is changed before it arrives.
func TestPolicyWhileMessagesDie(t *testing.T) {
	x := newTestBroker(t, broker.Options{Unroutable: broker.Drop})
	q, dlq := x.queue("q", nil), x.queue("dlq", nil)
	dead := policy.Definition{"max-length": int64(1), "dead-letter-exchange": "", "dead-letter-routing-key": "dlq"}
	x.govern(dead)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			x.govern(policy.Definition{"max-length": int64(1), "message-ttl": int64(3_600_000)})
			x.govern(dead)
		}
	}()
	for range 2000 {
		x.publish("", "q", "m", "", nil)
	}
	<-done
	require.Equal(t, 1, x.ready(q))
	require.LessOrEqual(t, x.ready(dlq), 1999)
}

// TestPolicyDoesNotWaitForAllItDrops: with a monitor that does not follow, what a lower limit drops takes long. The change returns all the same.
func TestPolicyDoesNotWaitForAllItDrops(t *testing.T) {
	const count = 50_000
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, dlq := x.queue("q", nil), x.queue("dlq", nil)
		require.NoError(t, x.b.Deadlines().Snapshot(t.Context(), func([]deadline.Ref) error { return nil })) // and then nobody reads the events
		for range count {
			x.publish("", "q", "", "3600000", nil)
		}
		start := time.Now()
		x.govern(policy.Definition{"max-length": int64(2), "dead-letter-exchange": "", "dead-letter-routing-key": "dlq"})
		require.Equal(t, time.Second, time.Since(start))
		require.Greater(t, x.ready(q), 2)
		require.Eventually(t, func() bool { return x.ready(q) == 2 && x.ready(dlq) == count-2 }, time.Minute, time.Second)
	})
}

func TestPoliciesOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	for _, body := range []string{"1", "2", "3"} {
		x.publishPersistent("", "q", body, "")
	}
	x.govern(policy.Definition{"max-length": int64(2)})
	x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: "^(?!amq).*", Priority: 7, Definition: policy.Definition{"message-ttl": int64(5000)}})
	_, err := x.b.SetGlobalParameter("cluster_name", "here")
	require.NoError(t, err)

	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	_, _, effective := q.Policies()
	require.Equal(t, policy.Definition{"max-length": int64(2), "message-ttl": int64(5000)}, effective)
	require.Equal(t, map[string]any{"cluster_name": "here"}, x.b.GlobalParameters())
	operator, ok := x.vh.Policies.Get(policy.Operator, "o")
	require.True(t, ok)
	require.Equal(t, int64(7), operator.Priority)
	require.Len(t, x.vh.Policies.List(policy.User), 1)
	require.Empty(t, x.deadlines(), "what was queued before the policy has no deadline after the restart either")
	x.publishPersistent("", "q", "4", "")
	require.Len(t, x.deadlines(), 1)
	_, err = x.vh.Policies.Clear(policy.User, "p")
	require.NoError(t, err)
	_, err = x.b.ClearGlobalParameter("cluster_name")
	require.NoError(t, err)

	x = restarted(t, o, x.b)
	require.Empty(t, x.vh.Policies.List(policy.User))
	require.Empty(t, x.b.GlobalParameters())
	q, err = x.vh.Queues.Get("q")
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4"}, x.drain(q))
	require.NoError(t, x.b.Close())
}

func TestRefusedPolicyChangesNothing(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.govern(policy.Definition{"max-length": int64(2)})
	_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "(", Definition: policy.Definition{"max-length": int64(1)}})
	require.EqualError(t, err, "Validation failed\n\npattern should be regular expression but is invalid: {\"missing )\",1}\n")
	p, _ := x.vh.Policies.Get(policy.User, "p")
	require.Equal(t, "^q", p.Pattern)
}

func TestRetroactivePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, other := x.queue("q", deadLettersToDLQ), x.queue("other", nil)
		dlq := x.queue("dlq", nil)
		x.publish("", "q", "none", "", nil)
		x.publish("", "q", "later", "3600000", nil)
		x.publish("", "q", "earlier", "1000", nil)
		x.publish("", "q", "held", "", nil)
		x.publish("", "other", "none", "", nil)
		p := policy.Policy{Name: "p", Pattern: "^q", Definition: policy.Definition{"message-ttl": int64(60_000)}}
		before := x.deadlines()

		would, err := x.vh.Policies.Preview(policy.User, p)
		require.NoError(t, err)
		require.Equal(t, broker.BacklogEffect{Queues: 1, Earlier: 3, Names: []string{"q"}}, would)
		require.Equal(t, before, x.deadlines(), "nothing has changed")
		require.Empty(t, x.vh.Policies.List(policy.User))

		created, done, err := x.vh.Policies.SetForBacklog(policy.User, p)
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, would, done)
		refs := x.deadlines()
		require.Len(t, refs, 4)
		require.Equal(t, refs[0].Deadline, refs[1].Deadline)
		require.Equal(t, 59*time.Second, refs[0].Deadline.Sub(refs[2].Deadline), "from now on; an earlier deadline stays")
		_, again, err := x.vh.Policies.SetForBacklog(policy.User, p)
		require.NoError(t, err)
		require.Equal(t, broker.BacklogEffect{Queues: 1, Names: []string{"q"}}, again)

		p.Definition = policy.Definition{"message-ttl": int64(0)}
		would, err = x.vh.Policies.Preview(policy.User, p)
		require.NoError(t, err)
		require.Equal(t, broker.BacklogEffect{Queues: 1, Earlier: 4, Expired: 4, Names: []string{"q"}}, would)
		_, done, err = x.vh.Policies.SetForBacklog(policy.User, p)
		require.NoError(t, err)
		require.Equal(t, would, done)
		require.Equal(t, []string{"none", "later", "earlier", "held"}, x.drain(dlq))
		require.Zero(t, x.ready(q))
		require.Equal(t, 1, x.ready(other))
	})
}

// TestBacklogByWhatHolds: of policy, operator policy and argument the lowest time to live is applied, and only where the policy counts.
func TestBacklogByWhatHolds(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for name, args := range map[string]amqp.Table{"q.argument": {"x-message-ttl": int32(10_000)}, "q.plain": nil, "q.other": nil} {
		x.queue(name, args)
		x.publish("", name, "m", "20000", nil)
	}
	x.policy(policy.User, policy.Policy{Name: "higher", Pattern: "other", Priority: 1, Definition: policy.Definition{"max-length": int64(5)}})
	would, err := x.vh.Policies.Preview(policy.User, policy.Policy{Name: "p", Pattern: "^q", Definition: policy.Definition{"message-ttl": int64(15_000)}})
	require.NoError(t, err)
	require.Equal(t, broker.BacklogEffect{Queues: 2, Earlier: 1, Names: []string{"q.argument", "q.plain"}}, would, "not q.other; q.argument's message has a deadline within 10 s")
	would, err = x.vh.Policies.Preview(policy.Operator, policy.Policy{Name: "o", Pattern: "^q", Definition: policy.Definition{"message-ttl": int64(5_000)}})
	require.NoError(t, err)
	require.Equal(t, broker.BacklogEffect{Queues: 3, Earlier: 3, Names: []string{"q.argument", "q.other", "q.plain"}}, would)
	_, err = x.vh.Policies.Preview(policy.User, policy.Policy{Name: "p", Pattern: "("})
	require.ErrorContains(t, err, "no policy provided")
}

func TestBacklogOutlivesARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.publishPersistent("", "q", "m", "")
	_, done, err := x.vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"message-ttl": int64(600_000)}})
	require.NoError(t, err)
	require.Equal(t, 1, done.Earlier)
	before := x.deadlines()
	x = restarted(t, o, x.b)
	require.Equal(t, before, x.deadlines())
	require.NoError(t, x.b.Close())
}

func TestBacklogLeavesTheMessagesOwnWhereItGoesFirst(t *testing.T) {
	x := newTestBroker(t, broker.Options{TTLPrecedence: policy.MessageFirst})
	x.queue("q", nil)
	x.publish("", "q", "own", "3600000", nil)
	x.publish("", "q", "none", "", nil)
	would, err := x.vh.Policies.Preview(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"message-ttl": int64(5)}})
	require.NoError(t, err)
	require.Equal(t, 1, would.Earlier)
}

func TestBacklogOverManyPages(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", nil)
	for range 3000 {
		x.publish("", "q", "m", "", nil)
	}
	_, done, err := x.vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"message-ttl": int64(600_000)}})
	require.NoError(t, err)
	require.Equal(t, broker.BacklogEffect{Queues: 1, Earlier: 3000, Names: []string{"q"}}, done)
	require.Len(t, x.deadlines(), 3000)
}

// The deadlines of others do not wait until very many messages have another: a policy goes no further ahead of the monitor than it follows,
// and none of its events is lost.
func TestBacklogWaitsForTheMonitor(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", nil)
	x.deadlines() // the monitor is there
	const messages = 300_000
	p, m := x.vh.OwnPublisher(), &broker.Publication{RoutingKey: []byte("q"), Properties: new(amqp.Properties).Append(nil)}
	for range messages {
		if p.Pending() == 1024 {
			p.Flush(nil)
		}
		_, err := p.Add(m)
		require.NoError(t, err)
	}
	p.Flush(nil)
	var followed sync.WaitGroup
	followed.Go(func() {
		events := make([]deadline.Event, 1024)
		for taken := 0; taken < messages; {
			n, lagged, err := x.b.Deadlines().Events(t.Context(), events)
			if !assert.NoError(t, err) || !assert.False(t, lagged, "some were lost after %d", taken) {
				return
			}
			taken += n
			time.Sleep(time.Millisecond) // it has other things to do
		}
	})
	_, done, err := x.vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"message-ttl": int64(600_000)}})
	require.NoError(t, err)
	require.Equal(t, messages, done.Earlier)
	followed.Wait()
}

func (x *testBroker) clear(name string) {
	x.t.Helper()
	_, err := x.vh.Policies.Clear(policy.User, name)
	require.NoError(x.t, err)
}

// TestTTLOfAnExchangeByPolicy: only where the policy is for exchanges and nothing else.
func TestTTLOfAnExchangeByPolicy(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout"}))
	require.NoError(t, x.vh.Exchanges.Declare("x.own", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-message-ttl": int32(2000)}}))
	for _, name := range []string{"x", "x.own"} {
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: name, Destination: "q"}))
	}
	has := func(exchange string, want time.Duration) {
		t.Helper()
		before := x.b.Now()
		x.publish(exchange, "", "m", "", nil)
		after := x.b.Now()
		refs := x.deadlines()
		x.drain(q)
		if want == 0 {
			assert.Empty(t, refs)
			return
		}
		require.Len(t, refs, 1)
		assert.GreaterOrEqual(t, refs[0].Deadline, before.Add(want))
		assert.LessOrEqual(t, refs[0].Deadline, after.Add(want+time.Millisecond))
	}
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^x", Definition: policy.Definition{"message-ttl": int64(1000)}})
	has("x", 0)
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^x", ApplyTo: policy.Exchanges, Definition: policy.Definition{"message-ttl": int64(60_000)}})
	has("x", time.Minute)
	has("x.own", 2*time.Second)
	x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: "^x", ApplyTo: policy.Exchanges, Definition: policy.Definition{"message-ttl": int64(30_000)}})
	has("x", 30*time.Second)
	_, _, effective, _ := x.vh.Exchanges.PoliciesOf("x")
	assert.Equal(t, policy.Definition{"message-ttl": int64(30_000)}, effective)
	_, err := x.vh.Policies.Clear(policy.Operator, "o")
	require.NoError(t, err)
	x.clear("p")
	has("x", 0)
	has("x.own", 2*time.Second)
}

func TestOperatorPoliciesBoundIdlenessAndDeliveries(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-auto-delete-on-idle": int64(3_600_000)})
		x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: "q", Definition: policy.Definition{"auto-delete-on-idle": int64(300_000), "max-delivery-count": int64(2)}})
		x.publish("", "q", "m", "", nil)
		assert.Equal(t, 2, x.failed(q, 9))
		after(5*time.Minute + time.Second)
		assert.False(t, x.exists("q"))
		_, err := x.vh.Policies.Set(policy.Operator, policy.Policy{Name: "o", Pattern: "q", Definition: policy.Definition{"lock-duration": int64(1000)}})
		assert.ErrorContains(t, err, "not recognised")
	})
}
