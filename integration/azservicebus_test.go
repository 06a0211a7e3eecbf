package integration

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// azure is Microsoft's SDK, connected to a Curfew as to Microsoft's emulator.
type azure struct {
	t      *testing.T
	ctx    context.Context
	client *azservicebus.Client
	queue  string
}

const emulatorPolicy = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE"

func connectAzure(t *testing.T, c *curfew, policy string) *azure {
	t.Helper()
	_, host, _ := strings.Cut(c.url, "@")
	client, err := azservicebus.NewClientFromConnectionString("Endpoint=sb://"+host+";"+policy+";UseDevelopmentEmulator=true", &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })
	return &azure{t, t.Context(), client, "orders"}
}

func startForAzure(t *testing.T, settings ...string) *curfew {
	t.Helper()
	config, err := filepath.Abs("testdata/servicebus/Config.json")
	require.NoError(t, err)
	return startCurfew(t, append([]string{"SERVICEBUS_EMULATOR=true", "SERVICEBUS_CONFIG=" + config}, settings...)...)
}

func (a *azure) sender() *azservicebus.Sender {
	a.t.Helper()
	s, err := a.client.NewSender(a.queue, nil)
	require.NoError(a.t, err)
	return s
}

func (a *azure) send(m *azservicebus.Message) {
	a.t.Helper()
	require.NoError(a.t, a.sender().SendMessage(a.ctx, m, nil))
}

func (a *azure) receiver(o *azservicebus.ReceiverOptions) *azservicebus.Receiver {
	a.t.Helper()
	r, err := a.client.NewReceiverForQueue(a.queue, o)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func (a *azure) receive(r *azservicebus.Receiver, most int) []*azservicebus.ReceivedMessage {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, time.Minute)
	defer cancel()
	all, err := r.ReceiveMessages(ctx, most, nil)
	require.NoError(a.t, err)
	return all
}

func (a *azure) one(r *azservicebus.Receiver) *azservicebus.ReceivedMessage {
	a.t.Helper()
	all := a.receive(r, 1)
	require.Len(a.t, all, 1)
	return all[0]
}

func (a *azure) none(r *azservicebus.Receiver) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, 500*time.Millisecond)
	defer cancel()
	all, err := r.ReceiveMessages(ctx, 1, nil)
	assert.ErrorIs(a.t, err, context.DeadlineExceeded)
	assert.Empty(a.t, all)
}

