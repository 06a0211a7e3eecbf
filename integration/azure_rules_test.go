package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// azureRule is a rule of Service Bus's pages, in other words.
type azureRule struct {
	page   string
	says   string // Service Bus
	curfew string // as it says, unless this says what is different
	check  func(*rulesBench)
}

// The pages, as of 2026.
const (
	pageExpiration = "Message expiration"
	pageLocks      = "Message transfers, locks, and settlement"
	pageSequencing = "Message sequencing and timestamps"
	pageDeferral   = "Message deferral"
	pageDead       = "Overview of dead-letter queues"
	pageIdle       = "AutoDeleteOnIdle"
)

// The entities for the rules: their locks last a minute.
const rulesConfig = `{"UserConfig": {"Namespaces": [{"Name": "rules",
	"Queues": [
		{"Name": "q", "Properties": {"DefaultMessageTimeToLive": "P14D", "DeadLetteringOnMessageExpiration": true, "MaxDeliveryCount": 3}},
		{"Name": "dropping", "Properties": {"MaxDeliveryCount": 3}},
		{"Name": "idle", "Properties": {"AutoDeleteOnIdle": "PT5M", "DeadLetteringOnMessageExpiration": true}},
		{"Name": "short", "Properties": {"AutoDeleteOnIdle": "PT4M59S"}}
	],
	"Topics": [
		{"Name": "t", "Properties": {"DefaultMessageTimeToLive": "PT1H"}, "Subscriptions": [
			{"Name": "less", "Properties": {"DefaultMessageTimeToLive": "PT30M", "DeadLetteringOnMessageExpiration": true}},
			{"Name": "more", "Properties": {"DefaultMessageTimeToLive": "PT2H", "AutoDeleteOnIdle": "PT5M"}}
		]},
		{"Name": "idle-topic", "Properties": {"AutoDeleteOnIdle": "PT5M"}, "Subscriptions": [{"Name": "s"}]}
	]}]}}`

const (
	ruleLock = time.Minute
	lessSub  = "t/Subscriptions/less"
	moreSub  = "t/Subscriptions/more"
)

