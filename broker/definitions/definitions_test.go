package definitions

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

func newBroker(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	b, err := broker.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func parse(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text))
	require.NoError(t, err)
	return d
}

func exported(t *testing.T, b *broker.Broker) string {
	t.Helper()
	text, err := Export(b, Version{"4.1.0", "Curfew", "1"}).Marshal()
	require.NoError(t, err)
	return string(text)
}

// TestTypedCharacters: patterns, arguments and tags are exported as they were typed, and read again.
func TestTypedCharacters(t *testing.T) {
	const typed = "<a>&b"
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	_, err := vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: typed, Definition: policy.Definition{"dead-letter-exchange": typed}})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-note": typed}})
	require.NoError(t, err)
	text := exported(t, b)
	assert.NotContains(t, text, `\u00`)
	assert.Equal(t, 3, strings.Count(text, typed), text)
	again := newBroker(t, broker.Options{})
	_, err = Import(t.Context(), again, parse(t, text), Options{})
	require.NoError(t, err)
	assert.Equal(t, text, exported(t, again))
}

// TestImportOfRabbitMQsExports reads exports of RabbitMQ 3.10.8, by management API and by
// rabbitmqctl.
func TestImportOfRabbitMQsExports(t *testing.T) {
	for _, name := range []string{"management.json", "rabbitmqctl.json"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name))
			require.NoError(t, err)
			b := newBroker(t, broker.Options{})
			report, err := Import(t.Context(), b, parse(t, string(text)), Options{})
			require.NoError(t, err)
			require.Empty(t, report.Kept)

			v2, ok := b.VHost("v2")
			require.True(t, ok)
			require.Equal(t, access.Limits{"max-connections": 5}, v2.Limits())
			vh, _ := b.VHost("/")
			q, err := vh.Queues.Get("orders")
			require.NoError(t, err)
			require.Equal(t, amqp.Table{"x-max-length": int64(5), "x-dead-letter-exchange": "dx", "x-queue-type": "quorum"}, q.Info().Args)
			user, operator, effective := q.Policies()
			require.Equal(t, "ttl", user)
			require.Equal(t, "op", operator)
			require.Equal(t, policy.Definition{"message-ttl": int64(60000), "max-length": int64(1000)}, effective)
			x, err := vh.Exchanges.Get("dx")
			require.NoError(t, err)
			require.Equal(t, "headers", x.Kind)
			u, ok := b.Accounts.User("u")
			require.True(t, ok)
			require.True(t, access.Verify(&u, "x"), "the password hash works")
			require.Equal(t, []string{"monitoring"}, u.Tags)
			require.Equal(t, access.Limits{"max-connections": 5}, u.Limits)
			require.Len(t, b.Accounts.TopicPermissions(), 1)

			again := exported(t, b)
			other := newBroker(t, broker.Options{})
			_, err = Import(t.Context(), other, parse(t, again), Options{})
			require.NoError(t, err)
			require.JSONEq(t, again, exported(t, other), "an export imported exports the same")
			report, err = Import(t.Context(), other, parse(t, again), Options{})
			require.NoError(t, err)
			require.Empty(t, report, "and can be imported again")
		})
	}
}