func (a *azure) deadLetters() *azservicebus.Receiver {
	a.t.Helper()
	return a.receiver(&azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
}

// TestAzureSDK: Microsoft's Go SDK, unmodified, sends and receives.
func TestAzureSDK(t *testing.T) {
	t.Parallel()
	c := startForAzure(t)
	a := connectAzure(t, c, emulatorPolicy)
	assert.Contains(t, c.log.String(), "sessions are not supported")

	t.Run("message", func(t *testing.T) {
		ttl, subject, id := 90*time.Second, "s", "id"
		before := time.Now().Truncate(time.Millisecond)
		a.send(&azservicebus.Message{
			MessageID: &id, Subject: &subject, TimeToLive: &ttl, Body: []byte("body"), ApplicationProperties: map[string]any{"n": int64(7), "s": "text"},
		})
		asked := time.Now().Truncate(time.Millisecond)
		r := a.receiver(nil)
		m := a.one(r)
		assert.Equal(t, "body", string(m.Body))
		assert.Equal(t, id, m.MessageID)
		assert.Equal(t, subject, *m.Subject)
		assert.Equal(t, map[string]any{"n": int64(7), "s": "text"}, m.ApplicationProperties)
		assert.Equal(t, uint32(1), m.DeliveryCount)
		assert.Positive(t, *m.SequenceNumber)
		assert.WithinRange(t, *m.EnqueuedTime, before, time.Now().Add(time.Millisecond))
		assert.Equal(t, ttl, m.ExpiresAt.Sub(*m.EnqueuedTime))
		assert.WithinRange(t, *m.LockedUntil, asked.Add(time.Minute), time.Now().Add(time.Minute+time.Millisecond))
		until := *m.LockedUntil
		require.NoError(t, r.RenewMessageLock(a.ctx, m, nil))
		assert.False(t, m.LockedUntil.Before(until))
		require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
		a.none(r)
	})
	t.Run("batch", func(t *testing.T) {
		s := a.sender()
		b, err := s.NewMessageBatch(a.ctx, nil)
		require.NoError(t, err)
		for i := range 50 {
			require.NoError(t, b.AddMessage(&azservicebus.Message{Body: []byte(strconv.Itoa(i))}, nil))
		}
		require.NoError(t, s.SendMessageBatch(a.ctx, b, nil))
		r := a.receiver(&azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		var bodies []string
		for len(bodies) < 50 {
			for _, m := range a.receive(r, 50) {
				bodies = append(bodies, string(m.Body))
			}
		}
		for i, body := range bodies {
			assert.Equal(t, strconv.Itoa(i), body)
		}
	})
	t.Run("abandon until it is dead-lettered", func(t *testing.T) {
		a.send(&azservicebus.Message{Body: []byte("b")})
		r := a.receiver(nil)
		for try := range uint32(3) {
			m := a.one(r)
			assert.Equal(t, try+1, m.DeliveryCount)
			require.NoError(t, r.AbandonMessage(a.ctx, m, nil))
		}
		dead := a.deadLetters()
		m := a.one(dead)
		assert.Equal(t, "MaxDeliveryCountExceeded", *m.DeadLetterReason)
		require.NoError(t, dead.CompleteMessage(a.ctx, m, nil))
	})
	t.Run("dead-letter with a reason", func(t *testing.T) {
		a.send(&azservicebus.Message{Body: []byte("b"), ApplicationProperties: map[string]any{"k": "v"}})
		r, why, more := a.receiver(nil), "BadAddress", "there is no such street"
		m := a.one(r)
		require.NoError(t, r.DeadLetterMessage(a.ctx, m, &azservicebus.DeadLetterOptions{
			Reason: &why, ErrorDescription: &more, PropertiesToModify: map[string]any{"by": "me"},
		}))
		dead := a.deadLetters()
		m = a.one(dead)
		assert.Equal(t, why, *m.DeadLetterReason)
		assert.Equal(t, more, *m.DeadLetterErrorDescription)
		assert.Equal(t, "v", m.ApplicationProperties["k"])
		assert.Equal(t, "me", m.ApplicationProperties["by"])
		require.NoError(t, dead.CompleteMessage(a.ctx, m, nil))
	})
	t.Run("properties to modify", func(t *testing.T) {
		a.send(&azservicebus.Message{Body: []byte("b"), ApplicationProperties: map[string]any{"k": "v", "old": uint32(1)}})
		r := a.receiver(nil)
		at := time.UnixMilli(1_700_000_000_123)
		require.NoError(t, r.AbandonMessage(a.ctx, a.one(r), &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"old": int64(2), "at": at, "x-delay": 1}}))
		m := a.one(r)
		assert.Equal(t, map[string]any{"k": "v", "old": int64(2), "at": at}, m.ApplicationProperties)
		assert.Equal(t, "b", string(m.Body))
		assert.Equal(t, uint32(2), m.DeliveryCount)
		require.NoError(t, r.Close(a.ctx))
		other := a.receiver(nil) // by the lock token
		require.NoError(t, other.AbandonMessage(a.ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"old": "by token"}}))
		m = a.one(other)
		assert.Equal(t, map[string]any{"k": "v", "old": "by token", "at": at}, m.ApplicationProperties)
		number := *m.SequenceNumber
		require.NoError(t, other.DeferMessage(a.ctx, m, &azservicebus.DeferMessageOptions{PropertiesToModify: map[string]any{"step": "deferred"}}))
		for _, step := range []string{"deferred", "again"} {
			all, err := other.ReceiveDeferredMessages(a.ctx, []int64{number}, nil)
			require.NoError(t, err)
			require.Len(t, all, 1)
			m = all[0]
			assert.Equal(t, map[string]any{"k": "v", "old": "by token", "at": at, "step": step}, m.ApplicationProperties)
			if step == "deferred" {
				require.NoError(t, other.DeferMessage(a.ctx, m, &azservicebus.DeferMessageOptions{PropertiesToModify: map[string]any{"step": "again"}}))
			}
		}
		require.NoError(t, other.CompleteMessage(a.ctx, m, nil))

		a.send(&azservicebus.Message{Body: []byte("b"), ApplicationProperties: map[string]any{"k": "v"}})
		m = a.one(other)
		require.NoError(t, other.AbandonMessage(a.ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"k": strings.Repeat("x", 20<<10)}}))
		m = a.one(other)
		assert.Equal(t, "v", m.ApplicationProperties["k"], "what is too large is left out")
		require.NoError(t, other.DeadLetterMessage(a.ctx, m, &azservicebus.DeadLetterOptions{PropertiesToModify: map[string]any{"k": "dead"}}))
		dead := a.deadLetters()
		m = a.one(dead)
		assert.Equal(t, "dead", m.ApplicationProperties["k"])
		require.NoError(t, dead.CompleteMessage(a.ctx, m, nil))
		require.NoError(t, other.Close(a.ctx))
	})
	t.Run("a lock outlives its receiver", func(t *testing.T) {
		a.send(&azservicebus.Message{Body: []byte("b")})
		r := a.receiver(nil)
		m := a.one(r)
		require.NoError(t, r.Close(a.ctx))
		other := a.receiver(nil)
		a.none(other)
		require.NoError(t, other.CompleteMessage(a.ctx, m, nil))
		err := other.CompleteMessage(a.ctx, m, nil)
		var failed *azservicebus.Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, azservicebus.CodeLockLost, failed.Code)
		a.none(other)
	})
	t.Run("peek", func(t *testing.T) {
		r := a.receiver(nil)
		all, err := r.PeekMessages(a.ctx, 10, nil)
		require.NoError(t, err)
		assert.Empty(t, all)
		for _, body := range []string{"one", "two", "three"} {
			a.send(&azservicebus.Message{Body: []byte(body)})
		}
		all, err = r.PeekMessages(a.ctx, 2, nil)
		require.NoError(t, err)
		rest, err := r.PeekMessages(a.ctx, 10, nil)
		require.NoError(t, err)
		require.Len(t, append(all, rest...), 3)
		assert.Equal(t, "three", string(rest[0].Body))
		assert.Equal(t, 14*24*time.Hour, rest[0].ExpiresAt.Sub(*rest[0].EnqueuedTime))
		for range 3 {
			require.NoError(t, r.CompleteMessage(a.ctx, a.one(r), nil))
		}
	})
	t.Run("defer", func(t *testing.T) {
		for _, body := range []string{"one", "two"} {
			a.send(&azservicebus.Message{Body: []byte(body), ApplicationProperties: map[string]any{"k": "v"}})
		}
		r := a.receiver(nil)
		var numbers []int64
		var enqueued, expires time.Time
		for range 2 {
			m := a.one(r)
			numbers, enqueued, expires = append(numbers, *m.SequenceNumber), *m.EnqueuedTime, *m.ExpiresAt
			require.NoError(t, r.DeferMessage(a.ctx, m, nil))
		}
		a.none(r)
		peeked, err := r.PeekMessages(a.ctx, 10, nil)
		require.NoError(t, err)
		require.Len(t, peeked, 2)
		assert.Equal(t, azservicebus.MessageStateDeferred, peeked[0].State)
		assert.Equal(t, numbers[0], *peeked[0].SequenceNumber)
		all, err := r.ReceiveDeferredMessages(a.ctx, numbers[1:], nil)
		require.NoError(t, err)
		require.Len(t, all, 1)
		m := all[0]
		assert.Equal(t, "two", string(m.Body))
		assert.Equal(t, "v", m.ApplicationProperties["k"])
		assert.Equal(t, numbers[1], *m.SequenceNumber)
		assert.Equal(t, enqueued, *m.EnqueuedTime)
		assert.Equal(t, expires, *m.ExpiresAt)
		require.NoError(t, r.RenewMessageLock(a.ctx, m, nil))
		require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
		all, err = r.ReceiveDeferredMessages(a.ctx, numbers[:1], nil)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.NoError(t, r.DeadLetterMessage(a.ctx, all[0], nil))
		dead := a.deadLetters()
		require.NoError(t, dead.CompleteMessage(a.ctx, a.one(dead), nil))
		_, err = r.ReceiveDeferredMessages(a.ctx, numbers, nil)
		a.fails(azservicebus.CodeNotFound, err)
	})
	t.Run("numbers of what is scheduled", func(t *testing.T) {
		var all []*azservicebus.Message
		for _, body := range []string{"one", "two", "three"} {
			all = append(all, &azservicebus.Message{Body: []byte(body)})
		}
		s, r := a.sender(), a.receiver(nil)
		due, err := s.ScheduleMessages(a.ctx, all, time.Now().Add(-time.Minute), nil)
		require.NoError(t, err)
		require.Len(t, due, 3)
		for i, number := range due {
			m := a.one(r)
			assert.Equal(t, string(all[i].Body), string(m.Body))
			assert.Equal(t, number, *m.SequenceNumber)
			require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
		}
		later, err := s.ScheduleMessages(a.ctx, all, time.Now().Add(time.Hour), nil)
		require.NoError(t, err)
		require.NoError(t, s.CancelScheduledMessages(a.ctx, later[1:2], nil))
		peeked, err := r.PeekMessages(a.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: new(int64)})
		require.NoError(t, err)
		require.Len(t, peeked, 2)
		for i, of := range []int{0, 2} {
			assert.Equal(t, string(all[of].Body), string(peeked[i].Body))
			assert.Equal(t, later[of], *peeked[i].SequenceNumber)
		}
		require.NoError(t, s.CancelScheduledMessages(a.ctx, []int64{later[0], later[2]}, nil))
	})
	t.Run("topic", func(t *testing.T) {
		s, err := a.client.NewSender("events", nil)
		require.NoError(t, err)
		require.NoError(t, s.SendMessage(a.ctx, &azservicebus.Message{Body: []byte("e")}, nil))
		r, err := a.client.NewReceiverForSubscription("events", "all", nil)
		require.NoError(t, err)
		m := a.one(r)
		assert.Equal(t, time.Hour, m.ExpiresAt.Sub(*m.EnqueuedTime))
		require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
		require.NoError(t, r.Close(a.ctx))
	})
	t.Run("names have no case", func(t *testing.T) {
		upper := *a
		upper.queue = "ORDERS"
		upper.send(&azservicebus.Message{Body: []byte("b")})
		r := upper.receiver(nil)
		require.NoError(t, r.CompleteMessage(a.ctx, a.one(r), nil))
	})
	t.Run("unknown entity", func(t *testing.T) {
		s, err := a.client.NewSender("nowhere", nil)
		require.NoError(t, err)
		a.fails(azservicebus.CodeNotFound, s.SendMessage(a.ctx, &azservicebus.Message{}, nil))
	})
}

