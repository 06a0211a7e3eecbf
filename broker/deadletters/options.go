package deadletters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// Where a replay sends messages.
const (
	ToOrigin   = "origin"   // the exchange and keys it was first published with
	ToQueue    = "queue"    // the queue it first died in, and no other
	ToOnward   = "onward"   // the exchange and key by which it came here, with its death headers: for parked messages, once they can be routed
	ToExchange = "exchange" // Options.Exchange, with Options.Key or, if that is "", its first key
)

// The times to live that a replayed message may get, besides a duration.
const (
	TTLFresh     = "fresh"
	TTLRemaining = "remaining"
	TTLNone      = "none"
)

// Options are what a replay does with each message. The tags are those of fields of operations. An option that is empty or 0 has its default.
type Options struct {
	To       string `json:"to" hide:"table" oneof:"origin queue onward exchange" texts:"the exchange and key each was published with|the queue in which each first died|the exchange by which it came here|this exchange and key:" doc:"origin (default, but of curfew.undeliverable onward): what it was published with; queue: the one in which it first died; onward: the exchange by which it came here; or exchange"`
	Exchange string `json:"exchange,omitempty" hide:"table" faint:"the default exchange" doc:"to this exchange (empty: the default one)"`
	Key      string `json:"routing_key,omitempty" hide:"table" flag:"key" faint:"its own" doc:"with this routing key (default: the first one it was published with)"`
	TTL      string `json:"ttl" hide:"table" label:"Time to live" is:"words" oneof:"fresh remaining none" texts:"as when published, counted from now|the rest of it|only the queue's" doc:"fresh (default): the time it was published with; remaining: its old deadline; none (default with --to onward); or a time such as 10m"`
	// KeepDeaths leaves the death headers on the message, so that its next death adds to them.
	// Otherwise the message looks as if published for the first time. If to is onward they are kept.
	KeepDeaths bool    `json:"keep_deaths" hide:"table" label:"Keep the death history" doc:"leave the x-death headers on it"`
	MaxReplays int64   `json:"max_replays" hide:"table" label:"Replayed at most" faint:"3 times" doc:"skip messages that were replayed this often before (default 3)"`
	Limit      int     `json:"limit,omitempty" hide:"table" label:"At most" faint:"all" doc:"the most messages to replay (default all)"`
	Rate       float64 `json:"rate,omitempty" hide:"table" label:"Per second" faint:"no limit" doc:"messages a second (default as fast as possible)"`
}

// OptionError says what is wrong with an option. Field is its name in JSON.
type OptionError struct{ Field, Text string }

func (e *OptionError) Error() string { return e.Field + ": " + e.Text }

// DefaultMaxReplays ends the endless replay of a message that always fails.
const DefaultMaxReplays = 3

// Check reports what is wrong with the options. Error: *OptionError.
func (o *Options) Check() error {
	all := *o
	return all.complete()
}

// complete fills in defaults and checks the rest. Error: *OptionError.
func (o *Options) complete() error {
	o.To = cmp.Or(o.To, ToOrigin)
	if o.To == ToOnward {
		o.KeepDeaths = true
		o.TTL = cmp.Or(o.TTL, TTLNone)
	}
	if o.Exchange == "amq.default" { // as lists name the default one
		o.Exchange = ""
	}
	o.TTL = cmp.Or(o.TTL, TTLFresh)
	o.MaxReplays = cmp.Or(o.MaxReplays, DefaultMaxReplays)
	if !slices.Contains([]string{ToOrigin, ToQueue, ToOnward, ToExchange}, o.To) {
		return &OptionError{"to", fmt.Sprintf("%q is not origin, queue, onward or exchange", o.To)}
	}
	if !slices.Contains([]string{TTLFresh, TTLRemaining, TTLNone}, o.TTL) {
		if ms := o.millis(); ms < 1 || ms > policy.MaxTTLMillis {
			return &OptionError{"ttl", fmt.Sprintf("%q is not fresh, remaining, none or a time such as 10m, of ten years at most", o.TTL)}
		}
	}
	for name, n := range map[string]float64{"max_replays": float64(o.MaxReplays), "limit": float64(o.Limit), "rate": o.Rate} {
		if !(n >= 0) {
			return &OptionError{name, "it cannot be negative"}
		}
	}
	return nil
}

// millis is a time to live that is a duration; 0: it is none.
func (o *Options) millis() int64 {
	d, _ := time.ParseDuration(o.TTL) // checked by complete
	return d.Milliseconds()
}

// SkipReason says why a message stays where it is.
type SkipReason string

const (
	SkippedLoop       SkipReason = "replayed_too_often"
	SkippedOrigin     SkipReason = "no_origin"    // it never died, so its origin is not known
	SkippedNoTime     SkipReason = "no_time_left" // ttl is remaining, and its deadline has passed or is not known
	SkippedUnroutable SkipReason = "unroutable"
	SkippedFull       SkipReason = "target_full"
	SkippedBack       SkipReason = "leads_back"
	SkippedGone       SkipReason = "gone" // a consumer has taken it, or it has expired
	SkippedRefused    SkipReason = "refused"
)

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
	m.Properties, m.Body = p.Append(nil), l.Message.Body
	return m, ""
}

// address sets where the message goes; false: its origin is not known.
func (o *Options) address(l *Letter, m *broker.Publication, headers amqp.Table) bool {
	first, died := l.first()
	if o.To != ToOrigin { // it goes there with that key only
		delete(headers, "CC")
	}
	switch {
	case o.To == ToExchange:
		key := o.Key
		if key == "" && len(first.Keys) > 0 {
			key = first.Keys[0]
		} else if key == "" {
			key = string(l.Message.RoutingKey)
		}
		m.Exchange, m.RoutingKey = []byte(o.Exchange), []byte(key)
	case o.To == ToOnward:
		m.Exchange, m.RoutingKey = l.Message.Exchange, l.Message.RoutingKey
	case !died || o.To == ToOrigin && len(first.Keys) == 0:
		return false
	case o.To == ToQueue:
		m.RoutingKey = []byte(first.Queue)
	default:
		m.Exchange, m.RoutingKey = []byte(first.Exchange), []byte(first.Keys[0])
	}
	return true
}

// setTTL sets the message's time to live or deadline; false: no time is left.
func (o *Options) setTTL(l *Letter, p *amqp.Properties, now int64) bool {
	first, _ := l.first()
	absolute := max(first.ExpiresAt, instantOf(p.Headers["x-expires-at"]))
	relative := cmp.Or(first.Expiration, p.Expiration)
	p.Expiration, p.Has = "", p.Has&^amqp.HasExpiration
	delete(p.Headers, "x-expires-at")
	switch o.TTL {
	case TTLNone:
	case TTLFresh:
		p.Expiration = relative
		if absolute > now {
			p.Headers["x-expires-at"] = absolute
		}
	case TTLRemaining:
		if absolute == 0 && relative != "" {
			ttl, err := strconv.ParseInt(relative, 10, 64)
			if err != nil || p.Timestamp == 0 && !policy.IsNever(ttl) {
				return false
			}
			if policy.IsNever(ttl) {
				return true
			}
			absolute = instantOf(p.Timestamp) + ttl
		}
		if absolute != 0 {
			p.Headers["x-expires-at"] = absolute
		}
		return absolute == 0 || absolute > now
	default:
		p.Expiration = strconv.FormatInt(o.millis(), 10)
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
