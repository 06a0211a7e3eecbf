package operate

import "time"

// Delays are the messages that wait in delay queues of a RabbitMQ. Errors are an ErrNotFound, or say what to do.
type Delays interface {
	// ListDelays lists up to limit messages, the first to be due first: those that are due before an instant, zero for all, with an id, "" for any.
	ListDelays(queue, id string, before time.Time, limit int) ([]DelayRow, error)
	// CancelDelay ends the wait of a message that is then never delivered.
	CancelDelay(queue, id string) error
	// Reschedule has a message wait for that long from now.
	Reschedule(queue, id string, in time.Duration) error
}

// DelayRow is a message that waits.
type DelayRow struct {
	ID, Key   string // ID "": nothing can be done to it
	To        string // of a queue of retries, the queue that it goes to
	DueMillis int64  // Unix ms; 0: it is not known
	Known     string // how the time is known
}