var azureRules = []azureRule{
	{page: pageExpiration, says: "a message expires when it was enqueued plus its time to live", check: func(b *rulesBench) {
		b.put("m", time.Minute)
		m := b.peeked(1)[0]
		assert.Equal(b.t, time.Minute, m.ExpiresAt.Sub(*m.EnqueuedTime))
		b.clock.advance(time.Minute - time.Millisecond)
		b.shows("m")
		b.clock.advance(time.Millisecond)
		b.shows()
		b.nothing()
	}},
	{page: pageExpiration, says: "a message without a time to live has that of its entity", check: func(b *rulesBench) { b.lives(0, 14*24*time.Hour) }},
	{page: pageExpiration, says: "that of the entity is the most", check: func(b *rulesBench) { b.lives(30*24*time.Hour, 14*24*time.Hour) }},
	{page: pageExpiration, says: "a shorter one counts", check: func(b *rulesBench) { b.lives(time.Hour, time.Hour) }},
	{page: pageExpiration, says: "without either it is the longest there is", curfew: "a message has none", check: func(b *rulesBench) {
		b = b.at("dropping")
		b.put("m", 0)
		b.clock.advance(9 * 365 * 24 * time.Hour)
		assert.Zero(b.t, *b.receive1("m").TimeToLive)
	}},
	{page: pageExpiration, says: "a topic's counts where it is less than the subscription's", check: func(b *rulesBench) {
		b.at("t").put("m", 0)
		for name, want := range map[string]time.Duration{lessSub: 30 * time.Minute, moreSub: time.Hour} {
			m := b.at(name).peeked(1)[0]
			assert.Equal(b.t, want, m.ExpiresAt.Sub(*m.EnqueuedTime), name)
		}
		b.clock.advance(30 * time.Minute)
		b.at(lessSub).deadLetter("m", "TTLExpiredException")
	}},
	{page: pageExpiration, says: "what expired is dropped", check: func(b *rulesBench) {
		b = b.at("dropping")
		b.put("m", time.Minute)
		b.clock.advance(time.Minute)
		b.shows()
		b.dead().shows()
	}},
	{page: pageExpiration, says: "unless dead-lettering is on", check: func(b *rulesBench) {
		b.put("m", time.Minute)
		b.clock.advance(time.Minute)
		b.shows()
		m := b.deadLetter("m", "TTLExpiredException")
		assert.Equal(b.t, "The message expired and was dead lettered.", *m.DeadLetterErrorDescription)
	}},
	{page: pageExpiration, says: "a locked message does not expire, and can be completed", check: func(b *rulesBench) {
		r, m := b.locked("m", 10*time.Second)
		b.clock.advance(30 * time.Second)
		b.shows("m")
		require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
		b.clock.advance(time.Hour)
		b.shows()
		b.dead().shows()
	}},
	{page: pageExpiration, says: "if it is abandoned, it expires at once", check: func(b *rulesBench) {
		r, m := b.locked("m", 10*time.Second)
		b.clock.advance(30 * time.Second)
		require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
		b.shows()
		b.deadLetter("m", "TTLExpiredException")
	}},
	{page: pageExpiration, says: "so it does if its lock ends", check: func(b *rulesBench) {
		b.locked("m", 10*time.Second)
		b.clock.advance(ruleLock - time.Millisecond)
		b.dead().shows()
		b.clock.advance(time.Millisecond)
		b.shows()
		b.deadLetter("m", "TTLExpiredException")
	}},
	{page: pageExpiration, says: "as long as its lock is renewed it does not", check: func(b *rulesBench) {
		r, m := b.locked("m", 10*time.Second)
		for range 5 {
			b.clock.advance(ruleLock - time.Second)
			require.NoError(b.t, r.RenewMessageLock(b.ctx, m, nil))
		}
		b.shows("m")
		require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
		b.dead().shows()
	}},
	{page: pageExpiration, says: "an expired message can be dead-lettered with a reason of its receiver", check: func(b *rulesBench) {
		r, m := b.locked("m", 10*time.Second)
		b.clock.advance(30 * time.Second)
		why := "TooLate"
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, &azservicebus.DeadLetterOptions{Reason: &why}))
		b.deadLetter("m", why)
	}},
	{page: pageExpiration, says: "the time to live of a scheduled message counts from when it is enqueued", check: func(b *rulesBench) {
		b.schedule("m", 5*time.Minute, 10*time.Minute)
		b.clock.advance(5 * time.Minute)
		m := b.peeked(1)[0]
		assert.Equal(b.t, 10*time.Minute, m.ExpiresAt.Sub(*m.EnqueuedTime))
		b.clock.advance(10*time.Minute - time.Millisecond)
		b.shows("m")
		b.clock.advance(time.Millisecond)
		b.deadLetter("m", "TTLExpiredException")
	}},
	{page: pageExpiration, says: "however long it waits", check: func(b *rulesBench) {
		b.schedule("m", time.Hour, time.Second)
		b.clock.advance(time.Hour - time.Second)
		b.dead().shows()
		b.clock.advance(time.Second)
		b.receive1("m")
	}},
	{page: pageExpiration, says: "each message of a batch has its own", check: func(b *rulesBench) {
		s := b.sender()
		batch, err := s.NewMessageBatch(b.ctx, nil)
		require.NoError(b.t, err)
		for i := range 3 {
			ttl := time.Duration(3-i) * time.Minute
			require.NoError(b.t, batch.AddMessage(&azservicebus.Message{Body: []byte{byte('a' + i)}, TimeToLive: &ttl}, nil))
		}
		require.NoError(b.t, s.SendMessageBatch(b.ctx, batch, nil))
		b.clock.advance(time.Minute)
		b.shows("a", "b")
		b.clock.advance(time.Minute)
		b.shows("a")
		b.dead().shows("c", "b")
	}},

	{page: pageLocks, says: "while a message is locked, other receivers get the next", check: func(b *rulesBench) {
		b.put("second", 0)
		b.locked("first", 0) // the one that was there: see locked
		b.receive1("first")
		b.nothing()
	}},
	{page: pageLocks, says: "when its lock ends it is back at the front, and that delivery counts", check: func(b *rulesBench) {
		_, m := b.locked("m", 0)
		b.put("later", 0)
		assert.Equal(b.t, uint32(1), m.DeliveryCount)
		assert.Equal(b.t, ruleLock, m.LockedUntil.Sub(b.now()))
		b.clock.advance(ruleLock - time.Millisecond)
		b.receive1("later")
		b.nothing()
		b.clock.advance(time.Millisecond)
		b.put("last", 0)
		assert.Equal(b.t, uint32(2), b.receive1("m").DeliveryCount)
		b.receive1("last")
	}},
	{page: pageLocks, says: "renewing locks it for the whole duration again", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		b.clock.advance(45 * time.Second)
		require.NoError(b.t, r.RenewMessageLock(b.ctx, m, nil))
		assert.Equal(b.t, ruleLock, m.LockedUntil.Sub(b.now()))
		b.clock.advance(ruleLock - time.Millisecond)
		require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
		b.shows()
	}},
	{page: pageLocks, says: "a lock that has ended can be neither renewed nor used", check: func(b *rulesBench) {
		for i, use := range []func(*azservicebus.Receiver, *azservicebus.ReceivedMessage) error{
			func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.RenewMessageLock(b.ctx, m, nil)
			},
			func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.CompleteMessage(b.ctx, m, nil)
			},
			func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.AbandonMessage(b.ctx, m, nil)
			},
			func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.DeferMessage(b.ctx, m, nil)
			},
			func(r *azservicebus.Receiver, m *azservicebus.ReceivedMessage) error {
				return r.DeadLetterMessage(b.ctx, m, nil)
			},
		} {
			body := strconv.Itoa(i)
			r, m := b.locked(body, 0)
			b.clock.advance(ruleLock)
			b.fails(azservicebus.CodeLockLost, use(r, m))
			b.close(r)
			b.receive1(body)
		}
		b.dead().shows()
	}},
	{page: pageLocks, says: "a receiver goes on, however long ago it lost a lock", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		b.clock.advance(ruleLock)
		b.receive1("m")
		b.clock.advance(2 * time.Hour) // AMQP 0-9-1's timeout of acknowledgements would have ended the session
		b.put("next", 0)
		next := b.one(r)
		require.Equal(b.t, "next", string(next.Body))
		require.NoError(b.t, r.CompleteMessage(b.ctx, next, nil))
		b.fails(azservicebus.CodeLockLost, r.CompleteMessage(b.ctx, m, nil))
		b.shows()
	}},
	{page: pageLocks, says: "completing removes a message, once", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		b.close(r)
		other := b.receiver(nil) // by the lock: over the link that it came by the SDK would not ask twice
		require.NoError(b.t, other.CompleteMessage(b.ctx, m, nil))
		b.shows()
		b.fails(azservicebus.CodeLockLost, other.CompleteMessage(b.ctx, m, nil))
	}},
	{page: pageLocks, says: "abandoning makes it available at once, at the front", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		b.put("later", 0)
		require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
		assert.Equal(b.t, uint32(2), b.receive1("m").DeliveryCount)
		b.receive1("later")
	}},
	{page: pageLocks, says: "too many deliveries, whose locks end or that are abandoned, dead-letter it", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
		for range 2 {
			b.one(r)
			b.clock.advance(ruleLock)
		}
		b.nothing()
		b.deadLetter("m", "MaxDeliveryCountExceeded")
	}},
	{page: pageLocks, says: "in receive and delete a message is gone when it is sent", check: func(b *rulesBench) {
		b.put("m", 0)
		r := b.receiver(&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		assert.Equal(b.t, "m", string(b.one(r).Body))
		b.close(r)
		b.clock.advance(ruleLock)
		b.shows()
	}},
	{page: pageLocks, says: "a receiver can reject a message for good, with its reason", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		why, more := "why", "more"
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, &azservicebus.DeadLetterOptions{Reason: &why, ErrorDescription: &more}))
		assert.Equal(b.t, more, *b.deadLetter("m", why).DeadLetterErrorDescription)
	}},
	{page: pageLocks, says: "the lock is dropped with the connection", curfew: "it lasts, and another receiver can use it", check: func(b *rulesBench) {
		_, m := b.locked("m", 0)
		require.NoError(b.t, b.client.Close(b.ctx))
		other := &rulesBench{connectAzure(b.t, b.c, emulatorPolicy), b.clock, b.c}
		other.queue = b.queue
		other.nothing()
		require.NoError(b.t, other.receiver(nil).CompleteMessage(b.ctx, m, nil))
		other.shows()
	}},

	{page: pageSequencing, says: "sequence numbers increase in the order of arrival", check: func(b *rulesBench) {
		b.put("a", 0)
		b.put("b", 0)
		b.put("c", 0)
		all := b.peeked(3)
		assert.Less(b.t, *all[0].SequenceNumber, *all[1].SequenceNumber)
		assert.Less(b.t, *all[1].SequenceNumber, *all[2].SequenceNumber)
	}},
	{page: pageSequencing, says: "the enqueued time is that of arrival by the broker's clock", check: func(b *rulesBench) {
		b.clock.advance(24 * time.Hour)
		b.put("m", 0)
		at := b.now()
		b.clock.advance(time.Hour)
		assert.Equal(b.t, at, b.peeked(1)[0].EnqueuedTime.UTC())
		assert.Equal(b.t, at, b.receive1("m").EnqueuedTime.UTC())
	}},
	{page: pageSequencing, says: "a scheduled message is not in the queue before its time, and then is as if enqueued then", check: func(b *rulesBench) {
		number := b.schedule("m", time.Minute, 0)
		due := b.now().Add(time.Minute)
		b.clock.advance(time.Minute - time.Millisecond)
		b.put("before", 0)
		b.receive1("before")
		b.nothing()
		b.put("waits", 0)
		b.clock.advance(time.Millisecond)
		b.shows("waits", "m")
		b.receive1("waits")
		m := b.receive1("m")
		assert.NotEqual(b.t, number, *m.SequenceNumber)
		assert.Equal(b.t, due, m.EnqueuedTime.UTC())
		assert.Equal(b.t, due, m.ScheduledEnqueueTime.UTC())
	}},
	{page: pageSequencing, says: "sending with a time is scheduling", check: func(b *rulesBench) {
		at := b.now().Add(time.Minute)
		b.send(&azservicebus.Message{Body: []byte("m"), ScheduledEnqueueTime: &at})
		assert.Equal(b.t, azservicebus.MessageStateScheduled, b.peeked(1)[0].State)
		b.nothing()
		b.clock.advance(time.Minute)
		b.receive1("m")
	}},
	{page: pageSequencing, says: "a time in the past is now", check: func(b *rulesBench) {
		at := b.now().Add(-time.Hour)
		b.send(&azservicebus.Message{Body: []byte("m"), ScheduledEnqueueTime: &at})
		b.receive1("m")
	}},
	{page: pageSequencing, says: "cancelling deletes a scheduled message", check: func(b *rulesBench) {
		number := b.schedule("m", time.Minute, 0)
		require.NoError(b.t, b.sender().CancelScheduledMessages(b.ctx, []int64{number}, nil))
		b.shows()
		b.clock.advance(time.Minute)
		b.shows()
	}},
	{page: pageSequencing, says: "once it is enqueued, its number cancels nothing", check: func(b *rulesBench) {
		number := b.schedule("m", time.Minute, 0)
		b.clock.advance(time.Minute)
		b.fails(azservicebus.CodeNotFound, b.sender().CancelScheduledMessages(b.ctx, []int64{number, *b.peeked(1)[0].SequenceNumber}, nil))
		b.receive1("m")
	}},
	{page: pageSequencing, says: "scheduled messages and their numbers can be browsed", check: func(b *rulesBench) {
		number := b.schedule("m", time.Minute, 0)
		m := b.peeked(1)[0]
		assert.Equal(b.t, azservicebus.MessageStateScheduled, m.State)
		assert.Equal(b.t, number, *m.SequenceNumber)
	}},
	{page: pageSequencing, says: "two with one message id are two messages", check: func(b *rulesBench) {
		id, due := "same", b.now().Add(time.Minute)
		all := []*azservicebus.Message{{MessageID: &id, Body: []byte("a")}, {MessageID: &id, Body: []byte("b")}, {MessageID: &id, Body: []byte("c")}}
		numbers, err := b.sender().ScheduleMessages(b.ctx, all, due, nil)
		require.NoError(b.t, err)
		require.NoError(b.t, b.sender().CancelScheduledMessages(b.ctx, numbers[:1], nil))
		b.clock.advance(time.Minute)
		b.receive1("b")
		assert.Equal(b.t, id, b.receive1("c").MessageID)
		b.nothing()
	}},
	{page: pageSequencing, says: "a message scheduled on a topic comes to its subscriptions", check: func(b *rulesBench) {
		b.at("t").schedule("m", time.Minute, 0)
		b.at(lessSub).shows()
		b.clock.advance(time.Minute)
		for _, name := range []string{lessSub, moreSub} {
			b.at(name).receive1("m")
		}
	}},

	{page: pageDeferral, says: "a deferred message stays in the queue, and is not received as others are", check: func(b *rulesBench) {
		b.deferred("m", 0)
		assert.Equal(b.t, azservicebus.MessageStateDeferred, b.peeked(1)[0].State)
		b.nothing()
		b.clock.advance(24 * time.Hour)
		b.nothing()
	}},
	{page: pageDeferral, says: "whoever knows its number receives it", check: func(b *rulesBench) {
		n := b.deferred("m", 0)
		r, m := b.byNumber(n)
		assert.Equal(b.t, n, *m.SequenceNumber)
		require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
		b.shows()
		_, err := r.ReceiveDeferredMessages(b.ctx, []int64{n}, nil)
		b.fails(azservicebus.CodeNotFound, err)
	}},
	{page: pageDeferral, says: "abandoned, it is deferred still, and the delivery counts", check: func(b *rulesBench) {
		n := b.deferred("m", 0)
		for range 2 {
			r, m := b.byNumber(n)
			require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
			b.nothing()
		}
	}},
	{page: pageDeferral, says: "so it is when its lock ends", check: func(b *rulesBench) {
		n := b.deferred("m", 0)
		r, m := b.byNumber(n)
		b.clock.advance(ruleLock)
		b.fails(azservicebus.CodeLockLost, r.CompleteMessage(b.ctx, m, nil))
		b.nothing()
		b.byNumber(n)
	}},
	{page: pageDeferral, says: "it is not dead-lettered when it expires, but when somebody asks for it", curfew: "at its deadline", check: func(b *rulesBench) {
		n := b.deferred("m", time.Hour)
		b.clock.advance(time.Hour - time.Millisecond)
		b.shows("m")
		b.clock.advance(time.Millisecond)
		b.shows()
		_, err := b.receiver(nil).ReceiveDeferredMessages(b.ctx, []int64{n}, nil)
		b.fails(azservicebus.CodeNotFound, err)
		b.deadLetter("m", "TTLExpiredException")
	}},
	{page: pageDeferral, says: "where dead-lettering is off it is dropped", curfew: "at its deadline", check: func(b *rulesBench) {
		b = b.at("dropping")
		b.deferred("m", time.Hour)
		b.clock.advance(time.Hour)
		b.shows()
		b.dead().shows()
	}},
	{page: pageDeferral, says: "while it is locked it does not expire", check: func(b *rulesBench) {
		n := b.deferred("m", 30*time.Second)
		r, m := b.byNumber(n)
		b.clock.advance(45 * time.Second)
		require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
		b.shows()
		b.dead().shows()
	}},
	{page: pageDeferral, says: "what is deferred after its deadline has expired", check: func(b *rulesBench) {
		r, m := b.locked("m", 10*time.Second)
		b.clock.advance(30 * time.Second)
		require.NoError(b.t, r.DeferMessage(b.ctx, m, nil))
		b.shows()
		b.deadLetter("m", "TTLExpiredException")
	}},

	{page: pageDead, says: "a time to live is not observed in it", check: func(b *rulesBench) {
		b.put("expired", time.Minute)
		b.clock.advance(time.Minute)
		r, m := b.locked("rejected", time.Hour)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, nil))
		b.clock.advance(5 * 365 * 24 * time.Hour)
		b.dead().shows("expired", "rejected")
	}},
	{page: pageDead, says: "nothing can be sent to it", check: func(b *rulesBench) {
		s, err := b.client.NewSender("q/$DeadLetterQueue", nil)
		require.NoError(b.t, err)
		assert.Error(b.t, s.SendMessage(b.ctx, &azservicebus.Message{}, nil))
		b.dead().shows()
	}},
	{page: pageDead, says: "nothing can be dead-lettered from it", curfew: "it stays", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, nil))
		dead := b.deadLetters()
		require.NoError(b.t, dead.DeadLetterMessage(b.ctx, b.one(dead), nil))
		b.dead().shows("m")
	}},
	{page: pageDead, says: "what is abandoned, or whose lock ends, stays in it, however often and however old", check: func(b *rulesBench) {
		r, m := b.locked("m", time.Minute)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, nil))
		dead := b.deadLetters()
		for range 20 {
			require.NoError(b.t, dead.AbandonMessage(b.ctx, b.one(dead), nil))
			b.one(dead)
			b.clock.advance(ruleLock)
		}
		assert.Equal(b.t, uint32(41), b.one(dead).DeliveryCount)
		b.dead().shows("m")
	}},
	{page: pageDead, says: "a message is in it until it is received and completed", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, nil))
		b.deadLetter("m", "")
		b.dead().shows()
	}},
	{page: pageDead, says: "it is locked, renewed, peeked and settled as in the entity, from anywhere", check: func(b *rulesBench) {
		r, m := b.locked("m", 0)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, m, nil))
		at, dead := b.now(), b.dead()
		r = dead.receiver(nil)
		m = b.one(r)
		assert.Equal(b.t, at, m.EnqueuedTime.UTC())
		assert.Equal(b.t, ruleLock, m.LockedUntil.Sub(at))
		b.clock.advance(ruleLock - time.Second)
		elsewhere := connectAzure(b.t, b.c, emulatorPolicy)
		elsewhere.queue = dead.queue
		other := elsewhere.receiver(nil)
		require.NoError(b.t, other.RenewMessageLock(b.ctx, m, nil))
		assert.Equal(b.t, ruleLock, m.LockedUntil.Sub(b.now()))
		b.clock.advance(ruleLock - time.Millisecond)
		dead.nothing()
		dead.shows("m")
		b.clock.advance(time.Millisecond)
		b.fails(azservicebus.CodeLockLost, other.CompleteMessage(b.ctx, m, nil))
		b.close(r)
		r = dead.receiver(nil)
		m = b.one(r)
		assert.Equal(b.t, uint32(2), m.DeliveryCount)
		require.NoError(b.t, b.client.Close(b.ctx))
		require.NoError(b.t, other.CompleteMessage(b.ctx, m, nil))
		(&rulesBench{elsewhere, b.clock, b.c}).shows()
	}},
	{page: pageDead, says: "it keeps its properties", check: func(b *rulesBench) {
		id, subject, ttl := "id", "subject", time.Minute
		b.send(&azservicebus.Message{MessageID: &id, Subject: &subject, TimeToLive: &ttl, Body: []byte("m"), ApplicationProperties: map[string]any{"k": int64(7)}})
		b.clock.advance(time.Minute)
		m := b.deadLetter("m", "TTLExpiredException")
		assert.Equal(b.t, id, m.MessageID)
		assert.Equal(b.t, subject, *m.Subject)
		assert.Equal(b.t, int64(7), m.ApplicationProperties["k"])
	}},
	{page: pageDead, says: "too many deliveries dead-letter, even where what expires is dropped", check: func(b *rulesBench) {
		b = b.at("dropping")
		b.put("m", 0)
		r := b.receiver(nil)
		for range 3 {
			require.NoError(b.t, r.AbandonMessage(b.ctx, b.one(r), nil))
		}
		m := b.deadLetter("m", "MaxDeliveryCountExceeded")
		assert.Contains(b.t, *m.DeadLetterErrorDescription, "3 delivery attempts")
	}},
	{page: pageDead, says: "each subscription has its own", check: func(b *rulesBench) {
		b.at("t").put("m", 0)
		sub := b.at(lessSub)
		r := sub.receiver(nil)
		require.NoError(b.t, r.DeadLetterMessage(b.ctx, b.one(r), nil))
		b.at(moreSub).dead().shows()
		b.at(moreSub).shows("m")
		sub.deadLetter("m", "")
	}},

	{page: pageIdle, says: "a queue that is not used for that long is deleted", check: func(b *rulesBench) { b.at("idle").kept(nil) }},
	{page: pageIdle, says: "five minutes are the least", check: func(b *rulesBench) { b.at("short").there(false) }},
	{page: pageIdle, says: "a queue is used by sends", check: func(b *rulesBench) {
		b = b.at("idle")
		b.kept(func() { b.put("m", 0) })
	}},
	{page: pageIdle, says: "by receives", check: func(b *rulesBench) {
		b = b.at("idle")
		b.kept(b.nothing)
	}},
	{page: pageIdle, says: "by peeks", check: func(b *rulesBench) {
		b = b.at("idle")
		b.kept(func() { b.shows() })
	}},
	{page: pageIdle, says: "by updates, and a subscription by those and by new rules", check: func(b *rulesBench) {
		b, client := b.administered("made")
		idle := "PT5M"
		_, err := client.CreateQueue(b.ctx, b.queue, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{AutoDeleteOnIdle: &idle}})
		require.NoError(b.t, err)
		b.kept(func() {
			_, err = client.UpdateQueue(b.ctx, b.queue, admin.QueueProperties{AutoDeleteOnIdle: &idle}, nil)
			require.NoError(b.t, err)
		})
		_, err = client.CreateTopic(b.ctx, "topic", nil)
		require.NoError(b.t, err)
		properties := admin.SubscriptionProperties{AutoDeleteOnIdle: &idle}
		for name, use := range map[string]func() error{
			"update": func() error {
				_, err := client.UpdateSubscription(b.ctx, "topic", "update", properties, nil)
				return err
			},
			"rule": func() error {
				name := fmt.Sprint("rule", b.now().UnixMilli())
				_, err := client.CreateRule(b.ctx, "topic", "rule", &admin.CreateRuleOptions{Name: &name})
				return err
			},
		} {
			_, err = client.CreateSubscription(b.ctx, "topic", name, &admin.CreateSubscriptionOptions{Properties: &properties})
			require.NoError(b.t, err)
			b.at("topic/Subscriptions/" + name).kept(func() { require.NoError(b.t, use()) })
		}
	}},
	{page: pageIdle, says: "by scheduled messages", check: func(b *rulesBench) {
		b = b.at("idle")
		b.schedule("m", time.Hour, 0)
		b.clock.advance(time.Hour - time.Second)
		b.there(true)
		b.clock.advance(time.Second)
		b.receive1("m")
		b.kept(nil)
	}},
	{page: pageIdle, says: "by deferring, and by receiving, peeking and settling what is deferred", check: func(b *rulesBench) {
		b = b.at("idle")
		var numbers []int64
		for range 2 {
			numbers = append(numbers, b.deferred("m", 0))
		}
		b.kept(func() {
			r, m := b.byNumber(numbers[0])
			require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
			b.close(r)
		})
	}},
	{page: pageIdle, says: "by receiving what is dead-lettered", check: func(b *rulesBench) {
		b = b.at("idle")
		b.put("m", time.Second)
		b.clock.advance(time.Second)
		b.dead().shows("m")
		b.kept(func() {
			dead := b.deadLetters()
			require.NoError(b.t, dead.AbandonMessage(b.ctx, b.one(dead), nil))
			b.close(dead)
		})
	}},
	{page: pageIdle, says: "a topic is used by sends", check: func(b *rulesBench) {
		b = b.at("idle-topic")
		b.kept(func() { b.put("m", 0) })
	}},
	{page: pageIdle, says: "and by what is done with its subscriptions", check: func(b *rulesBench) {
		b = b.at("idle-topic")
		b.kept(b.at("idle-topic/Subscriptions/s").nothing)
	}},
	{page: pageIdle, says: "with their deferred messages, too", check: func(b *rulesBench) {
		b = b.at("idle-topic")
		sub := b.at("idle-topic/Subscriptions/s")
		b.put("m", 0)
		r := sub.receiver(nil)
		m := b.one(r)
		require.NoError(b.t, r.DeferMessage(b.ctx, m, nil))
		b.close(r)
		b.kept(func() {
			r, m := sub.byNumber(*m.SequenceNumber)
			require.NoError(b.t, r.AbandonMessage(b.ctx, m, nil))
			b.close(r)
		})
	}},
	{page: pageIdle, says: "a subscription is used by receives", check: func(b *rulesBench) {
		b = b.at(moreSub)
		b.kept(b.nothing)
	}},
	{page: pageIdle, says: "by peeks of it", check: func(b *rulesBench) {
		b = b.at(moreSub)
		b.kept(func() { b.shows() })
	}},
	{page: pageIdle, says: "by scheduled messages of its topic, a topic is used", check: func(b *rulesBench) {
		b = b.at("idle-topic")
		b.schedule("m", time.Hour, 0)
		b.clock.advance(time.Hour - time.Second)
		b.there(true)
		b.clock.advance(time.Second)
		b.at("idle-topic/Subscriptions/s").receive1("m")
		b.kept(nil)
	}},
	{page: pageIdle, says: "but not by sends to its topic", check: func(b *rulesBench) {
		sub := b.at(moreSub)
		for range 4 {
			b.at("t").put("m", 0)
			b.clock.advance(time.Minute)
		}
		sub.there(true)
		b.at("t").put("m", 0)
		b.clock.advance(time.Minute)
		sub.there(false)
	}},
}

