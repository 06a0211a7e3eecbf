package broker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

func newUser(name, password string, tags ...string) access.User {
	u := access.User{Name: name, Tags: tags}
	u.SetPassword(password)
	return u
}

// openBroker opens a broker that is closed with the test, unless close was called.
func openBroker(t *testing.T, o Options) (b *Broker, closeIt func()) {
	t.Helper()
	b, err := New(o)
	require.NoError(t, err)
	closed := false
	closeIt = func() {
		if !closed {
			closed = true
			require.NoError(t, b.Close())
		}
	}
	t.Cleanup(closeIt)
	return b, closeIt
}

func all(user, vhost string) access.Permission {
	return access.Permission{User: user, VHost: vhost, Configure: ".*", Write: ".*", Read: ".*"}
}

func assertCode(t *testing.T, err error, code uint16, text string) {
	t.Helper()
	var e *amqp.Exception
	if assert.ErrorAs(t, err, &e) {
		assert.Equal(t, code, e.Code)
		assert.Equal(t, text, e.Text)
	}
}

func TestTheConfiguredUser(t *testing.T) {
	b, _ := openBroker(t, Options{})
	u, err := b.Accounts.Authenticate(t.Context(), "guest", "guest", netip.Addr{})
	require.NoError(t, err)
	assert.Equal(t, []string{"administrator"}, u.Tags)
	assert.Equal(t, []access.Permission{all("guest", "/")}, b.Accounts.Permissions())
	require.NoError(t, b.RightsOf("guest", "/").Queue(access.Configure, "q"))
}

// logsIn reports whether name and password let somebody on this machine in.
func logsIn(b *Broker, name, password string) bool {
	_, err := b.Accounts.Authenticate(context.Background(), name, password, netip.Addr{})
	return err == nil
}

func TestTheConfiguredUserOverRestarts(t *testing.T) {
	dir := t.TempDir()
	open := func(user, password string) (*Broker, func()) {
		return openBroker(t, Options{Store: store.Options{Dir: dir}, User: user, Password: password})
	}
	b, shut := open("app", "one")
	require.True(t, logsIn(b, "app", "one"))
	require.NoError(t, b.Accounts.PutUser(newUser("app", "changed")))
	shut()

	b, shut = open("app", "one")
	assert.True(t, logsIn(b, "app", "changed"), "the same configuration leaves what was changed since")
	shut()

	b, shut = open("app", "two")
	assert.True(t, logsIn(b, "app", "two"), "another password is applied")
	u, _ := b.Accounts.User("app")
	assert.Empty(t, u.Tags, "and nothing else of the user")
	require.NoError(t, b.Accounts.DeleteUser("app"))
	shut()

	b, shut = open("app", "two")
	assert.False(t, logsIn(b, "app", "two"), "a deleted user stays so")
	shut()

	b, shut = open("other", "three")
	assert.True(t, logsIn(b, "other", "three"))
	shut()
	b, _ = open("other", "three")
	assert.True(t, logsIn(b, "other", "three"), "with no change that was saved, it is applied again")
}

// TestWhoMakesAVirtualHostMayDoAllInIt: at once and after a restart, and only who makes it.
func TestWhoMakesAVirtualHostMayDoAllInIt(t *testing.T) {
	o := Options{Store: store.Options{Dir: t.TempDir()}}
	b, shut := openBroker(t, o)
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	for _, user := range []string{"u", "guest"} { // the second changes it
		_, created, err := b.PutVHost(user, "v", VHostMetadata{Description: user})
		require.NoError(t, err)
		assert.Equal(t, user == "u", created)
	}
	_, _, err := b.PutVHost("nobody", "w", VHostMetadata{})
	require.NoError(t, err)
	want := []access.Permission{all("guest", "/"), all("u", "v")}
	assert.Equal(t, want, b.Accounts.Permissions())
	require.NoError(t, b.RightsOf("u", "v").Queue(access.Configure, "q"))
	shut()
	b, _ = openBroker(t, o)
	assert.Equal(t, want, b.Accounts.Permissions())
	require.NoError(t, b.RightsOf("u", "v").Queue(access.Configure, "q"))
}

func TestAccountsOutliveARestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{Store: store.Options{Dir: dir}}
	b, shut := openBroker(t, o)
	u := newUser("u", "secret", "monitoring")
	require.NoError(t, b.Accounts.PutUser(u))
	require.NoError(t, b.Accounts.SetUserLimits("u", access.Limits{access.MaxChannels: 3}))
	vh, created, err := b.PutVHost("", "v", VHostMetadata{Description: "d", Tags: []string{"t"}, DefaultQueueType: "quorum"})
	require.NoError(t, err)
	assert.True(t, created)
	require.NoError(t, vh.SetLimits(access.Limits{access.MaxQueues: 1}))
	_, err = vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.NoError(t, b.Accounts.SetPermission(access.Permission{User: "u", VHost: "v", Write: "^w"}))
	topic := access.TopicPermission{User: "u", VHost: "v", Exchange: "amq.topic", Write: "^k"}
	require.NoError(t, b.Accounts.SetTopicPermission(topic))
	require.NoError(t, b.DeleteVHost("/"))
	shut()

	b, _ = openBroker(t, o)
	assert.True(t, logsIn(b, "u", "secret"))
	u.Limits = access.Limits{access.MaxChannels: 3}
	got, _ := b.Accounts.User("u")
	assert.Equal(t, u, got)
	_, ok := b.VHost("/")
	assert.False(t, ok, "a deleted virtual host stays so")
	vh, ok = b.VHost("v")
	require.True(t, ok)
	assert.Equal(t, VHostMetadata{Description: "d", Tags: []string{"t"}, DefaultQueueType: "quorum"}, vh.Metadata())
	_, err = vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "second", QueueDeclare{})
	assertCode(t, err, 406, "PRECONDITION_FAILED - cannot declare queue 'second': queue limit in vhost 'v' (1) is reached")
	assert.Equal(t, []access.Permission{{User: "u", VHost: "v", Write: "^w"}}, b.Accounts.Permissions())
	assert.Equal(t, []access.TopicPermission{topic}, b.Accounts.TopicPermissions())
	r := b.RightsOf("u", "v")
	assert.NoError(t, r.Topic(access.Write, vh, []byte("amq.topic"), []byte("key")))
	assertCode(t, r.Topic(access.Write, vh, []byte("amq.topic"), []byte("other")), 403, "ACCESS_REFUSED - access to topic 'other' in exchange 'amq.topic' in vhost 'v' refused for user 'u'")
}

func TestGuestStaysAtHome(t *testing.T) {
	away, home := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:127.0.0.1")
	b, _ := openBroker(t, Options{})
	_, err := b.Accounts.Authenticate(t.Context(), "guest", "guest", away)
	assert.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "user 'guest' can only connect via localhost")
	_, err = b.Accounts.Identify("guest", away)
	assert.ErrorIs(t, err, ErrRefused, "with a certificate neither")
	_, err = b.Accounts.Authenticate(t.Context(), "guest", "guest", home)
	assert.NoError(t, err)

	b, _ = openBroker(t, Options{GuestFromAnywhere: true})
	_, err = b.Accounts.Authenticate(t.Context(), "guest", "guest", away)
	assert.NoError(t, err)
}

func TestGuessingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, shut := openBroker(t, Options{Clock: func() int64 { return time.Now().UnixNano() }})
		defer shut()
		from := netip.MustParseAddr("127.0.0.1")
		start := time.Now()
		try := func(ctx context.Context, name string) error {
			_, err := b.Accounts.Authenticate(ctx, name, "wrong", from)
			require.Error(t, err)
			return err
		}
		for _, name := range []string{"guest", "nobody", "a", "b", "c"} {
			assert.ErrorContains(t, try(t.Context(), name), "invalid credentials", "the same for a user who exists and one who does not")
		}
		assert.Zero(t, time.Since(start))
		for _, name := range []string{"guest", "d"} {
			try(t.Context(), name)
		}
		assert.Equal(t, 3*time.Second, time.Since(start), "whatever the name")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, try(ctx, "guest"), context.DeadlineExceeded)
		start = time.Now()
		_, err := b.Accounts.Authenticate(t.Context(), "guest", "guest", from)
		assert.NoError(t, err)
		assert.Zero(t, time.Since(start), "the right password does not wait for the answers to wrong ones")
	})
}

// TestARightPasswordGetsInAmongGuesses: names are sprayed from the address that a user logs in from.
func TestARightPasswordGetsInAmongGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, shut := openBroker(t, Options{Clock: func() int64 { return time.Now().UnixNano() }})
		defer shut()
		from := netip.MustParseAddr("10.1.2.3")
		require.NoError(t, b.Accounts.PutUser(newUser("u", "right")))
		const guessers = 100
		var answered atomic.Int64
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for g := range guessers {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					name := "u"
					if g%2 == 0 {
						name = fmt.Sprint(g, " ", i)
					}
					patience := time.Hour
					if g%4 > 1 {
						patience = 100 * time.Millisecond // an answer that is late is no
					}
					patient, cancel := context.WithTimeout(ctx, patience)
					_, err := b.Accounts.Authenticate(patient, name, "wrong", from)
					cancel()
					if errors.Is(err, ErrRefused) {
						answered.Add(1)
					}
				}
			})
		}
		start := time.Now()
		for range 49 {
			began := time.Now()
			_, err := b.Accounts.Authenticate(t.Context(), "u", "right", from)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), time.Second)
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		all.Wait()
		assert.Less(t, answered.Load(), 5+guessers/2*int64(1+time.Since(start)/time.Second/4), "four seconds each")
	})
}

