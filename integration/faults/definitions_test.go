package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// TestDefinitionsCannotBeSaved declares until there is no room for one more definition, as on
// a full disk. A queue that cannot be saved is not there, so nothing is confirmed into it,
// and a kill takes away nothing that was.
func TestDefinitionsCannotBeSaved(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, dir)
	p.ready()
	inTheWay := filepath.Join(dir, "definitions.tmp") // where the file would be written again
	check(t, os.Mkdir(inTheWay, 0o700))
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	defer func() { conn.Close() }()
	last, confirmed := "", 0
	for i := 0; ; i++ {
		ch, err := conn.Channel()
		check(t, err)
		name := fmt.Sprint("q", i, strings.Repeat("x", 200))
		if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
			if !strings.Contains(err.Error(), "save definitions") {
				t.Fatal(err)
			}
			conn, err = amqp091.Dial(p.url())
			check(t, err)
			if published(t, conn, name) {
				t.Fatal("a message was taken for a queue that is not saved")
			}
			break
		}
		check(t, ch.Close())
		if last = name; !published(t, conn, name) {
			t.Fatalf("queue %d takes no messages", i)
		}
		confirmed++
	}
	if published(t, conn, last) {
		confirmed++
	}
	p.kill()

	check(t, os.Remove(inTheWay))
	p = launch(t, dir)
	p.ready()
	if found := p.metric("curfew_messages_ready"); int(found) != confirmed {
		t.Errorf("%v messages after the kill, %d had been confirmed", found, confirmed)
	}
	if out := p.out.String(); strings.Contains(out, "not declared any more") || strings.Contains(out, "curfew.recovered") {
		t.Errorf("a queue was lost:\n%s", out)
	}
}

// published sends one persistent message to a queue, and reports whether it was accepted.
func published(t *testing.T, conn *amqp091.Connection, queue string) bool {
	t.Helper()
	ch, err := conn.Channel()
	check(t, err)
	defer ch.Close()
	check(t, ch.Confirm(false))
	returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
	confirm, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: noise[:100]})
	check(t, err)
	if !confirm.Wait() {
		t.Fatal("not confirmed")
	}
	return len(returned) == 0
}