// TestAzureRules holds Curfew to each rule through Microsoft's Go SDK.
func TestAzureRules(t *testing.T) {
	config := filepath.Join(t.TempDir(), "Config.json")
	check(t, os.WriteFile(config, []byte(rulesConfig), 0o600))
	for _, rule := range azureRules {
		name := rule.page + "/" + rule.says
		if rule.curfew != "" {
			name += " (Curfew: " + rule.curfew + ")"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCurfew(t, "SERVICEBUS_EMULATOR=true", "SERVICEBUS_CONFIG="+config, "CLOCK=manual", "DATA_DIR=")
			b := &rulesBench{connectAzure(t, c, emulatorPolicy), clockOf{t, c.http + "/api/curfew/clock", "guest"}, c}
			rule.check(b.at("q"))
		})
	}
}

// rulesBench is a Curfew with one client, for one rule and one entity.
type rulesBench struct {
	*azure
	clock clockOf
	c     *curfew
}

// administered is a Curfew of its own, which administration clients reach.
func (b *rulesBench) administered(entity string) (*rulesBench, *admin.Client) {
	b.t.Helper()
	p := newAdminPort(b.t)
	c := startForAzure(b.t, append(p.settings, "CLOCK=manual", "DATA_DIR=")...)
	b = &rulesBench{connectAzure(b.t, c, emulatorPolicy), clockOf{b.t, c.http + "/api/curfew/clock", "guest"}, c}
	return b.at(entity), p.client(emulatorPolicy)
}

