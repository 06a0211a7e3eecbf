package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
)

const (
	smallLimit = 256 << 20
	// attackBytes is what an attack sends at most, and addressSpace, in KiB, where a broker
	// without a bound ends.
	attackBytes  = 600 << 20
	addressSpace = 4 << 20
)

// TestMemoryLimitHolds has one login try what it may to have the broker hold memory. The
// process stays within a fifth above its limit, and another client is still served.
func TestMemoryLimitHolds(t *testing.T) {
	for name, attack := range map[string]func(*testing.T, *process){
		"headers":   unfinishedHeaders,
		"bodies":    unfinishedBodies,
		"consumers": consumersWithArguments,
		"queues":    queuesWithArguments,
		"publishes": httpPublishes,
		"lists":     longLists,
	} {
		t.Run(name, func(t *testing.T) {
			p := launchUnder(t, fmt.Sprint("ulimit -v ", addressSpace), t.TempDir(), "MEMORY_LIMIT=256MiB")
			p.ready()
			served := another(t, p)
			attack(t, p)
			if n := served(); n == 0 {
				t.Error("another client was not served")
			}
			peak := p.peak()
			t.Logf("%d MiB at most", peak>>20)
			if peak > smallLimit*12/10 {
				t.Errorf("the process took %d MiB with a limit of %d", peak>>20, smallLimit>>20)
			}
		})
	}
}

// peak is the most that the process had in memory, in bytes.
func (p *process) peak() int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	check(p.t, err)
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	check(p.t, err)
	return kib << 10
}

// another publishes with confirms and gets until served is called, which says how often.
func another(t *testing.T, p *process) (served func() int) {
	t.Helper()
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	ch, err := conn.Channel()
	check(t, err)
	check(t, ch.Confirm(false))
	_, err = ch.QueueDeclare("neighbour", true, false, false, false, nil)
	check(t, err)
	stop, ended := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		defer func() { ended <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			c, err := ch.PublishWithDeferredConfirm("", "neighbour", false, false, amqp091.Publishing{DeliveryMode: 2, Body: []byte("body")})
			if err == nil && !c.Wait() {
				err = fmt.Errorf("not confirmed")
			}
			if err == nil {
				_, _, err = ch.Get("neighbour", true)
			}
			if err != nil {
				t.Errorf("another client: %v", err)
				return
			}
			n++
		}
	}()
	return func() int {
		close(stop)
		select {
		case n := <-ended:
			conn.Close()
			return n
		case <-time.After(30 * time.Second):
			return 0
		}
	}
}

// flooder logs in, and closes its connection when it is told to.
func flooder(t *testing.T, p *process) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", p.address())
	check(t, err)
	t.Cleanup(func() { nc.Close() })
	b := []byte(amqp.ProtocolHeader)
	b = amqp.AppendMethod(b, 0, &amqp.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")})
	b = amqp.AppendMethod(b, 0, &amqp.ConnectionTuneOk{})
	b = amqp.AppendMethod(b, 0, &amqp.ConnectionOpen{VirtualHost: "/"})
	_, err = nc.Write(b)
	check(t, err)
	go func() {
		defer nc.Close()
		told := make([]byte, 64<<10)
		for {
			n, err := nc.Read(told)
			if err != nil || bytes.Contains(told[:n], []byte("_ERROR - ")) {
				return
			}
		}
	}()
	return nc
}

