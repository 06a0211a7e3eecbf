package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// answerVector is a request to the management API and what comes of it: the status, and of an answer with a body the reason of a refusal or
// what show makes of it. NODE in the path is the node's name. Without rabbitmq, RabbitMQ 3.10 answers the same; why says what it does.
type answerVector struct {
	method, path, body, want string
	rabbitmq, why            string
	user                     string // "" guest; the password is the same
	show                     func(answer any) string
}

const (
	crashes = "500: it crashes on that"
	since4  = "RabbitMQ 4 has it"
)

// answerVectors are asked in this order, of one broker after the other.
var answerVectors = []answerVector{
	// Who makes a virtual host gets all permissions in it.
	{method: "PUT", path: "vhosts/mv", want: "201"},
	{method: "GET", path: "permissions/mv/guest", want: "200 .* .* .*", show: showPermission},
	{method: "PUT", path: "queues/mv/q", body: `{}`, want: "201"},
	{method: "PUT", path: "users/mv-u", body: `{"password":"mv-u","tags":"administrator"}`, want: "201"},
	{method: "PUT", path: "vhosts/mv", body: `{"description":"changed"}`, want: "204", user: "mv-u"},
	{method: "GET", path: "permissions/mv/mv-u", want: "404 Not Found"},
	{method: "PUT", path: "queues/mv/other", body: `{}`, want: "401 User not authorised to access virtual host", user: "mv-u", rabbitmq: "401 Access refused.",
		why: "it lets an administrator into the virtual host and refuses the queue"},
	{method: "POST", path: "definitions", user: "mv-u", want: "204", body: `{"vhosts":[{"name":"mv"},{"name":"mv-new"},{"name":"mv-said"}],
		"permissions":[{"user":"guest","vhost":"mv-new","configure":"c","write":"w","read":"r"},{"user":"mv-u","vhost":"mv-said","configure":"c","write":"w","read":"r"}]}`},
	{method: "GET", path: "permissions/mv/mv-u", want: "404 Not Found"},
	{method: "GET", path: "permissions/mv-new/mv-u", want: "200 .* .* .*", show: showPermission},
	{method: "GET", path: "permissions/mv-new/guest", want: "200 c w r", show: showPermission},
	{method: "GET", path: "permissions/mv-said/mv-u", want: "200 c w r", show: showPermission},
	{method: "DELETE", path: "vhosts/mv", want: "204"},
	{method: "PUT", path: "vhosts/mv", want: "201", user: "mv-u"},
	{method: "GET", path: "permissions/mv/guest", want: "404 Not Found"},

	// Users.
	{method: "PUT", path: "users/mv-two", body: `{"password":"p","password_hash":"a3VydA==","tags":""}`, want: "400 both_password_and_password_hash_are_provided"},
	{method: "GET", path: "users/mv-two", want: "404 Not Found"},
	{method: "POST", path: "definitions", body: `{"users":[{"name":"mv-two","password":"p","password_hash":"a3VydA==","tags":""}]}`,
		want: "400 user 'mv-two': both_password_and_password_hash_are_provided", rabbitmq: "400 both_password_and_password_hash_are_provided", why: "it does not say which user"},
	{method: "POST", path: "users/bulk-delete", body: `{}`, want: "400 [{key_missing,users}]"},
	{method: "POST", path: "users/bulk-delete", body: `[]`, want: "400 not_json"},
	{method: "POST", path: "users/bulk-delete", body: `{"users":"mv-u"}`, want: "400 [not_list users]", rabbitmq: "500", why: crashes},
	{method: "POST", path: "users/bulk-delete", body: `{"users":null}`, want: "400 [not_list users]", rabbitmq: "500", why: crashes},
	{method: "POST", path: "users/bulk-delete", body: `{"users":[1]}`, want: "400 [not_string users]", rabbitmq: "400 [no_such_user 1]", why: "nothing is deleted of a list that cannot be"},
	{method: "POST", path: "users/bulk-delete", body: `{"users":["mv-none"]}`, want: "204", rabbitmq: "400 [no_such_user mv-none]", why: "RabbitMQ 4 takes a user that is not there as deleted"},
	{method: "POST", path: "users/bulk-delete", body: `{"users":["mv-u"]}`, want: "204"},
	{method: "GET", path: "users/mv-u", want: "404 Not Found"},

	// Parameters.
	{method: "PUT", path: "parameters/policy/mv-new/p", body: `{"value":{"pattern":"a","definition":{"max-length":1}}}`, want: "400 policies may not be set using this method"},
	{method: "GET", path: "global-parameters/internal_cluster_id", want: "200 rabbitmq-cluster-id-", show: func(answer any) string {
		value, _ := answer.(map[string]any)["value"].(string)
		return value[:min(len(value), len("rabbitmq-cluster-id-"))]
	}},
	{method: "GET", path: "definitions", want: "200 no ID", rabbitmq: "200 an ID", why: "RabbitMQ 4 leaves out what begins with internal", show: func(answer any) string {
		for _, p := range answer.(map[string]any)["global_parameters"].([]any) {
			if p.(map[string]any)["name"] == "internal_cluster_id" {
				return "an ID"
			}
		}
		return "no ID"
	}},
	{method: "PUT", path: "feature-flags/quorum_queue/enable", body: `{}`, want: "204"},
	{method: "PUT", path: "feature-flags/mv-none/enable", body: `{}`, want: "400 unsupported"},

	{method: "PUT", path: "vhosts/mv-null", body: `null`, want: "201"},
	{method: "DELETE", path: "vhosts/mv-null", want: "204"},
	{method: "PUT", path: "vhosts/mv-null", body: `"{}"`, want: "400 invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"},
	{method: "PUT", path: "queues/mv-new/q", body: `"{}"`, want: "400 invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"},
	{method: "PUT", path: "vhost-limits/mv-none/max-queues", body: `{"value":1}`, want: "404 vhost_not_found"},
	{method: "PUT", path: "user-limits/mv-none/max-channels", body: `{"value":1}`, want: "400 [no_such_user mv-none]"},
	{method: "PUT", path: "user-limits/guest/max-channels", body: `{}`, want: "400 [{key_missing,value}]"},
	{method: "GET", path: "definitions/mv-none", want: "404 Not Found", rabbitmq: "400 vhost_not_found", why: "here as for any other path with a virtual host"},
	{method: "POST", path: "definitions/mv-none", body: `{}`, want: "404 vhost_not_found"},
	{method: "POST", path: "definitions", body: `{`, want: "400 failed_to_parse_json"},
	{method: "POST", path: "definitions", body: `[]`, want: "400 failed_to_parse_json"},

	// Nodes.
	{method: "GET", path: "nodes/NODE?columns=running", want: "200 map[running:true]"},
	{method: "GET", path: "nodes/mv-none", want: "404 Not Found", rabbitmq: "500", why: crashes},
	{method: "GET", path: "nodes/NODE?memory=true", want: "200 total", show: showTotal},
	{method: "GET", path: "nodes/NODE/memory", want: "200 total", show: showTotal},
	{method: "GET", path: "nodes/NODE/memory/relative", want: "200 total 100", show: showTotal},
	{method: "GET", path: "nodes/mv-none/memory/relative", want: "404 Not Found"},
	{method: "GET", path: "healthchecks/node", want: "200 map[status:ok]"},
	{method: "GET", path: "healthchecks/node/NODE", want: "200 map[status:ok]"},
	{method: "GET", path: "healthchecks/node/mv-none", want: "404 Not Found"},
	{method: "GET", path: "health/checks/metadata-store/initialized", want: "200 map[status:ok]", rabbitmq: "404 Not Found", why: since4},
	{method: "GET", path: "health/checks/below-node-connection-limit?columns=status", want: "200 ok", rabbitmq: "404 Not Found", why: since4, show: func(answer any) string {
		return fmt.Sprint(answer.(map[string]any)["status"])
	}},
	{method: "GET", path: "all-configuration", want: "200 object", show: showKind},

	// Messages.
	{method: "PUT", path: "vhosts/mv-get", want: "201"},
	{method: "PUT", path: "queues/mv-get/q", body: `{}`, want: "201"},
	{method: "POST", path: "queues/mv-get/q/get", body: `{"count":-1,"ackmode":"ack_requeue_true","encoding":"auto"}`, want: "200 []"},
	{method: "POST", path: "exchanges/mv-get/amq.default/publish", body: `{"routing_key":"q","payload":"a","payload_encoding":"string","properties":{}}`, want: "200 map[routed:true]"},
	{method: "POST", path: "exchanges/mv-get/amq.default/publish", body: `{"routing_key":"q","payload":"b","payload_encoding":"string","properties":{}}`, want: "200 map[routed:true]"},
	{method: "POST", path: "queues/mv-get/q/get", body: `{"count":0,"ackmode":"ack_requeue_true","encoding":"auto"}`, want: "200 []"},
	{method: "POST", path: "queues/mv-get/q/get", body: `{"count":-1,"ackmode":"ack_requeue_true","encoding":"auto"}`, want: "200 2 messages", show: showNumber},
	{method: "POST", path: "queues/mv-get/q/get", body: `{"count":"x","ackmode":"ack_requeue_true","encoding":"auto"}`, want: "400 [not_integer x]"},

	// Samples.
	{method: "GET", path: "queues/mv-get/q?lengths_age=60&lengths_incr=20", want: "200 samples", show: showSamples("messages_details")},
	{method: "GET", path: "queues/mv-get/q?lengths_age=60", want: "200 none", show: showSamples("messages_details")},
	{method: "GET", path: "queues/mv-get/q?lengths_age=x&lengths_incr=5", want: "200 none", show: showSamples("messages_details")},
	{method: "GET", path: "queues/mv-get/q?lengths_age=60&lengths_incr=0", want: "400 Invalid range parameters: age 60, incr 0"},
	{method: "GET", path: "queues/mv-get/q?msg_rates_age=-5&msg_rates_incr=5", want: "400 Invalid range parameters: age -5, incr 5"},
	{method: "GET", path: "overview?lengths_age=6000&lengths_incr=5", want: "400 Invalid range parameters: age 6000, incr 5"},
	{method: "GET", path: "overview?lengths_age=60&lengths_incr=5", want: "200 samples", show: showSamples("queue_totals", "messages_details")},
	{method: "GET", path: "overview?msg_rates_age=60&msg_rates_incr=5", want: "200 samples", show: showSamples("message_stats", "publish_details")},
	{method: "GET", path: "vhosts/mv-get?lengths_age=60&lengths_incr=20", want: "200 none", show: showSamples("messages_details")},
	{method: "DELETE", path: "vhosts/mv-get", want: "204"},
	{method: "POST", path: "vhosts/mv-new/deletion/protection", want: "204", rabbitmq: "405", why: since4},
	{method: "DELETE", path: "vhosts/mv-new", want: "412 Refusing to delete virtual host 'mv-new' because it is protected from deletion", rabbitmq: "204", why: since4},
	{method: "DELETE", path: "vhosts/mv-new/deletion/protection", want: "204", rabbitmq: "405", why: since4},
	{method: "DELETE", path: "vhosts/mv-new", want: "204", rabbitmq: "404 Not Found", why: "it is gone there already"},
	{method: "DELETE", path: "vhosts/mv-said", want: "204"},
	{method: "DELETE", path: "vhosts/mv", want: "204"},
}