func (a *azure) fails(code azservicebus.Code, err error) {
	a.t.Helper()
	failed, is := errors.AsType[*azservicebus.Error](err)
	if assert.True(a.t, is, "%v", err) {
		assert.Equal(a.t, code, failed.Code)
	}
}

// TestAzureSchedule: scheduled messages come when they are due, unless they are cancelled, and outlive
// a crash, as do locks' counts and sequence numbers.
func TestAzureSchedule(t *testing.T) {
	t.Parallel()
	dir := "DATA_DIR=" + t.TempDir()
	c := startForAzure(t, dir)
	a := connectAzure(t, c, emulatorPolicy)
	s := a.sender()
	due := time.Now().Add(10 * time.Second).Truncate(time.Millisecond)
	numbers, err := s.ScheduleMessages(a.ctx, []*azservicebus.Message{{Body: []byte("one")}, {Body: []byte("two")}, {Body: []byte("three")}}, due, nil)
	require.NoError(t, err)
	require.Len(t, numbers, 3)
	require.NoError(t, s.CancelScheduledMessages(a.ctx, numbers[1:2], nil))
	a.fails(azservicebus.CodeNotFound, s.CancelScheduledMessages(a.ctx, numbers[1:2], nil))
	a.send(&azservicebus.Message{Body: []byte("now")})
	r := a.receiver(nil)
	m := a.one(r)
	number := *m.SequenceNumber
	require.NoError(t, r.AbandonMessage(a.ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"tried": "once"}}))
	a.send(&azservicebus.Message{Body: []byte("deferred")})
	m = a.one(r) // the first again: it is locked at the kill
	assert.Equal(t, number, *m.SequenceNumber)
	later := a.one(r)
	require.NoError(t, r.DeferMessage(a.ctx, later, &azservicebus.DeferMessageOptions{PropertiesToModify: map[string]any{"step": "deferred"}}))
	byNumber := func() *azservicebus.ReceivedMessage {
		t.Helper()
		all, err := r.ReceiveDeferredMessages(a.ctx, []int64{*later.SequenceNumber}, nil)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	before := byNumber()
	require.NoError(t, r.AbandonMessage(a.ctx, before, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"again": "abandoned"}}))
	c.kill()

	second := startForAzure(t, dir)
	a = connectAzure(t, second, emulatorPolicy)
	require.NoError(t, a.sender().CancelScheduledMessages(a.ctx, numbers[2:], nil))
	a.send(&azservicebus.Message{Body: []byte("new")})
	r = a.receiver(nil)
	m = byNumber()
	assert.Equal(t, before.DeliveryCount+1, m.DeliveryCount)
	assert.Equal(t, map[string]any{"step": "deferred", "again": "abandoned"}, m.ApplicationProperties)
	require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
	m = a.one(r)
	assert.Equal(t, "now", string(m.Body))
	assert.Equal(t, number, *m.SequenceNumber)
	assert.Equal(t, uint32(2), m.DeliveryCount)
	assert.Equal(t, "once", m.ApplicationProperties["tried"])
	require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
	m = a.one(r)
	assert.Equal(t, "new", string(m.Body))
	assert.Greater(t, *m.SequenceNumber, *later.SequenceNumber, "a number of a deferred message is not given again")
	require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
	m = a.one(r)
	assert.Equal(t, "one", string(m.Body))
	assert.False(t, time.Now().Before(due))
	assert.Equal(t, due.UnixMilli(), m.ScheduledEnqueueTime.UnixMilli())
	require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
	a.none(r)

	schedule := func(body string, in time.Duration) int64 {
		t.Helper()
		numbers, err := a.sender().ScheduleMessages(a.ctx, []*azservicebus.Message{{Body: []byte(body)}}, time.Now().Add(in), nil)
		require.NoError(t, err)
		return numbers[0]
	}
	second.kill()
	a = connectAzure(t, startForAzure(t, dir), emulatorPolicy)
	there, more := schedule("there", 2*time.Hour), schedule("more", 2*time.Hour)
	for _, gone := range numbers {
		a.fails(azservicebus.CodeNotFound, a.sender().CancelScheduledMessages(a.ctx, []int64{gone}, nil))
	}
	r = a.receiver(nil)
	for _, want := range []struct {
		from   int64
		bodies []string
	}{{0, []string{"there", "more"}}, {there, []string{"there", "more"}}, {there + 1, []string{"more"}}, {more + 1, nil}} {
		peeked, err := r.PeekMessages(a.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &want.from})
		require.NoError(t, err)
		var bodies []string
		for _, m := range peeked {
			bodies = append(bodies, string(m.Body))
		}
		assert.Equal(t, want.bodies, bodies, "from %d", want.from)
	}
	require.NoError(t, a.sender().CancelScheduledMessages(a.ctx, []int64{there, more}, nil))
}