func (b *rulesBench) at(entity string) *rulesBench {
	a := *b.azure
	a.queue = entity
	return &rulesBench{&a, b.clock, b.c}
}

func (b *rulesBench) dead() *rulesBench { return b.at(b.queue + "/$DeadLetterQueue") }

func (b *rulesBench) now() time.Time { return time.UnixMilli(b.clock.advance(0).Now).UTC() }

func (b *rulesBench) message(body string, ttl time.Duration) *azservicebus.Message {
	m := &azservicebus.Message{Body: []byte(body)}
	if ttl > 0 {
		m.TimeToLive = &ttl
	}
	return m
}

// put sends a message; ttl 0: without one.
func (b *rulesBench) put(body string, ttl time.Duration) {
	b.t.Helper()
	b.send(b.message(body, ttl))
}

func (b *rulesBench) schedule(body string, in, ttl time.Duration) (number int64) {
	b.t.Helper()
	numbers, err := b.sender().ScheduleMessages(b.ctx, []*azservicebus.Message{b.message(body, ttl)}, b.now().Add(in), nil)
	require.NoError(b.t, err)
	require.Len(b.t, numbers, 1)
	return numbers[0]
}

func (b *rulesBench) close(r *azservicebus.Receiver) {
	b.t.Helper()
	require.NoError(b.t, r.Close(b.ctx))
}

