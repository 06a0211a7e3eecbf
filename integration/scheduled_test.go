package integration

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// scheduler is an application that schedules messages for a queue and changes its mind, with direct replies.
type scheduler struct {
	t       *testing.T
	ch      *amqp091.Channel
	answers <-chan amqp091.Delivery
}

func newScheduler(t *testing.T, url string) *scheduler {
	t.Helper()
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	_, err := ch.QueueDeclare("reminders", true, false, false, false, nil)
	check(t, err)
	answers, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	check(t, err)
	return &scheduler{t, ch, answers}
}

// send publishes a persistent message, whose body is its correlation-id, and waits for the confirm.
func (s *scheduler) send(id, body string, headers amqp091.Table) {
	s.t.Helper()
	confirm, err := s.ch.PublishWithDeferredConfirm("", "reminders", false, false, amqp091.Publishing{
		DeliveryMode: amqp091.Persistent, MessageId: id, CorrelationId: body, ReplyTo: "amq.rabbitmq.reply-to", Headers: headers, Body: []byte(body),
	})
	check(s.t, err)
	require.True(s.t, confirm.Wait())
}

// answer waits for the next answer.
func (s *scheduler) answer() (correlationID, result string) {
	s.t.Helper()
	select {
	case d := <-s.answers:
		return d.CorrelationId, string(d.Body)
	case <-time.After(answerLimit):
		s.t.Fatal("no answer")
		return "", ""
	}
}

// TestCancelRacesWithDelivery: each of 300 messages is cancelled at about the time when it is due. What the answer calls cancelled never comes, and
// the rest comes once and not early.
func TestCancelRacesWithDelivery(t *testing.T) {
	t.Parallel()
	const count = 300
	c := startCurfew(t)
	s := newScheduler(t, c.url)
	reader := openChannel(t, dial(t, c.url))
	deliveries, err := reader.Consume("reminders", "", true, false, false, false, nil)
	check(t, err)
	due := map[string]time.Time{}
	for i := range count {
		id := fmt.Sprint(i)
		due[id] = time.Now().Add(500 * time.Millisecond)
		s.send(id, id, amqp091.Table{"x-delay": int32(500)})
		if i >= count/3 { // of the one that is about to be due
			before := fmt.Sprint(i - count/3)
			time.Sleep(time.Until(due[before]) - time.Duration(i%5)*time.Millisecond)
			s.send("", before, amqp091.Table{"x-cancel": before})
		}
	}
	for i := count - count/3; i < count; i++ {
		s.send("", fmt.Sprint(i), amqp091.Table{"x-cancel": fmt.Sprint(i)})
	}
	results, want := map[string]string{}, map[string]bool{}
	for range count {
		id, result := s.answer()
		require.Contains(t, []string{"cancelled", "too late"}, result)
		require.NotContains(t, results, id)
		if results[id] = result; result == "too late" {
			want[id] = true
		}
	}
	t.Logf("%d cancelled, %d too late", count-len(want), len(want))
	for len(want) > 0 {
		select {
		case d := <-deliveries:
			id := string(d.Body)
			require.True(t, want[id], "%s came, and was %s", id, results[id])
			require.False(t, time.Now().Before(due[id]), "early")
			delete(want, id)
		case <-time.After(answerLimit):
			t.Fatalf("too late, but not delivered: %v", want)
		}
	}
	select {
	case d := <-deliveries:
		t.Fatalf("%s came, and was %s", d.Body, results[string(d.Body)])
	case <-time.After(time.Second):
	}
}

// TestChangesOfWhatIsScheduledSurviveAKill: what was answered is so after kill -9. Of a message and its replacement one comes.
func TestChangesOfWhatIsScheduledSurviveAKill(t *testing.T) {
	t.Parallel()
	dir := "DATA_DIR=" + t.TempDir()
	first := startCurfew(t, dir)
	s := newScheduler(t, first.url)
	began := time.Now()
	const delay = 15_000
	soon := amqp091.Table{"x-delay": int32(delay)}
	want := map[string]bool{}
	for i := range 100 {
		s.send(fmt.Sprint(i), fmt.Sprint(i), soon)
	}
	for i := range 100 {
		id := fmt.Sprint(i)
		switch i % 4 {
		case 0:
			s.send("", id, amqp091.Table{"x-cancel": id})
		case 1:
			s.send(id, "instead of "+id, amqp091.Table{"x-delay": int32(delay), "x-replace": id})
			want["instead of "+id] = true
		case 2:
			s.send("", id, amqp091.Table{"x-delay": int32(3_600_000), "x-reschedule": id})
		case 3:
			want[id] = true
			continue
		}
		_, result := s.answer()
		require.Equal(t, []string{"cancelled", "replaced", "rescheduled"}[i%4], result)
	}
	first.kill()
	second := startCurfew(t, dir)
	deliveries, err := openChannel(t, dial(t, second.url)).Consume("reminders", "", true, false, false, false, nil)
	check(t, err)
	for len(want) > 0 {
		select {
		case d := <-deliveries:
			require.True(t, want[string(d.Body)], "%s came", d.Body)
			require.GreaterOrEqual(t, time.Since(began), delay*time.Millisecond, "early")
			delete(want, string(d.Body))
		case <-time.After(answerLimit):
			t.Fatalf("did not come: %v", want)
		}
	}
	again := newScheduler(t, second.url)
	again.send("", "put off", amqp091.Table{"x-delay": int32(0), "x-reschedule": "2"})
	_, result := again.answer()
	require.Equal(t, "rescheduled", result, "its name is known again")
	require.Equal(t, "2", string(received(t, deliveries).Body))
	again.send("", "cancel 0", amqp091.Table{"x-cancel": "0"})
	_, result = again.answer()
	require.Equal(t, "not found", result)
}

// TestPikaChangesWhatItScheduled: with python3-pika.
func TestPikaChangesWhatItScheduled(t *testing.T) {
	t.Parallel()
	needs(t, "python3-pika", "/usr/bin/python3", "-c", "import pika")
	c := startCurfew(t)
	ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/bin/python3", "clients/pika/scheduled.py", c.url).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "cancelled\ncancelled\nreplaced\nrescheduled\nnot found\ndelivered: second, put forward\n", strings.ReplaceAll(string(out), "\r", ""))
}