// TestAzureExpiry: a queue's time to live of 14 days passes in a moment.
func TestAzureExpiry(t *testing.T) {
	t.Parallel()
	c := startForAzure(t, "CLOCK=manual", "DATA_DIR=")
	clock := clockOf{t, c.http + "/api/curfew/clock", "guest"}
	a := connectAzure(t, c, emulatorPolicy)
	month := 30 * 24 * time.Hour
	a.send(&azservicebus.Message{Body: []byte("b"), TimeToLive: &month})
	r := a.receiver(nil)
	m := a.one(r)
	assert.Equal(t, 14*24*time.Hour, m.ExpiresAt.Sub(*m.EnqueuedTime), "the lower one")
	require.NoError(t, r.AbandonMessage(a.ctx, m, nil))
	clock.advance(14*24*time.Hour - time.Second)
	peeked, err := r.PeekMessages(a.ctx, 1, nil)
	require.NoError(t, err)
	require.Len(t, peeked, 1)
	clock.advance(time.Second)
	a.none(r)
	dead := a.deadLetters()
	m = a.one(dead)
	assert.Equal(t, "TTLExpiredException", *m.DeadLetterReason)
	assert.Equal(t, "The message expired and was dead lettered.", *m.DeadLetterErrorDescription)
	require.NoError(t, dead.CompleteMessage(a.ctx, m, nil))

	a.send(&azservicebus.Message{Body: []byte("locked")})
	m = a.one(r)
	clock.advance(time.Minute)
	a.fails(azservicebus.CodeLockLost, r.CompleteMessage(a.ctx, m, nil))
	m = a.one(r)
	assert.Equal(t, uint32(2), m.DeliveryCount)
	require.NoError(t, r.CompleteMessage(a.ctx, m, nil))
}

// TestAzureNode: Microsoft's SDK for Node.js does all that its scripts have, each step with a Curfew of which 14 days pass in a moment: as with the
// emulator; and as with Azure, with a key and over TLS, and with its administration client.
func TestAzureNode(t *testing.T) {
	t.Parallel()
	ca, amqps, https := testenv.NewAuthority(t), testenv.FreeAddr(), testenv.FreeAddr()
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	run := func(t *testing.T, file string, args ...string) [][]string {
		node := nodeClient(t).(script)
		node.command = []string{"node", "clients/node/" + file}
		node.env = append(node.env, "NODE_EXTRA_CA_CERTS="+ca.CA)
		return node.run(t, nil, args...)
	}
	t.Run("emulator", func(t *testing.T) {
		c := startForAzure(t, "CLOCK=manual", "DATA_DIR=")
		_, host, _ := strings.Cut(c.url, "@")
		assert.Len(t, run(t, "servicebus.js", "Endpoint=sb://"+host+";"+emulatorPolicy+";UseDevelopmentEmulator=true", c.http+"/api/curfew/clock"), 11)
	})
	t.Run("key", func(t *testing.T) {
		c := startForAzure(t, "CLOCK=manual", "DATA_DIR=", "SERVICEBUS_EMULATOR=false", "SERVICEBUS_KEYS=root=cm9vdA==", "AMQPS_ADDR="+amqps, "HTTPS_ADDR="+https, "TLS_CERT="+cert, "TLS_KEY="+key)
		const policy = ";SharedAccessKeyName=root;SharedAccessKey=cm9vdA=="
		assert.Len(t, run(t, "servicebus.js", "Endpoint=sb://"+amqps+policy, c.http+"/api/curfew/clock"), 11)
		assert.Len(t, run(t, "servicebus_admin.js", "Endpoint=sb://"+https+policy), 4)
	})
}

// TestAzurePython: Microsoft's SDK for Python does all that its script has. It knows nothing of the emulator: it wants TLS and a key.
func TestAzurePython(t *testing.T) {
	t.Parallel()
	needs(t, "python3-uamqp python3-msrest python3-isodate python3-typing-extensions", "/usr/bin/python3", "-c", "import uamqp, msrest, isodate, typing_extensions")
	sdk, err := filepath.Abs("../.cache/python")
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(sdk, "azure", "servicebus"), "Microsoft's SDK for Python is needed: make deps")
	ca, amqps, https := testenv.NewAuthority(t), testenv.FreeAddr(), testenv.FreeAddr()
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	startCurfew(t, "SERVICEBUS_KEYS=root=cm9vdA==", "AMQPS_ADDR="+amqps, "HTTPS_ADDR="+https, "TLS_CERT="+cert, "TLS_KEY="+key)
	python := script{command: []string{"/usr/bin/python3", "clients/azure/servicebus.py"}, env: []string{"PYTHONPATH=" + sdk, "REQUESTS_CA_BUNDLE=" + ca.CA}}
	_, port, _ := strings.Cut(amqps, ":")
	_, administration, _ := strings.Cut(https, ":")
	assert.Len(t, python.run(t, nil, port, administration, ca.CA), 6)
}

// TestAzureKeys: a key has its claims and no others.
func TestAzureKeys(t *testing.T) {
	t.Parallel()
	c := startForAzure(t, "SERVICEBUS_EMULATOR=false", "SERVICEBUS_KEYS=root=cm9vdA==,sender=c2VuZA==:send,listener=bGlzdGVu:listen")
	a := connectAzure(t, c, "SharedAccessKeyName=root;SharedAccessKey=cm9vdA==")
	a.send(&azservicebus.Message{Body: []byte("b")})
	r := a.receiver(nil)
	require.NoError(t, r.CompleteMessage(a.ctx, a.one(r), nil))
	wrong := connectAzure(t, c, "SharedAccessKeyName=root;SharedAccessKey=AAAA")
	wrong.fails(azservicebus.CodeUnauthorizedAccess, wrong.sender().SendMessage(a.ctx, &azservicebus.Message{}, nil))
	sender := connectAzure(t, c, "SharedAccessKeyName=sender;SharedAccessKey=c2VuZA==")
	sender.send(&azservicebus.Message{Body: []byte("b")})
	_, err := sender.receiver(nil).ReceiveMessages(a.ctx, 1, nil)
	sender.fails(azservicebus.CodeUnauthorizedAccess, err)

	numbers, err := sender.sender().ScheduleMessages(a.ctx, []*azservicebus.Message{{Body: []byte("b")}}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	listener := connectAzure(t, c, "SharedAccessKeyName=listener;SharedAccessKey=bGlzdGVu")
	listener.fails(azservicebus.CodeUnauthorizedAccess, listener.sender().CancelScheduledMessages(a.ctx, numbers, nil))
	require.NoError(t, sender.sender().CancelScheduledMessages(a.ctx, numbers, nil), "it is there still")
}

// adminPort is where administration clients reach a Curfew.
type adminPort struct {
	t        *testing.T
	addr     string
	web      *http.Client
	settings []string // of the Curfew
}

func newAdminPort(t *testing.T) *adminPort {
	t.Helper()
	ca, addr := testenv.NewAuthority(t), testenv.FreeAddr()
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool}}}
	return &adminPort{t, addr, web, []string{"HTTPS_ADDR=" + addr, "TLS_CERT=" + cert, "TLS_KEY=" + key}}
}