// peeked are all messages, of which there have to be so many.
func (b *rulesBench) peeked(count int) []*azservicebus.ReceivedMessage {
	b.t.Helper()
	r := b.receiver(nil)
	all, err := r.PeekMessages(b.ctx, 100, nil)
	require.NoError(b.t, err)
	require.Len(b.t, all, count)
	b.close(r)
	return all
}

func (b *rulesBench) shows(bodies ...string) {
	b.t.Helper()
	r := b.receiver(nil)
	all, err := r.PeekMessages(b.ctx, 100, nil)
	require.NoError(b.t, err)
	b.close(r)
	got := []string{}
	for _, m := range all {
		got = append(got, string(m.Body))
	}
	assert.Equal(b.t, append([]string{}, bodies...), got, b.queue)
}

// nothing can be received.
func (b *rulesBench) nothing() {
	b.t.Helper()
	r := b.receiver(nil)
	b.none(r)
	b.close(r)
}

// receive1 receives and completes a message.
func (b *rulesBench) receive1(body string) *azservicebus.ReceivedMessage {
	b.t.Helper()
	r := b.receiver(nil)
	m := b.one(r)
	assert.Equal(b.t, body, string(m.Body))
	require.NoError(b.t, r.CompleteMessage(b.ctx, m, nil))
	b.close(r)
	return m
}

