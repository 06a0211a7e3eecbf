package operate

import (
	"errors"
	"fmt"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
)

// Errors of operations. Errors of the broker are returned unchanged: *amqp.Exception among others, 403 for a missing permission.
var (
	// ErrNoVHost: there is no such virtual host.
	ErrNoVHost = errors.New("there is no such virtual host")
	// ErrNoEntry: the user has no permissions in the virtual host.
	ErrNoEntry = errors.New("the user has no permissions in the virtual host")
	// ErrNotFound: there is no such thing, or the actor may not know of it.
	ErrNotFound = errors.New("it does not exist")
	// ErrNotYours: the connection is another user's.
	ErrNotYours = errors.New("it belongs to another user")
	// ErrMessageGone: the message has left its queue.
	ErrMessageGone = errors.New("no message with this number is in the queue now")
	// ErrNotWaiting: the message does not wait for another try.
	ErrNotWaiting = errors.New("no message with this id waits in the queue: the wait is over, or it is not an id that curfew retries list shows")
	// ErrChanged: the message is not as it was when somebody looked at it.
	ErrChanged = errors.New("the message has left or changed since then")
	// ErrNoAnswer: a change of a delayed message was not saved in time.
	ErrNoAnswer = errors.New("no answer within 30 s, so it may still happen: see whether the disk answers, and then whether the message is listed")
	// ErrTooLate: the delayed message is due, and is delivered or was.
	ErrTooLate = errors.New("it is too late: the message is due, and is delivered or was")
	// ErrNotManual: the clock goes by itself.
	ErrNotManual = broker.ErrNotManual
	// ErrNoLock: the lock has lapsed, or its message was settled.
	ErrNoLock = errors.New("no lock of this queue has this token: it has lapsed, or its message was settled")
)

// MissingRole means that the user's tags do not give a role.
type MissingRole struct{ Role Role }

// Error implements error.
func (e *MissingRole) Error() string {
	return map[Role]string{
		Management: "only users who may use the management interface can do this", Policymaker: "only users with the tag policymaker or administrator can do this",
		Monitor: "only users with the tag monitoring or administrator can do this", Administrator: "only users with the tag administrator can do this",
	}[e.Role]
}

// Protected means that the virtual host is protected from deletion.
type Protected struct{ VHost string }

// Error implements error, in RabbitMQ's words.
func (e *Protected) Error() string {
	return fmt.Sprintf("Refusing to delete virtual host '%s' because it is protected from deletion", e.VHost)
}

// Invalid says what is wrong with a request.
type Invalid struct{ Reason string }

// Error implements error.
func (e *Invalid) Error() string { return e.Reason }

// Missing says that what was to be changed does not exist. It is an ErrNotFound.
type Missing struct{ Reason string }

// Error implements error.
func (e *Missing) Error() string { return e.Reason }

// Is implements errors.Is.
func (e *Missing) Is(err error) bool { return err == ErrNotFound }

// Unavailable says that another server, which the change needs, did not answer.
type Unavailable struct{ Err error }

// Error implements error.
func (e *Unavailable) Error() string {
	return "the other Curfews could not be reached: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Unavailable) Unwrap() error { return e.Err }

// Refused reports whether an operation failed because the actor is not allowed to do it.
func Refused(err error) bool {
	if _, ok := errors.AsType[*MissingRole](err); ok {
		return true
	}
	return errors.Is(err, ErrNoEntry) || errors.Is(err, ErrNotYours) || hasCode(err, amqp.AccessRefused)
}

// Gone reports whether an operation failed because its object no longer exists.
func Gone(err error) bool {
	for _, one := range []error{ErrNoVHost, ErrNotFound, ErrMessageGone, ErrNotWaiting, ErrChanged, deadletters.ErrRedeclared} {
		if errors.Is(err, one) {
			return true
		}
	}
	return hasCode(err, amqp.NotFound)
}

func hasCode(err error, code uint16) bool {
	e, ok := errors.AsType[*amqp.Exception](err)
	return ok && e.Code == code
}
