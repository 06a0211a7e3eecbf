package operate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/operate/messages"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/server"
)

// site is a broker whose queue "q" dead-letters to "dlq", and what can be done to it.
type site struct {
	*operate.Operations
	t       *testing.T
	b       *broker.Broker
	q, dlq  *broker.Queue
	records *observer.ObservedLogs
	metrics *prometheus.Registry
	mu      sync.Mutex // of changes: a timer writes the sum of many attempts
	changes []operate.Change
}

func newSite(t *testing.T) *site {
	t.Helper()
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	core, records := observer.New(zap.InfoLevel)
	s := &site{t: t, b: b, records: records, metrics: prometheus.NewRegistry()}
	recorder := operate.NewRecorder(operate.RecorderOptions{Log: zap.New(core), Registerer: s.metrics,
		Changed: func(c operate.Change) { s.mu.Lock(); defer s.mu.Unlock(); s.changes = append(s.changes, c) }})
	s.Operations = operate.New(operate.Options{Broker: b, Server: server.New(server.Options{Broker: b}), Log: zap.New(core), Recorder: recorder})
	t.Cleanup(s.Close)
	s.q = s.declare("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	s.dlq = s.declare("dlq", nil)
	return s
}

// changed are the changes that were recorded so far.
func (s *site) changed() []operate.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

func (s *site) declare(name string, args amqp.Table) *broker.Queue {
	s.t.Helper()
	vh, _ := s.b.VHost("/")
	q, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	require.NoError(s.t, err)
	return q
}

// dead makes n dead letters.
func (s *site) dead(n int) {
	s.t.Helper()
	vh, _ := s.b.VHost("/")
	p := vh.OwnPublisher()
	for range n {
		_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: new(amqp.Properties).Append(nil)})
		require.NoError(s.t, err)
		p.Flush(nil)
	}
	found, err := s.q.Messages.Browse(broker.Browse{Count: n})
	require.NoError(s.t, err)
	for i := range found {
		require.Equal(s.t, deadline.Expired, s.b.FireNow(s.q.Messages.Ref(&found[i]), false))
	}
	require.NoError(s.t, s.b.Forwarded(s.t.Context()))
}

// user makes somebody with a tag, who may read and write everything unless there is no vhost.
func (s *site) user(name, tag string, vhosts ...string) operate.Actor {
	s.t.Helper()
	u := access.User{Name: name, Tags: []string{tag}}
	require.NoError(s.t, s.b.Accounts.PutUser(u))
	for _, vhost := range vhosts {
		require.NoError(s.t, s.b.Accounts.SetPermission(access.Permission{User: name, VHost: vhost, Write: ".*", Read: ".*"}))
	}
	return operate.Actor{Name: u.Name, Tags: u.Tags, Face: operate.API}
}

var dlq = operate.QueueName{VHost: "/", Name: "dlq"}