// locked sends a message, and locks the first that there is.
func (b *rulesBench) locked(body string, ttl time.Duration) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
	b.t.Helper()
	b.put(body, ttl)
	r := b.receiver(nil)
	return r, b.one(r)
}

func (b *rulesBench) deferred(body string, ttl time.Duration) (number int64) {
	b.t.Helper()
	r, m := b.locked(body, ttl)
	require.NoError(b.t, r.DeferMessage(b.ctx, m, nil))
	b.close(r)
	return *m.SequenceNumber
}

// byNumber receives a deferred message.
func (b *rulesBench) byNumber(number int64) (*azservicebus.Receiver, *azservicebus.ReceivedMessage) {
	b.t.Helper()
	r := b.receiver(nil)
	all, err := r.ReceiveDeferredMessages(b.ctx, []int64{number}, nil)
	require.NoError(b.t, err)
	require.Len(b.t, all, 1)
	return r, all[0]
}

// deadLetter receives and completes a dead letter of the entity; reason "": it has none.
func (b *rulesBench) deadLetter(body, reason string) *azservicebus.ReceivedMessage {
	b.t.Helper()
	m := b.dead().receive1(body)
	got := ""
	if m.DeadLetterReason != nil {
		got = *m.DeadLetterReason
	}
	assert.Equal(b.t, reason, got)
	return m
}

