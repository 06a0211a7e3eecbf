package message

import "curfew/broker/amqp"

// Headers by which a publisher changes a message that it has scheduled before. The value of the
// first three is the message-id of that message.
const (
	cancelHeader      = "x-cancel"
	replaceHeader     = "x-replace"
	rescheduleHeader  = "x-reschedule"
	replaceOnlyHeader = "x-replace-only" // true: drop the replacement if there is nothing to replace

	answerHeader = "x-schedule-answer" // of a delayed message; true: tell its id to reply-to

	// Headers that the broker writes, never clients.
	publisherHeader = "x-scheduled-by"
	secretHeader    = "x-schedule-secret" //nolint:gosec // the name of a header
)

// CommandKind is what a command does.
type CommandKind uint8

// The kinds of commands.
const (
	NoCommand CommandKind = iota
	Cancel
	Replace
	Reschedule
)

// Command changes a scheduled message.
type Command struct {
	Kind CommandKind
	ID   string // the message-id of that message
	Only bool   // a replacement is dropped if there is nothing to replace
}

// CommandOf reads the command in a message's headers, if there is one. Error: 406.
func CommandOf(headers amqp.Table) (c Command, err error) {
	for i, name := range []string{cancelHeader, replaceHeader, rescheduleHeader} {
		v, given := headers[name]
		switch id := v.(type) {
		case string:
			c.ID = id
		case []byte:
			c.ID = string(id)
		}
		switch {
		case !given:
			continue
		case c.Kind != NoCommand:
			return c, badHeader(name, "a message can have only one of x-cancel, x-replace and x-reschedule")
		case c.ID == "":
			return c, badHeader(name, "expected a message-id, got "+amqp.TypeName(v))
		}
		c.Kind = CommandKind(i + 1)
	}
	if v, given := headers[replaceOnlyHeader]; given && c.Kind == Replace {
		if c.Only, given = v.(bool); !given {
			return c, badHeader(replaceOnlyHeader, "expected bool, got "+amqp.TypeName(v))
		}
	}
	_, delayed := numberOf(headers[delayHeader])
	_, scheduled := headers[scheduledHeader]
	if c.Kind == Reschedule && !delayed && !scheduled {
		return c, badHeader(rescheduleHeader, "x-delay or x-scheduled-enqueue-time has to say for when")
	}
	return c, nil
}

// WantsID reports whether the publisher of a delayed message wants an answer with its id. Error: 406.
func WantsID(headers amqp.Table) (wanted bool, err error) {
	v, given := headers[answerHeader]
	if wanted, ok := v.(bool); ok || !given {
		return wanted, nil
	}
	return false, badHeader(answerHeader, "expected bool, got "+amqp.TypeName(v))
}

// Scheduled is what the broker notes in the headers of a delayed message, until it is due.
type Scheduled struct {
	User   string // its publisher
	Secret string // part of its id; "": nobody wants to know it
}

// In returns a copy of a property list with these notes, in place of what a client may have written there.
func (x Scheduled) In(properties []byte) []byte {
	p, err := amqp.ParseProperties(properties, StoredLimits)
	if err != nil {
		return properties
	}
	if p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	p.Headers[publisherHeader] = x.User
	if delete(p.Headers, secretHeader); x.Secret != "" {
		p.Headers[secretHeader] = x.Secret
	}
	return p.Append(nil)
}

// WithoutScheduled returns a property list without these notes: nobody may read in the list of delayed
// messages what the id of another one's is.
func WithoutScheduled(properties []byte) []byte {
	view, err := amqp.ViewProperties(properties)
	if err != nil || MarksOf(view.Headers)&PublisherMark == 0 {
		return properties
	}
	return without(properties, publisherHeader, secretHeader)
}

// ScheduledIn returns the notes in a property list, which they alias. Where the broker did not have to
// write the user, user-id has it, which the broker has checked.
func ScheduledIn(view *amqp.PropertyView) (user, secret []byte) {
	user = view.UserID
	for f := amqp.WalkTable(view.Headers); f.Next(); {
		switch string(f.Name) {
		case publisherHeader:
			user, _ = f.Text()
		case secretHeader:
			secret, _ = f.Text()
		}
	}
	return user, secret
}
