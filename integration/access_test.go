package integration

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/server"
)

const accessDefinitions = "testdata/access.json"

// accessBroker is a broker with the users of accessDefinitions.
type accessBroker struct {
	name, url               string
	deleteUser, deleteVHost func(string)
}

// accessBrokers are a Curfew within the test, so that its users can be changed under its clients, and RabbitMQ.
func accessBrokers(t *testing.T) []accessBroker {
	t.Helper()
	startRabbitMQ(t)
	r := sharedRabbitMQ
	text, err := os.ReadFile(accessDefinitions)
	check(t, err)
	r.done(t, http.MethodPost, "definitions", string(text))
	b, err := broker.New(broker.Options{})
	check(t, err)
	d, err := definitions.Parse(text)
	check(t, err)
	_, err = definitions.Import(t.Context(), b, d, definitions.Options{})
	check(t, err)
	return []accessBroker{
		{"curfew", serveInProcess(t, b), func(name string) { check(t, b.Accounts.DeleteUser(name)) }, func(name string) { check(t, b.DeleteVHost(name)) }},
		{"rabbitmq", r.url, func(name string) { r.done(t, http.MethodDelete, "users/"+name, "") }, func(name string) { r.done(t, http.MethodDelete, "vhosts/"+name, "") }},
	}
}

func serveInProcess(t *testing.T, b *broker.Broker) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.New(server.Options{Broker: b}).Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		check(t, <-ended)
		check(t, b.Close())
	})
	return "amqp://guest:guest@" + l.Addr().String()
}

// as is the URL for another user, whose password is "secret", in a virtual host.
func (b *accessBroker) as(user, vhost string) string {
	return userURL(b.url, user) + "/" + strings.ReplaceAll(vhost, "/", "%2F")
}

// login says how a login and the opening of a virtual host end.
func login(t *testing.T, url string) string {
	t.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		if e, ok := errors.AsType[*amqp091.Error](err); ok {
			return e.Error()
		}
		return err.Error()
	}
	check(t, conn.Close())
	return "in"
}

// TestLogin: both brokers tell a client that gets in the same.
func TestLogin(t *testing.T) {
	const refused = `Exception (403) Reason: "username or password not allowed"` // the client's words
	brokers := accessBrokers(t)
	for _, v := range []struct{ user, vhost, want string }{
		{"sha256", "/", "in"},
		{"sha512", "/", "in"},
		{"md5", "/", "in"},
		{"wrong", "/", refused},
		{"passwordless", "/", refused},
		{"nobody", "/", refused},
		{"sha256", "nowhere", `Exception (530) Reason: "NOT_ALLOWED - vhost nowhere not found"`},
		{"sha256", "small", `Exception (530) Reason: "NOT_ALLOWED - access to vhost 'small' refused for user 'sha256'"`},
		{"sha256", "closed", `Exception (530) Reason: "NOT_ALLOWED - access to vhost 'closed' refused for user 'sha256': connection limit (0) is reached"`},
		{"barred", "/", `Exception (530) Reason: "NOT_ALLOWED - connection refused for user 'barred': user connection limit (0) is reached"`},
	} {
		for _, b := range brokers {
			if got := login(t, b.as(v.user, v.vhost)); got != v.want {
				t.Errorf("%s: %s in %s:\n got %s\nwant %s", b.name, v.user, v.vhost, got, v.want)
			}
		}
	}
}

// TestRefusedLoginOnTheWire: what a client that announces authentication_failure_close is told, and what it is told about mechanisms.
func TestRefusedLoginOnTheWire(t *testing.T) {
	brokers := accessBrokers(t)
	capable := amqp.Table{"capabilities": amqp.Table{"authentication_failure_close": true}}
	for _, v := range []struct{ mechanism, response, want, rabbitmq string }{
		{"PLAIN", "\x00guest\x00wrong", "close 403 ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.", ""},
		{"AMQPLAIN", "\x05LOGINS\x00\x00\x00\x05guest\x08PASSWORDS\x00\x00\x00\x05wrong", "close 403 ACCESS_REFUSED - Login was refused using authentication mechanism AMQPLAIN. For details see the broker logfile.", ""},
		// RabbitMQ says it to its log alone.
		{"EXTERNAL", "", "close 503 COMMAND_INVALID - invalid authentication mechanism 'EXTERNAL'", "hang up"},
		{"SPIRAL", "", "close 503 COMMAND_INVALID - unknown authentication mechanism 'SPIRAL'", "hang up"},
	} {
		for _, b := range brokers {
			want := v.want
			if b.name == "rabbitmq" && v.rabbitmq != "" {
				want = v.rabbitmq
			}
			r := dialRaw(t, b.url).greet()
			r.send(0, &amqp.ConnectionStartOk{ClientProperties: capable, Mechanism: v.mechanism, Response: []byte(v.response), Locale: "en_US"})
			if got := r.answer(); got != want {
				t.Errorf("%s: %s:\n got %s\nwant %s", b.name, v.mechanism, got, want)
			}
		}
	}
}

