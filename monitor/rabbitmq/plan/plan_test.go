package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"curfew/monitor/rabbitmq/cluster"
)

func example(t *testing.T, vhost, watch string) *Plan {
	t.Helper()
	i := &cluster.Inventory{Server: cluster.Server{Product: "RabbitMQ", Version: "3.10.8"}, VHost: vhost, Queues: []cluster.Queue{
		{Name: "curfew.tap.x", Type: cluster.Classic},
		{Name: "it's", Type: cluster.Classic, Durable: true, State: "running"},
		{Name: "orders", Type: cluster.Quorum, Durable: true, State: "running", Ready: 1000,
			Arguments: map[string]any{"x-dead-letter-exchange": "dlx"}, Policy: map[string]any{"delivery-limit": int64(50)}},
		{Name: "retry", Type: cluster.Quorum, Durable: true, State: "running", Arguments: map[string]any{"x-dead-letter-exchange": ""}},
		{Name: "stream", Type: cluster.Stream, Durable: true, State: "running"},
	}}
	exchanges := map[string]cluster.Exchange{"shop": {Name: "shop", Type: "topic"}}
	bindings := []cluster.Binding{{Exchange: "shop", Queue: "orders", RoutingKey: "order.#"}}
	w, err := cluster.ParseWatch(watch)
	require.NoError(t, err)
	return New(i, exchanges, bindings, nil, w)
}

func TestPlan(t *testing.T) {
	p := example(t, "/", "keep:retry,observe:orders,off:stream")
	got := map[string][]string{}
	for _, r := range p.Rows {
		tapped := "single"
		if r.Untappable != "" {
			tapped = "totals"
		}
		got[r.Queue] = []string{r.Rule, string(r.Deadlines), tapped}
	}
	require.Equal(t, map[string][]string{
		"it's":   {"", "kept", "totals"},
		"orders": {"observe", "kept", "single"},
		"retry":  {"keep", "kept", "totals"},
		"stream": {"off", "refused", "totals"},
	}, got)
	require.Equal(t, "No rule says keep. With one, Curfew would keep its deadlines.", p.Rows[1].Reason)
	require.Equal(t, "A rule says keep, and nothing prevents it.", p.Rows[2].Reason)
	require.EqualValues(t, 1000, p.Rows[1].Cost.Held)
	require.Equal(t, "unknown", p.Rows[1].TTLs())
	require.Equal(t, "-", p.Rows[3].TTLs(), "a stream has none")
	require.Equal(t, "1000 held, 0.9 MiB, 0.4 ms CPU each", p.Rows[1].Cost.String())

	unknown := New(&cluster.Inventory{Queues: []cluster.Queue{{Name: "a"}}}, nil, nil, errors.New("no API"), cluster.DefaultWatch())
	require.Equal(t, "no API", unknown.Rows[0].Untappable)
	require.Contains(t, unknown.Notes[0], "no API")
}

// TestTTLs: the column has the queue's time to live and those of the messages seen, and "unknown" if nobody has looked.
func TestTTLs(t *testing.T) {
	for want, r := range map[string]Row{
		"unknown":      {},
		"1m0s":         {TTLMillis: 60_000},
		"-":            {Seen: &cluster.TTLStats{Messages: 5}},
		"50ms..1h0m0s": {Seen: &cluster.TTLStats{Messages: 5, Expiring: 2, Least: 50, Most: 3_600_000}},
		"1m0s,2s":      {TTLMillis: 60_000, Seen: &cluster.TTLStats{Messages: 5, Expiring: 2, Least: 2000, Most: 2000}},
	} {
		require.Equal(t, want, r.TTLs())
	}
	i := &cluster.Inventory{Server: cluster.Server{Product: "RabbitMQ", Version: "3.10.8"}, Queues: []cluster.Queue{
		{Name: "q", Type: cluster.Quorum, Durable: true, State: "running", Arguments: map[string]any{"x-message-ttl": int64(60_000)}}},
		Seen: map[string]cluster.TTLStats{"q": {Messages: 200, Expiring: 150, Shorter: 150, Least: 100, Most: 200}}}
	row := New(i, nil, nil, nil, cluster.DefaultWatch()).Rows[0]
	require.Equal(t, cluster.Kept, row.Deadlines, "not exact: there are shorter ones")
	require.Equal(t, "1m0s,100ms..200ms", row.TTLs())
}