// allSend has connections write parts until they are cut off or have written their share of
// attackBytes.
func allSend(t *testing.T, p *process, connections int, part func(i int) []byte) {
	t.Helper()
	var all sync.WaitGroup
	for range connections {
		a := flooder(t, p)
		all.Go(func() {
			for i, left := 0, attackBytes/connections; left > 0; i++ {
				a.SetWriteDeadline(time.Now().Add(10 * time.Second))
				n, err := a.Write(part(i))
				if left -= n; err != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

func publishHead(id uint16, size int, p *amqp.Properties) []byte {
	b := amqp.AppendMethod(nil, id, &amqp.BasicPublish{RoutingKey: "k"})
	start := len(b)
	b = amqp.AppendContent(b, id, p.Append(nil), nil, 0)
	binary.BigEndian.PutUint64(b[start+7+4:], uint64(size))
	return b
}

func unfinishedHeaders(t *testing.T, p *process) {
	head := publishHead(0, 100, &amqp.Properties{Headers: amqp.Table{"h": string(bytes.Repeat([]byte("h"), 120<<10))}})
	allSend(t, p, 6, func(i int) []byte {
		id := uint16(i%2046 + 1)
		b := amqp.AppendMethod(nil, id, &amqp.ChannelOpen{})
		return append(b, onChannel(head, id)...)
	})
}

// onChannel is a copy of frames on another channel.
func onChannel(frames []byte, id uint16) []byte {
	b := bytes.Clone(frames)
	for at := 0; at < len(b); at += int(binary.BigEndian.Uint32(b[at+3:])) + 8 {
		binary.BigEndian.PutUint16(b[at+1:], id)
	}
	return b
}

func unfinishedBodies(t *testing.T, p *process) {
	const size, piece = 16 << 20, 128 << 10
	body := amqp.AppendContent(nil, 0, nil, make([]byte, piece-8), 0)
	body = body[8+int(binary.BigEndian.Uint32(body[3:])):]
	allSend(t, p, 6, func(i int) []byte {
		const pieces = size/piece - 1
		id := uint16(i/pieces + 1)
		var b []byte
		if i%pieces == 0 {
			b = amqp.AppendMethod(nil, id, &amqp.ChannelOpen{})
			b = append(b, publishHead(id, size, new(amqp.Properties))...)
		}
		return append(b, onChannel(body, id)...)
	})
}

var longArguments = amqp.Table{"a": string(bytes.Repeat([]byte("a"), 100<<10))}

func consumersWithArguments(t *testing.T, p *process) {
	allSend(t, p, 6, func(i int) (b []byte) {
		id := uint16(i/1000 + 1)
		if i%1000 == 0 {
			b = amqp.AppendMethod(nil, id, &amqp.ChannelOpen{})
		}
		return amqp.AppendMethod(b, id, &amqp.BasicConsume{Queue: "neighbour", ConsumerTag: fmt.Sprint(i), NoWait: true, NoLocal: true, Arguments: longArguments})
	})
}

func queuesWithArguments(t *testing.T, p *process) {
	var names sync.Mutex
	next := 0
	allSend(t, p, 6, func(i int) (b []byte) {
		names.Lock()
		next++
		name := fmt.Sprint("q", next)
		names.Unlock()
		b = amqp.AppendMethod(nil, 1, &amqp.ChannelOpen{})
		if i%2 == 0 {
			b = amqp.AppendMethod(b, 1, &amqp.QueueDeclare{Queue: name, NoWait: true, Arguments: longArguments})
		} else {
			b = amqp.AppendMethod(b, 1, &amqp.ExchangeDeclare{Exchange: name, Type: "direct", NoWait: true, Arguments: longArguments})
		}
		return amqp.AppendMethod(b, 1, &amqp.ChannelClose{})
	})
}

// web is where the management API is.
func (p *process) web() string { return strings.TrimSuffix(p.word("Dashboard"), "/") }

func httpPublishes(t *testing.T, p *process) {
	text := append([]byte(`{"properties":{},"routing_key":"nowhere","payload_encoding":"base64","payload":"`), bytes.Repeat([]byte("A"), 20<<20)...)
	text = append(text, `"}`...)
	web := p.web()
	var all sync.WaitGroup
	for range attackBytes / len(text) {
		all.Go(func() {
			r, err := http.NewRequest("POST", web+"/api/exchanges/%2F/amq.direct/publish", bytes.NewReader(text))
			if err != nil {
				t.Error(err)
				return
			}
			r.SetBasicAuth("guest", "guest")
			if answer, err := opsClient.Do(r); err == nil { // some are cut off while they send
				answer.Body.Close()
			}
		})
	}
	all.Wait()
}

func longLists(t *testing.T, p *process) {
	conn, err := amqp091.Dial(p.url())
	check(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	check(t, err)
	for i := range 20_000 {
		_, err := ch.QueueDeclare(fmt.Sprint("q", i), false, false, false, i%5000 != 4999, nil)
		check(t, err)
	}
	web := p.web()
	var all sync.WaitGroup
	for _, path := range []string{"/api/queues", "/api/queues", "/api/queues?sort=name&columns=name", "/api/bindings", "/api/definitions", "/api/exchanges", p.word("Metrics") + "/per-object", p.word("Metrics")} {
		all.Go(func() {
			if !strings.HasPrefix(path, "http") {
				path = web + path
			}
			r, err := http.NewRequest("GET", path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.SetBasicAuth("guest", "guest")
			answer, err := (&http.Client{Timeout: answerLimit}).Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			if err != nil || answer.StatusCode != 200 {
				t.Errorf("%s: %s, %d bytes, %v", path, answer.Status, n, err)
			}
		})
	}
	all.Wait()
}
