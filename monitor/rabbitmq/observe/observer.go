package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	// refreshEvery is how often queues and bindings are looked at when events tell of changes,
	// pollEvery when nothing does. settle is how long changes collect.
	refreshEvery = 30 * time.Second
	pollEvery    = 5 * time.Second
	settle       = 200 * time.Millisecond

	// A queue is counted once a second, more often while messages have missed their
	// deadlines, and within dueEvery when one is due.
	restEvery    = time.Second
	overdueEvery = 250 * time.Millisecond
	dueEvery     = 20 * time.Millisecond
	// grace is how long after a count its messages may take from the exchange to us.
	grace = 15 * time.Millisecond

	// maxTaps bounds the queues that are tapped: RabbitMQ allows 2,047 channels for one
	// connection.
	maxTaps = 2_000
	// strangers is how often more messages may be ready than have entered before a queue
	// counts as reached by other ways.
	strangers = 3
	// samples bounds what a forecast looks at.
	samples = 2048
	// longestID bounds what is kept of a message-id, in bytes.
	longestID = 128
)

// Options say who is told.
type Options struct {
	// Missed is told of messages that have missed their deadlines, in batches that are
	// valid during the call. It must not block. nil: nobody is told.
	Missed func([]Missed)
	// Log is told what cannot be observed; nil: nobody is.
	Log *zap.Logger
}

// Missed is one message that missed its deadline, told when that is seen, and again when
// the message has left its queue (Miss.Left).
type Missed struct {
	VHost, Queue string
	// Line is a number of the queue's line: no two lines of an Observer share one, so that
	// Line and Number name the message.
	Line uint64
	// DeadLettered says that its queue has a dead-letter exchange.
	DeadLettered bool
	Miss
}

// Expiry is the record of a message that has left, as alerts and the audit take it; false
// for one that is still there. Its instants are of this machine's clock.
func (m *Missed) Expiry() (e deadline.Expiry, ok bool) {
	e = deadline.Expiry{
		Ref:   deadline.Ref{Deadline: m.Deadline, Queue: m.Line, Seq: m.Number},
		VHost: m.VHost, Queue: m.Queue, Path: deadline.Lazy, Arrived: m.Left, MessageID: []byte(m.MessageID),
	}
	if m.DeadLettered {
		e.Action = deadline.DeadLettered
	}
	return e, m.Left != 0
}

// Lateness is how long after its deadline the message was seen to have left, at most; for
// one that is still there, how long it has been late so far.
func (m *Missed) Lateness() time.Duration {
	return deadline.Lateness(m.Deadline, max(m.Left, m.Seen))
}

// State is how one watched queue stands.
type State struct {
	VHost     string `json:"vhost"`
	Queue     string `json:"queue"`
	Tapped    bool   `json:"tapped"`
	Reason    string `json:"reason,omitempty"` // why it is not
	Ready     int    `json:"ready"`
	Consumers int    `json:"consumers"`
	Counts
	// Seen is what the taps have seen of its messages since the Observer began.
	Seen         cluster.Seen `json:"seen"`
	Overdue      int          `json:"overdue"`       // missed their deadlines and are still there
	OverdueSince int64        `json:"overdue_since"` // the earliest of these deadlines, Unix ms; 0: none
	Rate         float64      `json:"rate"`          // messages consumed a second while any wait
	WillMiss     int          `json:"will_miss"`     // of those that wait, how many will not be consumed in time
	LastMiss     int64        `json:"last_miss"`     // the last of these deadlines, Unix ms; 0: none
	// Restarts is how often what was known of the queue was given up: a connection was
	// lost, its tap overflowed, its bindings changed.
	Restarts int `json:"restarts"`
}

// Observer says which messages of a RabbitMQ miss their deadlines, and touches none.
// Its methods are safe for concurrent use; Run is called once.
type Observer struct {
	cluster *cluster.Cluster
	watch   cluster.Watch
	missed  func([]Missed)
	log     *zap.Logger

	mu     sync.Mutex
	lostAt time.Time // since when there is no connection; zero: there is one
	queues map[string]*watched
	lines  atomic.Uint64 // how many there have been
}