// TestLeastRights: the user may read what is tapped and kept, and nothing else.
func TestLeastRights(t *testing.T) {
	s, err := example(t, "/", "keep:retry,observe:orders").Setup(SetupOptions{})
	require.NoError(t, err)
	require.Equal(t, permissions("curfew", [4]string{"/", `^curfew\.tap\.`, `^curfew\.tap\.`, `^(amq\.rabbitmq\.event|curfew\.tap\..*|retry|shop)$`}), s.list("permissions"))
	p := example(t, "/", "keep:retry,observe:orders")
	p.inventory.Server.Version = "4.3.6" // where counting needs some permission
	s, err = p.Setup(SetupOptions{})
	require.NoError(t, err)
	require.Equal(t, permissions("curfew", [4]string{"/", `^curfew\.tap\.`, `^(curfew\.tap\..*|orders)$`, `^(amq\.rabbitmq\.event|curfew\.tap\..*|retry|shop)$`}), s.list("permissions"))
	require.Len(t, s.Notes, 3)
	require.Len(t, s.list("policies"), 1)
	require.Equal(t, object{"consumer-disconnected-timeout": lostNode}, s.named("policies", "/", "curfew.retry")["definition"])
	s, err = example(t, "/", "keep:retr?-*,delay:*.delay,delay:late-*.delay").Setup(SetupOptions{})
	require.NoError(t, err)
	require.Equal(t, permissions("curfew", [4]string{"/", `^curfew\.tap\.`, `^(.*\.delay|amq\.default|curfew\.tap\..*|late-.*\.delay)$`,
		`^(.*\.delay|amq\.rabbitmq\.event|curfew\.tap\..*|late-.*|late-.*\.delay|retr[^\x80-\xBF][\x80-\xBF]*-.*)$`}), s.list("permissions"), "queues that are declared later")
	p = example(t, "/", "keep:*")
	p.inventory.Server.Version = "4.3.6"
	s, err = p.Setup(SetupOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"delivery-limit": int64(50), "consumer-disconnected-timeout": lostNode}, s.list("policies")[0]["definition"], "it is in place of the one that applied before")
	s, err = example(t, "shop", "off:*").Setup(SetupOptions{User: "c"})
	require.NoError(t, err)
	require.Equal(t, permissions("c", [4]string{"/", `^curfew\.tap\.`, `^curfew\.tap\.`, `^(amq\.rabbitmq\.event|curfew\.tap\..*)$`},
		[4]string{"shop", `^curfew\.tap\.`, `^curfew\.tap\.`, `^(curfew\.tap\..*)$`}), s.list("permissions"))
	require.Empty(t, s.list("queues"))
	require.Empty(t, s.list("parameters"))
	require.Len(t, s.list("users"), 1)
	require.Contains(t, strings.Join(s.Notes, "\n"), "set its password again")

	p = example(t, "shop", "off:*")
	p.User = "c"
	s, err = p.Setup(SetupOptions{User: "c"})
	require.NoError(t, err)
	require.Empty(t, s.list("users"), "an import would take its password away")
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("a-queue-for-the-orders-%d", i)
	}
	require.Equal(t, anyName, s.granted(names), "Erlang could not compile it")
	require.Contains(t, s.Notes[len(s.Notes)-1], "no pattern with as many names")
	require.NotContains(t, s.script(), "CURFEW_PASSWORD")
}

// permissions are those of a user: where, and what to configure, write and read.
func permissions(user string, rows ...[4]string) (all []object) {
	for _, p := range rows {
		all = append(all, object{"user": user, "vhost": p[0], "configure": p[1], "write": p[2], "read": p[3]})
	}
	return all
}