func TestRefusedImportChangesNothing(t *testing.T) {
	const queue = `"vhost":"/","durable":true,"auto_delete":false,"arguments":`
	for text, want := range map[string]string{
		`{"queues":[{"name":"n",` + queue + `{"x-max-length":-6}}]}`:                                  "invalid arg 'x-max-length' for queue 'n' in vhost '/': {value_negative,-6}",
		`{"queues":[{"name":"n",` + queue + `{"x-queue-type":"foo"}}]}`:                               `invalid arg 'x-queue-type' for queue 'n' in vhost '/': "unsupported queue type 'foo'"`,
		`{"queues":[{"name":"n","vhost":"nope"}]}`:                                                    "queue 'n' is in virtual host 'nope', which does not exist",
		`{"queues":[{"name":"n"}]}`:                                                                   "queue 'n' names no virtual host",
		`{"exchanges":[{"name":"x","vhost":"/","type":"foo"}]}`:                                       "exchange 'x' in vhost '/': unknown exchange type 'foo'",
		`{"bindings":[{"source":"amq.direct","vhost":"/","destination":"x","destination_type":"y"}]}`: "binding of 'x' to 'amq.direct': destination type 'y' is neither queue nor exchange",
		`{"policies":[{"vhost":"/","name":"p","pattern":"(","definition":{"expires":1}}]}`:            "Validation failed\n\npattern should be regular expression but is invalid: {\"missing )\",1}\n (//p)",
		`{"policies":[{"vhost":"/","pattern":"a","definition":{"expires":1}}]}`:                       "policy in virtual host '/' has undefined name",
		`{"parameters":[{"vhost":"/","component":"foo","name":"p","value":1}]}`:                       "Validation failed\n\ncomponent foo not found\n (//foo/p)",
		`{"parameters":[{"vhost":"/","component":"policy","name":"p","value":{}}]}`:                   "policies may not be set using this method (//policy/p)",
		`{"users":[{"name":"u","hashing_algorithm":"nope"}]}`:                                         `user 'u': invalid: hashing algorithm "nope" of user "u" is not known`,
		`{"permissions":[{"user":"nouser","vhost":"/"}]}`:                                             "permissions of user 'nouser' in virtual host '/': broker: no such user",
		`{"vhosts":[{"name":""}]}`:                                                                    "virtual host '': invalid: the name of a virtual host has 1 to 255 octets of UTF-8",
	} {
		b := newBroker(t, broker.Options{})
		before := exported(t, b)
		d := parse(t, text)
		d.Queues = append([]Queue{{Name: "fine", VHost: "/"}}, d.Queues...)
		d.VHosts = append([]VHost{{Name: "fine"}}, d.VHosts...)
		_, err := Import(t.Context(), b, d, Options{})
		require.EqualError(t, err, want, text)
		require.JSONEq(t, before, exported(t, b))
	}
	for text, want := range map[string]string{
		`{"queues":5}`:                      "definitions: queues cannot be a number",
		`{"queues":[{"arguments":[1]}]}`:    "definitions: arguments must be an object, not [1]",
		`{"users":[{"password_hash":"z"}]}`: "definitions: illegal base64 data at input byte 0",
		`[]`:                                "definitions: not a JSON object",
		`{"queues"`:                         "definitions: not a JSON object",
	} {
		_, err := Parse([]byte(text))
		require.EqualError(t, err, want, text)
	}
}

// TestLimitsCountInAnImport: existing queues count, and an import beyond the limit is
// refused before it changes anything.
func TestLimitsCountInAnImport(t *testing.T) {
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	_, err := vh.Queues.Declare(nil, "there", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.NoError(t, vh.SetLimits(access.Limits{"max-queues": 2}))
	d := parse(t, `{"queues":[{"name":"there","vhost":"/","durable":true},{"name":"two","vhost":"/"}]}`)
	_, err = Import(t.Context(), b, d, Options{})
	require.NoError(t, err)
	d.Queues = append(d.Queues, Queue{Name: "three", VHost: "/"})
	_, err = Import(t.Context(), b, d, Options{})
	require.ErrorContains(t, err, "queue limit in vhost '/' (2) is reached")
	require.Len(t, vh.Queues.List(), 2)
}

// TestEmptyListsForEmptyObjects: Erlang writes an empty object as a list.
func TestEmptyListsForEmptyObjects(t *testing.T) {
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	require.NoError(t, vh.SetLimits(access.Limits{"max-queues": 2}))
	_, err := Import(t.Context(), b, parse(t, `{"users":[{"name":"u","limits":[]}],"queues":[{"name":"q","vhost":"/","arguments":[]}],
		"parameters":[{"vhost":"/","component":"vhost-limits","name":"limits","value":[]}],"global_parameters":[{"name":"g","value":[]}]}`), Options{})
	require.NoError(t, err)
	require.Empty(t, vh.Limits())
}

// TestImportWhereMoreThanTheLimitExists: a limit below the present number stops only new queues.
func TestImportWhereMoreThanTheLimitExists(t *testing.T) {
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	for _, name := range []string{"one", "two"} {
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
		require.NoError(t, err)
	}
	require.NoError(t, vh.SetLimits(access.Limits{"max-queues": 1}))
	_, err := Import(t.Context(), b, parse(t, `{"queues":[{"name":"one","vhost":"/"}],"exchanges":[{"name":"x","vhost":"/","type":"fanout"}]}`), Options{})
	require.NoError(t, err)
}

// TestSubqueuesComeWithTheirQueue: the queue that x-dead-letter-queue declares comes with its
// queue, and not separately.
func TestSubqueuesComeWithTheirQueue(t *testing.T) {
	b, other := newBroker(t, broker.Options{}), newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	_, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true, Args: amqp.Table{"x-dead-letter-queue": true}})
	require.NoError(t, err)
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: "q/$deadletterqueue", RoutingKey: "k"}))
	report, err := Import(t.Context(), other, Export(b, Version{}), Options{})
	require.NoError(t, err)
	require.Empty(t, report)
	require.JSONEq(t, exported(t, b), exported(t, other))
	vh, _ = other.VHost("/")
	_, err = vh.Queues.Get("q/$deadletterqueue")
	require.NoError(t, err)
	report, err = Import(t.Context(), other, parse(t, `{"queues":[{"name":"z/$deadletterqueue","vhost":"/"}]}`), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"queue 'z/$deadletterqueue' in vhost '/'"}, report.Skipped)
}

