package servicebus

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/exchange"
)

// Correlation is a correlation filter: a message passes that has all that is given here.
type Correlation struct {
	CorrelationID    string `xml:"CorrelationId,omitempty"`
	MessageID        string `xml:"MessageId,omitempty"`
	To               string `xml:",omitempty"`
	ReplyTo          string `xml:",omitempty"`
	Label            string `xml:",omitempty"`
	SessionID        string `xml:"SessionId,omitempty"`
	ReplyToSessionID string `xml:"ReplyToSessionId,omitempty"`
	ContentType      string `xml:",omitempty"`

	// Properties are application properties: texts, booleans, int64 or float64. A float64 without a fraction means the integer.
	Properties map[string]any `xml:"-"`
}

// system are the filter's fields by the headers that a message gets on its way into a topic.
func (f *Correlation) system() map[string]*string {
	return map[string]*string{
		"x-sys-CorrelationId": &f.CorrelationID, "x-sys-MessageId": &f.MessageID, "x-sys-To": &f.To, "x-sys-ReplyTo": &f.ReplyTo, "x-sys-Label": &f.Label,
		"x-sys-SessionId": &f.SessionID, "x-sys-ReplyToSessionId": &f.ReplyToSessionID, "x-sys-ContentType": &f.ContentType,
	}
}

const (
	matchArg = "x-match"
	matchAll = "all-with-x"
	maxText  = 255 // octets of a system property that is compared
	exact    = 1 << 53
)

// NoMatch are the arguments of a binding that no message passes.
func NoMatch() amqp.Table { return amqp.Table{matchArg: "any"} }

// Args are the arguments of a binding to a headers exchange.
func (f *Correlation) Args() (amqp.Table, error) {
	args := amqp.Table{matchArg: matchAll}
	for name, v := range f.Properties {
		switch n := v.(type) {
		case string, bool, int64:
		case float64:
			if n == math.Trunc(n) && math.Abs(n) < exact {
				v = int64(n)
			}
		default:
			return nil, fmt.Errorf("the property %s has a value that is not a text, a number or a boolean", name)
		}
		if strings.HasPrefix(name, "x-") {
			return nil, fmt.Errorf("the property %s is not compared: its name begins with x-", name)
		}
		args[name] = v
	}
	for name, text := range f.system() {
		if len(*text) > maxText {
			return nil, fmt.Errorf("a text has more than %d octets", maxText)
		}
		if *text != "" {
			args[name] = *text
		}
	}
	if len(args) == 1 {
		return nil, errors.New("a correlation filter needs a property")
	}
	return args, nil
}

// CorrelationOf is the filter with those arguments; false: they are not those of one.
func CorrelationOf(args amqp.Table) (f Correlation, is bool) {
	if args[matchArg] != matchAll {
		return f, false
	}
	system := f.system()
	for name, v := range args {
		text, isText := v.(string)
		if _, isNumber := amqp.Integer(v); !isText && !isNumber {
			switch v.(type) {
			case bool, float64:
			default:
				return f, false
			}
		}
		switch field := system[name]; {
		case name == matchArg:
		case field != nil:
			*field = text
		case f.Properties == nil:
			f.Properties = map[string]any{name: v}
		default:
			f.Properties[name] = v
		}
	}
	return f, true
}

// SQLArgs are the arguments of a binding for a SQL filter: none for one that is true.
func SQLArgs(expression string) (amqp.Table, error) {
	switch strings.ReplaceAll(expression, " ", "") {
	case "1=1":
		return nil, nil
	case "1=0":
		return NoMatch(), nil
	}
	args := amqp.Table{exchange.SQLArg: expression}
	return args, exchange.CheckArgs(exchange.Headers, args)
}
