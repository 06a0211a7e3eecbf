package message

import (
	"fmt"

	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// Death is one entry of x-death (RabbitMQ: Dead Letter Exchanges, Effects on
// Messages).
type Death struct {
	Queue, Reason string
	At            int64 // Unix seconds
	Exchange      string
	Keys          []any // routing keys with CC, without BCC
}

// RecordDeath writes d into the headers, newest first: one entry per queue and
// reason, with a count. It moves the expiration property and the absolute deadline
// into the entry. Unless the message has died here before, its history is a client's and
// is ignored (RabbitMQ 4.0). Returns the history.
func RecordDeath(p *amqp.Properties, d Death, died bool) []any {
	if p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	var history []any
	if died {
		history, _ = p.Headers["x-death"].([]any)
	}
	entry := amqp.Table{
		"count": int64(1), "reason": d.Reason, "queue": d.Queue, "time": amqp.Timestamp(d.At),
		"exchange": d.Exchange, "routing-keys": d.Keys,
	}
	if p.Has&amqp.HasExpiration != 0 {
		entry["original-expiration"] = p.Expiration
		p.Expiration, p.Has = "", p.Has&^amqp.HasExpiration
	}
	if at, ok := p.Headers[ExpiresAtHeader]; ok {
		entry["original-expires-at"] = at
		delete(p.Headers, ExpiresAtHeader)
	}
	deaths := []any{entry}
	for _, e := range history {
		if old, ok := e.(amqp.Table); ok && old["queue"] == d.Queue && old["reason"] == d.Reason {
			count, _ := old["count"].(int64)
			old["count"], old["last-time"] = count+1, amqp.Timestamp(d.At)
			deaths[0] = old
			continue
		}
		deaths = append(deaths, e)
	}
	p.Headers["x-death"] = deaths
	prefixes := []string{"x-first-death-", "x-last-death-"}
	if died {
		prefixes = prefixes[1:]
	}
	for _, prefix := range prefixes {
		p.Headers[prefix+"queue"], p.Headers[prefix+"reason"], p.Headers[prefix+"exchange"] = d.Queue, d.Reason, d.Exchange
	}
	return deaths
}

// OriginalKeys are the routing keys with which a message was routed to the queue in which it dies,
// without BCC.
func OriginalKeys(key []byte, headers amqp.Table, oneKey bool) []any {
	keys := []any{string(key)}
	if oneKey {
		return keys
	}
	for _, cc := range KeyList(headers["CC"]) {
		keys = append(keys, cc)
	}
	return keys
}

// DiedIn returns the queues in which a message with that history has died since a consumer last
// rejected it. A client may have made the history up.
func DiedIn(deaths []any) (names []string) {
	for _, e := range deaths {
		entry, _ := e.(amqp.Table)
		if entry["reason"] == "rejected" {
			break
		}
		if name, ok := entry["queue"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}

const (
	// maxDeaths is how often in a row a message may be dead-lettered without a rejection
	// by a consumer. After that it is parked. Ladders of queues that make up any delay, as Celery and
	// NServiceBus declare them, have up to 28 steps.
	maxDeaths = 64
	// maxCopies is how many copies dead-lettering may make of one message in all. After
	// that, copies that would be copied again are parked. The copies that the first death
	// makes are counted, but not limited.
	maxCopies = 4096
	// copiesHeader is how many copies dead-lettering has made of a message since a consumer
	// last rejected it. It is set if there are several.
	copiesHeader = "x-dead-letter-copies"
)

// CountCopies writes into the headers of a dead letter how many copies of it exist, and returns
// why it must not go on, "" if it may: it has died too often, or there would be too many
// copies. deaths is its history with the present death in front.
func CountCopies(headers amqp.Table, deaths []any, targets int, died bool) (bounded string) {
	copies := int64(1)
	if n, ok := headers[copiesHeader].(int64); ok && died && n > 0 {
		copies = n
	}
	since := 0
	for ; since < len(deaths); since++ {
		if entry, _ := deaths[since].(amqp.Table); entry["reason"] == "rejected" {
			break
		}
	}
	if since == 0 { // a consumer has decided
		copies = 1
	}
	switch {
	case targets == 0: // it will be parked
	case since > maxDeaths:
		bounded = "they have been dead-lettered too often without a rejection"
	case copies > 1 && targets > 1 && copies > int64(maxCopies/targets):
		bounded = "dead-lettering would make too many copies of them"
	default:
		copies *= int64(targets)
	}
	if delete(headers, copiesHeader); copies > 1 {
		headers[copiesHeader] = copies
	}
	return bounded
}

// SetDeadLetterReason writes the reason of a dead letter into its headers, in Service Bus's words
// where it has some. In Service Bus a receiver that rejects gives its own reason, which AMQP 0-9-1
// does not allow. Headers of these names from a publisher are replaced or removed.
func SetDeadLetterReason(headers amqp.Table, x *queue.Settled) {
	switch x.Reason {
	case queue.Expired:
		SetRejection(headers, "TTLExpiredException", "The message expired and was dead lettered.")
	case queue.DeliveryLimit:
		SetRejection(headers, "MaxDeliveryCountExceeded", fmt.Sprintf("Message could not be consumed after %d delivery attempts.", x.Deliveries))
	case queue.Rejected:
		SetRejection(headers, "Rejected", "The message was rejected by its consumer.")
	default:
		SetRejection(headers, "", "")
	}
}

// SetRejection writes the reason that a receiver has given; "": it gave none.
func SetRejection(headers amqp.Table, reason, description string) {
	for name, text := range map[string]string{"DeadLetterReason": reason, "DeadLetterErrorDescription": description} {
		if delete(headers, name); text != "" {
			headers[name] = text
		}
	}
}