// TestWhoMayHandleAReplay: its owner and administrators; to others, who may read its queue too, there is no such replay.
func TestWhoMayHandleAReplay(t *testing.T) {
	s := newSite(t)
	s.dead(20)
	root, owner, reader := s.user("root", access.Administrator), s.user("owner", access.Management, "/"), s.user("reader", access.Management, "/")
	watcher := s.user("watcher", access.Monitoring, "/")
	request := deadletters.Request{VHost: "/", Queue: "dlq", Options: deadletters.Options{Rate: 0.01}}
	replay, err := operate.StartReplay.Do(t.Context(), s.Operations, owner, operate.ReplayRequest{VHost: "/", Queue: "dlq", Options: request.Options})
	require.NoError(t, err)
	ownerless, err := s.Operations.Replay(t.Context(), request)
	require.NoError(t, err)

	for _, by := range []operate.Actor{reader, watcher, {Tags: []string{access.Management}}} {
		list, err := operate.ListReplays.Do(t.Context(), s.Operations, by, operate.None{})
		require.NoError(t, err)
		assert.Empty(t, list)
		for _, id := range []string{replay.ID, ownerless.ID, ""} {
			_, err = operate.ShowReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: id})
			assert.ErrorIs(t, err, operate.ErrNotFound)
			_, err = operate.CancelReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: id})
			assert.ErrorIs(t, err, operate.ErrNotFound)
			_, err = operate.ResumeReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: id})
			assert.ErrorIs(t, err, operate.ErrNotFound)
		}
	}
	for _, by := range []operate.Actor{owner, root} {
		got, err := operate.ShowReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: replay.ID})
		require.NoError(t, err)
		assert.Equal(t, deadletters.Running, got.State, "nobody has stopped it")
		_, err = operate.CancelReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: replay.ID})
		require.NoError(t, err)
		got, err = operate.ResumeReplay.Do(t.Context(), s.Operations, by, operate.ReplayName{ID: replay.ID})
		require.NoError(t, err)
		assert.Equal(t, "owner", got.User, "it stays whose it was")
	}
	list, _ := operate.ListReplays.Do(t.Context(), s.Operations, owner, operate.None{})
	assert.Len(t, list, 1)
	list, _ = operate.ListReplays.Do(t.Context(), s.Operations, root, operate.None{})
	assert.Len(t, list, 2)
	_, err = operate.ShowReplay.Do(t.Context(), s.Operations, owner, operate.ReplayName{ID: ownerless.ID})
	assert.ErrorIs(t, err, operate.ErrNotFound, "what nobody owns is the administrators'")
}

// TestChangesAreRecorded: once each, with the same keys, whether they were done, refused or failed; a look is not.
func TestChangesAreRecorded(t *testing.T) {
	s := newSite(t)
	s.dead(3)
	user, other := s.user("user", access.Management, "/"), s.user("other", access.Management)
	_, err := messages.Peek.Do(t.Context(), s.Operations, user, messages.PeekRequest{VHost: "/", Queue: "dlq", Encoding: "auto", From: "head", State: "ready", Count: 10})
	require.NoError(t, err)
	_, err = operate.PurgeDeadLetters.Do(t.Context(), s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "dlq"})
	require.ErrorContains(t, err, "3 messages match")
	require.Zero(t, s.records.Len())

	done, err := operate.PurgeDeadLetters.Do(t.Context(), s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "dlq", Confirm: new(3)})
	require.NoError(t, err)
	require.Equal(t, 3, done.Deleted)
	_, err = operate.PurgeQueue.Do(t.Context(), s.Operations, other, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
	require.ErrorIs(t, err, operate.ErrNoEntry)
	require.True(t, operate.Refused(err))
	_, err = operate.PurgeQueue.Do(t.Context(), s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "none"})
	require.True(t, operate.Gone(err))
	require.Error(t, s.Permit(other, messages.CancelDelayed.Name, map[string]string{"vhost": "/", "id": "3-17-1893456000000000000"}), "refused before it is read")

	var results []string
	for _, e := range s.records.All() {
		fields := e.ContextMap()
		require.Equal(t, "operation", e.Message)
		for _, key := range []string{"operation", "user", "face", "result", "vhost", "queue"} {
			require.Contains(t, fields, key)
		}
		results = append(results, fields["operation"].(string)+" "+fields["user"].(string)+" "+fields["result"].(string))
	}
	require.Equal(t, []string{"purge_dead_letters user done", "purge_queue other refused", "purge_queue user failed", "cancel_delayed other refused"}, results)
	require.EqualValues(t, 3, s.records.All()[0].ContextMap()["messages"])
	require.Len(t, s.changed(), len(results), "whoever asked for them is told the same")
	require.Equal(t, operate.Change{Operation: operate.PurgeDeadLetters.Name, By: user, At: dlq, Result: "done", Detail: "messages 3", Values: map[string]any{"messages": int64(3)}}, s.changed()[0])
	require.Contains(t, s.changed()[1].Detail, operate.ErrNoEntry.Error())
	require.Equal(t, map[string]any{"id": "3-17-1893456000000000000"}, s.changed()[3].Values, "a refusal names what it was about")
	require.Equal(t, "/", s.changed()[3].At.VHost)
	require.Equal(t, "make virtual host", admin.MakeVHost.Name.Words())
	count, err := testutil.GatherAndCount(s.metrics, "curfew_operations_total")
	require.NoError(t, err)
	require.Equal(t, 4, count)
}

