package commands

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// somebody is a user of one role with one set of permissions.
type somebody struct {
	role, permission string
	enters           bool // has permissions in the virtual host
	reads, writes    bool
	configures       bool
}

func (u *somebody) name() string { return "u-" + u.role + "-" + u.permission }

// is reports whether the user's tag suffices for a role.
func (u *somebody) is(role string) bool {
	return slices.Contains(map[string][]string{
		"management": {"administrator", "monitoring", "policymaker", "management"}, "policymaker": {"administrator", "policymaker"},
		"monitor": {"administrator", "monitoring"}, "administrator": {"administrator"},
	}[role], u.role)
}

// may checks the user against a rule: a role, then what else it takes.
//
//	vhost   permissions in the virtual host; looks whose role is monitor's need none
//	look    the same for a look: those who monitor need none
//	read    the permission to read the queue
//	write   the permission to write to it
//	configure the permission to declare and delete it
//	lists   those who monitor see all, others what they may read
func (u *somebody) may(rule string) bool {
	words := strings.Fields(rule)
	if len(words) == 0 || !u.is(words[0]) {
		return false
	}
	for _, word := range words[1:] {
		ok := map[string]bool{
			"vhost": u.enters, "look": u.enters || u.is("monitor"), "read": u.reads, "write": u.writes, "configure": u.configures, "lists": u.reads || u.is("monitor"),
		}[word]
		if !ok {
			return false
		}
	}
	return true
}

func everybody() (all []somebody) {
	for _, role := range []string{"administrator", "monitoring", "policymaker", "management", ""} {
		all = append(all,
			somebody{role: role, permission: "none"}, somebody{role: role, permission: "entry", enters: true}, somebody{role: role, permission: "write", enters: true, writes: true},
			somebody{role: role, permission: "read", enters: true, reads: true}, somebody{role: role, permission: "configure", enters: true, configures: true}, somebody{role: role, permission: "all", enters: true, reads: true, writes: true, configures: true})
	}
	return all
}

// faces is a running Curfew that every user asks.
type faces struct {
	*running
	seq    string // of a message in orders
	letter string // of a dead letter in orders.dead
	queue  string // the incarnation of orders.dead
	orders string // and of orders
	run    string // a replay of guest's
}

func newFaces(t *testing.T) *faces {
	f := &faces{running: startRunning(t)}
	ch := f.dead(3)
	for _, name := range []string{"empty", "sink"} {
		_, err := ch.QueueDeclare(name, false, false, false, false, nil)
		require.NoError(t, err)
	}
	require.NoError(t, ch.ExchangeDeclare("used", "fanout", false, false, false, false, nil))
	require.NoError(t, ch.QueueBind("sink", "", "used", false, nil))
	f.send(ch, amqp091.Publishing{Expiration: "3600000"})
	_, page := f.visit("/queue?vhost=/&name=orders", nil)
	link, err := url.Parse(html.UnescapeString(changeLink.FindStringSubmatch(page)[1]))
	require.NoError(t, err)
	f.seq, f.orders, f.letter = link.Query().Get("seq"), link.Query().Get("queue"), "3"
	_, page = f.visit(f.filled("/dead-letter/edit?vhost=/&name=orders.dead&seq=LETTER"), nil)
	f.queue = fieldsOf(page).Get("queue")
	f.ok("dlq", "replay", "orders.dead", "--rate", "0.0001", "--background")
	f.run = regexp.MustCompile(`\S+-\S+-[0-9a-f]{8}`).FindString(f.ok("dlq", "runs"))
	require.NotEmpty(t, f.run)
	for _, u := range everybody() {
		f.put("/api/users/"+u.name(), fmt.Sprintf(`{"password":"p","tags":%q}`, u.role))
		if u.enters {
			allowed := func(yes bool) string {
				if yes {
					return ".*"
				}
				return ""
			}
			f.put("/api/permissions/%2F/"+u.name(), fmt.Sprintf(`{"configure":%q,"write":%q,"read":%q}`, allowed(u.configures), allowed(u.writes), allowed(u.reads)))
		}
	}
	return f
}

