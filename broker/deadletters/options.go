package deadletters

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"curfew/broker"
	"curfew/broker/amqp"
)

// Where a replay sends messages.
const (
	ToOrigin   = "origin"   // the exchange and keys it was first published with
	ToQueue    = "queue"    // the queue it first died in, and no other
	ToOnward   = "onward"   // the exchange and key by which it came here, with its death headers: for parked messages, once they can be routed
	ToExchange = "exchange" // Options.Exchange, with Options.Key or, if that is "", its first key
)

// The time to live of a replayed message.
const (
	TTLFresh     = "fresh"
	TTLRemaining = "remaining"
	TTLNone      = "none"
	TTLMillis    = "millis" // Options.TTLMillis
)

// Options are what a replay does with each message.
type Options struct {
	To       string `json:"to"`                    // where: origin (default), queue, onward or exchange
	Exchange string `json:"exchange,omitempty"`    // to which exchange, if to is exchange
	Key      string `json:"routing_key,omitempty"` // with which key, if to is exchange; absent: its first key
	TTL      string `json:"ttl"`                   // time to live: fresh (default), remaining, none (default if to is onward) or millis
	Millis   int64  `json:"ttl_millis,omitempty"`  // if ttl is millis
	// KeepDeaths leaves the death headers on the message, so that its next death adds to them.
	// Otherwise the message looks as if published for the first time. If to is onward they are kept.
	KeepDeaths bool `json:"keep_deaths"`
	// MaxReplays: a message that was replayed this often stays where it is; 0: 3.
	MaxReplays int64   `json:"max_replays"`
	Limit      int     `json:"limit,omitempty"` // messages to move at most; 0: no limit
	Rate       float64 `json:"rate,omitempty"`  // messages a second; 0: no limit
}

// DefaultMaxReplays ends the endless replay of a message that always fails.
const DefaultMaxReplays = 3

// complete fills in defaults and checks the rest.
func (o *Options) complete() error {
	if o.To == "" {
		o.To = ToOrigin
	}
	if o.To == ToOnward {
		o.KeepDeaths = true
		o.TTL = cmp.Or(o.TTL, TTLNone)
	}
	o.TTL = cmp.Or(o.TTL, TTLFresh)
	if o.MaxReplays == 0 {
		o.MaxReplays = DefaultMaxReplays
	}
	switch {
	case o.To != ToOrigin && o.To != ToQueue && o.To != ToOnward && o.To != ToExchange:
		return fmt.Errorf("to is %q: want origin, queue, onward or exchange", o.To)
	case o.TTL != TTLFresh && o.TTL != TTLRemaining && o.TTL != TTLNone && o.TTL != TTLMillis:
		return fmt.Errorf("ttl is %q: want fresh, remaining, none or millis", o.TTL)
	case o.Millis < 0 || o.Millis > broker.MaxTTLMillis || o.Millis == 0 && o.TTL == TTLMillis:
		return fmt.Errorf("ttl_millis is %d: want 1 to %d", o.Millis, int64(broker.MaxTTLMillis))
	case o.Rate < 0 || o.Limit < 0 || o.MaxReplays < 0:
		return fmt.Errorf("rate, limit and max_replays cannot be negative")
	}
	return nil
}

// SkipReason says why a message stays where it is.
type SkipReason string

const (
	SkippedLoop       SkipReason = "replayed_too_often"
	SkippedOrigin     SkipReason = "no_origin"    // it never died, so its origin is not known
	SkippedNoTime     SkipReason = "no_time_left" // TTLRemaining, and its deadline has passed or is not known
	SkippedUnroutable SkipReason = "unroutable"
	SkippedFull       SkipReason = "target_full"
	SkippedBack       SkipReason = "leads_back"
	SkippedGone       SkipReason = "gone" // a consumer has taken it, or it has expired
	SkippedRefused    SkipReason = "refused"
)

// unixMillis returns the present instant on the wall clock.
func unixMillis(b *broker.Broker) int64 { return b.UnixMillis(b.Now()) }

// rewrite makes the message that is published for a letter. If skipped is not empty, it says
// why there is none. now is in Unix ms.
func (o *Options) rewrite(l *Letter, replayID string, now int64) (m broker.Publication, skipped SkipReason) {
	if l.Replays >= o.MaxReplays {
		return m, SkippedLoop
	}
	p := l.Properties
	if p.Headers = maps.Clone(p.Headers); p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	if !o.address(l, &m, p.Headers) {
		return m, SkippedOrigin
	}
	if !o.setTTL(l, &p, now) {
		return m, SkippedNoTime
	}
	if !o.KeepDeaths {
		strip(p.Headers)
	}
	p.Headers[replaysHeader], p.Headers[replayHeader] = l.Replays+1, replayID
	m.Properties, m.Body = p.Append(nil), l.Body
	return m, ""
}

// address sets where the message goes; false: its origin is not known.
func (o *Options) address(l *Letter, m *broker.Publication, headers amqp.Table) bool {
	first, died := l.first()
	switch {
	case o.To == ToExchange:
		key := o.Key
		if key == "" && len(first.Keys) > 0 {
			key = first.Keys[0]
		} else if key == "" {
			key = l.RoutingKey
		}
		m.Exchange, m.RoutingKey = []byte(o.Exchange), []byte(key)
		delete(headers, "CC") // it goes to the given exchange with the given key only
		return true
	case o.To == ToOnward:
		m.Exchange, m.RoutingKey = []byte(l.Exchange), []byte(l.RoutingKey)
		delete(headers, "CC")
		return true
	case !died || o.To == ToOrigin && len(first.Keys) == 0:
		return false
	case o.To == ToQueue:
		m.RoutingKey = []byte(first.Queue)
		delete(headers, "CC")
		return true
	}
	m.Exchange, m.RoutingKey = []byte(first.Exchange), []byte(first.Keys[0])
	return true
}

// setTTL sets the message's time to live or deadline; false: no time is left.
func (o *Options) setTTL(l *Letter, p *amqp.Properties, now int64) bool {
	first, _ := l.first()
	absolute := max(first.ExpiresAt, instantOf(p.Headers["x-expires-at"]))
	relative := first.Expiration
	if relative == "" {
		relative = p.Expiration
	}
	p.Expiration, p.Has = "", p.Has&^amqp.HasExpiration
	delete(p.Headers, "x-expires-at")
	switch o.TTL {
	case TTLMillis:
		p.Expiration = strconv.FormatInt(o.Millis, 10)
	case TTLFresh:
		p.Expiration = relative
		if absolute > now {
			p.Headers["x-expires-at"] = absolute
		}
	case TTLRemaining:
		if absolute == 0 && relative != "" {
			ttl, err := strconv.ParseInt(relative, 10, 64)
			if err != nil || p.Timestamp == 0 && !broker.IsNever(ttl) {
				return false
			}
			if broker.IsNever(ttl) {
				return true
			}
			absolute = instantOf(p.Timestamp) + ttl
		}
		if absolute != 0 {
			p.Headers["x-expires-at"] = absolute
		}
		return absolute == 0 || absolute > now
	}
	return true
}

// strip removes the headers that its deaths added.
func strip(headers amqp.Table) {
	for name := range headers {
		if name == "x-death" || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-") ||
			name == "DeadLetterReason" || name == "DeadLetterErrorDescription" {
			delete(headers, name)
		}
	}
}

var skipReasons = map[broker.MoveOutcome]SkipReason{
	broker.MoveGone: SkippedGone, broker.MoveUnroutable: SkippedUnroutable, broker.MoveFull: SkippedFull, broker.MoveBack: SkippedBack,
}
