package convert

import (
	"cmp"
	"net/url"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// ParseAddress parses an address of RabbitMQ 4: /queues/Q or /exchanges/X[/KEY], percent-encoded.
func ParseAddress(address string) (kind, name, key string, err error) {
	parts := strings.Split(address, "/")
	bad := len(parts) < 3 || parts[0] != "" || parts[2] == "" ||
		parts[1] != "queues" && parts[1] != "exchanges" || len(parts) > 4 || len(parts) == 4 && parts[1] == "queues"
	for i := range parts {
		parts[i], err = url.PathUnescape(parts[i])
		bad = bad || err != nil || len(parts[i]) > 255
	}
	if bad {
		return "", "", "", amqp.NewException(amqp.NotFound, 0, 0,
			"the address %q is not /queues/QUEUE or, to publish, /exchanges/EXCHANGE[/KEY], percent-encoded", address)
	}
	return parts[1], parts[2], strings.Join(parts[3:], ""), nil
}

// ClientProperties are the properties that a client shows of itself.
func ClientProperties(m *amqp10.Open) amqp.Table {
	t := amqp.Table{"connection_name": m.ContainerID}
	properties, _ := m.Properties.(amqp10.Map)
	for _, key := range []string{"product", "version", "platform", "connection_name"} {
		if s, ok := properties.Get(key).(string); ok && len(s) < 256 {
			t[key] = s
		}
	}
	return t
}

// ConsumeArguments are the arguments of a consumer that a client attaches: its priority is a link property, as in RabbitMQ 4.
func ConsumeArguments(m *amqp10.Attach) (amqp.Table, error) {
	properties, _ := m.Properties.(amqp10.Map)
	v := properties.Get("rabbitmq:priority")
	if v == nil {
		return nil, nil
	}
	priority, is := amqp.Integer(v)
	if !is {
		return nil, amqp.NewException(amqp.PreconditionFailed, 0, 0, "the link property rabbitmq:priority is not a signed integer")
	}
	return amqp.Table{"x-priority": priority}, nil
}

// What AMQP 1.0 has a condition for, and 0-9-1 has no reply code.
const (
	HandleInUse uint16 = 1000 + iota
	UnattachedHandle
)

// OfSession reports whether an exception ends a session and not its connection, though in 0-9-1 it
// would end the connection.
func OfSession(e *amqp.Exception) bool {
	switch e.Code {
	case HandleInUse, UnattachedHandle, amqp.NotAllowed, amqp.NotImplemented, amqp.CommandInvalid:
		return true
	}
	return false
}

// conditions are RabbitMQ's conditions for its reply codes.
var conditions = map[uint16]string{
	amqp.AccessRefused: "amqp:unauthorized-access", amqp.NotFound: "amqp:not-found", amqp.ResourceLocked: "amqp:resource-locked",
	amqp.PreconditionFailed: "amqp:precondition-failed", amqp.NotAllowed: "amqp:not-allowed", amqp.NotImplemented: "amqp:not-implemented",
	amqp.ResourceError: "amqp:resource-limit-exceeded", amqp.ContentTooLarge: "amqp:link:message-size-exceeded", amqp.ConnectionForced: "amqp:connection:forced",
	amqp.FrameError: "amqp:connection:framing-error", amqp.SyntaxError: "amqp:decode-error", amqp.CommandInvalid: "amqp:illegal-state",
	amqp.UnexpectedFrame: "amqp:illegal-state",
	HandleInUse:          "amqp:session:handle-in-use", UnattachedHandle: "amqp:session:unattached-handle",
	amqp.ChannelError: "amqp:not-allowed", amqp.InternalError: "amqp:internal-error",
}

// ErrorOf is an exception as an error of AMQP 1.0.
func ErrorOf(e *amqp.Exception) *amqp10.Error {
	condition := cmp.Or(conditions[e.Code], "amqp:internal-error")
	return &amqp10.Error{Condition: condition, Description: Text(e)}
}

// Text is an exception's text without the name of its code, which 0-9-1 has in front.
func Text(e *amqp.Exception) string {
	if name, text, is := strings.Cut(e.Text, " - "); is && name == strings.ToUpper(name) {
		return text
	}
	return e.Text
}