func TestPermissionsChangeAtOnce(t *testing.T) {
	b, _ := openBroker(t, Options{})
	vh, _ := b.VHost("/")
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	r, p := b.RightsOf("u", "/"), vh.NewPublisher("u")
	const refused = "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'"
	publish := func() error {
		_, err := p.Add(&Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{}).Append(nil)})
		return err
	}
	assertCode(t, publish(), 403, refused)
	require.NoError(t, b.Accounts.SetPermission(all("u", "/")))
	assert.NoError(t, publish())
	assert.NoError(t, publish())
	assert.NoError(t, r.Queue(access.Read, "q"))
	require.NoError(t, b.Accounts.SetPermission(access.Permission{User: "u", VHost: "/", Write: "^amq\\.default$"}))
	assert.NoError(t, publish())
	assertCode(t, r.Queue(access.Read, "q"), 403, "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'")
	require.NoError(t, b.Accounts.ClearPermission("u", "/"))
	assertCode(t, publish(), 403, refused)
}

func TestANameIsNoTopic(t *testing.T) {
	b, _ := openBroker(t, Options{})
	vh, _ := b.VHost("/")
	require.NoError(t, vh.Exchanges.Declare("x", ExchangeDeclare{Kind: "topic"}))
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	require.NoError(t, b.Accounts.SetPermission(all("u", "/")))
	require.NoError(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "u", VHost: "/", Exchange: "x"}))
	r := b.RightsOf("u", "/")
	for prefix := range 256 { // whatever a topic is remembered by
		require.NoError(t, r.Queue(access.Write, string([]byte{byte(prefix), 1, 'x', 'k'})))
		require.NoError(t, r.Queue(access.Write, string([]byte{1, 'x', 'k'})))
	}
	assert.Error(t, r.Topic(access.Write, vh, []byte("x"), []byte("k")))
}

func TestWhoMaySpeakForOthers(t *testing.T) {
	b, _ := openBroker(t, Options{})
	vh, _ := b.VHost("/")
	props := amqp.Properties{UserID: "guest"}
	m := &Publication{RoutingKey: []byte("q"), Properties: props.Append(nil)}
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	require.NoError(t, b.Accounts.SetPermission(all("u", "/")))
	p := vh.NewPublisher("u")
	_, err := p.Add(m)
	assertCode(t, err, 406, "PRECONDITION_FAILED - user_id property set to 'guest' but authenticated user was 'u'")
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p", access.Impersonator)))
	_, err = p.Add(m)
	assert.NoError(t, err)
}

func TestWhatIsNotThere(t *testing.T) {
	b, _ := openBroker(t, Options{})
	assert.ErrorIs(t, b.Accounts.DeleteUser("u"), ErrNoUser)
	assert.ErrorIs(t, b.Accounts.SetUserLimits("u", nil), ErrNoUser)
	assert.ErrorIs(t, b.Accounts.SetPermission(all("u", "/")), ErrNoUser)
	assert.ErrorIs(t, b.Accounts.SetPermission(all("guest", "v")), ErrNoVHost)
	assert.ErrorIs(t, b.DeleteVHost("v"), ErrNoVHost)
	assert.ErrorIs(t, b.Accounts.ClearTopicPermissions("u", "/", ""), ErrNoUser)
	_, _, err := b.PutVHost("", "", VHostMetadata{})
	assert.ErrorIs(t, err, access.ErrInvalid)
	_, _, err = b.PutVHost("", "v", VHostMetadata{DefaultQueueType: "x"})
	assert.ErrorIs(t, err, access.ErrInvalid)
	assert.ErrorIs(t, b.Accounts.PutUser(access.User{}), access.ErrInvalid)
	assert.Len(t, b.VHosts(), 1)
}

