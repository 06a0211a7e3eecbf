package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// death is one entry of x-death (RabbitMQ: Dead Letter Exchanges, Effects on
// Messages).
type death struct {
	queue, reason string
	at            int64 // Unix seconds
	exchange      string
	keys          []any // routing keys with CC, without BCC
}

func reasonName(r queue.Reason) string {
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

// recordDeath writes d into the headers, newest first: one entry per queue and
// reason, counting up. It removes the expiration property and the absolute deadline
// and keeps them in the entry. The history of a message that has not died here
// before is a client's and is not believed (RabbitMQ 4.0). Returns the history.
func recordDeath(p *amqp.Properties, d death, died bool) []any {
	if p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	var history []any
	if died {
		history, _ = p.Headers["x-death"].([]any)
	}
	entry := amqp.Table{
		"count": int64(1), "reason": d.reason, "queue": d.queue, "time": amqp.Timestamp(d.at),
		"exchange": d.exchange, "routing-keys": d.keys,
	}
	if p.Has&amqp.HasExpiration != 0 {
		entry["original-expiration"] = p.Expiration
		p.Expiration, p.Has = "", p.Has&^amqp.HasExpiration
	}
	if at, ok := p.Headers[expiresAtHeader]; ok {
		entry["original-expires-at"] = at
		delete(p.Headers, expiresAtHeader)
	}
	deaths := []any{entry}
	for _, e := range history {
		if old, ok := e.(amqp.Table); ok && old["queue"] == d.queue && old["reason"] == d.reason {
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

func (d *death) mark(headers amqp.Table, prefix string) {
	headers[prefix+"queue"], headers[prefix+"reason"], headers[prefix+"exchange"] = d.queue, d.reason, d.exchange
}

// originalKeys are those by which a message came to the queue that it dies in, without BCC.
func originalKeys(key []byte, headers amqp.Table, oneKey bool) []any {
	keys := []any{string(key)}
	if oneKey {
		return keys
	}
	for _, cc := range keyList(headers["CC"]) {
		keys = append(keys, cc)
	}
	return keys
}

// withoutCycles leaves out the queues that the message has died in before with
// no rejection since: it would go round for ever. A message just rejected may
// go anywhere: its consumer decided so.
func withoutCycles(targets []target, deaths []any) []target {
	var kept []target
	for i, t := range targets {
		if cycles(t.queue.name, deaths) {
			if kept == nil {
				kept = append(make([]target, 0, len(targets)), targets[:i]...)
			}
		} else if kept != nil {
			kept = append(kept, t)
		}
	}
	if kept == nil {
		return targets
	}
	return kept
}

func cycles(name string, deaths []any) bool {
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
