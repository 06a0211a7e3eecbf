package history

// place is where a copy is.
type place uint8

const (
	inQueue place = iota // in the queue it was published to
	inDead               // in that queue's dead-letter queue
	places
)

func (p place) String() string {
	if p == inDead {
		return "the dead-letter queue"
	}
	return "its queue"
}

// publication is a message, as its publisher knows it.
type publication struct {
	id          string
	publisher   string
	number      int // position among its publisher's messages
	life        int
	persistent  bool
	ttlMillis   *int64
	sum         string
	publishedAt int64
	confirmedAt int64 // 0: not confirmed
	refused     bool
	copies      []*copyOf
}

// copyOf is one message in one of the queues it was published to.
type copyOf struct {
	*publication
	queue *queue

	ended       bool // finally settled, in any life
	endedAs     string
	rejected    bool // by a consumer of its queue, in any life
	wasHeld     bool // delivered from its queue, in any life
	diedOf      string
	durablyLeft [places]bool
	cleared     bool // its queue was purged or deleted

	lifeState // in the life in which it was last seen
}

// lifeState is what holds within one life.
type lifeState struct {
	inLife        int
	holder        *channel // nil: nobody
	heldIn        place
	end           string       // how it was finally settled
	leftQueue     bool         // it was rejected there, or seen in the dead-letter queue
	deliveredFrom [places]bool // delivered from there
}

// in returns the copy's state in a life, and forgets that of earlier lives.
func (c *copyOf) in(life int) *copyOf {
	if c.inLife != life {
		c.lifeState = lifeState{inLife: life}
	}
	return c
}

// ttl returns the lower of the message's time to live and its queue's, in ms.
func (c *copyOf) ttl() (millis int64, ok bool) {
	a, b := c.ttlMillis, c.queue.ttlMillis
	switch {
	case a == nil && b == nil:
		return 0, false
	case a == nil:
		return *b, true
	case b == nil:
		return *a, true
	}
	return min(*a, *b), true
}

// dueFrom returns the earliest possible deadline, in Unix µs.
func (c *copyOf) dueFrom() (int64, bool) {
	ttl, ok := c.ttl()
	return c.publishedAt + ttl*1000, ok
}

// dueBy returns the latest possible deadline; it is known only for a confirmed message.
func (c *copyOf) dueBy() (int64, bool) {
	ttl, ok := c.ttl()
	return c.confirmedAt + ttl*1000, ok && c.confirmedAt != 0
}

// queue is a declared queue.
type queue struct {
	name        string
	deadLetters string
	maxLength   bool
	ttlMillis   *int64
	disturbed   bool // something was requeued in this life
}

// channel is the channel of one consumer, on one queue.
type channel struct {
	name     string
	openedAt int64
	queue    *queue
	closed   bool
	held     map[*copyOf]struct{}
	last     map[string]int // number of the last message delivered in order, by publisher
	sent     []settlement   // not known to have reached the broker
}

// settlement is an ack or a reject.
type settlement struct {
	copy *copyOf
	at   place
	end  bool // it ended the copy; otherwise it moved the copy to the dead-letter queue
}

// durable records that a settlement survives whatever happens to the process.
func (s settlement) durable() {
	s.copy.durablyLeft[s.at] = true
	if s.end {
		s.copy.durablyLeft = [places]bool{true, true}
	}
}
