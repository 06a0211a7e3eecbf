package dashboard

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"curfew/monitor"
)

var (
	// ErrLogin says that name and password are not those of a user.
	ErrLogin = errors.New("name or password is wrong")
	// ErrForbidden says that the user may not.
	ErrForbidden = errors.New("this user may not do that")
	// ErrGone says that what is asked for is not there (any more).
	ErrGone = errors.New("it is not there any more")
)

// User is somebody who may look: his tags allow it.
type User struct {
	Name  string
	Admin bool // may change things
	// Stamp changes with his password and tags, and ends his sessions so.
	Stamp string
}

// Broker is what the dashboard shows of the broker. Safe for concurrent use.
type Broker interface {
	// Authenticate says who logs in. Errors: ErrLogin, ErrForbidden for one who may not
	// look, or ctx's.
	Authenticate(ctx context.Context, name, password string, from netip.Addr) (User, error)
	// User is false for one who is gone or may not look any more.
	User(name string) (User, bool)
	// State is how it is.
	State() State
	// Hold asks for memory that a request of the user will take, before it does; release
	// is to be called in any case. The error says that there is none.
	Hold(user string, bytes int64) (release func(), err error)
	// Queues lists all queues, in any order.
	Queues() []Queue
	// Queue shows one with its arguments and policies.
	Queue(vhost, name string) (QueueDetail, bool)
	// Peek looks at messages without taking them. Errors: ErrForbidden, ErrGone.
	Peek(u User, vhost, queue string, p Peek) ([]Message, error)
	// Look shows one message with some of its body. Errors: ErrForbidden, ErrGone.
	Look(u User, vhost, queue string, seq uint64) (Message, error)
	// ChangeDeadline changes that of one message and says what came of it: rescheduled,
	// expired, or held by a consumer. It takes the permissions to read and to write the
	// queue. Errors: ErrForbidden, ErrGone where the message left or has another deadline,
	// or one whose text says what is wrong with the change.
	ChangeDeadline(ctx context.Context, u User, vhost, queue string, seq uint64, c DeadlineChange) (outcome string, err error)
}

// Monitor is what the dashboard shows of the monitor. *monitor.Monitor is one.
type Monitor interface {
	Health() monitor.Health
	Forecasts() []monitor.Forecast
	Ahead(until []int64, out []int64) []int64
	Lateness() monitor.Lateness
	LatenessWithin(span time.Duration) monitor.Lateness
	Missed() []monitor.Miss
}

// State is how a broker is at a moment.
type State struct {
	Now               int64 // Unix ms, the clock of deadlines
	Started           time.Time
	DataDir           string // ""; memory only
	Blocked           string // why publishers have to wait; "" they have not
	Memory, MemoryMax int64  // bytes; max 0: no limit
	Connections       int
	InFlow            int // of them: they publish more than consumers get processor time for
	Channels          int
	Totals            Totals
}

// Totals count since the broker started.
type Totals struct{ Published, Delivered, Acked, Expired, Unroutable uint64 }

// Queue is a queue in a list.
type Queue struct {
	VHost, Name    string
	Type           string
	Ready, Unacked int
	Bytes          int64
	Consumers      int
	TTLMillis      int64  // that of the queue; <0: none
	DeadLetterTo   string // in words; "" nowhere
}

// QueueDetail is a queue for itself.
type QueueDetail struct {
	Queue
	Features        []string // durable, exclusive, ...
	Policy          string
	OperatorPolicy  string
	Arguments       []Pair
	Effective       []Pair // what the policies come to
	Published       uint64
	Delivered       uint64
	Acked           uint64
	Redelivered     uint64
	ActiveConsumer  string
	PersistentBytes int64
}

// Pair is a name with a value as text.
type Pair struct{ Name, Value string }

// Peek says which messages of a queue to look at.
type Peek struct {
	FromTail      bool
	Offset, Count int
	BodyBytes     int // of each body; 0: none
}

// Message is one as it stands in its queue.
type Message struct {
	Seq         uint64
	Unacked     bool
	Redelivered bool
	Persistent  bool
	Deadline    int64 // Unix ms; 0: none
	Expired     bool
	Exchange    string
	RoutingKey  string
	Properties  []Pair
	Headers     []Pair
	BodyBytes   int    // of the whole body
	Body        []byte // as much of it as was asked for
}
