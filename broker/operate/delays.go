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
	ID    string `json:"message_id" label:"Message ID"` // "": nothing can be done to it
	Key   string `json:"routing_key" label:"Routing key"`
	To    string `json:"to"`               // with mode retry, the queue that it goes to
	Due   string `json:"due"`              // RFC 3339, UTC
	In    string `json:"in"`               // from now, such as 5m0s
	Known string `json:"known" label:"By"` // how its due time is known
}
