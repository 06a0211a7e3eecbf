package faults

import (
	"fmt"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// TestSuspendedWhileDown: the machine sleeps for an hour while the process is down (a
// time namespace, in which the time since boot is an hour further). Its wall clock did
// not notice. What came due in that hour fires at the start, what did not stays.
func TestSuspendedWhileDown(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, dir)
	p.ready()
	ch := channelTo(t, p)
	declareDying(t, ch)
	send(t, ch, "due", 30*time.Minute)
	send(t, ch, "not due", 2*time.Hour)
	p.kill()

	p = launchUnder(t, `exec unshare --time --boottime 3600 "$0" serve`, dir)
	p.ready()
	ch = channelTo(t, p)
	eventually(t, answerLimit, "what came due to be dead-lettered", func() bool { return ready(t, ch, dead) == 1 })
	if n := ready(t, ch, waiting); n != 1 {
		t.Errorf("%d messages are left, not 1", n)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("curfew ended with code %d", code)
	}
}

// TestTimeZones: one life in a zone that is a day ahead of the next one's, with
// daylight saving in between. Deadlines are instants and do not notice.
func TestTimeZones(t *testing.T) {
	tr := newTrial(t, t.TempDir())
	tr.tell()
	for _, zone := range []string{"Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Stockholm"} {
		_, err := time.LoadLocation(zone)
		check(t, err)
		tr.startUnder("export TZ=" + zone)
		tr.process.ready()
		tr.declare()
		conn := tr.dial()
		p, err := newPublisher(tr.log, conn, "in "+zone)
		check(t, err)
		for i := range 100 {
			check(t, p.send(&message{key: waiting, queues: []string{waiting}, ttlMillis: new(int64(1000 + 20*i)), persistent: true}))
		}
		if !p.settled() {
			t.Fatal("not all was confirmed")
		}
		conn.Close()
		tr.killed()
	}
	tr.startUnder("export TZ=America/St_Johns")
	tr.process.ready()
	dying := tr.collect(tr.dial(), "dying", dead, true)
	eventually(t, answerLimit, "all to be dead-lettered", func() bool { return dying.count() == 300 })
	dying.close()
	tr.drain()
	tr.stopped()
	tr.judge()
}

func channelTo(t *testing.T, p *process) *amqp091.Channel {
	t.Helper()
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	check(t, err)
	check(t, ch.Confirm(false))
	return ch
}

func declareDying(t *testing.T, ch *amqp091.Channel) {
	t.Helper()
	_, err := ch.QueueDeclare(waiting, true, false, false, false, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	check(t, err)
	_, err = ch.QueueDeclare(dead, true, false, false, false, nil)
	check(t, err)
}

// send publishes a persistent message and sees it confirmed.
func send(t *testing.T, ch *amqp091.Channel, body string, ttl time.Duration) {
	t.Helper()
	confirm, err := ch.PublishWithDeferredConfirm("", waiting, false, false, amqp091.Publishing{
		DeliveryMode: amqp091.Persistent, Expiration: fmt.Sprint(ttl.Milliseconds()), Body: []byte(body),
	})
	check(t, err)
	if !confirm.Wait() {
		t.Fatal("not confirmed")
	}
}

func ready(t *testing.T, ch *amqp091.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	check(t, err)
	return q.Messages
}
