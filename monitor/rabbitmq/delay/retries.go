package delay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

const (
	// toHeader is where RabbitMQ 4 finds the queue that a message goes to.
	toHeader = "x-curfew-to"
	// againAfter is after how long a message is looked at again that can go nowhere, and a queue that was missing.
	againAfter = 10 * time.Second
	// statisticsAge is how old what the management API says of policies may be.
	statisticsAge = 15 * time.Second
	// timesHeader is how often a message was rejected in the queue of toHeader before it was published to get there: x-death begins again then.
	timesHeader = "x-curfew-times"
	// lastTime is RabbitMQ 4's name for when a message was last dead-lettered, which AMQP 0-9-1 clients are not told.
	lastTime = "last-time"
)

// retries is what mode retry adds to a session.
type retries struct {
	s *session
	// addresses: Curfew says where a message goes. On RabbitMQ 3 there is a queue that waits for each work queue instead.
	addresses bool

	judged  *cluster.Inventory // the last one that was judged; with the next, of the goroutine that looks
	wrongAt time.Time          // when something was first wrong; zero: nothing is

	mu   sync.Mutex
	back string         // the exchange that leads back
	ways map[string]way // by queue: whether messages get there
	due  map[uint64]int // how many messages with a fingerprint were given back, to be published when they come again
}

type way struct {
	open  bool
	until time.Time // after that it is to be asked again
}

// failure is what a message says about the last queue that it was rejected in.
type failure struct {
	queue string // "": nothing
	times int64
	at    deadline.Instant // at the latest; 0: it is not known
}

// failureOf reads x-death, whose first entry is the last one to have changed. own is the queue that waits, which is no work queue.
func failureOf(headers amqp091.Table, own string) (f failure) {
	deaths, _ := headers["x-death"].([]any)
	for _, one := range deaths {
		d, _ := one.(amqp091.Table)
		queue, _ := d["queue"].(string)
		if queue == own || f.queue != "" && f.queue != queue {
			continue
		}
		count, _ := keeper.Integer(d["count"])
		if f.queue == "" {
			at, _ := d["time"].(time.Time) // of the first time, in seconds
			if last, ok := d[lastTime].(time.Time); ok {
				f.at = deadline.At(last).AddMillis(1)
			} else if count == 1 && !at.IsZero() {
				f.at = deadline.At(at).Add(time.Second)
			}
		}
		f.queue, f.times = queue, f.times+count
	}
	if to, _ := plain(headers[toHeader]).(string); to == f.queue {
		before, _ := keeper.Integer(headers[timesHeader])
		f.times += before
	}
	return f
}

// read takes what is needed from a delivery. What is to be published is: on RabbitMQ 3 a message after its last try, to its parking queue; on RabbitMQ 4 without
// AMQP 1.0, which alone addresses, whatever is due.
func (r *retries) read(fingerprints *keeper.Fingerprints, d *amqp091.Delivery) message {
	o := &r.s.k.o
	f := failureOf(d.Headers, o.Queue)
	m := message{fingerprint: fingerprintOf(fingerprints, d), id: d.MessageId, key: d.RoutingKey, user: d.UserId, returned: d.Redelivered, published: f.at, to: f.queue}
	wait, parks := o.Retry.Wait(f.times, m.fingerprint)
	if park := o.Retry.ParkOf(f.queue); parks && f.queue != "" {
		switch {
		case r.addresses && r.leads(park):
			m.to = park
			return r.publishDue(d, m, f.times)
		case !r.addresses:
			m.publish = func(m *message) { m.parked = r.publish(d, "", park) }
		}
		wait = o.Retry.Steps[len(o.Retry.Steps)-1].Duration() // until somebody declares the queue it is tried again
	}
	m.delay = wait
	if r.addresses && (f.queue == "" || !r.leads(f.queue)) {
		m.delay, m.again = againAfter, true
		r.s.k.trouble("stray", fmt.Sprintf("a message has come from no work queue or from one that Curfew cannot bind (%q), and stays here. Let Curfew's user write to the work queues.", f.queue), 0)
		return m
	}
	return r.publishDue(d, m, f.times)
}

// publishes reports whether a message that is due is not discarded but given back, to be published when it comes again: without AMQP 1.0 RabbitMQ 4 cannot be told
// where it goes, and its body is needed for that.
func (r *retries) publishes(e *effect) bool {
	if r == nil || !r.addresses || e.to == "" || e.again {
		return false
	}
	return r.owes(e.is, 1)
}

