package amqp

import "fmt"

// Reply codes (AMQP 0-9-1 §1.2 and the constants of the XML specification).
const (
	ReplySuccess       = 200
	ContentTooLarge    = 311
	NoRoute            = 312
	NoConsumers        = 313
	ConnectionForced   = 320
	InvalidPath        = 402
	AccessRefused      = 403
	NotFound           = 404
	ResourceLocked     = 405
	PreconditionFailed = 406
	FrameError         = 501
	SyntaxError        = 502
	CommandInvalid     = 503
	ChannelError       = 504
	UnexpectedFrame    = 505
	ResourceError      = 506
	NotAllowed         = 530
	NotImplemented     = 540
	InternalError      = 541
)

// Exception is the only error that is sent to clients, in connection.close or
// channel.close. Text begins with the code's name, as in RabbitMQ: "NOT_FOUND - no exchange
// 'x' in vhost '/'". Class and Method identify the method that failed, or are 0.
type Exception struct {
	Code          uint16
	Text          string
	Class, Method uint16
}

// NewException puts the code's name and " - " before the formatted text.
func NewException(code uint16, class, method uint16, format string, args ...any) *Exception {
	name, known := codeNames[code]
	if !known {
		name = fmt.Sprintf("ERROR_%d", code)
	}
	return &Exception{Code: code, Text: name + " - " + fmt.Sprintf(format, args...), Class: class, Method: method}
}

func (e *Exception) Error() string { return fmt.Sprintf("amqp: %d %s", e.Code, e.Text) }

// Hard reports whether the exception closes the connection; otherwise it closes only its
// channel. An unknown code closes the connection.
func (e *Exception) Hard() bool {
	switch e.Code {
	case ContentTooLarge, NoRoute, NoConsumers,
		AccessRefused, NotFound, ResourceLocked, PreconditionFailed:
		return false
	}
	return true
}

var codeNames = map[uint16]string{
	ContentTooLarge:    "CONTENT_TOO_LARGE",
	NoRoute:            "NO_ROUTE",
	NoConsumers:        "NO_CONSUMERS",
	ConnectionForced:   "CONNECTION_FORCED",
	InvalidPath:        "INVALID_PATH",
	AccessRefused:      "ACCESS_REFUSED",
	NotFound:           "NOT_FOUND",
	ResourceLocked:     "RESOURCE_LOCKED",
	PreconditionFailed: "PRECONDITION_FAILED",
	FrameError:         "FRAME_ERROR",
	SyntaxError:        "SYNTAX_ERROR",
	CommandInvalid:     "COMMAND_INVALID",
	ChannelError:       "CHANNEL_ERROR",
	UnexpectedFrame:    "UNEXPECTED_FRAME",
	ResourceError:      "RESOURCE_ERROR",
	NotAllowed:         "NOT_ALLOWED",
	NotImplemented:     "NOT_IMPLEMENTED",
	InternalError:      "INTERNAL_ERROR",
}

// Answering sets the method of an exception that names none. It returns other errors, and
// nil, unchanged.
func Answering(err error, id MethodID) error {
	if e, ok := err.(*Exception); ok && e.Class == 0 {
		e.Class, e.Method = id.Class(), id.Method()
	}
	return err
}
