package deadletters

import (
	"strconv"

	"curfew/broker/amqp"
)

// propertyNames are AMQP's names of the properties that a filter may name; headers have a field of their own.
var propertyNames = []string{
	"message-id", "correlation-id", "type", "app-id", "content-type", "content-encoding", "reply-to", "user-id", "expiration", "priority",
	"delivery-mode", "timestamp", "cluster-id",
}

// propertyText returns a property as a person would type it: timestamps in Unix seconds. False: the message does not have it.
func propertyText(p *amqp.Properties, name string) (value string, has bool) {
	flag := amqp.PropertySet(0)
	switch name {
	case "message-id":
		value, flag = p.MessageID, amqp.HasMessageID
	case "correlation-id":
		value, flag = p.CorrelationID, amqp.HasCorrelationID
	case "type":
		value, flag = p.Type, amqp.HasType
	case "app-id":
		value, flag = p.AppID, amqp.HasAppID
	case "content-type":
		value, flag = p.ContentType, amqp.HasContentType
	case "content-encoding":
		value, flag = p.ContentEncoding, amqp.HasContentEncoding
	case "reply-to":
		value, flag = p.ReplyTo, amqp.HasReplyTo
	case "user-id":
		value, flag = p.UserID, amqp.HasUserID
	case "expiration":
		value, flag = p.Expiration, amqp.HasExpiration
	case "cluster-id":
		value, flag = p.ClusterID, amqp.HasClusterID
	case "priority":
		value, flag = strconv.Itoa(int(p.Priority)), amqp.HasPriority
	case "delivery-mode":
		value, flag = strconv.Itoa(int(p.DeliveryMode)), amqp.HasDeliveryMode
	case "timestamp":
		value, flag = strconv.FormatUint(uint64(p.Timestamp), 10), amqp.HasTimestamp
	}
	return value, p.Has&flag != 0
}