// watched is one queue that is observed. The loop alone changes it; what others read or
// the tap changes is below mu.
type watched struct {
	name      string
	bindings  []cluster.Binding
	tap       *tap      // nil: none
	counted   time.Time // last
	refused   string    // why RabbitMQ did not count it then; "": it did
	strangers int       // how often more were ready than have entered
	published int64     // by RabbitMQ's statistics, when they covered the tap's whole time; -1: not yet
	since     time.Time // when the line began
	number    uint64    // of the line, by lines
	lines     *atomic.Uint64

	mu        sync.Mutex
	line      *Line           // nil: it is not tapped
	from      *tap            // whose messages line counts
	ttl       deadline.Millis // -1: none
	restarts  int
	ready     int
	consumers int
	seen      cluster.Seen
	reason    string // why it is not tapped

	deadLettered bool
	readAt       time.Time // when the tap was last read to its end
}

// New makes an Observer of the queues that the rules watch and nobody keeps.
func New(c *cluster.Cluster, watch cluster.Watch, o Options) *Observer {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Missed == nil {
		o.Missed = func([]Missed) {}
	}
	return &Observer{cluster: c, watch: watch, missed: o.Missed, log: o.Log, queues: map[string]*watched{}}
}

// Run observes until ctx ends, whose error it returns. It connects again by itself; what
// was known of the queues is then given up, and counting starts over.
func (o *Observer) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	polled := make(chan struct{}) // closed when nothing tells of changes
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		err := o.cluster.Events(ctx, func(e cluster.Event) {
			if e.Kind != cluster.ConsumerCreated && e.Kind != cluster.ConsumerDeleted {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
		if errors.Is(err, cluster.ErrNoEvents) {
			o.log.Info("queues and bindings are polled", zap.Duration("every", pollEvery), zap.Error(err))
			close(polled)
		}
	})
	for {
		o.setLost(time.Now())
		if err := o.connected(ctx, changed, polled); ctx.Err() != nil {
			return ctx.Err()
		} else {
			o.log.Warn("the connection to RabbitMQ is lost; observing starts over", zap.Error(err))
		}
		o.forget()
		select {
		case <-time.After(dueEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *Observer) setLost(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lostAt = at
}

// States is how the watched queues stand, by name.
func (o *Observer) States() []State {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []State
	for _, name := range slices.Sorted(maps.Keys(o.queues)) {
		list = append(list, o.stateLocked(o.queues[name]))
	}
	return list
}

func (o *Observer) stateLocked(w *watched) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := State{VHost: o.cluster.Address().VHost(), Queue: w.name, Tapped: w.line != nil, Reason: w.reason, Ready: w.ready, Consumers: w.consumers, Seen: w.seen, Restarts: w.restarts}
	if w.line != nil {
		s.Counts, s.Rate = w.line.Counts(), w.line.Rate()
		overdue, since := w.line.Overdue()
		s.Overdue, s.OverdueSince = overdue, since.UnixMilli()
		p := w.line.Forecast(deadline.At(time.Now()), samples)
		s.WillMiss, s.LastMiss = p.Miss, p.Last.UnixMilli()
	}
	return s
}

// forget drops what belongs to a connection.
func (o *Observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.queues {
		w.untap()
	}
}

// untap ends the tap; what was counted is given up.
func (w *watched) untap() {
	if w.tap != nil {
		w.tap.close()
		w.tap = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line != nil {
		w.line = nil
		w.restarts++
	}
}

// connected observes until the connection is lost.
func (o *Observer) connected(ctx context.Context, changed, polled <-chan struct{}) error {
	conn, err := o.cluster.Connect(ctx, "observe")
	if err != nil {
		return err
	}
	defer conn.Close()
	o.setLost(time.Time{})
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lost, looked := conn.NotifyClose(make(chan *amqp091.Error, 1)), make(chan found)
	counter := &counter{conn: conn}
	refresh := time.NewTimer(0)
	defer refresh.Stop()
	every := refreshEvery
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			if err == nil {
				return amqp091.ErrClosed
			}
			return err
		case <-changed:
			refresh.Reset(settle)
		case <-polled:
			every, polled = pollEvery, nil
			refresh.Reset(settle)
		case <-refresh.C: // meanwhile counting goes on
			group.Go(func() {
				select {
				case looked <- o.look(ctx):
				case <-ctx.Done():
				}
			})
		case found := <-looked:
			refresh.Reset(every)
			if err := o.apply(conn, found); err != nil {
				o.log.Warn("queues and bindings cannot be looked at", zap.Error(err))
			}
		case <-tick.C:
			if err := o.count(ctx, counter); err != nil {
				return err
			}
		}
	}
}

// found is what there is in the virtual host.
type found struct {
	inventory *cluster.Inventory
	exchanges map[string]cluster.Exchange
	bindings  []cluster.Binding
	unknown   error            // why exchanges and bindings are not known
	published map[string]int64 // nil: not known; then one way to notice what bypasses taps is missing
	err       error
}

func (o *Observer) look(ctx context.Context) (f found) {
	names, _ := o.watch.Names()
	if f.inventory, f.err = o.cluster.Inventory(ctx, names); f.err == nil {
		f.exchanges, f.bindings, f.unknown = o.cluster.Topology(ctx)
		f.published, _ = o.cluster.Published(ctx)
	}
	return f
}

// apply ties taps to the queues that can be tapped.
func (o *Observer) apply(conn *amqp091.Connection, f found) error {
	if f.err != nil {
		return f.err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	taps := 0
	seen := map[string]bool{}
	for at := range f.inventory.Queues {
		q := &f.inventory.Queues[at]
		rule, ok := o.watch.Rule(o.cluster.Address().VHost(), q.VHost, q.Name)
		if !ok || cluster.Decide(q, rule, f.inventory.Server, cluster.Seen{}).Verdict == cluster.Kept {
			continue
		}
		seen[q.Name] = true
		w := o.queues[q.Name]
		if w == nil {
			w = &watched{name: q.Name, published: -1, lines: &o.lines}
			o.queues[q.Name] = w
		}
		var reason string
		if f.unknown != nil {
			reason = f.unknown.Error()
		} else {
			reason = Untappable(f.inventory, q, f.exchanges, f.bindings)
		}
		w.checkPublished(f.published[q.Name])
		if reason == "" && w.strangers >= strangers {
			reason = bypassed
		}
		if reason == "" {
			reason = w.refused
		}
		if w.refused != "" {
			w.setTotals(int(q.Ready), q.Consumers)
		}
		if taps++; reason == "" && taps > maxTaps {
			reason = fmt.Sprintf("%d queues are tapped already.", maxTaps)
		}
		if err := w.adjust(conn, q, reason, f.bindings); err != nil {
			if conn.IsClosed() {
				return err
			}
			w.setReason("RabbitMQ refuses its tap: " + err.Error())
		}
	}
	for name, w := range o.queues {
		if !seen[name] {
			w.untap()
			delete(o.queues, name)
		}
	}
	return nil
}

func (w *watched) setReason(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
}

// setTotals takes what the management API says of a queue that RabbitMQ does not count.
func (w *watched) setTotals(ready, consumers int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready, w.consumers = ready, consumers
}

// checkPublished compares RabbitMQ's statistics with the tap. The first ones that began
// with the tap, or later, are the base: what is published from then on has to have
// reached the tap, since statistics are older than what it has counted.
func (w *watched) checkPublished(published int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || time.Since(w.since) < 2*pollEvery {
		return
	}
	if w.published < 0 {
		w.published = published
	} else if published-w.published > int64(w.line.Entered()) {
		w.strangers = strangers
	}
}

// bypassed is the reason not to tap a queue that messages reach otherwise.
const bypassed = "More messages are ready than its exchanges have routed to it: some arrive by the default exchange."

// adjust makes the tap what the queue's settings and bindings want.
func (w *watched) adjust(conn *amqp091.Connection, q *cluster.Queue, reason string, all []cluster.Binding) error {
	var bindings []cluster.Binding
	for _, b := range all {
		if b.Queue == q.Name {
			bindings = append(bindings, b)
		}
	}
	ttl := deadline.Millis(-1)
	if ms, ok := q.TTLMillis(); ok {
		ttl = ms
	}
	_, deadLettered := q.DeadLetterExchange()
	same := slices.EqualFunc(bindings, w.bindings, func(a, b cluster.Binding) bool {
		return a.Exchange == b.Exchange && a.RoutingKey == b.RoutingKey && fmt.Sprint(a.Arguments) == fmt.Sprint(b.Arguments)
	})
	w.setReason(reason)
	w.mu.Lock()
	w.ttl, w.deadLettered = ttl, deadLettered
	w.mu.Unlock()
	if w.tap != nil && reason == "" && same && !w.tap.ended() {
		return nil
	}
	if !same {
		w.strangers = 0
	}
	w.untap()
	w.bindings = bindings
	if reason != "" {
		return nil
	}
	tap, err := openTap(conn, q.Name, bindings)
	if err != nil {
		return err
	}
	w.tap = tap
	w.mu.Lock()
	w.from = tap
	w.beginLocked()
	w.mu.Unlock()
	go tap.read(w.enter)
	return nil
}

// beginLocked starts counting from nothing.
func (w *watched) beginLocked() {
	w.line, w.number, w.published, w.since = &Line{}, w.lines.Add(1), -1, time.Now()
	w.readAt = w.since
}

func (w *watched) setRead(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readAt = at
}

// enter takes note of a message that the tap has received, at the moment it has.
func (w *watched) enter(tap *tap, d *amqp091.Delivery) {
	at := deadline.At(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil || w.from != tap {
		return
	}
	own := expiration(d.Expiration)
	w.seen.Add(own, w.ttl)
	due := deadline.Instant(0)
	if ttl := lower(w.ttl, own); ttl >= 0 {
		due = at.AddMillis(ttl)
	}
	id := d.MessageId
	if len(id) > longestID {
		id = id[:longestID]
	}
	w.line.Enter(due, strings.Clone(id))
}

// count counts the queues of which it is time.
func (o *Observer) count(ctx context.Context, counter *counter) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	var due []*watched
	for _, w := range o.queues {
		if now.Sub(w.counted) >= w.pause(now) {
			due = append(due, w)
		}
	}
	counts := make([]Count, len(due))
	reasons := make([]string, len(due))
	for i, w := range due {
		w.counted = now
		counts[i].Before = w.entered()
		counts[i].Asked = deadline.At(time.Now())
		var err error
		counts[i].Ready, counts[i].Consumers, err = counter.count(w.name)
		if refused, ok := errors.AsType[*amqp091.Error](err); ok && !counter.conn.IsClosed() {
			reasons[i] = "RabbitMQ does not count its messages: " + refused.Reason
		} else if err != nil {
			return err
		}
		counts[i].Answered = deadline.At(time.Now())
		counts[i].After = counts[i].Before
		if w.tap != nil && reasons[i] == "" {
			waiting, err := w.tap.waiting(counter)
			if err != nil && counter.conn.IsClosed() {
				return err
			}
			if err != nil || waiting >= tapLength*9/10 {
				w.untap() // the next refresh makes another one
			} else if waiting == 0 {
				w.setRead(now)
			}
			counts[i].After = w.entered() + uint64(waiting)
		}
	}
	if len(due) > 0 {
		select { // what had entered by the answers arrives
		case <-time.After(grace):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var told []Missed
	for i, w := range due {
		if w.refused = reasons[i]; w.refused != "" {
			w.untap()
			w.mu.Lock()
			w.reason = cmp.Or(w.reason, w.refused)
			w.mu.Unlock()
			continue
		}
		counts[i].After = max(counts[i].After, w.entered())
		told = w.judge(o.cluster.Address().VHost(), counts[i], told)
		if w.tap != nil && w.strangers >= strangers {
			w.untap()
			w.setReason(bypassed)
		}
	}
	if len(told) > 0 {
		o.missed(told)
	}
	return nil
}

func (w *watched) entered() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil {
		return 0
	}
	return w.line.Entered()
}

// pause is how long the next count may wait.
func (w *watched) pause(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != "" {
		return refreshEvery // each refusal closes a channel
	}
	if w.line == nil {
		return restEvery
	}
	if next := w.line.NextDeadline(); w.line.Undecided() || next != 0 && next <= deadline.At(now) {
		return dueEvery
	}
	if n, _ := w.line.Overdue(); n > 0 {
		return overdueEvery
	}
	return restEvery
}

// judge hands a count to the line.
func (w *watched) judge(vhost string, c Count, told []Missed) []Missed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready, w.consumers = c.Ready, c.Consumers
	if w.line == nil || c.After < c.Before { // replaced meanwhile
		return told
	}
	// With nobody consuming, messages only leave. If more are ready than before, others came than the tap has seen. (Or a
	// consumer that was cancelled gave some back: so this has to happen more than once.)
	if w.line.counted != 0 && w.line.Consumers() == 0 && c.Consumers == 0 && int64(c.After)-int64(c.Ready) < w.line.gone {
		w.strangers++
		w.restarts++
		w.beginLocked()
		return told
	}
	for _, m := range w.line.Count(c, nil) {
		told = append(told, Missed{VHost: vhost, Queue: w.name, Line: w.number, DeadLettered: w.deadLettered, Miss: m})
	}
	return told
}

// expiration reads the property of a message; -1: none.
func expiration(text string) deadline.Millis {
	if text == "" {
		return -1
	}
	var ms deadline.Millis
	for _, c := range text {
		if c < '0' || c > '9' || ms > 1<<46 {
			return -1
		}
		ms = 10*ms + deadline.Millis(c-'0')
	}
	return ms
}

// lower is the lower of two times to live, of which each may be none.
func lower(a, b deadline.Millis) deadline.Millis {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return min(a, b)
}
