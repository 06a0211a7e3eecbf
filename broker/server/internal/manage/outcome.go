package manage

import (
	"slices"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
)

// Outcome is what a client of Service Bus means by an outcome, or by a request to settle.
type Outcome struct {
	How     broker.Settlement
	Defers  bool              // How does not count
	Why     *broker.Rejection // of a rejected message
	Changes amqp10.Map        // application properties that the message gets
	Headers amqp.Table        // headers that it gets, by a client of RabbitMQ
}

// OutcomeOf reads an outcome.
func OutcomeOf(m *amqp10.State) (o Outcome) {
	switch m.Kind {
	case amqp10.StateAccepted:
	case amqp10.StateReleased:
		o.How = broker.Release
	case amqp10.StateRejected:
		o.How, o.Why = broker.Reject, &broker.Rejection{}
		if m.Error == nil {
			break
		}
		info, _ := m.Error.Info.(amqp10.Map)
		o.Changes = slices.DeleteFunc(info, func(f amqp10.Entry) bool {
			text := map[any]*string{"DeadLetterReason": &o.Why.Reason, "DeadLetterErrorDescription": &o.Why.Description}[textOf(f.Key)]
			if text != nil {
				*text = textOf(f.Value)
			}
			return text != nil
		})
	default:
		o.How, o.Defers = broker.Requeue, m.UndeliverableHere
		o.Changes, _ = m.Annotations.(amqp10.Map)
	}
	return o
}

// change makes the properties that a message gets; nil: it keeps its own.
func (o *Outcome) change() func(properties, body []byte) []byte {
	switch {
	case len(o.Changes) > 0:
		return func(properties, body []byte) []byte { return convert.Modify(properties, body, o.Changes) }
	case len(o.Headers) > 0:
		return func(properties, _ []byte) []byte { return convert.Annotate(properties, o.Headers) }
	}
	return nil
}

// maxText is how many octets of a reason or a description are kept, as in Service Bus.
const maxText = 4096

func textOf(v any) string {
	text, _ := v.(string)
	if symbol, is := v.(amqp10.Symbol); is {
		text = string(symbol)
	}
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}