// TestChangesWaitForTheCommit, unless the client has stopped waiting.
func TestChangesWaitForTheCommit(t *testing.T) {
	s := newSite(t)
	s.dead(2)
	user := s.user("user", access.Management, "/")
	ended, end := context.WithCancel(t.Context())
	end()
	require.Eventually(t, func() bool { // either may be first
		_, err := operate.PurgeQueue.Do(ended, s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "dlq", All: true})
		return err == nil || assert.ErrorIs(t, err, context.Canceled)
	}, time.Minute, time.Millisecond)
	ready, _, _ := s.dlq.Messages.Counts()
	require.Zero(t, ready, "it is done all the same")
}

// TestDeadlinesOfASpan are counted by queue, the one with the most first, of those that the user may read.
func TestDeadlinesOfASpan(t *testing.T) {
	s := newSite(t)
	vh, _ := s.b.VHost("/")
	p := vh.OwnPublisher()
	for i, queue := range []string{"q", "dlq", "dlq", "dlq"} {
		expiration := fmt.Sprint(60_000 * (i + 1))
		_, err := p.Add(&broker.Publication{RoutingKey: []byte(queue), Properties: (&amqp.Properties{Expiration: expiration, Has: amqp.HasExpiration}).Append(nil)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	user, now := s.user("user", access.Monitoring, "/"), s.b.UnixMillis(s.b.Now())
	next := func(by operate.Actor, q messages.DeadlineList) ([]messages.Deadline, []messages.QueueDeadlines, error) {
		page, err := messages.ListDeadlines.Do(t.Context(), s.Operations, by, q)
		return page.Items, page.Queues, err
	}
	list, in, err := next(user, messages.DeadlineList{Count: 10})
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Len(t, in, 2)
	require.Equal(t, "dlq", in[0].Queue)
	require.Equal(t, 3, in[0].Count)
	require.InDelta(t, now+120_000, in[0].First, 20_000)
	list, in, err = next(user, messages.DeadlineList{Count: 1, After: now + 90_000, Before: now + 200_000})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Len(t, in, 1)
	require.Equal(t, 2, in[0].Count)
	_, in, err = next(s.user("other", access.Management), messages.DeadlineList{Count: 1})
	require.NoError(t, err)
	require.Empty(t, in)
}

// TestADeadlineThatSomebodyElseChanged stays as it is for those who saw another.
func TestADeadlineThatSomebodyElseChanged(t *testing.T) {
	s := newSite(t)
	vh, _ := s.b.VHost("/")
	p := vh.OwnPublisher()
	_, err := p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{Expiration: "60000", MessageID: "m", Has: amqp.HasExpiration | amqp.HasMessageID}).Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	user, at, seq := s.user("user", access.Management, "/"), operate.QueueName{VHost: "/", Name: "q"}, queue.Seq(1)
	seen, err := s.Look(t.Context(), user, at, seq, 0)
	require.NoError(t, err)
	was := seen.DeadlineMillis
	done, err := messages.ChangeDeadline.Do(t.Context(), s.Operations, user, messages.DeadlineChange{VHost: "/", Queue: "q", Seq: seq, By: 1000, Was: &was})
	require.NoError(t, err)
	require.Equal(t, messages.DeadlineChanged{Outcome: "rescheduled", Deadline: was + 1000}, done)
	_, err = messages.ChangeDeadline.Do(t.Context(), s.Operations, user, messages.DeadlineChange{VHost: "/", Queue: "q", Seq: seq, Fire: true, Was: &was})
	require.ErrorIs(t, err, operate.ErrChanged)
	_, err = messages.ChangeDeadline.Do(t.Context(), s.Operations, user, messages.DeadlineChange{VHost: "/", Queue: "q", Seq: seq, At: was + policy.MaxTTLMillis})
	var far *operate.Wrong
	require.ErrorAs(t, err, &far)
	_, err = messages.ChangeDeadline.Do(t.Context(), s.Operations, user, messages.DeadlineChange{VHost: "/", Queue: "q", Seq: 99, Fire: true})
	require.ErrorIs(t, err, operate.ErrMessageGone)
	_, err = messages.ChangeDeadline.Do(t.Context(), s.Operations, user, messages.DeadlineChange{VHost: "/", Queue: "q", MessageID: "m", Fire: true})
	require.NoError(t, err)
	records := s.records.All()
	last := records[len(records)-1].ContextMap()
	require.Equal(t, []any{uint64(1), "m"}, []any{last["seq"], last["message_id"]}, "the record says which message it was")
}

// TestTimesAreTheWallClocks, though the broker's own clock is a day ahead.
func TestTimesAreTheWallClocks(t *testing.T) {
	wall := func() int64 { return time.Now().UnixNano() }
	b, err := broker.New(broker.Options{Clock: func() int64 { return wall() + int64(24*time.Hour) }, Wall: wall})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	p, hour := vh.OwnPublisher(), time.Now().Add(time.Hour).UnixMilli()
	properties := amqp.Properties{Headers: amqp.Table{"x-expires-at": hour}}
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)

	s := operate.New(operate.Options{Broker: b, Server: server.New(server.Options{Broker: b})})
	guest, at := operate.Actor{Name: "guest", Tags: []string{access.Administrator}}, operate.QueueName{VHost: "/", Name: "q"}
	require.InDelta(t, time.Now().UnixMilli(), s.State().NowMillis, 60_000)
	m, err := s.Look(t.Context(), guest, at, 1, 0)
	require.NoError(t, err)
	require.Equal(t, hour, m.DeadlineMillis)
	letters, err := messages.SearchDeadLetters.Do(t.Context(), s, guest, messages.DeadLetters{VHost: "/", Queue: "q", Count: 10})
	require.NoError(t, err)
	require.Equal(t, hour, *letters.Items[0].Deadline)
	done, err := messages.ChangeDeadline.Do(t.Context(), s, guest, messages.DeadlineChange{VHost: "/", Queue: "q", Seq: 1, Was: &hour, At: hour + 60_000})
	require.NoError(t, err)
	require.Equal(t, messages.DeadlineChanged{Outcome: "rescheduled", Deadline: hour + 60_000}, done)
	found, err := q.Messages.Browse(broker.Browse{Count: 1})
	require.NoError(t, err)
	require.Equal(t, b.Instant(hour+60_000), found[0].Deadline)
}

// TestSavedFiltersAreNoParametersForOthers: a policymaker, who sees the global parameters, need not be one who may read the queues.
func TestSavedFiltersAreNoParametersForOthers(t *testing.T) {
	s := newSite(t)
	user := s.user("user", access.Management, "/")
	_, err := operate.SaveFilter.Do(t.Context(), s.Operations, user, operate.FilterToSave{VHost: "/", Queue: "dlq", Name: "f", Filter: `message_id == "secret"`})
	require.NoError(t, err)
	_, err = s.b.SetGlobalParameter("shown", "x")
	require.NoError(t, err)
	seen := func(as operate.Actor) ([]admin.GlobalParameter, error) {
		return admin.ListGlobalParameters.Do(t.Context(), s.Operations, as, admin.GlobalName{})
	}
	all, err := seen(s.user("policymaker", access.Policymaker))
	require.NoError(t, err)
	require.Equal(t, []admin.GlobalParameter{{Name: "shown", Value: "x"}}, all)
	all, err = seen(s.user("root", access.Administrator))
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = seen(user)
	var role *operate.MissingRole
	require.ErrorAs(t, err, &role)
	list, err := operate.ListFilters.Do(t.Context(), s.Operations, user, operate.QueueFilter{VHost: "/", Queue: "dlq"})
	require.NoError(t, err)
	require.Len(t, list, 1)
}