func TestAPermissionThatCannotBeChangesNothing(t *testing.T) {
	b, _ := openBroker(t, Options{})
	bad := access.Permission{User: "guest", VHost: "/", Write: "("}
	assert.ErrorIs(t, b.Accounts.SetPermission(bad), access.ErrInvalid)
	assert.Equal(t, []access.Permission{all("guest", "/")}, b.Accounts.Permissions())
	assert.ErrorIs(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "guest", VHost: "/", Exchange: "x", Read: "("}), access.ErrInvalid)
	assert.Empty(t, b.Accounts.TopicPermissions())
	require.NoError(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "guest", VHost: "/", Exchange: "x"}))
	require.NoError(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "guest", VHost: "/", Exchange: "y"}))
	require.NoError(t, b.Accounts.ClearTopicPermissions("guest", "/", "x"))
	assert.Len(t, b.Accounts.TopicPermissions(), 1)
	require.NoError(t, b.Accounts.ClearTopicPermissions("guest", "/", ""))
	assert.Empty(t, b.Accounts.TopicPermissions())
}

func TestDeletedVHost(t *testing.T) {
	dir := t.TempDir()
	o := Options{Store: store.Options{Dir: dir}}
	b, shut := openBroker(t, o)
	vh, _, err := b.PutVHost("", "v", VHostMetadata{})
	require.NoError(t, err)
	require.NoError(t, b.Accounts.SetPermission(all("guest", "v")))
	q, err := vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	p := vh.NewPublisher("guest")
	props := amqp.Properties{DeliveryMode: 2}
	_, err = p.Add(&Publication{RoutingKey: []byte("q"), Properties: props.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	_, err = vh.schedule()
	require.NoError(t, err)
	waiting := vh.delays.Load()
	ended := make(chan *amqp.Exception, 1)
	s, err := b.OpenSession("guest", "v", func(e *amqp.Exception) { ended <- e })
	require.NoError(t, err)

	require.NoError(t, b.DeleteVHost("v"))
	assertCode(t, <-ended, 320, "CONNECTION_FORCED - vhost 'v' is deleted")
	s.Close()
	ready, _, _ := q.Messages.Counts()
	assert.Zero(t, ready)
	_, _, named := b.Deadlines().QueueName(q.ID)
	assert.False(t, named)
	assert.Nil(t, b.delays.find(waiting.ID()))
	assert.Len(t, b.Accounts.Permissions(), 1, "guest's in /")
	_, err = vh.Queues.Declare(nil, "late", QueueDeclare{})
	assertCode(t, err, 530, "NOT_ALLOWED - vhost v not found")
	_, err = b.OpenSession("guest", "v", nil)
	assertCode(t, err, 530, "NOT_ALLOWED - vhost v not found")
	shut()

	b, _ = openBroker(t, o)
	_, ok := b.VHost("v")
	assert.False(t, ok)
	assert.Zero(t, b.Recovered())
}

func TestSessionsAreLimited(t *testing.T) {
	b, _ := openBroker(t, Options{})
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	_, err := b.OpenSession("u", "/", nil)
	assertCode(t, err, 530, "NOT_ALLOWED - access to vhost '/' refused for user 'u'")
	require.NoError(t, b.Accounts.SetPermission(all("u", "/")))
	require.NoError(t, b.Accounts.SetUserLimits("u", access.Limits{access.MaxConnections: 1, access.MaxChannels: 1}))
	first, err := b.OpenSession("u", "/", nil)
	require.NoError(t, err, "the one that was refused does not count")
	_, err = b.OpenSession("u", "/", nil)
	assertCode(t, err, 530, "NOT_ALLOWED - connection refused for user 'u': user connection limit (1) is reached")
	require.NoError(t, first.OpenChannel())
	assertCode(t, first.OpenChannel(), 530, "NOT_ALLOWED - number of channels opened for user 'u' has reached the maximum allowed user limit of (1)")
	first.CloseChannel()
	require.NoError(t, first.OpenChannel())
	first.Close()
	first.Close()
	first.CloseChannel()

	vh, _ := b.VHost("/")
	require.NoError(t, vh.SetLimits(access.Limits{access.MaxConnections: 1}))
	second, err := b.OpenSession("u", "/", nil)
	require.NoError(t, err)
	require.NoError(t, second.OpenChannel())
	_, err = b.OpenSession("guest", "/", nil)
	assertCode(t, err, 530, "NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (1) is reached")
	second.Close()
	assert.Empty(t, b.sessions.ofUser)
	assert.Empty(t, b.sessions.ofVHost)
	assert.Empty(t, b.sessions.channels)
}

func TestDeletedUser(t *testing.T) {
	b, _ := openBroker(t, Options{})
	require.NoError(t, b.Accounts.PutUser(newUser("u", "p")))
	require.NoError(t, b.Accounts.SetPermission(all("u", "/")))
	var ends []string
	for _, name := range []string{"u", "guest", "u"} {
		_, err := b.OpenSession(name, "/", func(e *amqp.Exception) { ends = append(ends, name+": "+e.Text) })
		require.NoError(t, err)
	}
	require.NoError(t, b.Accounts.DeleteUser("u"))
	assert.Equal(t, []string{"u: CONNECTION_FORCED - user 'u' is deleted", "u: CONNECTION_FORCED - user 'u' is deleted"}, ends)
	assert.Len(t, b.Accounts.Permissions(), 1)
	assert.Error(t, b.RightsOf("u", "/").Queue(access.Read, "q"))
}

func TestDefaultQueueType(t *testing.T) {
	b, _ := openBroker(t, Options{})
	vh, _, err := b.PutVHost("", "/", VHostMetadata{DefaultQueueType: "quorum"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		declare QueueDeclare
		kind    any
	}{
		"durable":   {QueueDeclare{Durable: true}, "quorum"},
		"transient": {QueueDeclare{}, nil},
		"named":     {QueueDeclare{Durable: true, Args: amqp.Table{"x-queue-type": "classic"}}, "classic"},
	} {
		q, err := vh.Queues.Declare(nil, name, c.declare)
		require.NoError(t, err)
		assert.Equal(t, c.kind, q.Info().Args["x-queue-type"], name)
		_, err = vh.Queues.Declare(nil, name, c.declare)
		assert.NoError(t, err, "as it was declared")
	}
	_, err = vh.Queues.Declare(nil, policy.UndeliverableQueue, QueueDeclare{Durable: true})
	assert.NoError(t, err)
}

func TestPermittedPublishDoesNotAllocate(t *testing.T) {
	b, _ := openBroker(t, Options{})
	require.NoError(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "guest", VHost: "/", Exchange: "amq.topic", Write: "^k"}))
	vh, _ := b.VHost("/")
	r := b.RightsOf("guest", "/")
	exchanges, key := [][]byte{[]byte("amq.direct"), []byte("amq.topic")}, []byte("key")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for _, x := range exchanges {
			if r.Publish(x) != nil || r.Topic(access.Write, vh, x, key) != nil {
				t.Fatal("refused")
			}
		}
	}))
}

