package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/monitor/dashboard"
)

// shownMessage is a message as the dashboard shows it.
func (s *shownBroker) shownMessage(b *broker.Browsed) dashboard.Message {
	m := dashboard.Message{
		Seq: uint64(b.Seq), Unacked: b.State == queue.Unacked, Redelivered: b.Redelivered, Persistent: b.Persistent,
		Deadline: s.broker.UnixMillis(b.Deadline), Expired: b.Expired, Exchange: string(b.Message.Exchange), RoutingKey: string(b.Message.RoutingKey),
		BodyBytes: b.BodyBytes, Body: b.Message.Body,
	}
	if p, err := b.Decode(); err == nil {
		m.Properties, m.Headers = propertiesOf(&p), pairsOf(p.Headers)
	}
	return m
}

// propertiesOf are those that are set, but for the headers.
func propertiesOf(p *amqp.Properties) (list []dashboard.Pair) {
	for _, one := range []struct {
		flag        amqp.PropertySet
		name, value string
	}{
		{amqp.HasMessageID, "message-id", p.MessageID}, {amqp.HasCorrelationID, "correlation-id", p.CorrelationID},
		{amqp.HasContentType, "content-type", p.ContentType}, {amqp.HasContentEncoding, "content-encoding", p.ContentEncoding},
		{amqp.HasType, "type", p.Type}, {amqp.HasAppID, "app-id", p.AppID}, {amqp.HasUserID, "user-id", p.UserID}, {amqp.HasReplyTo, "reply-to", p.ReplyTo},
		{amqp.HasExpiration, "expiration", p.Expiration}, {amqp.HasTimestamp, "timestamp", fieldText(p.Timestamp)},
		{amqp.HasPriority, "priority", strconv.Itoa(int(p.Priority))},
	} {
		if p.Has&one.flag != 0 {
			list = append(list, dashboard.Pair{Name: one.name, Value: one.value})
		}
	}
	return list
}

// pairsOf lists the fields of a table or definition by name.
func pairsOf[T ~map[string]any](t T) []dashboard.Pair {
	list := make([]dashboard.Pair, 0, len(t))
	for name, v := range t {
		list = append(list, dashboard.Pair{Name: name, Value: fieldText(v)})
	}
	slices.SortFunc(list, func(a, b dashboard.Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// fieldText shows a field's value.
func fieldText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []byte:
		return string(v)
	case amqp.Timestamp:
		if at := time.Unix(int64(v), 0).UTC(); at.Year() < 10_000 {
			return at.Format(time.RFC3339)
		}
		return strconv.FormatUint(uint64(v), 10)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = fieldText(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case amqp.Table:
		parts := make([]string, 0, len(v))
		for _, p := range pairsOf(v) {
			parts = append(parts, p.Name+"="+p.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}
