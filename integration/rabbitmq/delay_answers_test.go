package rabbitmq

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
)

// TestDelayWithoutAPermission: what Curfew's user may not do is told in words, with the command that allows it, over both protocols.
func TestDelayWithoutAPermission(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	own := d.n.user(t, d.url, "no-reader", "monitoring", "^$", ".*", "^foo$")
	r := startReplica(t, d.n, own, "", "one", "delay:foo.delay")
	may := "read"
	if family() == cluster.Family3 {
		may = "use"
	}
	want := "user no-reader may not " + may + " queue foo.delay in virtual host " + t.Name() + ": grant that with rabbitmqctl set_permissions --vhost " + t.Name() + " no-reader CONFIGURE WRITE READ"
	eventually(t, answerLimit, "it to be told", func() bool { return strings.Contains(r.queue("foo.delay").Reason, want) })
	require.NotContains(t, r.queue("foo.delay").Reason, "{")
	require.NotContains(t, r.log.String(), "Error{")
}

// TestDelayWithAWrongPassword: health says so as soon as Curfew has been refused, which is within a second of its being ready.
func TestDelayWithAWrongPassword(t *testing.T) {
	t.Parallel()
	n := sharedNode(t)
	_, at := n.vhost(t)
	r := startReplica(t, n, strings.Replace(at, "guest:guest@", "guest:wrong@", 1), "", "one", "delay:foo.delay")
	began := time.Now()
	var h struct {
		Status  string
		Reasons []string
	}
	eventually(t, answerLimit, "health to say so", func() bool {
		res, err := http.Get("http://" + r.ops + "/healthz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return json.NewDecoder(res.Body).Decode(&h) == nil && h.Status == "degraded"
	})
	require.Less(t, time.Since(began), slack()*2*time.Second)
	require.Contains(t, strings.Join(h.Reasons, " "), "username or password not allowed")
	require.NotContains(t, strings.Join(h.Reasons, " "), "Exception")
}

// TestDelayWithNowhereToGo: a missing exchange behind the delay queue is named, and no longer once it is there.
func TestDelayWithNowhereToGo(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	check(t, d.publish.ExchangeDelete("foo.now", false, false))
	r := startReplica(t, d.n, d.url, "", "one", "delay:foo.delay")
	told := func() bool {
		all := r.queue("foo.delay").Troubles
		return len(all) == 1 && all[0].Name == "exchange" && strings.HasPrefix(all[0].Reason, "there is no exchange foo.now, where messages that are due go")
	}
	eventually(t, answerLimit, "it to be told", told)
	check(t, d.publish.ExchangeDeclare("foo.now", "topic", true, false, false, false, nil))
	eventually(t, 2*time.Minute, "it to be told no longer", func() bool { return len(r.queue("foo.delay").Troubles) == 0 })
}

// TestDelayedCommandsAnswered: commands without x-delay, and commands that name no message, are answered and are no jobs, by either exchange. What RabbitMQ has put
// aside and cannot be changed now is a conflict, with when it can.
func TestDelayedCommandsAnswered(t *testing.T) {
	t.Parallel()
	d := declareDelays(t, sharedNode(t))
	exchanges := []string{"foo"}
	if family() == cluster.Family43 {
		exchanges = append(exchanges, "old")
		check(t, d.publish.ExchangeDeclare("old", "x-delayed-message", true, false, false, false, amqp091.Table{"x-delayed-type": "topic"}))
		check(t, d.publish.QueueBind("jobs", "#", "old", false, nil))
	}
	watch := t.TempDir() + "/watch.yaml"
	check(t, os.WriteFile(watch, []byte("queues: [{queue: '*.delay', mode: delay, cancel: any}]"), 0o600))
	r := startReplica(t, d.n, d.url, "", "one", watch)
	eventually(t, answerLimit, "the delay queues to be kept", func() bool { return len(r.keeps()) == len(exchanges) })
	d.bound()
	ch := openChannel(t, d.conn)
	replies, err := ch.QueueDeclare("", false, true, true, false, nil)
	check(t, err)
	answers, err := ch.Consume(replies.Name, "", true, true, false, false, nil)
	check(t, err)
	for _, exchange := range exchanges {
		send := func(id string, headers amqp091.Table) {
			c, err := d.publish.PublishWithDeferredConfirm(exchange, "a.b", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, MessageId: exchange + id,
				CorrelationId: exchange + id, ReplyTo: replies.Name, Headers: headers})
			check(t, err)
			require.True(t, c.Wait())
		}
		answer := func(id, want string) {
			t.Helper()
			select {
			case m := <-answers:
				require.Equal(t, exchange+id, m.CorrelationId)
				require.Equal(t, want, string(m.Body))
			case <-time.After(answerLimit):
				t.Fatalf("%s%s is not answered", exchange, id)
			}
		}
		for _, id := range []string{" a", " b", " c"} {
			send(id, amqp091.Table{"x-delay": 50_000})
		}
		send(" cancel", amqp091.Table{"x-cancel": exchange + " a"})
		answer(" cancel", "cancelled")
		send(" number", amqp091.Table{"x-cancel": 17})
		answer(" number", "refused")
		if exchange == "old" { // the other one has no binding for commands that come without a delay
			send(" reschedule", amqp091.Table{"x-reschedule": exchange + " b"})
			answer(" reschedule", "rescheduled")
			send(" replace", amqp091.Table{"x-replace": exchange + " c"})
			answer(" replace", "replaced")
			eventually(t, answerLimit, "b, and what replaces c", func() bool { return d.count() == 2 })
			require.NotContains(t, d.n.log.String(), "needs no binding to queue 'old.delay' in vhost '"+t.Name()+"'", "RabbitMQ does not have to refuse it")
		}
	}
	time.Sleep(300 * time.Millisecond) // for what should not come
	for id := range d.arrived {
		require.Contains(t, []string{"old b", "old replace"}, id)
	}
	if family() != cluster.Family43 {
		return
	}
	require.True(t, d.send("far", 5*time.Hour, nil, "").Wait())
	eventually(t, answerLimit, "it to be put aside", func() bool { return r.queue("foo.delay").AsideKnown == 1 })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+r.api+"/api/curfew/scheduled/%2F/foo.delay/far", bytes.NewReader([]byte(`{"in": "1s"}`)))
	check(t, err)
	req.SetBasicAuth("guest", "guest")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	check(t, err)
	require.Equal(t, http.StatusConflict, res.StatusCode, string(body))
	require.Contains(t, string(body), "far is put aside in RabbitMQ and comes back at "+time.Now().Add(5*time.Hour-time.Minute).UTC().Format("2006-01-02T15:"))
}