func showPermission(answer any) string {
	p := answer.(map[string]any)
	return fmt.Sprint(p["configure"], " ", p["write"], " ", p["read"])
}

func showKind(answer any) string {
	if _, isList := answer.([]any); isList {
		return "list"
	}
	return "object"
}

func showNumber(answer any) string { return fmt.Sprint(len(answer.([]any)), " messages") }

func showTotal(answer any) string {
	memory, _ := answer.(map[string]any)["memory"].(map[string]any)
	if _, absolute := memory["total"].(map[string]any); absolute {
		return "total"
	}
	return fmt.Sprint("total ", memory["total"])
}

// showSamples reports whether the details that the keys lead to have samples, each with what RabbitMQ says of one.
func showSamples(keys ...string) func(any) string {
	return func(answer any) string {
		at, _ := answer.(map[string]any)
		for _, key := range keys {
			at, _ = at[key].(map[string]any)
		}
		list, _ := at["samples"].([]any)
		if len(list) == 0 {
			return "none"
		}
		for _, key := range []string{"avg", "avg_rate", "rate"} {
			if _, isNumber := at[key].(float64); !isNumber {
				return "without " + key
			}
		}
		one, _ := list[0].(map[string]any)
		_, counted := one["sample"].(float64)
		_, stamped := one["timestamp"].(float64)
		if len(one) != 2 || !counted || !stamped {
			return fmt.Sprint("otherwise: ", one)
		}
		return "samples"
	}
}

