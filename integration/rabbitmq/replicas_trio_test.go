package rabbitmq

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
)

// TestReplicasOnThreeNodes runs two `curfew serve` beside three nodes, each of which names the cluster after itself, in a virtual host with queues
// that are only published to and with an operator policy. The queue's leader is killed with -9, then the node that the keeper is connected to.
// Afterwards everything that was due has been dead-lettered: 99 of 100 within a second, and all within three, more than without
// any killing. On a machine that does other work these are ten times as much, unless KEEPER_QUIET says that it does none.
func TestReplicasOnThreeNodes(t *testing.T) {
	t.Parallel()
	nodes := threeNodes(t)
	calm := nodes[2]
	vhost, url := calm.vhost(t)
	calm.api(t, http.MethodPut, "operator-policies/"+vhost+"/limit", map[string]any{"pattern": "^elsewhere$", "definition": map[string]any{"max-length": 10}, "apply-to": "queues"}, nil)
	args := table{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
	q := declareKept(t, url, "kept", cluster.Quorum, args)
	q.repeats = true
	if family() == cluster.Family43 {
		calm.api(t, http.MethodPut, "policies/"+vhost+"/kept", map[string]any{"pattern": "^kept$", "definition": map[string]any{"consumer-disconnected-timeout": 1000}, "apply-to": "queues"}, nil)
	}
	declare(t, q.ch, "published-only", table{"x-queue-type": "quorum"})
	publish(t, q.ch, "", "published-only", "", 1)
	redis := testenv.StartRedis(t)
	apis := make([]string, len(nodes))
	for i, n := range nodes {
		apis[i] = n.http
	}
	start := func(name string, order ...*node) *replica {
		return startReplica(t, &node{http: strings.Join(apis, ",")}, urlsIn("guest", order, vhost), redis.URL, name, "keep:kept,observe:published-only")
	}
	a := start("a", nodes[0], nodes[1], calm)
	eventually(t, time.Minute, "a to keep", func() bool { return len(a.keeps()) == 1 })
	b := start("b", nodes[1], nodes[0], calm)
	eventually(t, answerLimit, "b to know who keeps", func() bool { return b.queue("kept").Keeper == "a" && !b.queue("kept").Here })

	due, quiet := 0, time.Duration(0) // the latest without any killing
	// around publishes 300 a second for eight seconds, half of them due within six; what happens after two.
	around := func(what string, happen func()) {
		t.Helper()
		began := time.Now()
		happened := make(chan struct{})
		time.AfterFunc(2*time.Second, func() { defer close(happened); happen() })
		sent := map[string]*amqp091.DeferredConfirmation{} // of those due
		for i := range 2400 {
			id := fmt.Sprintf("%s-%d", what, i)
			if i%2 == 0 {
				sent[id] = q.send(id, 200*time.Millisecond+time.Duration(i*7919%6000)*time.Millisecond)
			} else {
				q.send(id, time.Hour)
			}
			if ahead := time.Until(began.Add(time.Duration(i) * 8 * time.Second / 2400)); ahead > 0 {
				<-time.After(ahead)
			}
		}
		<-happened
		without := q.forgetUnconfirmed(sent)
		if quiet == 0 && len(without) > 0 {
			t.Errorf("nothing was killed, and %d messages are not confirmed", len(without))
		}
		due += len(sent) - len(without)
		told := strandedBefore43(t, calm, vhost, q, due, a)
		q.expectDead(due, time.Minute)
		late := q.latenessSince(began)
		p99, most := percentile(late, 0.99), late[len(late)-1]
		t.Logf("%s: of %d due, p50 %v, p99 %v, the latest %v; %d twice; told p99 %v ms; unknown ages %v", what, len(late), percentile(late, 0.5), p99, most, len(q.twice),
			show(a.queue("kept").P99), a.queue("kept").UnknownAge)
		if quiet == 0 {
			quiet = most
		} else if told {
			t.Logf("%s: RabbitMQ stranded messages, which was told, and no limit holds", what)
		} else if slack := slack(); p99 > slack*time.Second+quiet || most > slack*3*time.Second+quiet {
			t.Errorf("%s: p99 %v, the latest %v", what, p99, most)
		}
	}
	around("nothing", func() {})
	calm.moveLeader(t, vhost, "kept", nodes[1])
	around("leader killed", nodes[1].kill)
	check(t, nodes[1].start())
	calm.moveLeader(t, vhost, "kept", calm)
	calm.waitForLive(t, vhost, q)
	around("keeper's node killed", nodes[0].kill)
	check(t, nodes[0].start())
	if rows := a.queue("kept"); rows.State != "keeping" && !rows.Reported {
		t.Errorf("at the end: %+v", rows)
	}
}

// strandedBefore43 waits until what is due has been dead-lettered. A quorum queue of RabbitMQ before 4.3 may keep what the consumers of a killed
// node held, for it misses their end if it led the queue before: then Curfew has to tell, and once the queue has another leader they come.
// It returns whether that happened. What the queue's own dead-letter worker keeps (at-least-once) comes then too; Curfew cannot see that. On a
// machine that does other work RabbitMQ's counts, by which Curfew tells, are themselves late, so there the text of the log has to do.
func strandedBefore43(t *testing.T, calm *node, vhost string, q *keptQueue, due int, a *replica) (told bool) {
	t.Helper()
	const tellWithin = 2 * time.Minute
	began, asked, moved := time.Now(), time.Now(), false
	eventually(t, 2*tellWithin, "everything due to be dead-lettered, or told as stranded", func() bool {
		if q.dead() >= due || family() == cluster.Family43 {
			return true
		}
		if moved || time.Since(asked) < time.Second {
			return false
		}
		asked = time.Now()
		row := a.queue(q.name)
		if row.Stranded == 0 && time.Since(began) < tellWithin {
			return false
		}
		var counted struct {
			Ready   int `json:"messages_ready"`
			Unacked int `json:"messages_unacknowledged"`
		}
		calm.api(t, http.MethodGet, "queues/"+vhost+"/"+q.name, nil, &counted)
		t.Logf("%d messages are stranded, %d of %d dead-lettered; RabbitMQ counts %+v; %+v", row.Stranded, q.dead(), due, counted, row)
		if row.Stranded == 0 && (counted.Ready > 0 || counted.Unacked-row.Held >= 20) && slack() == 1 {
			t.Error("Curfew has not told that messages cannot be taken")
		}
		told, moved = true, true
		for _, to := range trio.nodes {
			if to.cmd != nil && to != calm {
				calm.moveLeader(t, vhost, q.name, to)
				break
			}
		}
		return false
	})
	return told
}

func slack() time.Duration {
	if os.Getenv("KEEPER_QUIET") != "" {
		return 1
	}
	return 10
}

func show(v *float64) any {
	if v == nil {
		return "unknown"
	}
	return *v
}