// publishDue has a message published that was given back for that. If it cannot be, it is tried again.
func (r *retries) publishDue(d *amqp091.Delivery, m message, times int64) message {
	r.mu.Lock()
	back := r.back
	r.mu.Unlock()
	if !r.owes(m.fingerprint, -1) {
		return m
	}
	m.publish = func(m *message) {
		d.Headers[toHeader], d.Headers[timesHeader] = m.to, times
		if m.parked = r.publish(d, back, d.RoutingKey); !m.parked {
			m.delay, m.again = againAfter, true
			r.owes(m.fingerprint, 1)
		}
	}
	return m
}

// owes counts a message more or less that is to be published when it comes again. false: there is none less.
func (r *retries) owes(fingerprint uint64, more int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due[fingerprint] += more; r.due[fingerprint] > 0 {
		return true
	}
	was := r.due[fingerprint] == 0
	delete(r.due, fingerprint)
	return was
}

// leads reports whether a message with that address gets there. It binds the queue if it was not known to be bound in the last minute. Nobody else waits for that.
func (r *retries) leads(queue string) bool {
	r.mu.Lock()
	w, back := r.ways[queue], r.back
	r.mu.Unlock()
	if time.Now().Before(w.until) {
		return w.open
	}
	ch, err := r.s.conn.Channel() // which RabbitMQ closes if it refuses
	if err == nil {
		defer ch.Close()
		err = ch.QueueBind(queue, "", back, false, amqp091.Table{"x-match": "all-with-x", toHeader: queue})
	}
	if err == nil {
		w = way{true, time.Now().Add(bindEvery)}
	} else {
		if w.until.IsZero() { // or that was said
			r.s.k.log.Warn("messages cannot be brought to a queue", zap.String("to", queue), zap.Error(err))
		}
		w = way{until: time.Now().Add(againAfter)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ways[queue] = w
	return w.open
}

// publish publishes a message again, and reports whether a queue has it.
func (r *retries) publish(d *amqp091.Delivery, exchange, key string) bool {
	for _, name := range []string{"CC", "x-delivery-count", "x-acquired-count"} { // it would go to the queues in CC, too; the others are RabbitMQ's, of this queue
		delete(d.Headers, name)
	}
	err := r.s.publisher.publish(exchange, key, amqp091.Publishing{Headers: d.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding,
		DeliveryMode: amqp091.Persistent, Priority: d.Priority, CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo,
		MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Body: d.Body})
	if err != nil {
		r.s.k.log.Warn("a message cannot be published again", zap.String("exchange", exchange), zap.String("key", key), zap.Error(err))
	}
	return err == nil
}

// look finds the exchange that leads back, binds again what was bound, and notes what is set up wrong. The error: nothing can be brought back.
func (r *retries) look() error {
	k := r.s.k
	o := &k.o
	i := o.Inventory()
	own := i.Queue(o.Queue)
	if own == nil {
		return fmt.Errorf("there is no queue %s", o.Queue)
	}
	exchanges, bindings, err := o.Topology()
	back, ok := own.DeadLetterExchange()
	if kind := exchanges[back].Type; r.addresses && (!ok || kind != "headers" && err == nil) {
		return fmt.Errorf("the dead-letter exchange of %s is to be one of type headers, and %q is of type %q: curfew rabbitmq plan --retry prints what to set up", o.Queue, back, kind)
	}
	r.mu.Lock()
	r.back = back
	r.mu.Unlock()
	if !k.strays() {
		k.trouble("stray", "", 0)
	}
	if err == nil && r.addresses {
		for _, queue := range r.renew(i, bindings, o.Queue, o.Retry) {
			r.leads(queue)
		}
	}
	return nil
}

// renew keeps the ways to the queues that have a binding, and returns the others that exist, if messages came for them or they are work queues or their
// parking queues: one that was deleted and made again has lost its binding, and RabbitMQ may have a message for it.
func (r *retries) renew(i *cluster.Inventory, bindings []cluster.Binding, waits string, b *cluster.Backoff) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted, feeds, has := slices.Collect(maps.Keys(r.ways)), feeding(bindings, waits), addressed(bindings, r.back)
	for at := range i.Queues {
		q := &i.Queues[at]
		if exchange, ok := q.DeadLetterExchange(); ok && slices.Contains(feeds, exchange) {
			wanted = append(wanted, q.Name, b.ParkOf(q.Name))
		}
	}
	clear(r.ways)
	for queue := range has {
		r.ways[queue] = way{true, time.Now().Add(2 * bindEvery)}
	}
	wanted = slices.DeleteFunc(wanted, func(queue string) bool { return has[queue] || i.Queue(queue) == nil })
	slices.Sort(wanted)
	return slices.Compact(wanted)
}

// judge notes what is set up wrong, if there is a new inventory. Policies in one are some seconds old, so what is wrong is looked at twice.
func (r *retries) judge() {
	o := &r.s.k.o
	i := o.Inventory()
	_, bindings, _ := o.Topology()
	if i == r.judged || len(bindings) == 0 {
		return
	}
	reasons, bad := wrong(i, bindings, o.Queue, o.Retry)
	switch {
	case !bad:
		r.wrongAt = time.Time{}
	case r.wrongAt.IsZero():
		r.wrongAt = time.Now()
		return
	case time.Since(r.wrongAt) < statisticsAge:
		return
	default:
		if _, err := o.Facts(r.s.ctx); err != nil { // it waits for a new inventory
			return
		}
		i = o.Inventory()
		_, bindings, _ = o.Topology()
		reasons, _ = wrong(i, bindings, o.Queue, o.Retry)
	}
	r.judged = i
	for name, reason := range reasons {
		r.s.k.trouble(name, reason, 0)
	}
}

// strays reports whether messages wait that can go nowhere.
func (k *Keeper) strays() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.core.waiting.Items, func(e *held) bool { return e.again })
}

