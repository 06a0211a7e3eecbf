package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker"
	"curfew/broker/policy"
	"curfew/broker/server"
	"curfew/monitor/schedule"
)

// A lawgiver sets a broker's policies.
type lawgiver interface {
	// set returns what the broker objects to, or "".
	set(k policy.Kind, name, pattern, definition string, priority int) string
	clear(k policy.Kind, name string)
}

// law is one question about policies: like a vector, with the hand that sets them.
type law struct {
	name string
	ask  func(*governed) string
	want string
}

// governed is a session on a broker whose policies one can set.
type governed struct {
	*session
	laws lawgiver
}

// govern sets a policy for all the session's queues.
func (g *governed) govern(definition string) {
	g.t.Helper()
	if refusal := g.laws.set(policy.User, g.name, "^"+g.name, definition, 0); refusal != "" {
		g.t.Fatal(refusal)
	}
	g.t.Cleanup(func() { g.laws.clear(policy.User, g.name) })
}

func (g *governed) operate(definition string) {
	g.t.Helper()
	if refusal := g.laws.set(policy.Operator, g.name, "^"+g.name, definition, 0); refusal != "" {
		g.t.Fatal(refusal)
	}
	g.t.Cleanup(func() { g.laws.clear(policy.Operator, g.name) })
}

// send publishes the bodies and waits until each is confirmed; it returns those that were refused.
func (g *governed) send(queue string, bodies ...string) string {
	g.t.Helper()
	ch := g.channel()
	check(g.t, ch.Confirm(false))
	var refused []string
	for _, body := range bodies {
		c, err := ch.PublishWithDeferredConfirmWithContext(g.t.Context(), "", queue, false, false, amqp091.Publishing{Body: []byte(body)})
		check(g.t, err)
		if !c.Wait() {
			refused = append(refused, body)
		}
	}
	check(g.t, ch.Close())
	return strings.Join(refused, " ")
}

// bodies empties a queue.
func (g *governed) bodies(queue string) string {
	g.t.Helper()
	ch := g.channel()
	var found []string
	for {
		d, ok, err := ch.Get(queue, true)
		check(g.t, err)
		if !ok {
			check(g.t, ch.Close())
			return strings.Join(found, " ")
		}
		found = append(found, string(d.Body))
	}
}

// settled is what a queue holds once it holds n messages.
func (g *governed) settled(queue string, n int) string {
	g.t.Helper()
	eventually(g.t, answerLimit, fmt.Sprintf("%d messages in %s", n, queue), func() bool {
		ch := g.channel()
		q, err := ch.QueueDeclarePassive(queue, false, false, true, false, nil)
		check(g.t, err)
		check(g.t, ch.Close())
		return q.Messages == n
	})
	return g.bodies(queue)
}