// lives checks when a message with a time to live expires.
func (b *rulesBench) lives(ttl, want time.Duration) {
	b.t.Helper()
	b.put("m", ttl)
	m := b.peeked(1)[0]
	assert.Equal(b.t, want, m.ExpiresAt.Sub(*m.EnqueuedTime))
	b.clock.advance(want - time.Millisecond)
	b.shows("m")
	b.clock.advance(time.Millisecond)
	b.deadLetter("m", "TTLExpiredException")
}

// there checks whether the entity exists, which does not use it.
func (b *rulesBench) there(want bool) {
	b.t.Helper()
	s := b.sender()
	_, err := s.NewMessageBatch(b.ctx, nil)
	switch {
	case !want:
		b.fails(azservicebus.CodeNotFound, err)
	case strings.Contains(b.queue, "/Subscriptions/"):
		assert.ErrorContains(b.t, err, "is a subscription: send to its topic")
	default:
		require.NoError(b.t, err)
	}
	require.NoError(b.t, s.Close(b.ctx))
}

// kept checks that what is done keeps the entity, which is deleted without it; nil: nothing is done.
func (b *rulesBench) kept(do func()) {
	b.t.Helper()
	for range 3 {
		if do != nil {
			b.clock.advance(idlePeriod - time.Second)
			do()
		}
	}
	b.clock.advance(idlePeriod - time.Second)
	b.there(true)
	b.clock.advance(time.Second)
	eventually(b.t, time.Minute, fmt.Sprint(b.queue, " to be deleted"), func() bool {
		s := b.sender()
		defer s.Close(b.ctx)
		_, err := s.NewMessageBatch(b.ctx, nil)
		failed, _ := errors.AsType[*azservicebus.Error](err)
		return failed != nil && failed.Code == azservicebus.CodeNotFound
	})
	b.there(false)
}
