package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/policy"
)

// TestDefinitionsGoBothWays: RabbitMQ takes what Curfew exports and Curfew what RabbitMQ exports, and both then have the same.
func TestDefinitionsGoBothWays(t *testing.T) {
	t.Parallel()
	rabbitMQDefinitions.Lock()
	defer rabbitMQDefinitions.Unlock()
	url := startRabbitMQ(t)
	ch := openChannel(t, dial(t, url))
	check(t, ch.ExchangeDeclare("defs.x", "topic", true, false, false, false, amqp091.Table{"alternate-exchange": "amq.fanout"}))
	_, err := ch.QueueDeclare("defs.q", true, false, false, false, amqp091.Table{"x-message-ttl": int32(60000), "x-queue-type": "quorum"})
	check(t, err)
	check(t, ch.QueueBind("defs.q", "a.#", "defs.x", false, amqp091.Table{"n": int32(5)}))
	check(t, ch.ExchangeBind("defs.x", "k", "amq.direct", false, nil))
	for _, put := range []struct{ path, body string }{
		{"policies/%2F/defs", `{"pattern":"^(?!amq\\.)defs","definition":{"message-ttl":5000,"ha-mode":"all"},"priority":3,"apply-to":"queues"}`},
		{"operator-policies/%2F/defs-op", `{"pattern":"defs","definition":{"max-length":1000}}`},
		{"vhosts/defs-vh", "{}"}, {"vhost-limits/defs-vh/max-queues", `{"value":7}`},
		{"users/defs-user", `{"password":"secret","tags":"monitoring"}`},
		{"permissions/defs-vh/defs-user", `{"configure":"","write":"^a","read":".*"}`},
		{"topic-permissions/defs-vh/defs-user", `{"exchange":"amq.topic","write":"^a","read":".*"}`},
	} {
		sharedRabbitMQ.done(t, http.MethodPut, put.path, put.body)
	}

	file := filepath.Join(t.TempDir(), "definitions.json")
	theirs := exportRabbitMQ(t, file)
	b := newEmbedded(t)
	left, err := definitions.Import(t.Context(), b, theirs, definitions.Options{})
	check(t, err)
	if len(left.Kept)+len(left.Skipped) > 0 {
		t.Errorf("left out: %v", left)
	}
	reportDifferences(t, "what Curfew made of RabbitMQ's", definitions.Diff(definitions.Export(b, definitions.Version{}), theirs))
	if u, ok := b.Accounts.User("defs-user"); !ok || !access.Verify(&u, "secret") {
		t.Error("the user cannot log in")
	}

	other := newEmbedded(t)
	fill(t, other)
	ours := definitions.Export(other, definitions.Version{RabbitMQ: "4.1.0", Product: "Curfew", ProductVersion: "1"})
	text, err := ours.Marshal()
	check(t, err)
	check(t, os.WriteFile(file, text, 0o600))
	if out, err := sharedRabbitMQ.control("import_definitions", file); err != nil {
		t.Fatalf("import_definitions: %s", out)
	}
	reportDifferences(t, "what RabbitMQ made of Curfew's", definitions.Diff(exportRabbitMQ(t, file), ours))
	if out, err := sharedRabbitMQ.control("authenticate_user", "ours-user", "secret"); err != nil {
		t.Errorf("the user cannot log in: %s", out)
	}
}

func newEmbedded(t *testing.T) *broker.Broker {
	t.Helper()
	b, err := broker.New(broker.Options{})
	check(t, err)
	t.Cleanup(func() { report(t, "close", b.Close()) })
	return b
}

// fill gives a broker one of everything that RabbitMQ 3.10 has too, and durable, since rabbitmqctl exports nothing else.
func fill(t *testing.T, b *broker.Broker) {
	t.Helper()
	vh, _, err := b.PutVHost("", "ours-vh", broker.VHostMetadata{Description: "ours", Tags: []string{"a", "b"}})
	check(t, err)
	check(t, vh.SetLimits(access.Limits{"max-connections": 9}))
	check(t, vh.Exchanges.Declare("ours.x", broker.ExchangeDeclare{Kind: "headers", Durable: true, Args: amqp.Table{"alternate-exchange": "amq.fanout"}}))
	_, err = vh.Queues.Declare(nil, "ours.q", broker.QueueDeclare{Durable: true, Args: amqp.Table{"x-message-ttl": int64(60000), "x-max-priority": int8(5)}})
	check(t, err)
	check(t, vh.Bind(nil, broker.Binding{Source: "ours.x", Destination: "ours.q", Args: amqp.Table{"x-match": "all", "n": int32(5)}}))
	check(t, vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: "ours.x", ToExchange: true, RoutingKey: "a.*"}))
	_, err = vh.Policies.Set(policy.User, policy.Policy{Name: "ours", Pattern: `^(?!amq\.)`, ApplyTo: policy.Queues, Priority: -2, Definition: policy.Definition{"max-length": int64(5)}})
	check(t, err)
	_, err = vh.Policies.Set(policy.Operator, policy.Policy{Name: "ours-op", Pattern: "q", Definition: policy.Definition{"expires": int64(3_600_000)}})
	check(t, err)
	_, err = b.SetGlobalParameter("ours", "a value")
	check(t, err)
	check(t, b.Accounts.PutUser(access.User{Name: "ours-user", PasswordHash: access.Hash("secret"), Algorithm: access.SHA256, Tags: []string{"management"}, Limits: access.Limits{"max-channels": 3}}))
	check(t, b.Accounts.SetPermission(access.Permission{User: "ours-user", VHost: "ours-vh", Configure: "^$", Write: "a", Read: ".*"}))
	check(t, b.Accounts.SetTopicPermission(access.TopicPermission{User: "ours-user", VHost: "ours-vh", Exchange: "amq.topic", Write: "a", Read: ".*"}))
}

func exportRabbitMQ(t *testing.T, file string) *definitions.Document {
	t.Helper()
	if out, err := sharedRabbitMQ.control("export_definitions", file); err != nil {
		t.Fatalf("export_definitions: %s", out)
	}
	text, err := os.ReadFile(file)
	check(t, err)
	d, err := definitions.Parse(text)
	check(t, err)
	return d
}

func reportDifferences(t *testing.T, what string, list []definitions.Difference) {
	t.Helper()
	for _, x := range list {
		if x.Mark != definitions.Missing {
			t.Errorf("%s: %s %s", what, x.Mark, x.What)
		}
	}
}