var laws = []law{
	{name: "law-ttl", ask: func(g *governed) string {
		ch := g.channel()
		g.queue(ch, g.name+".dead", nil)
		g.queue(ch, g.name, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": g.name + ".dead"})
		g.send(g.name, "before")
		g.laws.set(policy.User, g.name, "^"+g.name+"$", `{"message-ttl":100}`, 0)
		g.t.Cleanup(func() { g.laws.clear(policy.User, g.name) })
		g.send(g.name, "after")
		check(g.t, ch.Qos(1, 0, false))
		head := g.get(ch, g.name) // what stands behind it may expire
		return string(head.Body) + ", dead " + g.settled(g.name+".dead", 1)
	}, want: "before, dead after"},
	{name: "law-shrink", ask: func(g *governed) string {
		ch := g.channel()
		g.queue(ch, g.name, nil)
		g.queue(ch, "dead."+g.name, nil)
		g.send(g.name, "1", "2", "3", "4", "5")
		g.govern(`{"max-length":2,"dead-letter-exchange":"","dead-letter-routing-key":"dead.law-shrink"}`)
		return g.settled("dead."+g.name, 3) + ", left " + g.bodies(g.name)
	}, want: "1 2 3, left 4 5"},
	{name: "law-lower", ask: func(g *governed) string {
		g.govern(`{"max-length":3}`)
		ch := g.channel()
		g.queue(ch, g.name+".low", amqp091.Table{"x-max-length": 2})
		g.queue(ch, g.name+".high", amqp091.Table{"x-max-length": 9})
		g.send(g.name+".low", "1", "2", "3", "4")
		g.send(g.name+".high", "1", "2", "3", "4")
		return g.bodies(g.name+".low") + ", " + g.bodies(g.name+".high")
	}, want: "3 4, 2 3 4"},
	{name: "law-operator", ask: func(g *governed) string {
		g.govern(`{"max-length":3}`)
		g.operate(`{"max-length":1,"max-length-bytes":100}`)
		g.queue(g.channel(), g.name, nil)
		g.send(g.name, "1", "2")
		bounded := g.bodies(g.name)
		g.laws.clear(policy.Operator, g.name)
		g.send(g.name, "1", "2", "3", "4")
		return bounded + ", " + g.bodies(g.name)
	}, want: "2, 2 3 4"},
	{name: "law-declared", ask: func(g *governed) string {
		g.govern(`{"max-length":1,"overflow":"reject-publish","dead-letter-exchange":"amq.fanout","dead-letter-routing-key":"nowhere"}`)
		ch := g.channel()
		g.queue(ch, "dead."+g.name, nil)
		g.queue(ch, g.name, nil)
		g.queue(ch, g.name+".own", amqp091.Table{"x-overflow": "drop-head", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead." + g.name})
		refused := g.send(g.name, "1", "2")
		return "refused " + refused + ", of its own " + g.send(g.name+".own", "1", "2") + g.settled("dead."+g.name, 1) + " " + g.bodies(g.name+".own")
	}, want: "refused 2, of its own 1 2"},
	{name: "law-redeclare", ask: func(g *governed) string {
		g.govern(`{"max-length":3}`)
		g.queue(g.channel(), g.name, nil)
		return g.declaring(nil) + "; " + g.declaring(amqp091.Table{"x-max-length": 3})
	}, want: "nothing; channel 406 PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'law-redeclare' in vhost '/': received the value '3' of type 'signedint' but current is none"},
	{name: "law-passed-over", ask: func(g *governed) string {
		g.govern(`{"max-length":2}`)
		g.laws.set(policy.User, g.name+"-quorum", "^"+g.name, `{"max-length":1,"delivery-limit":3}`, 9)
		g.t.Cleanup(func() { g.laws.clear(policy.User, g.name+"-quorum") })
		g.queue(g.channel(), g.name, nil)
		g.send(g.name, "1", "2", "3")
		return g.bodies(g.name)
	}, want: "2 3"},
	{name: "law-priority", ask: func(g *governed) string {
		for n, name := range []string{"a", "c", "b"} {
			name = g.name + "-" + name
			g.laws.set(policy.User, name, "^(?!x)law-priority", fmt.Sprintf(`{"max-length":%d}`, n+1), n)
			g.t.Cleanup(func() { g.laws.clear(policy.User, name) })
		}
		g.queue(g.channel(), g.name, nil)
		g.send(g.name, "1", "2", "3", "4")
		highest := g.bodies(g.name)
		g.laws.set(policy.User, g.name+"-a", g.name, `{"max-length":1}`, 9)
		g.send(g.name, "1", "2", "3", "4")
		return highest + ", " + g.bodies(g.name)
	}, want: "2 3 4, 4"},
	{name: "law-alternate", ask: func(g *governed) string {
		ch := g.channel()
		check(g.t, ch.ExchangeDeclare(g.name, "direct", false, true, false, false, nil))
		g.queue(ch, "alternate", nil)
		check(g.t, ch.QueueBind("alternate", "", "amq.fanout", false, nil))
		check(g.t, ch.QueueBind("alternate", "other", g.name, false, nil))
		g.govern(`{"alternate-exchange":"amq.fanout"}`)
		check(g.t, ch.PublishWithContext(g.t.Context(), g.name, "nowhere", false, false, amqp091.Publishing{Body: []byte("found")}))
		return g.settled("alternate", 1)
	}, want: "found"},
	{name: "law-refused", ask: func(g *governed) string {
		var said []string
		for _, definition := range []string{`{}`, `{"message-ttl":-1}`, `{"expires":0}`, `{"overflow":"x"}`, `{"foo":1}`, `{"dead-letter-exchange":5}`} {
			said = append(said, g.laws.set(policy.User, g.name, "^a", definition, 0))
		}
		said = append(said, g.laws.set(policy.User, g.name, "(", `{"expires":1}`, 0), g.laws.set(policy.Operator, g.name, "a", `{"dead-letter-exchange":"x"}`, 0))
		return strings.Join(said, "; ")
	}, want: `no policy provided; -1 is not a valid message TTL; 0 is not a valid queue expiry; <<"x">> is not a valid overflow value; ` +
		`[{<<"foo">>,1}] are not recognised policy settings; 5 is not a valid dead letter exchange name; ` +
		`pattern should be regular expression but is invalid: {"missing )",1}; [{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings`},
}

// TestPolicies puts each question to Curfew and to a RabbitMQ 3.10.
func TestPolicies(t *testing.T) {
	t.Parallel()
	rabbitMQDefinitions.Lock()
	defer rabbitMQDefinitions.Unlock()
	b, url := startEmbedded(t)
	brokers := []struct {
		name, url string
		laws      lawgiver
	}{
		{"curfew", url, &embeddedLaws{t, b}},
		{"rabbitmq", startRabbitMQ(t), &rabbitLaws{t, sharedRabbitMQ}},
	}
	for _, l := range laws {
		for _, b := range brokers {
			t.Run(l.name+"/"+b.name, func(t *testing.T) {
				g := &governed{&session{t: t, url: b.url, conn: dial(t, b.url), name: l.name}, b.laws}
				if got := l.ask(g); got != l.want {
					t.Errorf("\n got %s\nwant %s", got, l.want)
				}
			})
		}
	}
}

// startEmbedded serves a broker of this process.
func startEmbedded(t *testing.T) (*broker.Broker, string) {
	t.Helper()
	b, err := broker.New(broker.Options{})
	check(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	m, err := schedule.New(schedule.Options{Primary: b.Deadlines()})
	check(t, err)
	var ended sync.WaitGroup
	ended.Go(func() { report(t, "serve", server.New(server.Options{Broker: b}).Serve(ctx, listener)) })
	ended.Go(func() { report(t, "monitor", m.Run(ctx)) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
		report(t, "close", b.Close())
	})
	return b, "amqp://guest:guest@" + listener.Addr().String()
}

type embeddedLaws struct {
	t *testing.T
	b *broker.Broker
}

func (l *embeddedLaws) set(k policy.Kind, name, pattern, definition string, priority int) string {
	vh, _ := l.b.VHost("/")
	fields, err := policy.ParseJSON([]byte(definition))
	check(l.t, err)
	p, err := policy.Decode(k, name, map[string]any{"pattern": pattern, "priority": int64(priority), "definition": fields})
	if err == nil {
		_, err = vh.Policies.Set(k, p)
	}
	if wrong, ok := errors.AsType[*policy.Invalid](err); ok {
		return strings.Join(wrong.Problems, "\n")
	}
	check(l.t, err)
	return ""
}

func (l *embeddedLaws) clear(k policy.Kind, name string) {
	vh, _ := l.b.VHost("/")
	_, err := vh.Policies.Clear(k, name)
	report(l.t, "clear policy", err)
}

type rabbitLaws struct {
	t *testing.T
	r *rabbitmq
}

func (l *rabbitLaws) set(k policy.Kind, name, pattern, definition string, priority int) string {
	status, answer := l.ask(http.MethodPut, k, name, fmt.Sprintf(`{"pattern":%q,"definition":%s,"priority":%d}`, pattern, definition, priority))
	if status < http.StatusBadRequest {
		return ""
	}
	var refusal struct {
		Reason string `json:"reason"`
	}
	check(l.t, json.Unmarshal([]byte(answer), &refusal))
	return strings.TrimSpace(strings.TrimPrefix(html.UnescapeString(refusal.Reason), "Validation failed\n\n"))
}

func (l *rabbitLaws) clear(k policy.Kind, name string) {
	if status, answer := l.ask(http.MethodDelete, k, name, ""); status >= http.StatusBadRequest && status != http.StatusNotFound {
		l.t.Errorf("clear %s: %d\n%s", name, status, answer)
	}
}

func (l *rabbitLaws) ask(method string, k policy.Kind, name, body string) (status int, answer string) {
	kind := map[policy.Kind]string{policy.User: "policies", policy.Operator: "operator-policies"}[k]
	return request(l.t, l.r.http, "guest", "guest", method, "/api/"+kind+"/%2F/"+name, body)
}

// control runs rabbitmqctl on the node and returns what it prints.
func (r *rabbitmq) control(args ...string) (string, error) {
	cmd := exec.Command("/usr/lib/rabbitmq/bin/rabbitmqctl", append([]string{"--quiet"}, args...)...)
	cmd.Env = r.node.Env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
