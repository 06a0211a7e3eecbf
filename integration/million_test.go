package integration

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/amqp"
)

const (
	millionCount  = 1_000_000
	millionWindow = time.Minute
	millionBatch  = 1000
	millionBody   = 100
	millionMemory = 1 << 30 // resident, page cache of the mapped segments included
)

// TestMillionDeadlines: a million messages, all due within one minute, on a queue nobody reads. None is missing, none early; publishing
// goes on while they fire; memory stays bounded. Every expiry is recorded and every sink is notified: a million misses become a few
// notifications, with the right count. How late they were is reported; MILLION=compare runs the same without audit and sinks before, and
// reports by how much these change it.
func TestMillionDeadlines(t *testing.T) {
	t.Parallel()
	var quiet, told time.Duration
	if os.Getenv("MILLION") == "compare" {
		t.Run("quiet", func(t *testing.T) { quiet = millionRun(t, startCurfew(t, "AUDIT=false")) })
	}
	t.Run("every sink", func(t *testing.T) {
		sinks := startSinks(t)
		dir := t.TempDir()
		c := startCurfew(t, append(sinks.settings(t), "DATA_DIR="+dir)...)
		events := subscribe(t, c.url, "deadline_missed.#")
		told = millionRun(t, c)
		sinks.judge(t, events)
		if recorded := auditedIn(t, dir); recorded != millionCount {
			t.Errorf("the audit has %d expiries, not %d", recorded, millionCount)
		}
	})
	if quiet > 0 {
		t.Logf("lateness p99 %v; %v with an audit and every sink, %+.0f%%", quiet, told, 100*(told.Seconds()/quiet.Seconds()-1))
	}
}

// millionRun returns the p99 of the lateness.
func millionRun(t *testing.T, c *curfew) time.Duration {
	t.Helper()
	busyMachine.Lock()
	defer busyMachine.Unlock()
	q := topology{queue: "million", dlx: "million.dlx", dlq: "million.dead"}
	goClient{}.declare(t, c.url, q)

	m := &million{t: t, due: make([]dueWindow, millionCount), lateness: make([]time.Duration, 0, millionCount)}
	collected := inBackground(func() error { return m.collect(dialRaw(t, c.url).login(), q.dlq) })
	pinged := inBackground(func() []time.Duration { return m.ping(t, c.url) })
	peak := inBackground(func() int64 { return m.watchMemory(c) })
	m.publish(dialRaw(t, c.url).login(), q.queue)
	published := time.Since(m.start)

	if err := collected(); err != nil {
		t.Errorf("the consumer of the dead letters: %v", err)
	}
	m.over.Store(true)
	round, most := pinged(), peak()
	slices.SortFunc(m.lateness, cmp.Compare)
	t.Logf("published in %v (%.0f/s); all %d dead-lettered %v after the start", published.Round(time.Millisecond),
		millionCount/published.Seconds(), len(m.lateness), time.Since(m.start).Round(time.Millisecond))
	t.Logf("lateness p50 %v, p99 %v, max %v", quantile(m.lateness, 0.5), quantile(m.lateness, 0.99), m.lateness[len(m.lateness)-1])
	t.Logf("publish and confirm beside it: %d, p50 %v, p99 %v", len(round), quantile(round, 0.5), quantile(round, 0.99))
	t.Logf("resident memory at most %d MiB, %d MiB at the end", most>>20, c.residentBytes()>>20)
	if most > millionMemory {
		t.Errorf("resident memory reached %d MiB", most>>20)
	}
	if left := readyCount(t, c.url, q.queue); left != 0 {
		t.Errorf("%d messages are left in the queue", left)
	}
	return quantile(m.lateness, 0.99)
}

// million is one run; start is when publishing began.
type million struct {
	t        testing.TB
	start    time.Time
	due      []dueWindow // by message
	lateness []time.Duration
	over     atomic.Bool
}

// dueWindow holds a message's earliest and latest possible deadline in Unix us; the latter is known once its batch is confirmed, which may
// be after its arrival. seen counts arrivals.
type dueWindow struct {
	earliest, latest atomic.Int64
	seen             atomic.Int32
}

