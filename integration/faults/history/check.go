package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// clockSlack is how many µs the wall clock may disagree with the clock of a broker that
// does not follow it: the wall clock may have been slewed in between.
const clockSlack = 100_000

// checker replays a log.
type checker struct {
	report   *Report
	line     int
	life     int
	alive    bool
	queues   map[string]*queue
	channels map[string]*channel
	messages map[string]*publication
	ordered  []*publication // as published
	numbers  map[string]int // number of each publisher's next message

	// The settlements that the broker has received in this life, and how many of them are
	// known to be durable. For a publish: how many the broker had received when it began.
	taken   []settlement
	durable int
	before  map[string]int

	// Settlements that the broker has received, and that made dead letters. They are durable once these have arrived,
	// of which a confirm says nothing.
	moved []settlement
}

// Check reads a log and judges it. An error means that it is not the log of one run, which
// is a fault of the test and not of the broker.
func Check(r io.Reader) (*Report, error) {
	c := &checker{
		report:   &Report{Ends: map[string]int{}, byRule: map[Rule]int{}},
		queues:   map[string]*queue{},
		channels: map[string]*channel{},
		messages: map[string]*publication{},
		numbers:  map[string]int{},
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.line++
		if err := c.read(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("history: line %d: %w", c.line, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("history: read: %w", err)
	}
	c.countEnds()
	return c.report, nil
}

func (c *checker) read(line []byte) error {
	var e Event
	strict := json.NewDecoder(bytes.NewReader(line))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&e); err != nil {
		return err
	}
	if err := c.apply(&e); err != nil {
		return fmt.Errorf("%s: %w", e.Kind, err)
	}
	return nil
}

func (c *checker) apply(e *Event) error {
	switch e.Kind {
	case Declared:
		c.queues[e.Queue] = &queue{name: e.Queue, deadLetters: e.DeadLetters, maxLength: e.MaxLength, ttlMillis: e.TTLMillis}
		return nil
	case Started:
		return c.started()
	case Ended:
		return c.ended(e.How)
	case Publish:
		return c.publish(e)
	case Confirmed, Refused:
		return c.confirmed(e)
	case Opened:
		return c.opened(e)
	case Delivered:
		return c.delivered(e)
	case Ack, Reject, Requeue:
		return c.settle(e)
	case Synced, Stored:
		return c.synced(e)
	case Closed:
		return c.closed(e)
	case Cleared:
		return c.cleared(e)
	case Drained:
		c.drained(e.At)
		return nil
	}
	return fmt.Errorf("unknown kind %q", e.Kind)
}

func (c *checker) started() error {
	if c.alive {
		return fmt.Errorf("the life before has not ended")
	}
	c.alive = true
	c.life++
	c.report.Lives++
	c.report.Drained = false
	clear(c.channels)
	c.taken, c.moved, c.durable, c.before = c.taken[:0], c.moved[:0], 0, map[string]int{}
	for _, q := range c.queues {
		q.disturbed = false
	}
	return nil
}

// ended ends a life. A process that stopped by itself has kept everything it received.
func (c *checker) ended(how string) error {
	if !c.alive {
		return fmt.Errorf("there is no life to end")
	}
	c.alive = false
	switch how {
	case Killed:
		c.report.Kills++
	case Stopped:
		c.madeDurable(len(c.taken))
		for _, s := range c.moved {
			s.durable()
		}
		c.report.Durable += len(c.moved)
	default:
		return fmt.Errorf("how %q", how)
	}
	return nil
}

func (c *checker) publish(e *Event) error {
	if c.messages[e.ID] != nil {
		return fmt.Errorf("message %q has been published before", e.ID)
	}
	p := &publication{
		id: e.ID, publisher: e.By, number: c.numbers[e.By], life: c.life,
		persistent: e.Persistent, ttlMillis: e.TTLMillis, sum: e.Sum, publishedAt: e.At,
	}
	c.numbers[e.By]++
	for _, name := range e.Queues {
		q := c.queues[name]
		if q == nil {
			return fmt.Errorf("queue %q was not declared", name)
		}
		p.copies = append(p.copies, &copyOf{publication: p, queue: q})
	}
	c.messages[p.id] = p
	c.ordered = append(c.ordered, p)
	if p.persistent {
		c.before[p.id] = len(c.taken)
	}
	c.report.Published++
	c.report.Copies += len(p.copies)
	return nil
}

// confirmed records a confirm. The confirm of a persistent message proves that everything is durable that the broker
// had received before the message was published, but for rejections that make dead letters.
func (c *checker) confirmed(e *Event) error {
	p := c.messages[e.ID]
	if p == nil {
		return fmt.Errorf("message %q was not published", e.ID)
	}
	if e.Kind == Refused {
		p.refused = true
		c.report.Refused++
		return nil
	}
	p.confirmedAt = e.At
	c.report.Confirmed++
	c.madeDurable(c.before[p.id])
	delete(c.before, p.id)
	return nil
}

func (c *checker) madeDurable(upTo int) {
	for ; c.durable < upTo; c.durable++ {
		c.taken[c.durable].durable()
		c.report.Durable++
	}
}

func (c *checker) opened(e *Event) error {
	q := c.queues[e.Queue]
	if q == nil {
		return fmt.Errorf("queue %q was not declared", e.Queue)
	}
	if c.channels[e.By] != nil {
		return fmt.Errorf("channel %q has been opened before", e.By)
	}
	c.channels[e.By] = &channel{
		name: e.By, openedAt: e.At, queue: q,
		held: map[*copyOf]struct{}{}, last: map[string]int{},
	}
	return nil
}

func (c *checker) channel(name string) (*channel, error) {
	ch := c.channels[name]
	if ch == nil || ch.closed {
		return nil, fmt.Errorf("channel %q is not open", name)
	}
	return ch, nil
}

func (c *checker) synced(e *Event) error {
	ch, err := c.channel(e.By)
	if err != nil {
		return err
	}
	for _, s := range ch.sent {
		if e.Kind == Stored {
			s.durable()
		}
		if s.end {
			c.taken = append(c.taken, s)
		} else {
			c.moved = append(c.moved, s)
		}
	}
	ch.sent = ch.sent[:0]
	return nil
}

func (c *checker) closed(e *Event) error {
	ch, err := c.channel(e.By)
	if err != nil {
		return err
	}
	ch.closed = true
	ch.queue.disturbed = true
	for held := range ch.held {
		held.holder = nil
	}
	clear(ch.held)
	return nil
}

// settle records a settlement that a client is about to send. It fails only for a test that
// does not follow its own log.
func (c *checker) settle(e *Event) error {
	ch, err := c.channel(e.By)
	if err != nil {
		return err
	}
	held, at := c.copyAt(e)
	if held == nil || held.in(c.life).holder != ch {
		return fmt.Errorf("%q does not hold message %q", e.By, e.ID)
	}
	held.holder = nil
	delete(ch.held, held)
	if e.Kind == Requeue {
		ch.queue.disturbed = true
		return nil
	}
	s := settlement{copy: held, at: at, end: true}
	how := "acked"
	if at == inDead {
		how = "dead-lettered (" + held.diedOf + ") and acked"
	}
	if e.Kind == Reject {
		how = "rejected"
		if at == inQueue && held.queue.deadLetters != "" {
			held.rejected, held.leftQueue, s.end = true, true, false
		}
	}
	if s.end {
		held.end, held.ended, held.endedAs = how, true, how
	}
	ch.sent = append(ch.sent, s)
	return nil
}

// copyAt returns the copy that a delivery or settlement refers to, or nil if there is none.
func (c *checker) copyAt(e *Event) (*copyOf, place) {
	origin, at := e.Queue, inQueue
	if e.From != "" {
		origin, at = e.From, inDead
	}
	if p := c.messages[e.ID]; p != nil {
		for _, one := range p.copies {
			if one.queue.name == origin {
				return one, at
			}
		}
	}
	return nil, at
}

// cleared takes back the promise to keep the copies of a queue that have not ended.
func (c *checker) cleared(e *Event) error {
	if c.queues[e.Queue] == nil {
		return fmt.Errorf("queue %q was not declared", e.Queue)
	}
	for _, p := range c.ordered {
		for _, one := range p.copies {
			if one.queue.name == e.Queue && !one.ended {
				one.cleared = true
			}
		}
	}
	return nil
}

// drained judges the copies that did not end: all queues are empty now.
func (c *checker) drained(at int64) {
	c.report.Drained = true
	for _, p := range c.ordered {
		for _, one := range p.copies {
			if !one.ended && !one.cleared && c.mustSurvive(p) && !one.mayHaveExpired(at) {
				c.report.violate(Lost, c.line, "message %s, confirmed, of queue %s (%s)", p.id, one.queue.name, one.lastSeen())
				one.ended, one.endedAs = true, "lost"
			}
		}
	}
}

// mustSurvive reports whether a message must not be lost. A transient message may be lost
// with its process.
func (c *checker) mustSurvive(p *publication) bool {
	return p.confirmedAt != 0 && (p.persistent || p.life == c.life)
}

// mayHaveExpired reports whether the copy may have ended unseen, by expiry.
func (c *copyOf) mayHaveExpired(at int64) bool {
	due, ok := c.dueFrom()
	return ok && c.queue.deadLetters == "" && due <= at
}

// lastSeen describes how far a lost copy is known to have come.
func (c *copyOf) lastSeen() string {
	switch {
	case c.inLife == 0:
		return fmt.Sprintf("published in life %d, never seen", c.life)
	case c.deliveredFrom[inDead]:
		return fmt.Sprintf("last seen in life %d, in the dead-letter queue", c.inLife)
	case c.leftQueue:
		return fmt.Sprintf("last seen in life %d, rejected", c.inLife)
	}
	return fmt.Sprintf("last seen in life %d, in its queue", c.inLife)
}

// countEnds counts how the copies ended.
func (c *checker) countEnds() {
	c.report.Lines = c.line
	if !c.report.Drained {
		return
	}
	for _, p := range c.ordered {
		for _, one := range p.copies {
			switch {
			case one.ended:
				c.report.Ends[one.endedAs]++
			case c.mustSurvive(p) && !one.cleared:
				c.report.Ends["expired unseen, without a dead-letter queue"]++
			default:
				c.report.Unpromised++
			}
		}
	}
}
