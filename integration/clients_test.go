package integration

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// client is an AMQP client library in the four roles of a deadline run. All of them use durable queues, persistent messages and
// confirms, and put a message's id in its body.
type client interface {
	declare(t testing.TB, url string, q topology)
	publish(t testing.TB, url, queue string, plan []planned) []sent
	collect(t testing.TB, url, queue string, count int) func() []arrival // returns once consuming; the func waits for all
	head(t testing.TB, url, queue string) string                         // id of the queue's first message, which stays; "" when empty
}

type topology struct{ queue, dlx, dlq string }

type planned struct {
	id        string
	ttlMillis int64
}

// sent: the wall clock in microseconds just before publishing and just after the broker's confirm.
type sent struct {
	id                       string
	ttlMillis, before, after int64
}

// arrival: the wall clock in microseconds when the dead letter reached its consumer.
type arrival struct {
	id string
	at int64
}

const clientLimit = 2 * time.Minute

// script is a client library driven by a program of integration/clients, which speaks the lines its head comment describes.
type script struct {
	command []string
	env     []string
}

func (s script) start(t testing.TB, stdin io.Reader, args ...string) (*exec.Cmd, io.Reader, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	t.Cleanup(cancel)
	words := append(s.command[1:len(s.command):len(s.command)], args...)
	cmd := exec.CommandContext(ctx, s.command[0], words...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdin = stdin
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, stderr
}

// run returns the words of each line the program printed.
func (s script) run(t testing.TB, stdin io.Reader, args ...string) [][]string {
	t.Helper()
	cmd, stdout, stderr := s.start(t, stdin, args...)
	lines := readLines(stdout)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s %s: %v\n%s", s.command, args[0], err, stderr)
	}
	return lines
}

func readLines(r io.Reader) (lines [][]string) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		lines = append(lines, strings.Fields(scanner.Text()))
	}
	return lines
}

func (s script) declare(t testing.TB, url string, q topology) {
	t.Helper()
	s.run(t, nil, "declare", url, q.queue, q.dlx, q.dlq)
}

func (s script) publish(t testing.TB, url, queue string, plan []planned) []sent {
	t.Helper()
	var input bytes.Buffer
	for _, p := range plan {
		fmt.Fprintf(&input, "%s %d\n", p.id, p.ttlMillis)
	}
	var out []sent
	for _, words := range s.run(t, &input, "publish", url, queue) {
		out = append(out, sent{id: words[1], ttlMillis: number(t, words[2]), before: number(t, words[3]), after: number(t, words[4])})
	}
	return out
}

func (s script) collect(t testing.TB, url, queue string, count int) func() []arrival {
	t.Helper()
	cmd, stdout, stderr := s.start(t, nil, "collect", url, queue, strconv.Itoa(count))
	buffered := bufio.NewReader(stdout)
	if line, err := buffered.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s collect: %q %v\n%s", s.command, line, err, stderr)
	}
	lines := inBackground(func() [][]string { return readLines(buffered) })
	return func() []arrival {
		var out []arrival
		for _, words := range lines() {
			out = append(out, arrival{id: words[1], at: number(t, words[2])})
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s collect: %v after %d of %d\n%s", s.command, err, len(out), count, stderr)
		}
		return out
	}
}

func (s script) head(t testing.TB, url, queue string) string {
	t.Helper()
	if words := s.run(t, nil, "get", url, queue)[0]; words[0] == "head" {
		return words[1]
	}
	return ""
}

func number(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// goClient is amqp091-go, in this process.
type goClient struct{}

func (goClient) declare(t testing.TB, url string, q topology) {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	declareDeadLettered(t, ch, q, nil)
}

// declareDeadLettered makes the queue, its dead-letter exchange and a queue bound to that; args go to the first queue.
func declareDeadLettered(t testing.TB, ch *amqp091.Channel, q topology, args amqp091.Table) {
	t.Helper()
	all := amqp091.Table{"x-dead-letter-exchange": q.dlx}
	for name, value := range args {
		all[name] = value
	}
	check(t, ch.ExchangeDeclare(q.dlx, "direct", true, false, false, false, nil))
	_, err := ch.QueueDeclare(q.dlq, true, false, false, false, nil)
	check(t, err)
	check(t, ch.QueueBind(q.dlq, q.queue, q.dlx, false, nil))
	_, err = ch.QueueDeclare(q.queue, true, false, false, false, all)
	check(t, err)
}

func (goClient) publish(t testing.TB, url, queue string, plan []planned) []sent {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	out := make([]sent, 0, len(plan))
	for _, p := range plan {
		s := sent{id: p.id, ttlMillis: p.ttlMillis, before: time.Now().UnixMicro()}
		message := amqp091.Publishing{Body: []byte(p.id), Expiration: strconv.FormatInt(p.ttlMillis, 10), DeliveryMode: amqp091.Persistent}
		confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, message)
		check(t, err)
		if !confirm.Wait() {
			t.Fatalf("message %s was not confirmed", p.id)
		}
		s.after = time.Now().UnixMicro()
		out = append(out, s)
	}
	return out
}

func (goClient) collect(t testing.TB, url, queue string, count int) func() []arrival {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	check(t, ch.Qos(500, 0, false))
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	check(t, err)
	return inBackground(func() (out []arrival) {
		limit := time.After(clientLimit)
		for len(out) < count {
			select {
			case d, open := <-deliveries:
				if !open {
					t.Errorf("the consumer of %s ended after %d of %d", queue, len(out), count)
					return out
				}
				out = append(out, arrival{id: string(d.Body), at: time.Now().UnixMicro()})
				if err := d.Ack(false); err != nil {
					t.Errorf("ack: %v", err)
				}
			case <-limit:
				t.Errorf("%s had %d of %d messages after %v", queue, len(out), count, clientLimit)
				return out
			}
		}
		return out
	})
}

// inBackground runs f at once and returns what waits for its result.
func inBackground[R any](f func() R) func() R {
	result := make(chan R, 1)
	go func() { result <- f() }()
	return func() R { return <-result }
}

func (goClient) head(t testing.TB, url, queue string) string {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	d, ok, err := ch.Get(queue, false)
	check(t, err)
	if !ok {
		return ""
	}
	check(t, d.Nack(false, true))
	check(t, ch.Close()) // it is back once that is answered
	return string(d.Body)
}