// publish sends the messages in batches, each confirmed before the next, with deadlines spread evenly over the rest of the minute.
func (m *million) publish(r *raw, queue string) {
	r.send(1, &amqp.ConfirmSelect{})
	r.expectMethod("confirm.select-ok")
	random := rand.New(rand.NewPCG(1, 2))
	body := make([]byte, millionBody)
	var out []byte
	m.start = time.Now()
	end := m.start.Add(millionWindow)
	for first := 0; first < millionCount; first += millionBatch {
		before := time.Now()
		out = out[:0]
		ttls := make([]int64, millionBatch)
		for i := range ttls {
			ttls[i] = 50 + random.Int64N(max(1, end.Sub(before).Milliseconds()-50))
			m.due[first+i].earliest.Store(before.UnixMicro() + ttls[i]*1000)
			binary.BigEndian.PutUint64(body, uint64(first+i))
			out = amqp.AppendMethod(out, 1, &amqp.BasicPublish{RoutingKey: queue})
			out = amqp.AppendContent(out, 1, expirationProperty(ttls[i]), body, frameMax)
		}
		r.write(out...)
		m.awaitConfirm(r, uint64(first+millionBatch))
		after := time.Now().UnixMicro()
		for i, ttl := range ttls {
			m.due[first+i].latest.Store(after + ttl*1000)
		}
	}
}

// expirationProperty is a property list with that alone.
func expirationProperty(ttlMillis int64) []byte {
	text := strconv.FormatInt(ttlMillis, 10)
	return append([]byte{0x01, 0x00, byte(len(text))}, text...)
}

func (m *million) awaitConfirm(r *raw, last uint64) {
	for {
		ack, ok := r.expectMethod("basic.ack").(*amqp.BasicAck)
		if ok && ack.DeliveryTag == last {
			return
		}
	}
}

// collect consumes the dead letters, without acks, until all have come.
func (m *million) collect(r *raw, queue string) error {
	r.send(1, &amqp.BasicConsume{Queue: queue, NoAck: true})
	for left := millionCount; left > 0; {
		f, err := r.frame()
		if err != nil {
			return err
		}
		if f.Type == amqp.FrameBody {
			m.arrived(binary.BigEndian.Uint64(f.Payload), time.Now().UnixMicro())
			left--
		}
	}
	return nil
}

func (m *million) arrived(number uint64, at int64) {
	due := &m.due[number]
	if due.seen.Add(1) > 1 {
		m.t.Errorf("message %d arrived twice", number)
	}
	if early := due.earliest.Load() - at; early > 0 {
		m.t.Errorf("message %d arrived %d us before its deadline", number, early)
	}
	latest := due.latest.Load()
	if latest == 0 { // fired before its batch was confirmed: not late
		latest = at
	}
	m.lateness = append(m.lateness, max(0, time.Duration(at-latest)*time.Microsecond))
}

// ping is another application: it publishes a message to a queue of its own, waits for the confirm and takes it out again, over and over.
func (m *million) ping(t testing.TB, url string) (round []time.Duration) {
	ch := openChannel(t, dial(t, url))
	_, err := ch.QueueDeclare("beside", true, false, false, false, nil)
	if err == nil {
		err = ch.Confirm(false)
	}
	for err == nil && !m.over.Load() {
		start := time.Now()
		var confirm *amqp091.DeferredConfirmation
		if confirm, err = ch.PublishWithDeferredConfirm("", "beside", true, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent}); err == nil {
			confirm.Wait()
			round = append(round, time.Since(start))
			_, _, err = ch.Get("beside", true)
		}
	}
	if err != nil {
		t.Errorf("publishing beside the deadlines: %v", err)
	}
	slices.SortFunc(round, cmp.Compare)
	return round
}

// watchMemory samples the broker's resident memory and returns the most.
func (m *million) watchMemory(c *curfew) (most int64) {
	sample := time.NewTicker(100 * time.Millisecond)
	defer sample.Stop()
	for range sample.C {
		most = max(most, c.residentBytes())
		if m.over.Load() {
			break
		}
	}
	return most
}
