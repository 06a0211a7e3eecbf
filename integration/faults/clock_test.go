package faults

import (
	"fmt"
	"math"
	"os/exec"
	"strings"
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

	p = launchUnder(t, hourAhead(t), dir)
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

// TestAbsoluteTimesAfterAWrongClock: Curfew goes on with a clock that is an hour ahead of
// the wall clock, as after a run under a wrong one (a time namespace, in which the time
// since boot is an hour further). Absolute times are the wall clock's all the same, health
// says what is wrong, and without deadlines the next start goes by the wall clock.
func TestAbsoluteTimesAfterAWrongClock(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, dir)
	p.ready()
	ch := channelTo(t, p)
	declareDying(t, ch)
	send(t, ch, "keeps the clock", 10*time.Hour)
	if h := p.health(); !strings.Contains(h, `"status":"ok"`) {
		t.Errorf("health is %s", h)
	}
	p.kill()

	p = launchUnder(t, hourAhead(t), dir)
	p.ready()
	if offset := p.metric("curfew_clock_offset_seconds"); math.Abs(offset-3600) > 60 {
		t.Errorf("the offset is %v s, not an hour", offset)
	}
	eventually(t, answerLimit, "health to say that the clock is ahead", func() bool {
		h := p.health()
		return strings.Contains(h, `"status":"degraded"`) && strings.Contains(h, "ahead of the machine's")
	})
	ch = channelTo(t, p)
	soon := time.Now().Add(time.Second).Truncate(time.Millisecond) // as the header has it
	sendWith(t, ch, "half an hour", amqp091.Publishing{Headers: amqp091.Table{"x-expires-at": time.Now().Add(30 * time.Minute).UnixMilli()}})
	sendWith(t, ch, "soon", amqp091.Publishing{Headers: amqp091.Table{"x-expires-at": soon.UnixMilli()}})
	eventually(t, answerLimit, "what is due soon to be dead-lettered", func() bool { return ready(t, ch, dead) == 1 })
	if early := time.Until(soon); early > 0 {
		t.Errorf("it was dead-lettered %v early", early)
	}
	d, ok, err := ch.Get(dead, true)
	check(t, err)
	if !ok || string(d.Body) != "soon" {
		t.Fatalf("dead-lettered is %q", d.Body)
	}
	death := d.Headers["x-death"].([]any)[0].(amqp091.Table)["time"].(time.Time)
	if off := time.Since(death); off < -2*time.Second || off > answerLimit {
		t.Errorf("x-death says that it died at %v", death)
	}
	if n := ready(t, ch, waiting); n != 2 {
		t.Errorf("%d messages are left, not 2", n)
	}
	_, err = ch.QueuePurge(waiting, false)
	check(t, err)
	if code := p.stop(); code != 0 {
		t.Errorf("curfew ended with code %d", code)
	}

	p = launchUnder(t, hourAhead(t), dir)
	p.ready()
	if offset := p.metric("curfew_clock_offset_seconds"); offset != 0 {
		t.Errorf("the offset is %v s with no deadline pending", offset)
	}
	healthy(t, p) // once the incident, which is kept, has ended
	p.stop()
}

// hourAhead runs the command in a time namespace, in which the time since boot is an hour further. Without root that takes a user
// namespace.
func hourAhead(t *testing.T) string {
	t.Helper()
	const unshare = "unshare --time --boottime 3600"
	for _, command := range []string{unshare, unshare + " --user --map-root-user"} {
		if exec.Command("sh", "-c", command+" true").Run() == nil {
			return "exec " + command + ` "$0" serve`
		}
	}
	t.Fatalf("%s is not allowed here: run `make test-privileged` as root (in a container with --cap-add SYS_ADMIN), or where users may make namespaces", unshare)
	return ""
}

// TestTimeZones: one life in a zone that is a day ahead of the next one's, with
// daylight saving in between. Deadlines are instants and do not notice.
func TestTimeZones(t *testing.T) {
	t.Parallel()
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
	sendWith(t, ch, body, amqp091.Publishing{Expiration: fmt.Sprint(ttl.Milliseconds())})
}

func sendWith(t *testing.T, ch *amqp091.Channel, body string, p amqp091.Publishing) {
	t.Helper()
	p.DeliveryMode, p.Body = amqp091.Persistent, []byte(body)
	confirm, err := ch.PublishWithDeferredConfirm("", waiting, false, false, p)
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