func (p *adminPort) client(policy string) *admin.Client {
	p.t.Helper()
	client, err := admin.NewClientFromConnectionString("Endpoint=sb://"+p.addr+";"+policy, &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: p.web, Retry: azpolicy.RetryOptions{MaxRetries: -1},
	}})
	require.NoError(p.t, err)
	return client
}

// TestAzureUpdates: what Microsoft's administration client changes in an entity counts at once and after a crash, for a time to live from the next message
// on; what cannot be changed is refused.
func TestAzureUpdates(t *testing.T) {
	t.Parallel()
	p, yes, no := newAdminPort(t), true, false
	settings := append(p.settings, "DATA_DIR="+t.TempDir())
	c := startForAzure(t, settings...)
	a, client := connectAzure(t, c, emulatorPolicy), p.client(emulatorPolicy)
	a.queue = "changed"
	first, lock, later, longLock, few := "PT1H", "PT1M", "PT2H", "PT5M", int32(2)
	_, err := client.CreateQueue(a.ctx, a.queue, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{DefaultMessageTimeToLive: &first, LockDuration: &lock, DeadLetteringOnMessageExpiration: &yes}})
	require.NoError(t, err)
	a.send(&azservicebus.Message{Body: []byte("before")})
	r := a.receiver(nil)
	require.NoError(t, r.DeferMessage(a.ctx, a.one(r), nil))
	for range 2 {
		a.send(&azservicebus.Message{Body: []byte("dead")})
		require.NoError(t, r.DeadLetterMessage(a.ctx, a.one(r), nil))
	}
	dead := a.deadLetters()
	aside := a.one(dead)
	require.NoError(t, dead.DeferMessage(a.ctx, aside, nil))
	a.send(&azservicebus.Message{Body: []byte("before")})
	changes := admin.QueueProperties{DefaultMessageTimeToLive: &later, LockDuration: &longLock, MaxDeliveryCount: &few, DeadLetteringOnMessageExpiration: &no}
	was, err := client.UpdateQueue(a.ctx, a.queue, changes, nil)
	require.NoError(t, err)
	a.send(&azservicebus.Message{Body: []byte("after")})

	check := func(from admin.QueueProperties) {
		t.Helper()
		assert.Equal(t, later, *from.DefaultMessageTimeToLive)
		assert.Equal(t, longLock, *from.LockDuration)
		assert.Equal(t, few, *from.MaxDeliveryCount)
		assert.False(t, *from.DeadLetteringOnMessageExpiration)
	}
	check(was.QueueProperties)
	times, err := client.GetQueueRuntimeProperties(a.ctx, a.queue, nil)
	require.NoError(t, err)
	assert.True(t, times.UpdatedAt.After(times.CreatedAt))
	locked := func(m *azservicebus.ReceivedMessage) {
		t.Helper()
		assert.WithinDuration(t, time.Now().Add(5*time.Minute), *m.LockedUntil, 2*time.Minute)
	}
	lives := func(m *azservicebus.ReceivedMessage, ttl time.Duration) {
		t.Helper()
		assert.Equal(t, ttl, m.ExpiresAt.Sub(*m.EnqueuedTime))
		locked(m)
	}
	both := func() {
		t.Helper()
		deferred, err := dead.ReceiveDeferredMessages(a.ctx, []int64{*aside.SequenceNumber}, nil)
		require.NoError(t, err)
		locked(deferred[0])
		m := a.one(dead)
		assert.Equal(t, "dead", string(m.Body))
		locked(m)
	}
	both()
	lives(a.one(r), time.Hour)
	m := a.one(r)
	lives(m, 2*time.Hour)
	require.NoError(t, r.AbandonMessage(a.ctx, m, nil))
	peeked, err := r.PeekMessages(a.ctx, 1, nil)
	require.NoError(t, err)
	deferred, err := r.ReceiveDeferredMessages(a.ctx, []int64{*peeked[0].SequenceNumber}, nil)
	require.NoError(t, err)
	lives(deferred[0], time.Hour)

	for want, forbidden := range map[string]admin.QueueProperties{
		"The value for the RequiresSession property of an existing Queue cannot be changed. It is false.": {RequiresSession: &yes},
		"The value for the ForwardTo property of an existing Queue cannot be changed. It is not set.":     {ForwardTo: &a.queue},
		"MaxDeliveryCount: 1048576 is too much":                                                           {MaxDeliveryCount: new(int32(1 << 20))},
	} {
		_, err = client.UpdateQueue(a.ctx, a.queue, forbidden, nil)
		a.answered(http.StatusBadRequest, err)
		assert.ErrorContains(t, err, want)
	}
	for path, want := range map[string]int{"amq.topic": http.StatusNotFound, "changed/$deferred": http.StatusNotFound, "changed/$DeadLetterQueue": http.StatusNotFound, "changed/$deadletterqueue": http.StatusBadRequest} {
		if _, err = client.UpdateQueue(a.ctx, path, admin.QueueProperties{DefaultMessageTimeToLive: &later}, nil); path == "amq.topic" {
			_, err = client.UpdateTopic(a.ctx, path, admin.TopicProperties{DefaultMessageTimeToLive: &later}, nil)
		}
		a.answered(want, err)
	}
	_, err = client.CreateQueue(a.ctx, "unchanged/$Deferred", nil)
	a.answered(http.StatusBadRequest, err)
	_, err = client.CreateTopic(a.ctx, "changed-topic", nil)
	require.NoError(t, err)
	_, err = client.CreateSubscription(a.ctx, "changed-topic", "s", nil)
	require.NoError(t, err)
	idle := "PT10M"
	_, err = client.UpdateTopic(a.ctx, "changed-topic", admin.TopicProperties{DefaultMessageTimeToLive: &first, AutoDeleteOnIdle: &idle}, nil)
	require.NoError(t, err)
	_, err = client.UpdateSubscription(a.ctx, "changed-topic", "s", admin.SubscriptionProperties{LockDuration: &longLock}, nil)
	require.NoError(t, err)

	c.kill()
	c = startForAzure(t, settings...)
	a = connectAzure(t, c, emulatorPolicy)
	a.queue = "changed"
	got, err := client.GetQueue(a.ctx, a.queue, nil)
	require.NoError(t, err)
	check(got.QueueProperties)
	r, dead = a.receiver(nil), a.deadLetters()
	both()
	deferred, err = r.ReceiveDeferredMessages(a.ctx, []int64{*deferred[0].SequenceNumber}, nil)
	require.NoError(t, err)
	lives(deferred[0], time.Hour)
	m = a.one(r)
	for string(m.Body) != "after" {
		m = a.one(r)
	}
	require.NoError(t, r.AbandonMessage(a.ctx, m, nil))
	m = a.one(dead)
	assert.Equal(t, "after", string(m.Body))
	assert.Equal(t, "MaxDeliveryCountExceeded", *m.DeadLetterReason)
	a.queue = "changed-topic"
	a.send(&azservicebus.Message{Body: []byte("b")})
	topic, err := client.GetTopic(a.ctx, a.queue, nil)
	require.NoError(t, err)
	assert.Equal(t, idle, *topic.AutoDeleteOnIdle)
	s, err := a.client.NewReceiverForSubscription(a.queue, "s", nil)
	require.NoError(t, err)
	lives(a.one(s), time.Hour)
}

