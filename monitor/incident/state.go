package incident

import (
	"time"

	"curfew/broker/deadline"
)

// State is all that conditions are judged by: what is known of Curfew at one moment. Its zero value is one that is well.
// Whoever has the parts fills it in (Options.Look); Tallies, Blamed, Starved, HeartbeatSilent, Sinks and FileError are filled in here.
type State struct {
	Now    time.Time
	Clock  int64     // the same by the clock that Forecasts are made by, Unix ms; 0: likewise
	Opened time.Time // when the process began

	// What becomes of messages.
	Tallies []Tally
	// Forecasts are those of the queues in which deadlines wait, those first that lose messages sooner; nil: they are not known.
	Forecasts []deadline.Forecast
	Held      []PastDeadline
	Blamed    map[QueueName]PastDeadline // the consumers that are the reason that messages of a queue expire
	Parked    []Depth                    // what is in the queues curfew.undeliverable now
	Letters   int                        // dead letters that wait to be moved
	// Purposes of the queues in Tallies and Held, and of those at risk. A queue of which none shall expire counts as one for work.
	Purposes  map[QueueName]deadline.Purpose
	Consumers map[QueueName]Consumers // of those queues
	// Keeping says, in a sentence with a command, how those of them that lose what expires keep it. Only the worst of thousands is asked for that.
	Keeping    map[QueueName]func() string
	Objectives []Missed
	// Slow says who consumes a queue; nil: that is not known. Only the worst of thousands is asked for.
	Slow     func(QueueName) Slow
	Unrouted []Finding // of queues that were deleted: what is published to them
	// ClientErrors are of the clients that fail again and again. Left is the application.
	ClientErrors []Finding

	// How Curfew itself is.
	Unwatched       bool          // the monitor is off
	Stalled         []string      // parts that do not answer
	Silent          time.Duration // since the loop that fires gave a sign of life
	Lag             time.Duration // by which the next deadline to fire is overdue
	LateShare       float64       // of the messages that expired in the last minutes: over a second late
	ClockSkew       time.Duration // of the clock of Redis, against that of deadlines
	Pending         int64         // deadlines that wait
	Starved         time.Duration // how long Curfew had no processor, in the last minute
	Schedule        string        // why Redis is not used; empty: it is, or is not wanted
	Redis           []string      // what else is wrong with it
	Orphans         int64         // deadlines in Redis whose messages are not here
	Blocked         string        // why publishers wait
	DiskSilent      time.Duration // since the disk was asked
	DiskFullIn      time.Duration // at the rate of the last hour; 0: not soon
	SlowSyncs       float64       // the share of the syncs of the last minutes that took over half a second
	Unsaved         error         // why definitions cannot be saved
	Recovered       int           // queues made for messages whose queue was not found
	ClockAhead      time.Duration // of the clock of deadlines, against the machine's
	Refusals        []Refusal
	OpenFiles       float64           // the share of the file descriptors that are in use
	IdlePolicies    int               // saved policies that are not in force
	HeartbeatSilent time.Duration     // since the URL of the dead man's switch answered
	Lost            map[string]uint64 // by condition, counters of what must not happen, since the start
	Rising          map[string]int    // of those, what was added in the last minute

	// Beside RabbitMQ.
	NotKept  []NotKept
	Overdue  []PastDeadline // in queues that are only observed: RabbitMQ has not expired them, and nobody holds them
	RabbitMQ []string       // what else is wrong
	Lacks    []string       // the families of commands that need a broker of Curfew's own, such as queue

	// Telling.
	Sinks     []SinkStatus
	FileError error
	hour      deadline.Hour                    // counted with Tallies
	risks     map[QueueName]*deadline.Forecast // of those of Forecasts that are nearly due
	holders   map[QueueName]PastDeadline       // of the clients in Held that which is named
	parks     map[string]bool                  // the virtual hosts in Parked
	expires   map[QueueName]Finding            // what expires or will, where that is a loss
}

// QueueName is a queue and its virtual host.
type QueueName struct{ VHost, Name string }

// Consumers are how many a queue has, and when they last became more, and fewer; zero: not known.
type Consumers struct {
	Count      int
	Came, Left time.Time
	Last       string // the client that was the last to leave, if there is none now
	ClosedBy   string // the user who closed its connection; "": it left by itself
}

// Slow is how the consumers of a queue do that takes messages too slowly.
type Slow struct {
	Who     string  // the client that consumed first; "": nobody consumes
	Others  int     // consumers besides
	In, Out float64 // messages a second that come, and that they take
	Held    int     // messages that they hold
}

// Missed is a queue whose objective will not be met.
type Missed struct {
	QueueName
	deadline.Wait
}

// PastDeadline describes the messages of a queue that one connection holds, by its consumers or basic.get, past their deadlines, or while it takes
// none of those at risk behind them.
type PastDeadline struct {
	QueueName
	Connection      string // what the client calls itself, or else its address and the server's
	User, Address   string // of the client
	Count           int    // past their deadlines or, if there are none, all
	Past            int    // past their deadlines
	FirstDeadlineAt int64  // Unix ms, the earliest of their deadlines

	at          time.Time // when it was found, in State.Blamed
	others      int       // clients that hold messages of the queue, too
	othersCount int       // theirs, as Count
	othersPast  int       // likewise
}

// Depth is how many dead letters are parked in a queue.
type Depth struct {
	QueueName
	Count   int
	Newest  time.Time // when the last of them died; zero: not known
	Why, Do string    // which queues they come from, and what to do; "": not known
}

// Refusal is that connections were refused.
type Refusal struct {
	What string // of connections: AMQP, HTTP, ops
	Most int    // that there may be
}

// NotKept is a queue of RabbitMQ that a rule wants kept, and that is not kept.
type NotKept struct {
	QueueName
	Reason string
}
