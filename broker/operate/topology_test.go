package operate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/operate"
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
	found, err := s.q.Browse(broker.Browse{Count: 2, BodyBytes: -1})
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

// TestPurgeDeletesWhatSomebodySaw: what arrives after somebody saw the number stays, and the number is good.
func TestPurgeDeletesWhatSomebodySaw(t *testing.T) {
	s := newSite(t)
	user, at := s.user("user", access.Management, "/"), operate.QueueName{VHost: "/", Name: "q"}
	publish := func() {
		_, err := s.Publish(t.Context(), user, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q"})
		require.NoError(t, err)
	}
	publish()
	publish()
	_, err := s.PurgeSeen(t.Context(), user, at, deadletters.Confirmation{Messages: -1})
	var asked *deadletters.Unconfirmed
	require.ErrorAs(t, err, &asked)
	require.Equal(t, 2, asked.Matched)
	publish()
	n, err := s.PurgeSeen(t.Context(), user, at, deadletters.Confirmation{Messages: 2, Position: asked.Position})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	ready, _, _ := s.q.Counts()
	require.Equal(t, 1, ready)
}

// TestOnlyTheQueueThatSomebodySawIsDeleted, not another one of its name.
func TestOnlyTheQueueThatSomebodySawIsDeleted(t *testing.T) {
	s := newSite(t)
	root, at := s.user("root", access.Administrator), operate.QueueName{VHost: "/", Name: "q"}
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	seen := s.q.ID()
	_, err := s.DeleteQueue(t.Context(), root, at, operate.QueueDeletion{})
	require.NoError(t, err)
	created, err := s.DeclareQueue(t.Context(), root, at, broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.True(t, created)
	created, err = s.DeclareQueue(t.Context(), root, at, broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.False(t, created)
	_, err = s.DeleteQueue(t.Context(), root, at, operate.QueueDeletion{QueueID: seen})
	require.ErrorIs(t, err, operate.ErrNotFound)
	_, err = s.Queue(t.Context(), root, at)
	require.NoError(t, err)
}

// TestUsersAreTheAdministrators: nobody else sees or changes them. What is done is recorded once, without a password.
func TestUsersAreTheAdministrators(t *testing.T) {
	s := newSite(t)
	root, watcher := s.user("root", access.Administrator), s.user("watcher", access.Monitoring, "/")
	u := access.User{Name: "new", Tags: []string{access.Management}}
	u.SetPassword("secret")
	created, err := s.SetUser(t.Context(), root, u)
	require.NoError(t, err)
	require.True(t, created)
	require.NoError(t, s.SetUserLimits(t.Context(), root, "new", access.Limits{access.MaxConnections: 1}))
	u.Tags = nil
	created, err = s.SetUser(t.Context(), root, u)
	require.NoError(t, err)
	require.False(t, created)
	got, err := s.User(t.Context(), root, "new")
	require.NoError(t, err)
	require.Equal(t, access.Limits{access.MaxConnections: 1}, got.Limits, "they stay")
	created, err = s.SetPermission(t.Context(), root, access.Permission{User: "new", VHost: "/", Read: ".*"})
	require.NoError(t, err)
	require.True(t, created)
	require.NoError(t, s.ClearPermission(t.Context(), root, "new", "/"))
	require.ErrorIs(t, s.ClearPermission(t.Context(), root, "new", "/"), operate.ErrNotFound)

	_, err = s.ListUsers(t.Context(), watcher)
	require.True(t, operate.Refused(err))
	_, err = s.SetUser(t.Context(), watcher, u)
	require.True(t, operate.Refused(err))
	require.True(t, operate.Refused(s.DeleteUser(t.Context(), watcher, "new")))
	require.NoError(t, s.DeleteUser(t.Context(), root, "new"))
	require.ErrorIs(t, s.DeleteUser(t.Context(), root, "new"), operate.ErrNotFound)
	for _, e := range s.records.All() {
		require.NotContains(t, e.ContextMap(), "password")
	}
	require.Equal(t, 10, s.records.Len())
}

// TestNoMoreMessagesGoThanWereConfirmed: those that arrive between the count and the deletion stay, with their queue.
func TestNoMoreMessagesGoThanWereConfirmed(t *testing.T) {
	s := newSite(t)
	root, at := s.user("root", access.Administrator), operate.QueueName{VHost: "/", Name: "q"}
	require.NoError(t, s.b.Accounts.SetPermission(access.Permission{User: "root", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"}))
	publish := func() {
		_, err := s.Publish(t.Context(), root, &operate.Publication{Exchange: operate.ExchangeName{VHost: "/"}, RoutingKey: "q"})
		require.NoError(t, err)
	}
	publish()
	publish()
	_, err := s.q.Get(false, func(*broker.Delivery) {})
	require.NoError(t, err, "one of them is unacked")
	most := 2
	publish()
	_, err = s.DeleteQueue(t.Context(), root, at, operate.QueueDeletion{AtMost: &most})
	require.ErrorContains(t, err, "has 3 messages and dead letters, more than the 2 that may be deleted")
	most = 3
	_, err = s.DeleteQueue(t.Context(), root, at, operate.QueueDeletion{AtMost: &most})
	require.NoError(t, err)
	_, err = s.Queue(t.Context(), root, at)
	require.ErrorIs(t, err, operate.ErrNotFound)
}

// TestAPolicyThatSomebodyElseSet is not replaced by those who saw another, or none.
func TestAPolicyThatSomebodyElseSet(t *testing.T) {
	s := newSite(t)
	root := s.user("root", access.Administrator, "/")
	set := func(as operate.Settings, priority int64) error {
		p := operate.PolicyDefinition{Name: "p", Pattern: ".*", Priority: priority, Definition: policy.Definition{"max-length": int64(9)}}
		_, err := as.SetPolicy(t.Context(), root, "/", operate.UserPolicies, p)
		return err
	}
	seen := func() string {
		p, err := s.Policy(t.Context(), root, "/", operate.UserPolicies, "p")
		require.NoError(t, err)
		return s.PolicyVersion(operate.UserPolicies, &p)
	}
	require.NoError(t, set(s.IfPolicyStill(""), 1))
	require.ErrorIs(t, set(s.IfPolicyStill(""), 2), operate.ErrPolicyChanged, "somebody else made it")
	first := seen()
	require.NoError(t, set(s.IfPolicyStill(first), 3))
	require.ErrorIs(t, set(s.IfPolicyStill(first), 4), operate.ErrPolicyChanged)
	p, err := s.Policy(t.Context(), root, "/", operate.UserPolicies, "p")
	require.NoError(t, err)
	_, err = s.IfPolicyStill(first).SetPolicyForBacklog(t.Context(), root, "/", operate.UserPolicies, p.Policy, false)
	require.ErrorIs(t, err, operate.ErrPolicyChanged)
	require.EqualValues(t, 3, p.Priority)
	require.NoError(t, set(s.Settings, 5), "whoever does not say what was seen replaces it")
	require.NoError(t, s.ClearPolicy(t.Context(), root, "/", operate.UserPolicies, "p"))
	require.NoError(t, set(s.IfPolicyStill(first), 6), "nothing is replaced")
}

// TestAUserThatSomebodyElseChanged stays as it is for those who saw another: no change is lost without a word.
func TestAUserThatSomebodyElseChanged(t *testing.T) {
	s := newSite(t)
	root := s.user("root", access.Administrator)
	_, err := s.IfUserStill("new", "").SetUser(t.Context(), root, access.User{Name: "new"})
	require.NoError(t, err)
	_, err = s.IfUserStill("new", "").SetUser(t.Context(), root, access.User{Name: "new", Tags: []string{"x"}})
	require.ErrorIs(t, err, operate.ErrUserChanged, "somebody else made it")
	permission := access.Permission{User: "new", VHost: "/", Read: ".*"}
	topic := access.TopicPermission{User: "new", VHost: "/", Exchange: "amq.topic", Read: "a"}
	for name, change := range map[string]func(operate.Users) error{
		"tags": func(u operate.Users) error {
			_, err := u.SetUser(t.Context(), root, access.User{Name: "new", Tags: []string{"management"}})
			return err
		},
		"limits": func(u operate.Users) error {
			return u.SetUserLimits(t.Context(), root, "new", access.Limits{access.MaxChannels: 3})
		},
		"permissions": func(u operate.Users) error { _, err := u.SetPermission(t.Context(), root, permission); return err },
		"topics":      func(u operate.Users) error { return u.SetTopicPermission(t.Context(), root, topic) },
	} {
		seen, err := s.UserVersion(t.Context(), root, "new")
		require.NoError(t, err)
		require.NoError(t, change(s.IfUserStill("new", seen)), name)
		require.ErrorIs(t, change(s.IfUserStill("new", seen)), operate.ErrUserChanged, name)
		require.NoError(t, change(s.Users), "whoever does not say what was seen changes it")
	}
	_, err = s.UserVersion(t.Context(), s.user("watcher", access.Monitoring, "/"), "new")
	require.True(t, operate.Refused(err))
}
