package server_test

import (
	"testing"

	amqp10 "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

// managed asks /management, by a pair of links of its own.
func (x *site) managed(s *amqp10.Session, name string) func(method, path string, body any) (status string, answer any) {
	x.t.Helper()
	snd, err := s.NewSender(x.t.Context(), "/management", &amqp10.SenderOptions{Name: name})
	require.NoError(x.t, err)
	rcv := x.receiver10(s, "/management", &amqp10.ReceiverOptions{Name: name})
	return func(method, path string, body any) (string, any) {
		x.t.Helper()
		me := "$me"
		require.NoError(x.t, snd.Send(x.t.Context(), &amqp10.Message{
			Properties: &amqp10.MessageProperties{MessageID: path, To: &path, Subject: &method, ReplyTo: &me}, Value: body,
		}, nil))
		m := x.receive10(rcv)
		assert.Equal(x.t, path, m.Properties.CorrelationID)
		assert.Equal(x.t, "1.1", m.ApplicationProperties["http:response"])
		return *m.Properties.Subject, m.Value
	}
}

type fields = map[string]any

// TestManagement10: RabbitMQ 4's operations, with its status codes and texts.
func TestManagement10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c, s := x.connect10(&amqp10.ConnOptions{MaxFrameSize: 512})
		ask := x.managed(s, "pair")
		for _, step := range []struct {
			method, path string
			body         any
			status       string
			answer       any // nil: any
		}{
			{"PUT", "/queues/q%201", fields{"arguments": fields{"x-message-ttl": int64(60_000)}}, "201", nil},
			{"PUT", "/queues/q%201", fields{"arguments": fields{"x-message-ttl": int64(60_000)}}, "200", nil},
			{
				"PUT", "/queues/q%201", fields{"arguments": fields{"x-message-ttl": int64(1)}}, "409",
				"inequivalent arg 'x-message-ttl' for queue 'q 1' in vhost '/': received '1' but current is '60000'",
			},
			{"GET", "/queues/none", nil, "404", "queue 'none' in vhost '/' not found"},
			{"PUT", "/queues/", fields{}, "400", "declare queue with empty name not allowed"},
			{"PUT", "/queues/amq.x", fields{}, "403", "queue 'amq.x' in vhost '/' starts with reserved prefix 'amq.'"},
			{"PUT", "/queues/a%0Ab", fields{}, "400", "Bad name 'a\nb': line feed and carriage return characters not allowed"},
			{"PUT", "/queues/x", fields{"durable": "yes"}, "400", "bad queue property 'durable'"},
			{"PUT", "/queues/x", fields{"arguments": fields{"x-message-ttl": "soon"}}, "409", nil},
			{"PUT", "/queues/%zz", fields{}, "400", "bad path '/queues/%zz'"},
			{"PUT", "/exchanges/x", fields{"type": "topic"}, "204", nil},
			{"PUT", "/exchanges/x", fields{"type": "fanout"}, "409", "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'topic'"},
			{"PUT", "/exchanges/y", fields{"type": "none"}, "400", "unknown exchange type 'none'"},
			{"PUT", "/exchanges/amq.topic", fields{"type": "topic"}, "204", nil},
			{"PUT", "/exchanges/amq.y", fields{}, "403", "exchange 'amq.y' in vhost '/' starts with reserved prefix 'amq.'"},
			{"PUT", "/exchanges/", fields{}, "403", "operation not permitted on the default exchange"},
			{"POST", "/bindings", fields{"source": "x", "destination_queue": "q 1", "binding_key": "k;1"}, "204", nil},
			{"POST", "/bindings", fields{"source": "x", "destination_queue": "q 1", "binding_key": "k;1", "arguments": fields{"n": int32(1)}}, "204", nil},
			{"POST", "/bindings", fields{"source": "none", "destination_queue": "q 1", "binding_key": "k"}, "400", "no exchange 'none' in vhost '/'"},
			{"POST", "/bindings", fields{"source": "", "destination_queue": "q 1", "binding_key": "k"}, "403", "operation not permitted on the default exchange"},
			{"POST", "/bindings", fields{"source": "x", "destination_exchange": "amq.topic", "binding_key": "k"}, "204", nil},
			{"DELETE", "/bindings/src=x;dste=amq.topic;key=k;args=", nil, "204", nil},
			{"GET", "/bindings?src=x&dste=amq.topic&key=k", nil, "200", nil},
			{"GET", "/bindings?src=x&key=k", nil, "400", nil},
			{"DELETE", "/bindings/x", nil, "400", "bad binding path segment 'x'"},
			{"DELETE", "/queues/none", nil, "200", fields{"message_count": uint64(0)}},
			{"DELETE", "/queues/none/messages", nil, "400", "no queue 'none' in vhost '/'"},
			{"DELETE", "/exchanges/none", nil, "204", nil},
			{"DELETE", "/exchanges/amq.topic", nil, "403", "exchange 'amq.topic' in vhost '/' starts with reserved prefix 'amq.'"},
			{"PUT", "/auth/tokens", nil, "404", "PUT /auth/tokens is not an operation of /management"},
			{"GET", "", nil, "404", nil},
		} {
			status, answer := ask(step.method, step.path, step.body)
			assert.Equal(t, step.status, status, "%s %s: %v", step.method, step.path, answer)
			if step.answer != nil {
				assert.Equal(t, step.answer, answer, "%s %s", step.method, step.path)
			}
		}
		address := "/exchanges/x/k%3B1"
		require.NoError(t, x.sender10(s, address).Send(x.t.Context(), amqp10.NewMessage([]byte("a")), nil))
		_, info := ask("GET", "/queues/q%201", nil)
		assert.Equal(t, fields{
			"leader": "curfew", "replicas": []string{"curfew"}, "message_count": uint64(1), "consumer_count": uint32(0), "name": "q 1", "vhost": "/",
			"durable": true, "auto_delete": false, "exclusive": false, "type": "classic", "arguments": fields{"x-message-ttl": int64(60_000)},
		}, info)
		_, answer := ask("DELETE", "/queues/q%201/messages", nil)
		assert.Equal(t, fields{"message_count": uint64(1)}, answer)
		const both = "/bindings?src=x&dstq=q%201&key=k%3B1"
		_, bound := ask("GET", both, nil)
		require.Len(t, bound, 2)
		for i, each := range bound.([]any) {
			path, _ := each.(fields)["location"].(string)
			assert.Regexp(t, `^/bindings/src=x;dstq=q%201;key=k%3B1;args=`, path)
			ask("DELETE", path, nil)
			_, left := ask("GET", both, nil)
			assert.Len(t, left, 1-i)
		}
		_, answer = ask("DELETE", "/queues/q%201", nil)
		assert.Equal(t, fields{"message_count": uint64(0)}, answer)
		x.close10(c)
	})
}