func TestCeilings(t *testing.T) {
	dir := t.TempDir()
	o := Options{Store: store.Options{Dir: dir}}
	b, shut := openBroker(t, o)
	vh, _ := b.VHost("/")
	for _, name := range []string{"a", "b"} {
		_, err := vh.Queues.Declare(nil, name, QueueDeclare{Durable: true})
		require.NoError(t, err)
		require.NoError(t, vh.Exchanges.Declare(name, ExchangeDeclare{Kind: "direct", Durable: true}))
		require.NoError(t, vh.Bind(nil, Binding{Source: "a", Destination: name}))
	}
	shut()
	o.Ceilings = Ceilings{Queues: 1, Exchanges: 1, Bindings: 1}
	b, _ = openBroker(t, o) // what is there stays
	vh, _ = b.VHost("/")
	_, err := vh.Queues.Declare(nil, "c", QueueDeclare{})
	assertCode(t, err, 406, "PRECONDITION_FAILED - cannot declare queue 'c': queue limit in vhost '/' (1) is reached")
	_, err = vh.Queues.Declare(nil, "b", QueueDeclare{Durable: true})
	assert.NoError(t, err)
	assertCode(t, vh.Exchanges.Declare("c", ExchangeDeclare{Kind: "direct"}), 406, "PRECONDITION_FAILED - cannot declare exchange 'c': exchange limit in vhost '/' (1) is reached")
	more := Binding{Source: "a", Destination: "b", RoutingKey: "more"}
	assertCode(t, vh.Bind(nil, more), 406, "PRECONDITION_FAILED - cannot bind to exchange 'a' in vhost '/': binding limit (1) is reached")
	x, err := vh.Exchanges.Get("a")
	require.NoError(t, err)
	assert.Equal(t, 2, x.Bindings)
	assert.NoError(t, vh.Bind(nil, Binding{Source: "a", Destination: "b"}), "it is there")
	require.NoError(t, vh.SetLimits(access.Limits{access.MaxQueues: 0}))
	_, err = vh.Queues.Declare(nil, "c", QueueDeclare{})
	assertCode(t, err, 406, "PRECONDITION_FAILED - cannot declare queue 'c': queue limit in vhost '/' (0) is reached")
}