// TestPermissions puts each of accessVectors to both brokers as a user that may configure, write and read what begins with "own" (and read amq.direct, which closing asks for), and on
// the topic exchange "own.topic" write keys that begin with the user's name and read those that begin with "read.".
func TestPermissions(t *testing.T) {
	for _, b := range accessBrokers(t) {
		setUpAccess(t, b.url)
		for _, v := range accessVectors {
			t.Run(v.name+"/"+b.name, func(t *testing.T) {
				want := v.want
				if b.name == "rabbitmq" && v.rabbitmq != "" {
					want = v.rabbitmq
				}
				url := b.as("limited", "/")
				s := &session{t: t, url: url, conn: dial(t, url), name: "own." + strings.ReplaceAll(v.name, " ", "-")}
				if got := v.ask(s); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			})
		}
	}
}

// setUpAccess makes, as guest, what the vectors meet.
func setUpAccess(t *testing.T, url string) {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	for name, kind := range map[string]string{"own.direct": "direct", "own.topic": "topic", "foreign.x": "direct"} {
		check(t, ch.ExchangeDeclare(name, kind, false, false, false, false, nil))
	}
	check(t, ch.ExchangeDeclare("own.internal", "direct", false, false, true, false, nil))
	for _, name := range []string{"own.q", "foreign.q"} {
		_, err := ch.QueueDeclare(name, false, false, false, false, nil)
		check(t, err)
	}
}

// TestWhatEndsConnections: deleting a user or a virtual host closes their connections with the same words. They are read from the wire:
// RabbitMQ hangs up without waiting for the answer, so that a library may have nothing to tell but a broken connection.
func TestWhatEndsConnections(t *testing.T) {
	for _, b := range accessBrokers(t) {
		for _, v := range []struct {
			user, password, vhost string
			end                   func(string)
			want                  string
		}{
			{"leaving", "secret", "/", b.deleteUser, "close 320 CONNECTION_FORCED - user 'leaving' is deleted"},
			{"guest", "guest", "leaving", b.deleteVHost, "close 320 CONNECTION_FORCED - vhost 'leaving' is deleted"},
		} {
			r := dialRaw(t, b.url).loginAs(v.user, v.password, v.vhost)
			v.end("leaving")
			got := r.answer()
			if b.name == "rabbitmq" { // it closes for two events at once, and names the faster
				got = strings.Replace(got, "vhost 'leaving' is down", "vhost 'leaving' is deleted", 1)
			}
			if got != v.want {
				t.Errorf("%s: got %s, want %s", b.name, got, v.want)
			}
		}
	}
}

// TestLimitsOfUsersAndVHosts: channels of a user, queues of a virtual host.
func TestLimitsOfUsersAndVHosts(t *testing.T) {
	for _, b := range accessBrokers(t) {
		s := &session{t: t, url: b.as("limited", "small"), name: "own.second"}
		s.conn = dial(t, s.url)
		ch := s.channel()
		_, err := ch.QueueDeclare("own.first", false, false, true, false, nil)
		check(t, err)
		_, err = ch.QueueDeclare(s.name, false, false, true, false, nil)
		const full = `Exception (406) Reason: "PRECONDITION_FAILED - cannot declare queue 'own.second': queue limit in vhost 'small' (1) is reached"`
		if err == nil || err.Error() != full {
			t.Errorf("%s: got %v\nwant %s", b.name, err, full)
		}
		narrow := dial(t, b.as("narrow", "/"))
		openChannel(t, narrow)
		closed := narrow.NotifyClose(make(chan *amqp091.Error, 1))
		more := 0 // RabbitMQ counts the first a moment after it is open
		eventually(t, answerLimit, b.name+" to refuse a channel", func() bool {
			_, err = narrow.Channel()
			more++
			return err != nil
		})
		if b.name == "curfew" && more > 1 {
			t.Errorf("it let %d channels be opened", more)
		}
		e := received(t, closed)
		const reached = "NOT_ALLOWED - number of channels opened for user 'narrow' has reached the maximum allowed user limit of (1)"
		if err == nil || e == nil || e.Code != 530 || e.Reason != reached {
			t.Errorf("%s: got %v, %v\nwant %s", b.name, err, e, reached)
		}
	}
}

// userURL is url for another user with the password "secret".
func userURL(url, user string) string {
	_, rest, _ := strings.Cut(url, "@")
	return "amqp://" + user + ":secret@" + rest
}

func guestURL(url string) string {
	_, rest, _ := strings.Cut(url, "@")
	return "amqp://guest:guest@" + rest
}