// TestAzureAdmin: Microsoft's administration client makes, lists and deletes entities, and counts their messages.
func TestAzureAdmin(t *testing.T) {
	t.Parallel()
	p := newAdminPort(t)
	web, httpsAddr, administer := p.web, p.addr, p.client
	c := startForAzure(t, append(p.settings, "SERVICEBUS_KEYS=sender=c2VuZA==:send")...)
	a := connectAzure(t, c, emulatorPolicy)
	a.queue = "made"
	client, before := administer(emulatorPolicy), time.Now().Truncate(time.Millisecond)
	ttl, lock, yes := "P1DT2H", "PT30S", true
	properties := admin.QueueProperties{DefaultMessageTimeToLive: &ttl, LockDuration: &lock, DeadLetteringOnMessageExpiration: &yes}
	made, err := client.CreateQueue(a.ctx, a.queue, &admin.CreateQueueOptions{Properties: &properties})
	require.NoError(t, err)
	assert.Equal(t, ttl, *made.DefaultMessageTimeToLive)
	assert.Equal(t, lock, *made.LockDuration)
	assert.Equal(t, int32(10), *made.MaxDeliveryCount)
	_, err = client.CreateQueue(a.ctx, a.queue, nil)
	a.answered(http.StatusConflict, err)
	_, err = client.CreateQueue(a.ctx, "with-sessions", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: &yes}})
	a.answered(http.StatusBadRequest, err)
	assert.ErrorContains(t, err, "sessions are not supported")
	none, err := client.GetQueue(a.ctx, "nowhere", nil)
	require.NoError(t, err)
	assert.Nil(t, none)

	a.send(&azservicebus.Message{Body: []byte("one")})
	a.send(&azservicebus.Message{Body: []byte("two")})
	_, err = a.sender().ScheduleMessages(a.ctx, []*azservicebus.Message{{Body: []byte("later")}}, time.Now().Add(time.Hour), nil)
	require.NoError(t, err)
	r := a.receiver(nil)
	require.NoError(t, r.DeadLetterMessage(a.ctx, a.one(r), nil))
	counted, err := client.GetQueueRuntimeProperties(a.ctx, a.queue, nil)
	require.NoError(t, err)
	assert.Equal(t, int32(1), counted.ActiveMessageCount)
	assert.Equal(t, int32(1), counted.DeadLetterMessageCount)
	assert.Equal(t, int32(1), counted.ScheduledMessageCount)
	assert.Equal(t, int64(3), counted.TotalMessageCount)
	assert.WithinRange(t, counted.CreatedAt, before, counted.AccessedAt)
	assert.Equal(t, counted.CreatedAt, counted.UpdatedAt)
	assert.WithinRange(t, counted.AccessedAt, counted.CreatedAt, time.Now().Add(time.Second))
	var names []string
	for pager := client.NewListQueuesPager(nil); pager.More(); {
		page, err := pager.NextPage(a.ctx)
		require.NoError(t, err)
		for _, q := range page.Queues {
			names = append(names, q.QueueName)
		}
	}
	assert.Equal(t, []string{"made", "orders"}, names)
	_, err = client.UpdateQueue(a.ctx, a.queue, properties, nil)
	require.NoError(t, err, "it changes nothing")
	updated, err := client.UpdateQueue(a.ctx, a.queue, admin.QueueProperties{}, nil)
	require.NoError(t, err, "what is left out stays")
	assert.Equal(t, ttl, *updated.DefaultMessageTimeToLive)
	_, err = client.UpdateQueue(a.ctx, "nowhere", properties, nil)
	a.answered(http.StatusNotFound, err)
	require.NoError(t, r.DeferMessage(a.ctx, a.one(r), nil))
	_, err = client.DeleteQueue(a.ctx, a.queue, nil)
	require.NoError(t, err)
	_, err = client.DeleteQueue(a.ctx, a.queue, nil)
	a.answered(http.StatusNotFound, err)

	_, err = client.CreateTopic(a.ctx, "news", nil)
	require.NoError(t, err)
	_, err = client.CreateSubscription(a.ctx, "news", "mine", nil)
	require.NoError(t, err)
	topic, err := client.GetTopicRuntimeProperties(a.ctx, "news", nil)
	require.NoError(t, err)
	assert.Equal(t, int32(1), topic.SubscriptionCount)
	a.queue = "news"
	a.send(&azservicebus.Message{Body: []byte("b")})
	subscription, err := client.GetSubscriptionRuntimeProperties(a.ctx, "news", "mine", nil)
	require.NoError(t, err)
	assert.Equal(t, int32(1), subscription.ActiveMessageCount)
	a.rules(client)
	a.keyWithoutManage(administer("SharedAccessKeyName=sender;SharedAccessKey=c2VuZA=="))
	_, err = client.DeleteTopic(a.ctx, "news", nil)
	require.NoError(t, err)
	gone, err := client.GetSubscription(a.ctx, "news", "mine", nil)
	require.NoError(t, err)
	assert.Nil(t, gone)

	for _, hostile := range []struct {
		path, forwardedFor, host string
		status                   int
	}{
		{"/İİİ/subscriptions/x", "", "", http.StatusNotFound},
		{"/orders%3Fx", "", "", http.StatusUnauthorized}, // an address ends at the question mark
		{"/orders", "10.0.0.1", "", http.StatusUnauthorized},
		{"/orders", "", "", http.StatusOK},
		{"/orders", "", "localhost", http.StatusOK},
		{"/orders", "", "[::1]:5300", http.StatusOK},
		{"/orders", "", "a-page.example", http.StatusUnauthorized}, // whose name server says that it is this machine
		{"/orders", "", "192.168.1.1:5300", http.StatusUnauthorized},
	} {
		r, err := http.NewRequestWithContext(a.ctx, http.MethodGet, "https://"+httpsAddr+hostile.path+"?api-version=2021-05", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "any")
		r.Host = cmp.Or(hostile.host, r.Host)
		if hostile.forwardedFor != "" {
			r.Header.Set("X-Forwarded-For", hostile.forwardedFor)
		}
		answer, err := web.Do(r)
		require.NoError(t, err, hostile.path)
		answer.Body.Close()
		assert.Equal(t, hostile.status, answer.StatusCode, hostile.path)
	}
}

