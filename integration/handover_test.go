package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestHandover: a Curfew is killed, and another process takes over its folder, as on a volume that another node mounts. Every confirmed message
// is there, and what came due meanwhile has expired. TestOneProcessPerDataFolder has the lock on the folder.
func TestHandover(t *testing.T) {
	const waiting, due = 20_000, 200
	folder := t.TempDir()
	first := startCurfew(t, "DATA_DIR="+folder)
	ch := openChannel(t, dial(t, first.url))
	check(t, ch.Confirm(false))
	declare := func(name string, args amqp091.Table) {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		check(t, err)
	}
	declare("dead", nil)
	declare("orders", toQueue("dead"))
	var sent []*amqp091.DeferredConfirmation
	for i := range waiting + due {
		p := amqp091.Publishing{Body: fmt.Append(nil, i), DeliveryMode: amqp091.Persistent}
		if i >= waiting {
			p.Expiration = "1"
		} else if i%2 == 0 {
			p.Expiration = "3600000"
		}
		confirmation, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", "orders", true, false, p)
		check(t, err)
		sent = append(sent, confirmation)
	}
	for _, confirmation := range sent {
		require.True(t, confirmation.Wait())
	}
	first.kill()

	began := time.Now()
	second := startCurfew(t, "DATA_DIR="+folder)
	t.Logf("%v from the start of the second process until it serves, with %d messages", time.Since(began).Round(time.Millisecond), waiting)
	then := confirmingOn(t, second.url)
	eventually(t, answerLimit, "what was due to expire", func() bool { return readyCount(t, second.url, "dead") == due })
	bodies := then.all("orders")
	want := make([]string, waiting)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	require.True(t, slices.Equal(want, bodies), "%d of %d messages are there, in order", len(bodies), waiting)
	require.Len(t, then.all("dead"), due)
}
