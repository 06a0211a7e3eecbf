package rabbitmq

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// TestManyQueues: a Curfew keeps more queues than it has connections. What is due in each is dead-lettered once, not early, and soon. When one connection is
// closed, the queues that share it are kept again.
func TestManyQueues(t *testing.T) {
	t.Parallel()
	const queues, connections = 150, 64
	n := sharedNode(t)
	vhost, url := n.vhost(t)
	ch := openChannel(t, dial(t, url))
	check(t, ch.Confirm(false))
	declare(t, ch, "dead", nil)
	name := func(i int) string { return fmt.Sprintf("keep-%d", i) }
	for i := range queues {
		declare(t, ch, name(i), table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
	}
	letters, err := openChannel(t, dial(t, url)).Consume("dead", "", true, false, false, false, nil)
	check(t, err)
	r := startReplica(t, n, url, "", "one", "keep:keep-*,off:*")
	all := func() bool { return len(r.keeps()) == queues }
	eventually(t, time.Minute, "all queues to be kept", all)
	var mine []struct {
		Name       string
		Properties struct {
			Connection string `json:"connection_name"`
		} `json:"client_properties"`
	}
	holds := func() (names []string) {
		n.api(t, http.MethodGet, "vhosts/"+vhost+"/connections", nil, &mine)
		for _, c := range mine {
			if strings.Contains(c.Properties.Connection, ": keep ") {
				names = append(names, c.Name)
			}
		}
		return names
	}
	eventually(t, answerLimit, "RabbitMQ to list the connections", func() bool { return len(holds()) == connections })

	for _, what := range []string{"calm", "a connection is closed"} {
		due := map[string]time.Time{}
		for i := range queues {
			for _, ttl := range []time.Duration{time.Hour, 8 * time.Second} {
				id := what + strconv.Itoa(i)
				if ttl < time.Hour {
					due[id] = time.Now().Add(ttl)
				}
				c, err := ch.PublishWithDeferredConfirm("", name(i), false, false, amqp091.Publishing{MessageId: id, DeliveryMode: amqp091.Persistent, Expiration: strconv.FormatInt(ttl.Milliseconds(), 10)})
				check(t, err)
				require.True(t, c.Wait())
			}
		}
		if what != "calm" {
			n.api(t, http.MethodDelete, "connections/"+strings.ReplaceAll(holds()[0], " ", "%20"), nil, nil)
		}
		var late []time.Duration
		for limit := time.After(time.Minute); len(due) > 0; {
			select {
			case d := <-letters:
				at, known := due[d.MessageId]
				require.True(t, known, "%s came twice", d.MessageId)
				delete(due, d.MessageId)
				late = append(late, time.Since(at))
			case <-limit:
				t.Fatalf("%s: %d are missing", what, len(due))
			}
		}
		slices.Sort(late)
		t.Logf("%s: p50 %v, p99 %v, the latest %v", what, percentile(late, 0.5), percentile(late, 0.99), late[len(late)-1])
		require.Positive(t, late[0], "early")
		require.Less(t, late[len(late)-1], slack()*time.Second)
		eventually(t, answerLimit, "all queues to be kept", all)
	}
}
