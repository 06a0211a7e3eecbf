package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// rabbitmqadmin runs RabbitMQ's own command line tool against a Curfew and returns what it printed.
func rabbitmqadmin(t *testing.T, c *curfew, args ...string) string {
	t.Helper()
	address, port, _ := strings.Cut(strings.TrimPrefix(c.http, "http://"), ":")
	out, err := exec.Command("rabbitmqadmin", append([]string{"-H", address, "-P", port, "-f", "tsv"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("rabbitmqadmin %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestRabbitmqadmin goes through what the tool can do. It sends booleans and numbers as strings, asks for columns by dots, and follows up
// with definitions.
func TestRabbitmqadmin(t *testing.T) {
	t.Parallel()
	c := startCurfew(t)
	ch := openChannel(t, dial(t, c.url))
	for _, step := range []struct{ args, want string }{
		{`declare queue name=q durable=true arguments={"x-message-ttl":60000}`, "queue declared"},
		{"declare exchange name=x type=topic durable=true", "exchange declared"},
		{"declare binding source=x destination=q routing_key=a.*", "binding declared"},
		{"publish exchange=x routing_key=a.b payload=hello", "Message published"},
		{"publish exchange=x routing_key=none payload=hello", "Message published but NOT routed"},
		{"list queues name messages durable message_stats.publish_details.rate", "q\t1\tTrue\t"},
		{"list exchanges name type", "amq.direct\tdirect\namq.fanout\tfanout"},
		{"list bindings", "x\tq\ta.*"},
		{"get queue=q", "a.b\tx\t0\thello\t5\tstring\tFalse"},
		{"get queue=q ackmode=ack_requeue_false count=2", "a.b\tx\t0\thello\t5\tstring\tTrue"},
		{"list connections user channels", "guest\t1"},
		{"list channels number user", "1\tguest"},
		{"list users name tags", "guest\tadministrator"},
		{"list vhosts", "/\t0"},
		{"list permissions", ".*\t.*\tguest\t.*"},
		{"list nodes name type", "disc"},
		{"show overview", "4.1.0"},
		{"declare user name=u password=p tags=management", "user declared"},
		{"declare permission vhost=/ user=u configure=.* write=.* read=.*", "permission declared"},
		{"-u u -p p list queues name", "q"},
		{`declare policy name=p pattern=^q$ definition={"max-length":5} apply-to=queues priority=3`, "policy declared"},
		{"list policies name", "p"},
		{`declare operator_policy name=o pattern=^q$ definition={"max-length":4}`, "operator_policy declared"},
		{"list operator_policies name", "o"},
		{"declare vhost name=v", "vhost declared"},
		{"declare vhost_limit vhost=v name=max-queues value=10", "vhost_limit declared"},
		{"list vhost_limits", "v"},
		{"purge queue name=q", "queue purged"},
		{"delete policy name=p", "policy deleted"},
		{"delete vhost name=v", "vhost deleted"},
		{"delete user name=u", "user deleted"},

		// A virtual host made just now is its maker's.
		{"declare vhost name=fresh", "vhost declared"},
		{"list permissions", "fresh"},
		{"-V fresh declare queue name=q durable=true", "queue declared"},
		{"-V fresh declare exchange name=x type=fanout", "exchange declared"},
		{"-V fresh declare binding source=x destination=q", "binding declared"},
		{"-V fresh declare policy name=p pattern=^q$ definition={\"max-length\":5}", "policy declared"},
		{"-V fresh publish exchange=x routing_key= payload=hello", "Message published"},
		{"-V fresh get queue=q count=-1", "hello"},
		{"-V fresh list queues name", "q"},
		{"declare user name=w password=p tags=management", "user declared"},
		{"declare permission vhost=fresh user=w configure=^w write=.* read=.*", "permission declared"},
		{"-u w -p p -V fresh declare queue name=w", "queue declared"},
		{"delete user name=w", "user deleted"},
	} {
		if got := rabbitmqadmin(t, c, strings.Fields(step.args)...); !strings.Contains(got, step.want) {
			t.Errorf("rabbitmqadmin %s: %q lacks %q", step.args, got, step.want)
		}
	}
	file := filepath.Join(t.TempDir(), "definitions.json")
	rabbitmqadmin(t, c, "export", file)
	rabbitmqadmin(t, c, "delete", "queue", "name=q")
	rabbitmqadmin(t, c, "import", file)
	if got := rabbitmqadmin(t, c, "list", "bindings"); !strings.Contains(got, "x\tq\ta.*") {
		t.Errorf("imported: %s", got)
	}
	fresh := filepath.Join(t.TempDir(), "fresh.json")
	rabbitmqadmin(t, c, "-V", "fresh", "export", fresh)
	rabbitmqadmin(t, c, "delete", "vhost", "name=fresh")
	rabbitmqadmin(t, c, "import", file) // has the virtual host, and permissions of its maker
	rabbitmqadmin(t, c, "-V", "fresh", "import", fresh)
	rabbitmqadmin(t, c, "-V", "fresh", "declare", "queue", "name=after")
	if got := rabbitmqadmin(t, c, "list", "queues", "vhost", "name"); !strings.Contains(got, "fresh\tafter\nfresh\tq\n") {
		t.Errorf("imported into a virtual host of its own: %s", got)
	}
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	name := strings.TrimSpace(strings.TrimPrefix(rabbitmqadmin(t, c, "list", "connections", "name"), "name\n"))
	rabbitmqadmin(t, c, "close", "connection", "name="+name)
	if reason := received(t, closed).Reason; reason != "CONNECTION_FORCED - Closed via management plugin" {
		t.Errorf("closed with %q", reason)
	}
}

// furnish makes the same objects on a broker.
func furnish(t *testing.T, url string) {
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	check(t, ch.ExchangeDeclare("mgmt.x", "topic", true, false, false, false, nil))
	_, err := ch.QueueDeclare("mgmt.q", true, false, false, false, amqp091.Table{"x-message-ttl": 600000})
	check(t, err)
	_, err = ch.QueueDeclare("mgmt.mine", false, false, true, false, nil)
	check(t, err)
	check(t, ch.QueueBind("mgmt.q", "a.*", "mgmt.x", false, amqp091.Table{"k": "v"}))
	confirmed := ch.NotifyPublish(make(chan amqp091.Confirmation, 2))
	for range 2 {
		check(t, ch.Publish("mgmt.x", "a.b", false, false, amqp091.Publishing{
			Body: []byte("m"), DeliveryMode: 2, Timestamp: time.Unix(1_700_000_000, 0), Headers: amqp091.Table{"n": int32(1)},
		}))
		<-confirmed
	}
	check(t, ch.Qos(1, 0, false))
	deliveries, err := ch.Consume("mgmt.q", "mgmt.tag", false, false, false, false, amqp091.Table{"x-priority": 1})
	check(t, err)
	<-deliveries
}

// shapeLooks is how often the shapes are compared again, so that RabbitMQ has taken its statistics, every five seconds, a few times.
const shapeLooks = 10

// shaped are the requests whose answers are compared; where an answer is a list, its first item that has the word in it counts.
var shaped = []struct{ what, path, with string }{
	{"overview", "/api/overview", ""},
	{"node", "/api/nodes", ""},
	{"vhost", "/api/vhosts/%2F", ""},
	{"connection", "/api/connections", "127.0.0.1"},
	{"channel", "/api/channels", "127.0.0.1"},
	{"consumer", "/api/consumers/%2F", "mgmt.tag"},
	{"queue", "/api/queues/%2F/mgmt.q", ""},
	{"exclusive queue", "/api/queues/%2F/mgmt.mine", ""},
	{"exchange", "/api/exchanges/%2F/mgmt.x", ""},
	{"binding", "/api/bindings/%2F/e/mgmt.x/q/mgmt.q", "mgmt.q"},
	{"user", "/api/users/guest", ""},
	{"permission", "/api/permissions/%2F/guest", ""},
	{"whoami", "/api/whoami", ""},
	{"cluster name", "/api/cluster-name", ""},
	{"feature flag", "/api/feature-flags", "stream_queue"},
	{"page", "/api/queues?page=1&page_size=1&columns=name", ""},
	{"alarms", "/api/health/checks/alarms", ""},
	{"missing", "/api/queues/%2F/mgmt.none", ""},
}

// TestManagementShapes compares the answers' keys and JSON types with a RabbitMQ's about the same objects. The differences there are stand in
// testdata/management/shapes.txt, with their reasons.
func TestManagementShapes(t *testing.T) {
	rabbitURL := startRabbitMQ(t)
	c := startCurfew(t)
	furnish(t, rabbitURL)
	furnish(t, c.url)
	counted := func(base string) bool {
		for _, of := range [][2]string{
			{"/api/channels", "confirm_details"}, {"/api/connections", "send_pend"}, {"/api/queues/%2F/mgmt.q", "deliver_get"},
			{"/api/queues/%2F/mgmt.q", "reductions"}, {"/api/queues/%2F/mgmt.mine", "reductions"},
		} {
			if answer, _ := ask(t, base, of[0]); !strings.Contains(fmt.Sprint(answer), of[1]) {
				return false
			}
		}
		return true
	}
	eventually(t, time.Minute, "RabbitMQ's statistics", func() bool { return counted(sharedRabbitMQ.http) })
	golden := filepath.Join("testdata", "management", "shapes.txt")
	text, err := os.ReadFile(golden)
	check(t, err)
	var known []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			known = append(known, line)
		}
	}
	wrong := unexpected(shapeDifferences(t, c), known)
	for look := 0; len(wrong) > 0 && look < shapeLooks; look++ { // some keys of RabbitMQ come and go with its statistics
		<-time.After(3 * time.Second)
		again := unexpected(shapeDifferences(t, c), known)
		wrong = slices.DeleteFunc(wrong, func(line string) bool { return !slices.Contains(again, line) })
	}
	for _, line := range wrong {
		t.Errorf("%s: %s", golden, line)
	}
}

// shapeDifferences asks both about everything in shaped.
func shapeDifferences(t *testing.T, c *curfew) (differences []string) {
	t.Helper()
	for _, s := range shaped {
		want, wantStatus := ask(t, sharedRabbitMQ.http, s.path)
		got, gotStatus := ask(t, c.http, s.path)
		if wantStatus != gotStatus {
			t.Errorf("%s: %d, RabbitMQ %d", s.what, gotStatus, wantStatus)
			continue
		}
		rabbit, ours := map[string]string{}, map[string]string{}
		shape(pick(want, s.with), "", rabbit)
		shape(pick(got, s.with), "", ours)
		differences = append(differences, compareShapes(s.what, rabbit, ours)...)
	}
	return differences
}

// unexpected is what of the differences is not known, and what is known and is none.
func unexpected(differences, known []string) (wrong []string) {
	for _, d := range differences {
		if !slices.Contains(known, d) {
			wrong = append(wrong, "not in it: "+d)
		}
	}
	for _, d := range known {
		if !slices.Contains(differences, d) {
			wrong = append(wrong, "no longer a difference: "+d)
		}
	}
	return wrong
}

func ask(t *testing.T, base, path string) (v any, status int) {
	t.Helper()
	req, err := http.NewRequest("GET", base+path, nil)
	check(t, err)
	req.SetBasicAuth("guest", "guest")
	res, err := http.DefaultClient.Do(req)
	check(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	check(t, err)
	check(t, json.Unmarshal(b, &v))
	return v, res.StatusCode
}

// pick is v, or the item of a list that has a word in it.
func pick(v any, word string) any {
	list, isList := v.([]any)
	if !isList {
		return v
	}
	for _, one := range list {
		if text, _ := json.Marshal(one); strings.Contains(string(text), word) {
			return one
		}
	}
	return nil
}

// shape notes the JSON type of every key, "a.b" being b in a. What stands in names the user chose, and in lists, is not looked into.
func shape(v any, at string, into map[string]string) {
	o, ok := v.(map[string]any)
	if !ok {
		kind := fmt.Sprintf("%T", v)
		into[at] = map[string]string{"<nil>": "null", "float64": "number", "[]interface {}": "list"}[kind]
		if into[at] == "" {
			into[at] = kind
		}
		return
	}
	if at != "" {
		into[at] = "object"
	}
	if slices.Contains([]string{"arguments", "client_properties", "cluster_state", "backing_queue_status", "garbage_collection", "effective_policy_definition"}, at) {
		return
	}
	for key, inner := range o {
		shape(inner, strings.TrimPrefix(at+"."+key, "."), into)
	}
}

func compareShapes(what string, rabbit, ours map[string]string) (differences []string) {
	all := map[string]bool{}
	for key := range rabbit {
		all[key] = true
	}
	for key := range ours {
		all[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key == "idle_since" { // there or not, by when RabbitMQ last looked
			continue
		}
		r, o := rabbit[key], ours[key]
		if i := strings.LastIndexByte(key, '.'); i > 0 && (rabbit[key[:i]] == "") != (ours[key[:i]] == "") {
			continue // said of what is around it
		}
		if plain := strings.TrimSuffix(key, "_details"); plain != key && (rabbit[plain] == "") != (ours[plain] == "") {
			continue
		}
		switch {
		case r == o || r != "" && o != "" && (r == "null" || o == "null"): // null where there is nothing just now
		case o == "":
			differences = append(differences, what+": not here: "+key)
		case r == "":
			differences = append(differences, what+": not in RabbitMQ 3.10: "+key)
		default:
			differences = append(differences, what+": "+key+" is "+o+", in RabbitMQ 3.10 "+r)
		}
	}
	return differences
}