func TestWhatStaysAsItIs(t *testing.T) {
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	owner := new(int)
	_, err := vh.Queues.Declare(owner, "mine", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "topic", Durable: true}))
	report, err := Import(t.Context(), b, parse(t, `{
		"queues":[{"name":"q","vhost":"/","durable":true,"arguments":{"x-max-length":6}},{"name":"mine","vhost":"/"},{"name":"amq.x","vhost":"/"}],
		"exchanges":[{"name":"x","vhost":"/","type":"fanout","durable":true},{"name":"","vhost":"/","type":"direct"}],
		"bindings":[{"source":"x","vhost":"/","destination":"no","destination_type":"queue"},{"source":"","vhost":"/","destination":"q","destination_type":"queue"}]}`), Options{})
	require.NoError(t, err)
	require.Equal(t, Report{
		Kept: []string{
			"cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.",
			"inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'topic'",
			"inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received the value '6' of type 'long' but current is none",
		},
		Skipped: []string{
			"binding of 'no' to 'x' in vhost '/': no queue 'no' in vhost '/'",
			"binding of 'q' to '' in vhost '/': operation not permitted on the default exchange",
			"exchange '' in vhost '/'", "queue 'amq.x' in vhost '/'",
		},
	}, report)
	require.NotContains(t, exported(t, b), `"mine"`)
}

// TestWhoImportsAVirtualHost: the user who imports a new virtual host gets all permissions
// in it, unless the document sets that user's permissions.
func TestWhoImportsAVirtualHost(t *testing.T) {
	b := newBroker(t, broker.Options{})
	_, _, err := b.PutVHost("", "old", broker.VHostMetadata{})
	require.NoError(t, err)
	_, err = Import(t.Context(), b, parse(t, `{"users":[{"name":"u","tags":""}],"vhosts":[{"name":"old"},{"name":"new"},{"name":"said"}],"permissions":[
		{"user":"u","vhost":"new","configure":"c","write":"w","read":"r"},{"user":"guest","vhost":"said","configure":"c","write":"w","read":"r"}]}`), Options{User: "guest"})
	require.NoError(t, err)
	_, err = Import(t.Context(), b, parse(t, `{"vhosts":[{"name":"at the start"}]}`), Options{})
	require.NoError(t, err)
	require.Equal(t, []access.Permission{
		{User: "guest", VHost: "/", Configure: ".*", Write: ".*", Read: ".*"},
		{User: "guest", VHost: "new", Configure: ".*", Write: ".*", Read: ".*"},
		{User: "u", VHost: "new", Configure: "c", Write: "w", Read: "r"},
		{User: "guest", VHost: "said", Configure: "c", Write: "w", Read: "r"},
	}, b.Accounts.Permissions())
}

