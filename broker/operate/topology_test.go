package operate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
	"curfew/broker/operate/admin"
	"curfew/broker/policy"
)

// TestPublishNeedsWhatItNeedsOverAMQP, and says what became of the message.
func TestPublishNeedsWhatItNeedsOverAMQP(t *testing.T) {
	s := newSite(t)
	user, reader, stranger := s.user("user", access.Management, "/"), s.user("reader", access.Management), s.user("stranger", access.Management)
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "reader", VHost: "/", Read: ".*"}))
	m := operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q", Properties: amqp.Properties{Expiration: "60000", Has: amqp.HasExpiration}, Body: []byte("b")}
	routed, err := s.Publish(t.Context(), user, &m)
	require.NoError(t, err)
	require.True(t, routed)
	found, err := s.q.Messages.Browse(broker.Browse{Count: 2, BodyBytes: -1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "b", string(found[0].Message.Body))
	assert.NotZero(t, found[0].Deadline)

	m.RoutingKey = "nowhere"
	routed, err = s.Publish(t.Context(), user, &m)
	require.NoError(t, err)
	assert.False(t, routed)
	for _, by := range []operate.Actor{reader, stranger} {
		_, err = s.Publish(t.Context(), by, &m)
		assert.True(t, operate.Refused(err), err)
		assert.True(t, operate.Refused(s.MayPublish(t.Context(), by, m.Exchange)))
	}
	for _, wrong := range []operate.Publication{
		{Exchange: m.Exchange, RoutingKey: string(make([]byte, 256))}, {Exchange: m.Exchange, Properties: amqp.Properties{MessageID: string(make([]byte, 256)), Has: amqp.HasMessageID}},
		{Exchange: m.Exchange, Body: make([]byte, s.b.MaxMessageBytes()+1)},
	} {
		_, err = s.Publish(t.Context(), user, &wrong)
		var invalid *operate.Invalid
		assert.ErrorAs(t, err, &invalid)
	}
	s.declare("full", amqp.Table{"x-max-length": int64(0), "x-overflow": "reject-publish"})
	_, err = s.Publish(t.Context(), user, &operate.Publication{Exchange: m.Exchange, RoutingKey: "full"})
	require.ErrorIs(t, err, operate.ErrQueueFull)
	_, err = s.Publish(t.Context(), user, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/", Name: "none"}})
	require.True(t, operate.Gone(err))
}

// TestAChangeNeedsAVirtualHost: a form may have been sent without it.
func TestAChangeNeedsAVirtualHost(t *testing.T) {
	s := newSite(t)
	root := s.user("root", access.Administrator, "/")
	_, err := admin.DeclareQueue.Do(t.Context(), s.Operations, root, admin.NewQueue{Queue: "new"})
	require.ErrorIs(t, err, operate.ErrNoVHost)
	_, err = admin.SetVHostLimit.Do(t.Context(), s.Operations, root, admin.VHostLimit{Limit: access.MaxQueues, Value: 1})
	require.ErrorIs(t, err, operate.ErrNoVHost)
	_, err = admin.ListExchanges.Do(t.Context(), s.Operations, root, admin.ExchangeFilter{})
	require.NoError(t, err, "a list is of all")
}

// TestPurgeDeletesWhatSomebodySaw: what arrives after somebody saw the number stays, and the number is good.
func TestPurgeDeletesWhatSomebodySaw(t *testing.T) {
	s := newSite(t)
	user := s.user("user", access.Management, "/")
	publish := func() {
		_, err := s.Publish(t.Context(), user, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q"})
		require.NoError(t, err)
	}
	publish()
	publish()
	_, err := operate.PurgeQueue.Do(t.Context(), s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "q"})
	var asked *deadletters.Unconfirmed
	require.ErrorAs(t, err, &asked)
	require.Equal(t, 2, asked.Matched)
	publish()
	done, err := operate.PurgeQueue.Do(t.Context(), s.Operations, user, operate.PurgeRequest{VHost: "/", Queue: "q", Confirm: new(2), Position: asked.Position})
	require.NoError(t, err)
	require.Equal(t, 2, done.Deleted)
	ready, _, _ := s.q.Messages.Counts()
	require.Equal(t, 1, ready)
}

// TestAnExclusiveQueueIsPurgedByItsOwnerOnly: all purges ask the same, with a filter or a number or without.
func TestAnExclusiveQueueIsPurgedByItsOwnerOnly(t *testing.T) {
	s := newSite(t)
	user := s.user("user", access.Management, "/")
	vh, _ := s.b.VHost("/")
	owner := new(int)
	q, err := vh.Queues.Declare(owner, "own", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	_, err = s.Publish(t.Context(), user, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "own"})
	require.NoError(t, err)
	for _, purge := range []operate.Typed[operate.PurgeRequest, operate.Deleted]{operate.PurgeQueue, operate.PurgeDeadLetters} {
		for _, r := range []operate.PurgeRequest{{All: true}, {}, {Confirm: new(1)}, {Confirm: new(1), Filter: `bytes == 0`}} {
			r.VHost, r.Queue = "/", "own"
			_, err := purge.Do(t.Context(), s.Operations, user, r)
			assert.ErrorContains(t, err, "exclusive", "%s %+v", purge.Name, r)
		}
	}
	ready, _, _ := q.Messages.Counts()
	require.Equal(t, 1, ready)
}

// TestOnlyTheQueueThatSomebodySawIsDeleted, not another one of its name.
func TestOnlyTheQueueThatSomebodySawIsDeleted(t *testing.T) {
	s := newSite(t)
	root, at, page := s.user("root", access.Administrator), operate.QueueName{VHost: "/", Name: "q"}, admin.QueuePage{VHost: "/", Queue: "q"}
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	seen := s.q.ID
	_, err := admin.DeleteQueue.Do(t.Context(), s.Operations, root, admin.QueueDeletion{QueuePage: page})
	require.NoError(t, err)
	for _, isNew := range []bool{true, false} {
		_, created, err := s.Do(t.Context(), root, admin.DeclareQueue.Op, admin.NewQueue{VHost: "/", Queue: "q", Durable: true}, nil)
		require.NoError(t, err)
		require.Equal(t, isNew, created)
	}
	_, err = admin.DeleteQueue.Do(t.Context(), s.Operations, root, admin.QueueDeletion{QueuePage: page, ID: seen})
	require.ErrorIs(t, err, operate.ErrNotFound)
	_, err = s.Queue(t.Context(), root, at)
	require.NoError(t, err)
}

// TestUsersAreTheAdministrators: nobody else sees or changes them. What is done is recorded once, without a password.
func TestUsersAreTheAdministrators(t *testing.T) {
	s := newSite(t)
	root, watcher := s.user("root", access.Administrator), s.user("watcher", access.Monitoring, "/")
	u := admin.UserSettings{User: "new", UserTags: admin.UserTags{Tags: []string{access.Management}}, Credentials: admin.Credentials{Password: "secret"}}
	set := func(as operate.Actor, u admin.UserSettings) (bool, error) {
		_, created, err := s.Do(t.Context(), as, admin.SetUser.Op, u, nil)
		return created, err
	}
	created, err := set(root, u)
	require.NoError(t, err)
	require.True(t, created)
	_, err = admin.SetUserLimit.Do(t.Context(), s.Operations, root, admin.UserLimit{User: "new", Limit: access.MaxConnections, Value: 1})
	require.NoError(t, err)
	u.Tags = []string{}
	created, err = set(root, u)
	require.NoError(t, err)
	require.False(t, created)
	got, err := admin.ListUsers.Do(t.Context(), s.Operations, root, admin.UserFilter{User: "new"})
	require.NoError(t, err)
	require.Equal(t, access.Limits{access.MaxConnections: 1}, got[0].Limits, "they stay")
	_, created, err = s.Do(t.Context(), root, admin.SetPermission.Op, admin.Permission{User: "new", VHost: "/", Read: ".*"}, nil)
	require.NoError(t, err)
	require.True(t, created)
	permission := admin.UserInVHost{User: "new", VHost: "/"}
	_, err = admin.ClearPermission.Do(t.Context(), s.Operations, root, permission)
	require.NoError(t, err)
	_, err = admin.ClearPermission.Do(t.Context(), s.Operations, root, permission)
	require.ErrorIs(t, err, operate.ErrNotFound)

	_, err = admin.ListUsers.Do(t.Context(), s.Operations, watcher, admin.UserFilter{})
	require.True(t, operate.Refused(err))
	_, err = set(watcher, u)
	require.True(t, operate.Refused(err))
	remove := func(as operate.Actor) error {
		_, err := admin.DeleteUser.Do(t.Context(), s.Operations, as, admin.UserName{User: "new"})
		return err
	}
	require.True(t, operate.Refused(remove(watcher)))
	require.NoError(t, remove(root))
	require.ErrorIs(t, remove(root), operate.ErrNotFound)
	for _, e := range s.records.All() {
		require.NotContains(t, e.ContextMap(), "password")
	}
	require.Equal(t, 10, s.records.Len())
}

// TestNoMoreMessagesGoThanWereConfirmed: those that arrive between the count and the deletion stay, with their queue.
func TestNoMoreMessagesGoThanWereConfirmed(t *testing.T) {
	s := newSite(t)
	root, at, page := s.user("root", access.Administrator), operate.QueueName{VHost: "/", Name: "q"}, admin.QueuePage{VHost: "/", Queue: "q"}
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	publish := func() {
		_, err := s.Publish(t.Context(), root, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q"})
		require.NoError(t, err)
	}
	publish()
	publish()
	_, err := s.q.Messages.Get(false, func(*broker.Delivery) {})
	require.NoError(t, err, "one of them is unacked")
	most := 2
	publish()
	_, err = admin.DeleteQueue.Do(t.Context(), s.Operations, root, admin.QueueDeletion{QueuePage: page, AtMost: &most})
	require.ErrorContains(t, err, "has 3 messages and dead letters, more than the 2 that may be deleted")
	most = 3
	_, err = admin.DeleteQueue.Do(t.Context(), s.Operations, root, admin.QueueDeletion{QueuePage: page, AtMost: &most})
	require.NoError(t, err)
	_, err = s.Queue(t.Context(), root, at)
	require.ErrorIs(t, err, operate.ErrNotFound)
}

// TestMessagesAreViewedWithoutTheLock: others use the queue meanwhile, and what they do takes nothing away from the view.
func TestMessagesAreViewedWithoutTheLock(t *testing.T) {
	s := newSite(t)
	root, at := s.user("root", access.Administrator, "/"), operate.QueueName{VHost: "/", Name: "q"}
	for how, request := range map[string]operate.GetRequest{"requeued": {After: broker.PutBack}, "acked": {NoAck: true}} {
		for _, body := range []string{"first", "second"} {
			_, err := s.Publish(t.Context(), root, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q", Properties: amqp.Properties{Type: body, Has: amqp.HasType}, Body: []byte(body)})
			require.NoError(t, err)
		}
		var shown []string
		request.Queue, request.Count = at, 9
		require.NoError(t, s.Get(t.Context(), root, request, func(d *broker.Delivery) {
			purged := make(chan int, 1)
			go func() { purged <- s.q.Messages.Purge() }()
			select {
			case n := <-purged:
				assert.Equal(t, 1, n, how)
			case <-time.After(10 * time.Second):
				t.Error("the queue's lock is held")
			}
			p, err := broker.ParseStored(d.Message.Properties)
			require.NoError(t, err)
			shown = append(shown, string(d.Message.Body), p.Type)
		}), how)
		assert.Equal(t, []string{"first", "first"}, shown, how)
		s.q.Messages.Purge()
	}
}

// TestAPolicyThatSomebodyElseSet is not replaced by those who saw another, or none.
func TestAPolicyThatSomebodyElseSet(t *testing.T) {
	s := newSite(t)
	root, op := s.user("root", access.Administrator, "/"), admin.Policies.Set
	request := func(priority int64) admin.PolicyRequest {
		return admin.PolicyRequest{VHost: "/", Name: "p", Pattern: ".*", Priority: priority, Definition: policy.Definition{"max-length": int64(9)}}
	}
	set := func(seen string, priority int64) error {
		_, _, err := s.Operations.Do(t.Context(), root, op.Op, request(priority), new(seen))
		return err
	}
	seen := func() string {
		_, version, err := s.Now(root, op.Op, request(0))
		require.NoError(t, err)
		return version
	}
	require.Empty(t, seen())
	require.NoError(t, set("", 1))
	require.EqualError(t, set("", 2), "a policy with this name already exists", "somebody else made it")
	first := seen()
	require.NoError(t, set(first, 3))
	require.EqualError(t, set(first, 4), "somebody else has changed this policy since then")
	backlog := request(5)
	backlog.Backlog = true
	_, _, err := s.Operations.Do(t.Context(), root, op.Op, backlog, new(first))
	require.ErrorAs(t, err, new(*operate.Stale))
	p, _, err := s.Now(root, op.Op, request(0))
	require.NoError(t, err)
	require.EqualValues(t, 3, p.(admin.PolicyRequest).Priority)
	_, err = op.Do(t.Context(), s.Operations, root, request(5))
	require.NoError(t, err, "whoever does not say what was seen replaces it")
	_, err = admin.Policies.Clear.Do(t.Context(), s.Operations, root, admin.PolicyName{VHost: "/", Name: "p"})
	require.NoError(t, err)
	require.NoError(t, set(first, 6), "nothing is replaced")
}

// TestAUserThatSomebodyElseChanged stays as it is for those who saw another: no change is lost without a word.
func TestAUserThatSomebodyElseChanged(t *testing.T) {
	s := newSite(t)
	root := s.user("root", access.Administrator)
	user := admin.UserSettings{User: "new", UserTags: admin.UserTags{Tags: []string{}}}
	_, _, err := s.Operations.Do(t.Context(), root, admin.SetUser.Op, user, new(""))
	require.NoError(t, err)
	_, _, err = s.Operations.Do(t.Context(), root, admin.SetUser.Op, user, new(""))
	require.EqualError(t, err, "a user with this name already exists")
	for _, change := range []struct {
		op      *operate.Op
		request any
	}{
		{admin.SetUserTags.Op, admin.TagChange{User: "new", UserTags: admin.UserTags{Tags: []string{"management"}}}},
		{admin.SetUserPassword.Op, admin.PasswordChange{User: "new", Credentials: admin.Credentials{Password: "p"}}},
		{admin.SetUserLimit.Op, admin.UserLimit{User: "new", Limit: access.MaxChannels, Value: 3}},
		{admin.SetPermission.Op, admin.Permission{User: "new", VHost: "/", Read: ".*"}},
		{admin.SetTopicPermission.Op, admin.TopicPermission{User: "new", VHost: "/", Exchange: "amq.topic", Read: "a"}},
	} {
		_, seen, err := s.Now(root, change.op, change.request)
		require.NoError(t, err)
		_, _, err = s.Do(t.Context(), root, change.op, change.request, &seen)
		require.NoError(t, err, change.op.Name)
		_, _, err = s.Do(t.Context(), root, change.op, change.request, &seen)
		require.EqualError(t, err, "somebody else has changed this user since then", change.op.Name)
		_, _, err = s.Do(t.Context(), root, change.op, change.request, nil)
		require.NoError(t, err, "whoever does not say what was seen changes it")
	}
	_, _, err = s.Now(s.user("watcher", access.Monitoring, "/"), admin.SetUserTags.Op, admin.TagChange{User: "new"})
	require.True(t, operate.Refused(err))
}