// feeding returns the exchanges whose messages come to a queue.
func feeding(bindings []cluster.Binding, queue string) (exchanges []string) {
	for _, b := range bindings {
		if b.Queue == queue {
			exchanges = append(exchanges, b.Exchange)
		}
	}
	return exchanges
}

// addressed returns the queues that the exchange which leads back has bindings to.
func addressed(bindings []cluster.Binding, back string) map[string]bool {
	has := map[string]bool{}
	for _, one := range bindings {
		if one.Exchange == back && one.Arguments[toHeader] == one.Queue {
			has[one.Queue] = true
		}
	}
	return has
}

// wrong says what is set up wrong around a queue in which messages wait, with an empty reason for what is right.
func wrong(i *cluster.Inventory, bindings []cluster.Binding, waits string, b *cluster.Backoff) (reasons map[string]string, bad bool) {
	own := i.Queue(waits)
	if own == nil {
		return nil, false
	}
	back, _ := own.DeadLetterExchange()
	feeds := feeding(bindings, waits)
	var targets, missing, lacking []string
	for _, one := range bindings {
		if one.Queue != waits && one.Exchange == back {
			targets = append(targets, one.Queue)
		}
	}
	works := 0
	parks := map[string]bool{}
	for at := range i.Queues {
		q := &i.Queues[at]
		exchange, leads := q.DeadLetterExchange()
		if leads = leads && slices.Contains(feeds, exchange); !leads && !slices.Contains(targets, q.Name) {
			continue
		}
		park := b.ParkOf(q.Name)
		parks[park] = true
		switch {
		case !leads && q.Unknown&cluster.UnknownPolicy == 0:
			lacking = append(lacking, q.Name)
		case leads:
			if works++; park != "" && i.Queue(park) == nil {
				missing = append(missing, park)
			}
		}
	}
	lacking = slices.DeleteFunc(lacking, func(name string) bool { return parks[name] })
	reasons = map[string]string{"park": "", "policy": ""}
	if len(missing) > 0 {
		reasons["park"] = fmt.Sprintf("there is no queue %s: a message waits once more after its last try, and again. Declare it.", list(missing))
	}
	set := fmt.Sprintf("Set dead-letter-exchange to %s by a policy (curfew rabbitmq plan --retry prints one).", list(feeds))
	switch {
	case len(lacking) > 0:
		reasons["policy"] = fmt.Sprintf("what workers reject in %s does not come here any more. %s", list(lacking), set)
	case works == 0:
		reasons["policy"] = "no queue has its dead letters come here, so nothing is tried again. " + set
	}
	return reasons, reasons["park"]+reasons["policy"] != ""
}

// list returns names in order, each once.
func list(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