func (f *faces) put(path, body string) {
	f.t.Helper()
	status, answer := f.ask(http.MethodPut, path, "application/json", strings.NewReader(body))
	require.Equal(f.t, http.StatusCreated, status, answer)
}

// refusedText is in pages and files for users who may not.
var refusedText = regexp.MustCompile(`may not read|ACCESS_REFUSED|access to .* refused|lacks the permission|That takes a user|This takes a user|has no permissions in`)

// call is one request of a user; it returns the answer, and whether it was allowed.
type call func(f *faces, u *somebody) (allowed bool, answer string)

// asks sends a request to the management API. What does not exist is not refused.
func asks(method, path, body string) call {
	return func(f *faces, u *somebody) (bool, string) {
		status, answer := f.askAs(u.name(), "p", method, f.filled(path), "application/json", strings.NewReader(f.filled(body)))
		return status != http.StatusUnauthorized && !refusedText.MatchString(answer), fmt.Sprint(status, " ", answer)
	}
}

// shows asks with GET; the answer has to have a text.
func shows(path, text string) call {
	return func(f *faces, u *somebody) (bool, string) {
		status, answer := f.askAs(u.name(), "p", http.MethodGet, f.filled(path), "", http.NoBody)
		found := strings.Contains(answer, f.filled(text))
		return status == http.StatusOK && found && !refusedText.MatchString(answer), fmt.Sprint(status)
	}
}

// lists is shows for a page that also has the errors of others.
func lists(path, text string) call {
	return func(f *faces, u *somebody) (bool, string) {
		status, answer := f.askAs(u.name(), "p", http.MethodGet, f.filled(path), "", http.NoBody)
		return status == http.StatusOK && strings.Contains(answer, f.filled(text)), fmt.Sprint(status)
	}
}

// cancelForm cancels the run. The page after that also has the errors of others.
func cancelForm(f *faces, u *somebody) (bool, string) {
	is, answer := form("/incidents", "/runs/cancel", "id", "RUN")(f, u)
	return is || strings.HasPrefix(answer, "200 "), answer
}

// opens asks for a page, whatever the page leaves out.
func opens(path string) call {
	return func(f *faces, u *somebody) (bool, string) {
		status, answer := f.askAs(u.name(), "p", http.MethodGet, f.filled(path), "", http.NoBody)
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	}
}

// found is asks for something that does not exist for users who may not see it.
func found(method, path, body string) call {
	return func(f *faces, u *somebody) (bool, string) {
		status, answer := f.askAs(u.name(), "p", method, f.filled(path), "application/json", strings.NewReader(f.filled(body)))
		return status != http.StatusUnauthorized && status != http.StatusNotFound, fmt.Sprint(status, " ", answer)
	}
}

