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

func ReasonName(r queue.Reason) string {
	switch r {
	case queue.Expired:
		return "expired"
	case queue.Rejected:
		return "rejected"
	case queue.MaxLength:
		return "maxlen"
	case queue.DeliveryLimit:
		return "delivery_limit"
	}
	panic("broker: no dead letter for reason " + r.String())
}

// RecordDeath writes d into the headers, newest first: one entry per queue and
// reason, counting up. It removes the expiration property and the absolute deadline
// and keeps them in the entry. The history of a message that has not died here
// before is a client's and is not believed (RabbitMQ 4.0). Returns the history.
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
			old["count"] = count + 1
			deaths[0] = old
			continue
		}
		deaths = append(deaths, e)
	}
	p.Headers["x-death"] = deaths
	if !died {
		d.mark(p.Headers, "x-first-death-")
	}
	d.mark(p.Headers, "x-last-death-")
	return deaths
}

func (d *Death) mark(headers amqp.Table, prefix string) {
	headers[prefix+"queue"], headers[prefix+"reason"], headers[prefix+"exchange"] = d.Queue, d.Reason, d.Exchange
}

// OriginalKeys are those by which a message came to the queue that it dies in, without BCC.
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

// Cycles reports whether a message with that history has died in the queue before, with no rejection by a
// consumer since.
func Cycles(name string, deaths []any) bool {
	for _, e := range deaths {
		entry, _ := e.(amqp.Table)
		if entry["reason"] == "rejected" {
			return false
		}
		if entry["queue"] == name {
			return true
		}
	}
	return false
}

const (
	// maxDeaths is how often a message may be dead-lettered without a rejection by a
	// consumer between. After that it is parked.
	maxDeaths = 16
	// maxCopies is how many copies dead-lettering may make of one message by and by,
	// before those that would be copied once more are parked. The copies of a message's
	// first death count, and are not bounded.
	maxCopies = 4096
	// copiesHeader tells how many copies dead-lettering has made of a message since a
	// consumer rejected it last; it is there if there are several.
	copiesHeader = "x-dead-letter-copies"
)

// CountCopies writes into the headers of a dead letter how many copies there are of it, and
// says why it may go no further, "" if it may: it has died too often, or would be
// one of too many. deaths is its history with the present death in front.
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

// Explain writes on a dead letter why it is one, in Service Bus's words where it has
// them. There a receiver gives the reason of its own; AMQP 0-9-1's has no way to. What a
// publisher wrote under these names goes.
func Explain(headers amqp.Table, x *queue.Settled) {
	switch x.Reason {
	case queue.Expired:
		headers["DeadLetterReason"] = "TTLExpiredException"
		headers["DeadLetterErrorDescription"] = "The message expired and was dead lettered."
	case queue.DeliveryLimit:
		headers["DeadLetterReason"] = "MaxDeliveryCountExceeded"
		headers["DeadLetterErrorDescription"] = fmt.Sprintf("Message could not be consumed after %d delivery attempts.", x.Deliveries)
	case queue.Rejected:
		headers["DeadLetterReason"] = "Rejected"
		headers["DeadLetterErrorDescription"] = "The message was rejected by its consumer."
	default:
		delete(headers, "DeadLetterReason")
		delete(headers, "DeadLetterErrorDescription")
	}
}