// TestImportThatIsCancelled: an import whose context ends before it is saved changes nothing, however far it had come.
func TestImportThatIsCancelled(t *testing.T) {
	b := newBroker(t, broker.Options{})
	d := &Document{}
	for i := range 2000 {
		d.Queues = append(d.Queues, Queue{Name: fmt.Sprint("q", i), VHost: "/", Durable: true})
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	_, err := Import(ctx, b, d, Options{Progress: func(done, total int) {
		require.Equal(t, 2000, total)
		if seen = done; done > 1000 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, seen, 1500, "it stops soon")
	vh, _ := b.VHost("/")
	require.Empty(t, vh.Queues.List())
	_, err = Import(t.Context(), b, d, Options{})
	require.NoError(t, err)
	require.Len(t, vh.Queues.List(), 2000)
}

func TestOneVirtualHost(t *testing.T) {
	b := newBroker(t, broker.Options{})
	_, err := Import(t.Context(), b, new(Document), Options{VHost: "v2"})
	require.ErrorIs(t, err, broker.ErrNoVHost)
	vh, _, err := b.PutVHost("", "v2", broker.VHostMetadata{})
	require.NoError(t, err)
	_, err = Import(t.Context(), b, parse(t, `{"users":[{"name":"ignored","tags":""}],
		"queues":[{"name":"q","vhost":"elsewhere","durable":true}],"policies":[{"name":"p","pattern":"q","definition":{"max-length":1}}],
		"exchanges":[{"name":"x","type":"fanout"}],"bindings":[{"source":"x","destination":"q","destination_type":"queue","routing_key":"k"}]}`), Options{VHost: "v2"})
	require.NoError(t, err)
	_, there := b.Accounts.User("ignored")
	require.False(t, there)
	text, err := json.Marshal(ExportVHost(vh, Version{RabbitMQ: "4.1.0"}))
	require.NoError(t, err)
	require.JSONEq(t, `{"rabbit_version":"4.1.0","parameters":[],
		"policies":[{"vhost":"v2","name":"p","pattern":"q","apply-to":"all","priority":0,"definition":{"max-length":1}}],
		"queues":[{"name":"q","durable":true,"auto_delete":false,"arguments":{}}],
		"exchanges":[{"name":"x","type":"fanout","durable":false,"auto_delete":false,"internal":false,"arguments":{}}],
		"bindings":[{"source":"x","destination":"q","destination_type":"queue","routing_key":"k","arguments":{}}]}`, string(text))
}

func TestArguments(t *testing.T) {
	in := amqp.Table{"i": int32(5), "b": true, "s": "x", "f": 1.0, "g": 1.5, "n": nil, "t": amqp.Table{"a": []any{int8(1), "y"}}, "time": amqp.Timestamp(7), "d": amqp.Decimal{Scale: 1, Value: 15}}
	text, err := json.Marshal(Arguments(in))
	require.NoError(t, err)
	var out Arguments
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, Arguments{"i": int64(5), "b": true, "s": "x", "f": 1.0, "g": 1.5, "n": nil, "t": amqp.Table{"a": []any{int64(1), "y"}}, "time": int64(7), "d": 1.5}, out)
	require.NoError(t, json.Unmarshal([]byte("[]"), &out))
	require.Nil(t, out)
}

// TestImportIsKept: what was imported survives a restart.
func TestImportIsKept(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	b, err := broker.New(o)
	require.NoError(t, err)
	d := new(Document)
	for i := range 300 {
		d.Queues = append(d.Queues, Queue{Name: fmt.Sprint("q", i), VHost: "/", Durable: true})
		d.Bindings = append(d.Bindings, Binding{Source: "amq.topic", VHost: "/", Destination: fmt.Sprint("q", i), DestinationType: "queue", RoutingKey: "k"})
	}
	_, err = Import(t.Context(), b, d, Options{})
	require.NoError(t, err)
	before := exported(t, b)
	require.NoError(t, b.Close())
	b, err = broker.New(o)
	require.NoError(t, err)
	require.JSONEq(t, before, exported(t, b))
	require.NoError(t, b.Close())
}

func FuzzImport(f *testing.F) {
	for _, name := range []string{"management.json", "rabbitmqctl.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			return
		}
		b := newBroker(t, broker.Options{})
		before := exported(t, b)
		if _, err := Import(t.Context(), b, d, Options{}); err != nil {
			require.JSONEq(t, before, exported(t, b))
		}
	})
}

// TestImportedPolicyGivesAnExclusiveQueueItsOwn: the dead-letter queue belongs to the
// connection of its queue, too.
func TestImportedPolicyGivesAnExclusiveQueueItsOwn(t *testing.T) {
	b := newBroker(t, broker.Options{})
	vh, _ := b.VHost("/")
	owner := new(connection)
	_, err := vh.Queues.Declare(owner, "q", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	d, err := Parse([]byte(`{"policies":[{"vhost":"/","name":"p","pattern":".*","definition":{"dead-letter-queue":true}}]}`))
	require.NoError(t, err)
	_, err = Import(t.Context(), b, d, Options{})
	require.NoError(t, err)
	_, err = vh.Queues.GetFor(owner, "q/$deadletterqueue")
	assert.NoError(t, err)
}

type connection struct{ _ byte } // two of them are not the same