// ask is the answer in the words of a vector.
func (v *answerVector) ask(t *testing.T, base, node string) string {
	t.Helper()
	path := strings.ReplaceAll(v.path, "NODE", url.PathEscape(node))
	req, err := http.NewRequestWithContext(t.Context(), v.method, base+"/api/"+path, strings.NewReader(v.body))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	user := "guest"
	if v.user != "" {
		user = v.user
	}
	req.SetBasicAuth(user, user)
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	check(t, err)
	said := fmt.Sprint(res.StatusCode)
	if len(text) == 0 || res.StatusCode == http.StatusMethodNotAllowed {
		return said
	}
	var answer any
	check(t, json.Unmarshal(text, &answer))
	if res.StatusCode >= 400 {
		return said + " " + fmt.Sprint(answer.(map[string]any)["reason"])
	}
	if v.show != nil {
		return said + " " + v.show(answer)
	}
	return said + " " + fmt.Sprint(answer)
}

// TestManagementVectors asks Curfew and RabbitMQ the same.
func TestManagementVectors(t *testing.T) {
	startRabbitMQ(t)
	rabbitMQDefinitions.Lock()
	defer rabbitMQDefinitions.Unlock()
	c := startCurfew(t)
	nodeOf := func(base string) string {
		overview, _ := ask(t, base, "/api/overview")
		return overview.(map[string]any)["node"].(string)
	}
	ours, theirs := nodeOf(c.http), nodeOf(sharedRabbitMQ.http)
	for _, v := range answerVectors {
		name := v.method + " " + v.path + " " + v.body
		if got := v.ask(t, c.http, ours); got != v.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, v.want)
		}
		want := v.want
		if v.rabbitmq != "" {
			want = v.rabbitmq
		}
		var got string
		for look := 0; look == 0 || got != want && strings.HasSuffix(want, "samples") && look < shapeLooks; look++ {
			if look > 0 {
				<-time.After(3 * time.Second) // it samples every five seconds
			}
			got = v.ask(t, sharedRabbitMQ.http, theirs)
		}
		if got != want {
			t.Errorf("%s at RabbitMQ:\n got %s\nwant %s", name, got, want)
		}
	}
}