// rules: a subscription gets every message with its default rule, and none without it.
func (a *azure) rules(client *admin.Client) {
	a.t.Helper()
	list := func() (rules []admin.RuleProperties) {
		for pager := client.NewListRulesPager("news", "mine", nil); pager.More(); {
			page, err := pager.NextPage(a.ctx)
			require.NoError(a.t, err)
			rules = append(rules, page.Rules...)
		}
		return rules
	}
	sent := func() int32 {
		before, err := client.GetSubscriptionRuntimeProperties(a.ctx, "news", "mine", nil)
		require.NoError(a.t, err)
		a.send(&azservicebus.Message{Body: []byte("b")})
		after, err := client.GetSubscriptionRuntimeProperties(a.ctx, "news", "mine", nil)
		require.NoError(a.t, err)
		assert.False(a.t, after.AccessedAt.IsZero())
		return after.ActiveMessageCount - before.ActiveMessageCount
	}
	all := admin.RuleProperties{Name: "$Default", Filter: &admin.TrueFilter{}}
	assert.Equal(a.t, []admin.RuleProperties{all}, list())
	assert.Equal(a.t, int32(1), sent())
	rule, err := client.GetRule(a.ctx, "news", "mine", "$Default", nil)
	require.NoError(a.t, err)
	assert.Equal(a.t, all, rule.RuleProperties)
	_, err = client.UpdateRule(a.ctx, "news", "mine", all)
	require.NoError(a.t, err)
	name := "$Default"
	_, err = client.CreateRule(a.ctx, "news", "mine", &admin.CreateRuleOptions{Name: &name})
	a.answered(http.StatusConflict, err)

	_, err = client.DeleteRule(a.ctx, "news", "mine", name, nil)
	require.NoError(a.t, err)
	assert.Empty(a.t, list())
	assert.Zero(a.t, sent())
	_, err = client.DeleteRule(a.ctx, "news", "mine", name, nil)
	a.answered(http.StatusNotFound, err)
	rule, err = client.GetRule(a.ctx, "news", "mine", name, nil)
	require.NoError(a.t, err)
	assert.Nil(a.t, rule)
	_, err = client.CreateRule(a.ctx, "news", "mine", &admin.CreateRuleOptions{Name: &name, Filter: &admin.SQLFilter{Expression: "a+1=2"}})
	a.answered(http.StatusBadRequest, err)
	assert.ErrorContains(a.t, err, "the SQL filter is not supported at its octet 2: expected a comparison")
	_, err = client.CreateRule(a.ctx, "news", "mine", &admin.CreateRuleOptions{Name: &name})
	require.NoError(a.t, err)
	assert.Equal(a.t, int32(1), sent())
}

// TestAzureFilters: a subscription gets the messages that pass one of its rules, once each, and has its rules after a crash.
func TestAzureFilters(t *testing.T) {
	t.Parallel()
	p := newAdminPort(t)
	settings := append(p.settings, "DATA_DIR="+t.TempDir())
	c := startForAzure(t, settings...)
	a, client := connectAzure(t, c, emulatorPolicy), p.client(emulatorPolicy)
	a.queue = "filtered"
	_, err := client.CreateTopic(a.ctx, a.queue, nil)
	require.NoError(t, err)
	text := func(s string) *string { return &s }
	all := &admin.CorrelationFilter{
		ContentType: text("c/t"), CorrelationID: text("co"), MessageID: text("id"), ReplyTo: text("re"), ReplyToSessionID: text("rs"), SessionID: text("se"), Subject: text("su"), To: text("to"),
		ApplicationProperties: map[string]any{"s": "text", "b": true, "n": int64(7), "f": 1.5},
	}
	for name, rule := range map[string]*admin.RuleProperties{
		"everything": nil, "nothing": {Name: "none", Filter: &admin.FalseFilter{}}, "exact": {Name: "exact", Filter: all}, "eu": {Name: "by-region", Filter: &admin.CorrelationFilter{ApplicationProperties: map[string]any{"region": "eu"}}},
		"sql": {Name: "sql", Filter: &admin.SQLFilter{Expression: "region IN ('eu', 'us') AND sys.Label IS NULL"}},
	} {
		_, err := client.CreateSubscription(a.ctx, a.queue, name, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{DefaultRule: rule}})
		require.NoError(t, err, name)
	}
	sql, err := client.GetRule(a.ctx, a.queue, "sql", "sql", nil)
	require.NoError(t, err)
	assert.Equal(t, admin.RuleProperties{Name: "sql", Filter: &admin.SQLFilter{Expression: "region IN ('eu', 'us') AND sys.Label IS NULL"}}, sql.RuleProperties)
	red := "red"
	_, err = client.CreateRule(a.ctx, a.queue, "eu", &admin.CreateRuleOptions{Name: &red, Filter: &admin.CorrelationFilter{Subject: &red}})
	require.NoError(t, err)
	got, err := client.GetRule(a.ctx, a.queue, "exact", "EXACT", nil)
	require.NoError(t, err)
	assert.Equal(t, admin.RuleProperties{Name: "exact", Filter: all}, got.RuleProperties)

	send := func(body string, m azservicebus.Message) {
		t.Helper()
		m.Body = []byte(body)
		a.send(&m)
	}
	matching := azservicebus.Message{
		ContentType: all.ContentType, CorrelationID: all.CorrelationID, MessageID: all.MessageID, ReplyTo: all.ReplyTo, ReplyToSessionID: all.ReplyToSessionID, SessionID: all.SessionID, Subject: all.Subject, To: all.To,
		ApplicationProperties: map[string]any{"s": "text", "b": true, "n": int32(7), "f": 1.5, "more": "m"},
	}
	sendAll := func() {
		t.Helper()
		send("exact", matching)
		other := matching
		other.SessionID = nil
		send("no session", other)
		send("both", azservicebus.Message{Subject: &red, ApplicationProperties: map[string]any{"region": "eu"}})
		send("eu", azservicebus.Message{ApplicationProperties: map[string]any{"region": "eu"}})
		send("us", azservicebus.Message{ApplicationProperties: map[string]any{"region": "us"}})
	}
	gets := func(subscription string, want ...string) {
		t.Helper()
		r, err := a.client.NewReceiverForSubscription(a.queue, subscription, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
		require.NoError(t, err)
		var bodies []string
		for len(bodies) < len(want) {
			m := a.one(r)
			bodies = append(bodies, string(m.Body))
			assert.NotContains(t, m.ApplicationProperties, "x-sys-Label", "it is for the broker")
		}
		assert.Equal(t, want, bodies)
		counted, err := client.GetSubscriptionRuntimeProperties(a.ctx, a.queue, subscription, nil)
		require.NoError(t, err)
		assert.Zero(t, counted.ActiveMessageCount)
		require.NoError(t, r.Close(a.ctx))
	}
	sendAll()
	gets("everything", "exact", "no session", "both", "eu", "us")
	gets("nothing")
	gets("exact", "exact")
	gets("eu", "both", "eu")
	gets("sql", "eu", "us")

	_, err = client.UpdateRule(a.ctx, a.queue, "eu", admin.RuleProperties{Name: "by-region", Filter: &admin.CorrelationFilter{ApplicationProperties: map[string]any{"region": "us"}}})
	require.NoError(t, err)
	_, err = client.UpdateRule(a.ctx, a.queue, "nothing", admin.RuleProperties{Name: "none", Filter: &admin.TrueFilter{}})
	require.NoError(t, err)
	_, err = client.DeleteRule(a.ctx, a.queue, "everything", "$Default", nil)
	require.NoError(t, err)
	c.kill()
	c = startForAzure(t, settings...)
	queue := a.queue
	a = connectAzure(t, c, emulatorPolicy)
	a.queue = queue
	sendAll()
	gets("nothing", "exact", "no session", "both", "eu", "us")
	gets("everything")
	gets("eu", "both", "us")
	gets("sql", "eu", "us")

	a.queue = "replaced" // as another type: on a link that stays
	status, answer := c.request("guest", "guest", http.MethodPut, "/api/exchanges/%2F/replaced", `{"type": "fanout", "durable": true}`)
	require.Equal(t, http.StatusCreated, status, answer)
	s := a.sender()
	require.NoError(t, s.SendMessage(a.ctx, &azservicebus.Message{Body: []byte("nowhere")}, nil))
	_, err = client.DeleteTopic(a.ctx, a.queue, nil)
	require.NoError(t, err)
	_, err = client.CreateTopic(a.ctx, a.queue, nil)
	require.NoError(t, err)
	_, err = client.CreateSubscription(a.ctx, a.queue, "red", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{DefaultRule: &admin.RuleProperties{Name: red, Filter: &admin.CorrelationFilter{Subject: &red}}}})
	require.NoError(t, err)
	fake := map[string]any{"x-sys-Label": red}
	require.NoError(t, s.SendMessage(a.ctx, &azservicebus.Message{Body: []byte("fake"), ApplicationProperties: fake}, nil))
	require.NoError(t, s.SendMessage(a.ctx, &azservicebus.Message{Body: []byte("red"), Subject: &red}, nil))
	gets("red", "red")

	a.queue = "events" // its file says what the subscription gets
	send("price", azservicebus.Message{Subject: text("price")})
	send("news", azservicebus.Message{Subject: text("news")})
	gets("filtered", "price")
	gets("all", "price", "news")
}