func TestGatewaySetup(t *testing.T) {
	s, err := example(t, "shop", "observe:*").Setup(SetupOptions{Gateway: []string{"orders"}, CurfewURL: "amqp://u:p@curfew:5672"})
	require.NoError(t, err)
	upstream := s.list("parameters")[0]
	require.Equal(t, "amqp://u:p@curfew:5672/%2F", upstream["value"].(object)["uri"], "RabbitMQ would take its own virtual host's name")
	require.Equal(t, upstreamName("shop"), upstream["name"])
	require.NotEqual(t, upstreamName("/"), upstreamName("shop"), "RabbitMQ restarts links by the name of their upstream alone")
	require.Equal(t, object{"federation-upstream": upstream["name"], "delivery-limit": int64(50)}, s.list("policies")[0]["definition"])
	require.Equal(t, "orders.in", s.list("bindings")[0]["destination"])
	require.Equal(t, "order.#", s.list("bindings")[0]["routing_key"])
	require.Equal(t, []cluster.Binding{{Exchange: "shop", Queue: "orders", RoutingKey: "order.#"}}, s.unbind)
	require.Equal(t, object{"x-queue-type": "quorum", "x-dead-letter-exchange": "dlx"}, s.named("queues", "shop", "orders.in")["arguments"])
	require.Len(t, s.list("parameters"), 3, "the others are shovels")
	require.Equal(t, []string{
		`curfew declare queue orders --arg 'x-dead-letter-exchange="orders.dlx"' --arg x-remaining-expiration=true --vhost /`,
		"curfew declare exchange orders.in --type fanout --vhost /", "curfew bind orders.in orders --vhost /",
	}, inCurfew(s)[3:])
	for _, format := range Formats {
		var out bytes.Buffer
		require.NoError(t, s.Emit(&out, format))
		text := out.String()
		require.Contains(t, text, "orders")
		switch format {
		case "definitions":
			require.True(t, json.Valid(out.Bytes()))
		case "kubernetes":
			kinds := map[string]int{}
			decoder := yaml.NewDecoder(strings.NewReader(text))
			for {
				var one struct {
					Kind     string
					Metadata struct{ Name string }
				}
				if err := decoder.Decode(&one); err == io.EOF {
					break
				} else {
					require.NoError(t, err)
				}
				kinds[one.Kind]++
				require.Regexp(t, `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, one.Metadata.Name)
			}
			require.Equal(t, map[string]int{"User": 1, "Permission": 2, "Queue": 1, "Binding": 1, "Secret": 3, "Federation": 1, "Policy": 1, "Shovel": 2}, kinds)
		default:
			require.Contains(t, text, `"$CURFEW_PASSWORD"`)
		}
	}
	require.ErrorContains(t, s.Emit(io.Discard, "terraform"), "want one of rabbitmqctl, definitions, kubernetes")
}

// inCurfew are the commands that the notes have.
func inCurfew(s *Setup) (list []string) {
	for _, note := range s.Notes {
		if command, is := strings.CutPrefix(note, InCurfew); is {
			list = append(list, command)
		}
	}
	return list
}

func TestGatewayErrors(t *testing.T) {
	p := example(t, "/", "observe:*")
	for queue, want := range map[string]string{"missing": "no such queue", "stream": "only durable classic and quorum", "retry": "set a dead-letter-routing-key"} {
		_, err := p.Setup(SetupOptions{Gateway: []string{queue}, CurfewURL: "amqp://u:secret@c"})
		require.ErrorContains(t, err, want)
	}
	for _, url := range []string{"", "http://u:secret@c", "amqp://u:secret@a,b"} {
		_, err := p.Setup(SetupOptions{Gateway: []string{"orders"}, CurfewURL: url})
		require.ErrorContains(t, err, "the URL at which RabbitMQ reaches Curfew")
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestResourceName(t *testing.T) {
	require.NotEqual(t, resourceName("a.b"), resourceName("a-b"))
	require.Equal(t, "a-b", resourceName("a-b"))
	require.Equal(t, `{"a":"<b&c>"}`, inline(object{"a": "<b&c>"}), "as it was typed")
}