// form sends a form of the dashboard; its token comes from a page that has the form, if there is one.
func form(page, path string, fields ...string) call {
	return func(f *faces, u *somebody) (bool, string) {
		_, shown := f.askAs(u.name(), "p", http.MethodGet, f.filled(page), "", http.NoBody)
		values := url.Values{"token": {fieldsOf(shown).Get("token")}}
		for i := 0; i < len(fields); i += 2 {
			values.Set(fields[i], f.filled(fields[i+1]))
		}
		status, answer := f.askAs(u.name(), "p", http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
		return status != http.StatusUnauthorized && status != http.StatusForbidden && !refusedText.MatchString(answer), fmt.Sprint(status, " ", answer)
	}
}

// sends sends a form, whatever the page shows after that.
func sends(path string, fields ...string) call {
	return func(f *faces, u *somebody) (bool, string) {
		_, shown := f.askAs(u.name(), "p", http.MethodGet, path, "", http.NoBody)
		values := url.Values{"token": {fieldsOf(shown).Get("token")}}
		for i := 0; i < len(fields); i += 2 {
			values.Set(fields[i], fields[i+1])
		}
		status, answer := f.askAs(u.name(), "p", http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
		return status == http.StatusOK, fmt.Sprint(status, " ", answer)
	}
}

// policyForm sends the form of a policy.
func policyForm(page string, fields ...string) call {
	return form(page, page, append(fields, "vhost", "/", "name", "p", "pattern", "none", "apply-to", "queues", "priority", "0", "definition", `{"max-length":1}`)...)
}

// importForm uploads one message to sink.
func importForm(f *faces, u *somebody) (bool, string) {
	_, shown := f.askAs(u.name(), "p", http.MethodGet, "/dead-letter?vhost=/&name=sink", "", http.NoBody)
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range map[string]string{"token": fieldsOf(shown).Get("token"), "vhost": "/", "name": "sink"} {
		_ = w.WriteField(name, value)
	}
	part, _ := w.CreateFormFile("file", "letters.jsonl")
	_, _ = io.WriteString(part, importedLine)
	_ = w.Close()
	status, answer := f.askAs(u.name(), "p", http.MethodPost, "/dead-letters/import", w.FormDataContentType(), &body)
	return status == http.StatusOK && !refusedText.MatchString(answer), fmt.Sprint(status, " ", answer)
}

const importedLine = `{"exchange":"","routing_key":"x","properties":{},"payload":""}` + "\n"

func (f *faces) filled(text string) string {
	return strings.NewReplacer("SEQ", f.seq, "LETTER", f.letter, "QUEUE", f.queue, "ORDERS", f.orders, "RUN", f.run).Replace(text)
}

// TestWhoMayDoWhat asks for every operation, by each face, as a user of every role with every set of permissions. The rules are
// repeated here, so that a change of them shows. They are the same for both faces, except that logging in to the dashboard takes the role monitor.
func TestWhoMayDoWhat(t *testing.T) {
	const letters, dead = "/api/curfew/deadletters/%2F/orders.dead/", "/dead-letter?vhost=/&name=orders.dead"
	const orders, deadline = "/queue?vhost=/&name=orders", "/deadline?vhost=/&name=orders&seq=SEQ"
	f := newFaces(t)
	for _, c := range []struct {
		operation, rule string
		ask, visit      call // by the API and by the dashboard; nil: the face does not have it
	}{
		{"peek", "management vhost read", asks("POST", "/api/queues/%2F/orders/peek", "{}"), shows(orders, "due in")},
		{"look at a message", "management vhost read", nil, shows(deadline, "Deadline")},
		{"get", "management vhost read", asks("POST", "/api/queues/%2F/empty/get", `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}`), form("/queue/get?vhost=/&name=empty", "/queue/get", "vhost", "/", "name", "empty", "then", "requeue")},
		{"purge a queue", "management vhost read", asks("DELETE", "/api/queues/%2F/empty/contents", ""), shows("/queue/purge?vhost=/&name=empty", "There is nothing to delete")},
		{"list dead-letter queues", "management lists", shows("/api/curfew/deadletters", "orders.dead"), shows("/dead-letters", "orders.dead")},
		{"groups", "management vhost read", asks("POST", letters+"groups", "{}"), shows(dead, "expired")},
		{"search", "management vhost read", asks("POST", letters+"search", "{}"), shows(dead, "m0")},
		{"export", "management vhost read", asks("POST", letters+"export", "{}"), shows("/dead-letters/export?vhost=/&name=orders.dead", "payload")},
		{"purge dead letters", "management vhost read", asks("POST", letters+"purge", "{}"), form(dead, "/dead-letters/purge", "vhost", "/", "name", "orders.dead")},
		{"start a replay", "management vhost read", asks("POST", letters+"replay", `{"dry_run":true}`), form(dead, "/dead-letters/replay", "vhost", "/", "name", "orders.dead")},
		{"list replays", "administrator", shows("/api/curfew/replays", "RUN"), lists("/runs", "RUN")},
		{"see another's replay", "administrator", found("GET", "/api/curfew/replays/RUN", ""), nil},
		{"cancel another's replay", "administrator", found("DELETE", "/api/curfew/replays/RUN", ""), cancelForm},
		{"resume another's replay", "administrator", found("POST", "/api/curfew/replays/RUN/resume", ""), nil},
		{"import", "management vhost read write", asks("POST", "/api/curfew/deadletters/%2F/sink/import", importedLine), importForm},
		{"see a draft", "management vhost read", asks("POST", letters+"draft", `{"seq":LETTER}`), shows("/dead-letter/edit?vhost=/&name=orders.dead&seq=LETTER", "Change a dead letter")},
		{"edit and resend", "management vhost read write", asks("POST", letters+"resend", `{"seq":LETTER,"routing_key":"nowhere","properties":{},"payload":"","payload_encoding":"string"}`), form(dead, "/dead-letter/edit", "vhost", "/", "name", "orders.dead", "seq", "LETTER", "queue", "QUEUE", "routing_key", "nowhere", "properties", "{}", "form", "lf", "body", "x")},
		{"list deadlines", "management lists", shows("/api/curfew/deadlines", "orders"), nil},
		{"list a queue's deadlines", "management lists", asks("GET", "/api/curfew/deadlines/%2F/orders", ""), nil},
		{"change a deadline", "management vhost read write", asks("POST", "/api/curfew/deadlines/%2F/orders/SEQ", `{"by_millis":1000}`),
			form(deadline, "/deadline", "vhost", "/", "name", "orders", "seq", "SEQ", "queue", "ORDERS", "by", "1s", "do", "set")},
		{"renew a lock", "management vhost read", asks("POST", "/api/curfew/locks/%2F/orders/none", ""), nil},
		{"list delayed messages", "administrator", asks("GET", "/api/curfew/delayed/%2F", ""), nil},
		{"cancel a delayed message", "administrator", asks("DELETE", "/api/curfew/delayed/%2F/none", ""), nil},
		{"list scheduled messages", "management vhost", asks("GET", "/api/curfew/scheduled/%2F", ""), nil},
		{"cancel a scheduled message", "management vhost write", asks("DELETE", "/api/curfew/scheduled/%2F/amq.default/none", ""), form("/publish", "/scheduled/cancel", "vhost", "/", "exchange", "amq.default", "message_id", "none")},
		{"reschedule a scheduled message", "management vhost write", asks("PUT", "/api/curfew/scheduled/%2F/amq.default/none", `{"in":"1h"}`), form("/publish", "/scheduled/change", "vhost", "/", "exchange", "amq.default", "message_id", "none", "in", "1h")},
		{"deliver a scheduled message", "management vhost write", asks("POST", "/api/curfew/scheduled/%2F/amq.default/none/now", ""), nil},
		{"list policies", "management look", asks("GET", "/api/policies/%2F", ""), opens("/policies")},
		{"set a policy", "policymaker vhost", asks("PUT", "/api/policies/%2F/p", `{"pattern":"none","definition":{"max-length":1}}`), policyForm("/policy/new", "do", "set")},
		{"try a policy", "policymaker vhost", asks("PUT", "/api/curfew/policies/%2F/p?dry_run=true", `{"pattern":"none","definition":{"max-length":1}}`), policyForm("/policy/new", "do", "try")},
		{"set a policy for what is queued", "policymaker vhost", asks("PUT", "/api/curfew/policies/%2F/p", `{"pattern":"none","definition":{"max-length":1}}`), policyForm("/policy/new", "do", "retroactive")},
		{"clear a policy", "policymaker vhost", asks("DELETE", "/api/policies/%2F/none", ""), nil},
		{"set an operator's policy", "administrator", asks("PUT", "/api/operator-policies/%2F/p", `{"pattern":"none","definition":{"max-length":1}}`), policyForm("/operator-policy/new", "do", "set")},
		{"try an operator's policy", "administrator", asks("PUT", "/api/curfew/operator-policies/%2F/p?dry_run=true", `{"pattern":"none","definition":{"max-length":1}}`), policyForm("/operator-policy/new", "do", "try")},
		{"clear an operator's policy", "administrator", asks("DELETE", "/api/operator-policies/%2F/none", ""), nil},
		{"list parameters", "policymaker look", asks("GET", "/api/parameters/policy/%2F", ""), nil},
		{"set a parameter", "policymaker vhost", asks("PUT", "/api/parameters/none/%2F/x", `{"value":{}}`), nil},
		{"set limits by parameter", "administrator vhost", asks("PUT", "/api/parameters/vhost-limits/%2F/x", `{"value":{}}`), nil},
		{"clear an operator's policy by parameter", "administrator vhost", asks("DELETE", "/api/parameters/operator_policy/%2F/none", ""), nil},
		{"list global parameters", "policymaker", asks("GET", "/api/global-parameters", ""), nil},
		{"set a global parameter", "administrator", asks("PUT", "/api/global-parameters/x", `{"value":1}`), nil},
		{"clear a global parameter", "administrator", asks("DELETE", "/api/global-parameters/none", ""), nil},
		{"export definitions", "administrator", asks("GET", "/api/definitions", ""), nil},
		{"export a virtual host's definitions", "policymaker look", asks("GET", "/api/definitions/%2F", ""), nil},
		{"import definitions", "administrator", asks("POST", "/api/definitions", "{}"), nil},
		{"import a virtual host's definitions", "administrator", asks("POST", "/api/definitions/%2F", "{}"), nil},
		{"list connections", "monitor", shows("/api/connections", "guest"), shows("/connections", "guest")},
		{"list consumers", "management look", asks("GET", "/api/consumers/%2F", ""), opens("/consumers")},
		{"list holders", "management look", asks("GET", "/api/curfew/consumers/%2F", ""), nil},
		{"publish", "management vhost write", asks("POST", "/api/exchanges/%2F/amq.default/publish", `{"routing_key":"nowhere","properties":{},"payload":"","payload_encoding":"string"}`), form("/publish", "/publish", "vhost", "/", "key", "nowhere")},
		{"declare a queue", "management vhost configure", asks("PUT", "/api/queues/%2F/empty", "{}"), sends("/queue/new", "vhost", "/", "name", "empty")},
		{"delete a queue", "management vhost configure", asks("DELETE", "/api/queues/%2F/orders.dead?if-empty=true", ""), form("/queue/delete?vhost=/&name=orders.dead", "/queue/delete", "vhost", "/", "name", "orders.dead", "queue", "QUEUE", "if_empty", "1")},
		{"list exchanges", "management look", shows("/api/exchanges/%2F", "amq.topic"), shows("/exchanges", "amq.topic")},
		{"declare an exchange", "management vhost configure", asks("PUT", "/api/exchanges/%2F/x", `{"type":"fanout"}`), form("/exchange/new", "/exchange/new", "vhost", "/", "name", "x", "type", "fanout")},
		{"delete an exchange", "management vhost configure", asks("DELETE", "/api/exchanges/%2F/used?if-unused=true", ""), form("/exchange/delete?vhost=/&name=used", "/exchange/delete", "vhost", "/", "name", "used", "if_unused", "1")},
		{"list bindings", "management look", asks("GET", "/api/bindings/%2F", ""), nil},
		{"bind", "management vhost read write", asks("POST", "/api/bindings/%2F/e/amq.fanout/q/sink", "{}"), form("/binding/new", "/binding/new", "vhost", "/", "source", "amq.fanout", "destination", "sink", "to", "queue")},
		{"see a user", "administrator", asks("GET", "/api/users/guest", ""), shows("/user?name=guest", "guest")},
		{"set a user", "administrator", asks("PUT", "/api/users/made", `{"tags":""}`), form("/queue/new", "/user/tags", "name", "made")},
		{"set permissions", "administrator", asks("PUT", "/api/permissions/%2F/made", `{"configure":"","write":"","read":""}`), form("/queue/new", "/user/permission", "name", "made", "vhost", "/")},
		{"clear permissions", "administrator", asks("DELETE", "/api/permissions/%2F/nobody", ""), form("/queue/new", "/user/permission/clear", "name", "nobody", "vhost", "/")},
		{"delete a user", "administrator", asks("DELETE", "/api/users/nobody", ""), form("/queue/new", "/user/delete", "name", "nobody")},
		{"close another's connections", "administrator", asks("DELETE", "/api/connections/username/nobody", ""), nil},
		{"list queues", "management look", shows("/api/queues/%2F", "orders"), shows("/queues", "orders")},
		{"see a queue", "management look", shows("/api/queues/%2F/orders", "orders"), opens(orders)},
		{"see the status", "monitor", asks("GET", "/api/curfew/status", ""), shows("/", "Deadlines ahead")},
		{"plan maintenance", "administrator", asks("POST", "/api/curfew/maintenance", `{"condition":"none","duration":"1ms"}`), form("/incidents", "/maintenance", "duration", "none")},
		{"end maintenance", "administrator", asks("DELETE", "/api/curfew/maintenance/none", ""), form("/incidents", "/maintenance/end", "id", "none")},
		{"acknowledge an incident", "administrator", asks("POST", "/api/curfew/incidents/none/ack", ""), form("/incidents", "/incidents/ack", "id", "none")},
		{"end an acknowledgement", "administrator", asks("DELETE", "/api/curfew/incidents/none/ack", ""), form("/incidents", "/incidents/unack", "id", "none")},
		{"test a sink", "administrator", asks("POST", "/api/curfew/incidents/test", `{"sink":"none"}`), nil},
		{"list users", "administrator", asks("GET", "/api/users", ""), opens("/users")},
		{"make a virtual host", "administrator", asks("PUT", "/api/vhosts/%2F", "{}"), form("/queue/new", "/vhost/new", "name", "/")},
		{"see a virtual host", "management look", asks("GET", "/api/vhosts/%2F", ""), shows("/vhost?name=/", "Virtual hosts")},
		{"describe a virtual host", "administrator", asks("PUT", "/api/curfew/vhosts/%2F", "{}"), form("/queue/new", "/vhost", "name", "/", "description", "")},
		{"limit a virtual host", "administrator", asks("PUT", "/api/vhost-limits/%2F/max-queues", `{"value":-1}`), form("/queue/new", "/vhost", "name", "/", "max-queues", "", "was-max-queues", "1")},
		{"protect a virtual host", "administrator", asks("DELETE", "/api/vhosts/%2F/deletion/protection", ""), form("/queue/new", "/vhost", "name", "/", "was-protected_from_deletion", "1")},
		{"delete a virtual host", "administrator", asks("DELETE", "/api/vhosts/none", ""), form("/queue/new", "/vhost/delete", "name", "/", "confirm", "not this one")},
		{"set topic permissions", "administrator", asks("PUT", "/api/topic-permissions/%2F/made", `{"exchange":"amq.topic","write":"","read":""}`), form("/queue/new", "/user/topic", "name", "made", "vhost", "/", "exchange", "amq.topic")},
		{"see the history", "monitor", asks("GET", "/api/curfew/history", ""), nil},
		{"see a queue's history", "monitor", asks("GET", "/api/curfew/history?queue=orders", ""), nil},
		{"see deadlines by queue", "management lists", nil, shows("/deadlines", "orders")},
	} {
		for _, u := range everybody() {
			for face, ask := range map[string]call{"api": c.ask, "dashboard": c.visit} {
				if ask == nil {
					continue
				}
				may := u.may(c.rule) && (face == "api" || u.is("monitor"))
				allowed, answer := ask(f, &u)
				assert.Equal(t, may, allowed, "%s by %s as %s (%q): %s", c.operation, face, u.name(), c.rule, answer)
			}
		}
	}
}