// TestAzureBatchOfATopic: a batch that one subscription has no room for is in no subscription.
func TestAzureBatchOfATopic(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "Config.json")
	check(t, os.WriteFile(config, []byte(`{"UserConfig": {"Namespaces": [{"Name": "n", "Topics": [{"Name": "t", "Subscriptions": [{"Name": "a"}, {"Name": "full"}, {"Name": "z"}]}]}]}}`), 0o600))
	c := startCurfew(t, "SERVICEBUS_EMULATOR=true", "SERVICEBUS_CONFIG="+config)
	c.setPolicy("room", "/full$", "queues", `{"max-length": 3, "overflow": "reject-publish"}`)
	a := connectAzure(t, c, emulatorPolicy)
	a.queue = "t"
	s := a.sender()
	batch := func(bodies ...string) error {
		t.Helper()
		b, err := s.NewMessageBatch(a.ctx, nil)
		require.NoError(t, err)
		for _, body := range bodies {
			require.NoError(t, b.AddMessage(&azservicebus.Message{Body: []byte(body)}, nil))
		}
		return s.SendMessageBatch(a.ctx, b, nil)
	}
	require.ErrorContains(t, batch("1", "2", "3", "4"), "a queue is full")
	require.NoError(t, batch("a", "b"))
	require.ErrorContains(t, batch("5", "6"), "a queue is full")
	require.NoError(t, batch("c"))
	for _, name := range []string{"a", "full", "z"} {
		r, err := a.client.NewReceiverForSubscription("t", name, nil)
		require.NoError(t, err)
		peeked, err := r.PeekMessages(a.ctx, 10, nil)
		require.NoError(t, err)
		var bodies string
		for _, m := range peeked {
			bodies += string(m.Body)
		}
		assert.Equal(t, "abc", bodies, name)
	}
}

// keyWithoutManage: a key without the claim manage learns that a queue or a topic does not exist, and nothing else.
func (a *azure) keyWithoutManage(client *admin.Client) {
	a.t.Helper()
	refused := func(text string, err error) {
		a.t.Helper()
		a.answered(http.StatusUnauthorized, err)
		assert.ErrorContains(a.t, err, text)
	}
	none, err := client.GetQueue(a.ctx, "nowhere", nil)
	require.NoError(a.t, err)
	assert.Nil(a.t, none)
	_, err = client.GetQueue(a.ctx, "orders", nil)
	refused("Manage,EntityRead claims required for this operation", err)
	_, err = client.NewListQueuesPager(nil).NextPage(a.ctx)
	refused("Manage,EntityRead claims required for this operation", err)
	_, err = client.GetNamespaceProperties(a.ctx, nil)
	refused("Manage,EntityRead claims required for this operation", err)
	_, err = client.CreateTopic(a.ctx, "more", nil)
	refused("Authorization failed for specified action: Manage,EntityWrite.", err)
	_, err = client.DeleteQueue(a.ctx, "orders", nil)
	refused("Authorization failed for specified action: Manage,EntityDelete.", err)
	_, err = client.GetSubscription(a.ctx, "news", "nowhere", nil)
	refused("Unauthorized access for 'GetSubscription'", err)
	_, err = client.NewListSubscriptionsPager("news", nil).NextPage(a.ctx)
	refused("Unauthorized access for 'EnumerateSubscriptions'", err)
	_, err = client.CreateSubscription(a.ctx, "news", "more", nil)
	refused("Unauthorized access for 'CreateOrUpdateSubscription'", err)
	_, err = client.DeleteRule(a.ctx, "news", "mine", "$Default", nil)
	refused("Unauthorized access for 'DeleteSubscription'", err)
}

func (a *azure) answered(status int, err error) {
	a.t.Helper()
	failed, is := errors.AsType[*azcore.ResponseError](err)
	if assert.True(a.t, is, "%v", err) {
		assert.Equal(a.t, status, failed.StatusCode)
	}
}