// TestExclusiveQueue10: it belongs to its connection, and goes with it.
func TestExclusiveQueue10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c, s := x.connect10(nil)
		status, _ := x.managed(s, "a")("PUT", "/queues/mine", fields{"exclusive": true})
		assert.Equal(t, "201", status)
		other, ofOther := x.connect10(nil)
		ask := x.managed(ofOther, "b")
		for method, path := range map[string]string{"PUT": "/queues/mine", "DELETE": "/queues/mine/messages"} {
			status, text := ask(method, path, fields{"exclusive": true})
			assert.Equal(t, "400", status)
			assert.Contains(t, text, "cannot obtain exclusive access to locked queue 'mine' in vhost '/'")
		}
		x.close10(c)
		status, _ = ask("GET", "/queues/mine", nil)
		assert.Equal(t, "404", status)
		x.close10(other)
	})
}

// TestManagementNeedsPermission: what the user may not do ends the session, as in RabbitMQ, and nothing else.
func TestManagementNeedsPermission(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("reader", "", "", ".*")
		x.queue10("q", amqp091.Table{})
		c, s := x.connect10(&amqp10.ConnOptions{SASLType: amqp10.SASLTypePlain("reader", "reader")})
		status, _ := x.managed(s, "pair")("GET", "/queues/q", nil)
		assert.Equal(t, "200", status)
		for method, path := range map[string]string{"PUT": "/queues/new", "DELETE": "/queues/q"} {
			s, err := c.NewSession(x.t.Context(), nil)
			require.NoError(t, err)
			snd, err := s.NewSender(x.t.Context(), "/management", &amqp10.SenderOptions{Name: "pair"})
			require.NoError(t, err)
			rcv := x.receiver10(s, "/management", &amqp10.ReceiverOptions{Name: "pair"})
			err = snd.Send(x.t.Context(), &amqp10.Message{Properties: &amqp10.MessageProperties{To: &path, Subject: &method}, Value: fields{}}, nil)
			var ended *amqp10.SessionError
			require.ErrorAs(t, err, &ended)
			assert.Equal(t, amqp10.ErrCond("amqp:unauthorized-access"), ended.RemoteErr.Condition)
			assert.Contains(t, ended.RemoteErr.Description, "access to queue '"+path[len("/queues/"):]+"' in vhost '/' refused for user 'reader'")
			_, err = rcv.Receive(x.t.Context(), nil)
			require.Error(t, err)
		}
		_, err := c.NewSession(x.t.Context(), nil)
		require.NoError(t, err)
		x.close10(c)
	})
}
