package deadletters

import (
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
)

// Headers by which a letter tells of its past.
const (
	deathHeader = "x-death"
	// replaysHeader is how often the message was replayed.
	replaysHeader = "x-curfew-replays"
	// replayHeader is the ID of the replay that replayed it last.
	replayHeader = "x-curfew-replay-run"
)

// Death is one entry of x-death (RabbitMQ: Dead Letter Exchanges, Effects on Messages):
// how often the message died in a queue for a reason.
type Death struct {
	Queue      string    `json:"queue"`
	Reason     string    `json:"reason"`
	Exchange   string    `json:"exchange"`                      // to which it was published when it first died in this way
	Keys       []string  `json:"routing_keys"`                  // with which it was published then
	Count      int64     `json:"count"`                         // how often it died in this way
	Time       time.Time `json:"time"`                          // of the first such death, in whole seconds
	Expiration string    `json:"original_expiration,omitempty"` // the property expiration that it had, in ms
	ExpiresAt  int64     `json:"original_expires_at,omitempty"` // the header x-expires-at that it had, Unix ms
}

// Letter is a message as it is in its queue, with its history.
type Letter struct {
	broker.Browsed
	Properties amqp.Properties // empty if they cannot be read
	Deaths     []Death
	Replays    int64
	ReplayID   string // of the replay that replayed it last; "" none
}

// LetterOf reads a message, with the headers that are wanted; nil: all.
func LetterOf(x *broker.Browsed, wants func(name []byte) bool) Letter {
	l := Letter{Browsed: *x}
	p, err := x.DecodeWanted(wants)
	if err == nil {
		l.Properties = p
	}
	entries, _ := l.Properties.Headers[deathHeader].([]any)
	for _, e := range entries {
		if t, ok := e.(amqp.Table); ok {
			l.Deaths = append(l.Deaths, deathOf(t))
		}
	}
	l.Replays, _ = amqp.Integer(l.Properties.Headers[replaysHeader])
	l.ReplayID, _ = l.Properties.Headers[replayHeader].(string)
	return l
}

// deathHeaders are those that tell of deaths and replays.
func deathHeaders(name []byte) bool {
	return string(name) == deathHeader || string(name) == replaysHeader || string(name) == replayHeader
}

func deathOf(t amqp.Table) (d Death) {
	d.Queue, _ = t["queue"].(string)
	d.Reason, _ = t["reason"].(string)
	d.Exchange, _ = t["exchange"].(string)
	d.Expiration, _ = t["original-expiration"].(string)
	d.Count, _ = amqp.Integer(t["count"])
	if at, ok := t["time"].(amqp.Timestamp); ok {
		d.Time = time.Unix(int64(at), 0).UTC()
	}
	keys, _ := t["routing-keys"].([]any)
	for _, k := range keys {
		if key, ok := k.(string); ok {
			d.Keys = append(d.Keys, key)
		}
	}
	d.ExpiresAt = instantOf(t["original-expires-at"])
	return d
}

// instantOf returns an AMQP timestamp, or an integer in Unix ms, in Unix ms; 0 for anything else.
func instantOf(v any) int64 {
	if at, ok := v.(amqp.Timestamp); ok {
		return int64(min(at, 1<<50)) * 1000
	}
	n, _ := amqp.Integer(v)
	return max(n, 0)
}

// last returns the latest death; the zero Death: the letter never died.
func (l *Letter) last() Death {
	if len(l.Deaths) == 0 {
		return Death{}
	}
	return l.Deaths[0]
}

// first returns the first death: the one that x-first-death-queue and -reason name, otherwise
// the oldest entry. False: the letter never died.
func (l *Letter) first() (Death, bool) {
	if len(l.Deaths) == 0 {
		return Death{}, false
	}
	from, _ := l.Properties.Headers["x-first-death-queue"].(string)
	reason, _ := l.Properties.Headers["x-first-death-reason"].(string)
	for _, d := range l.Deaths {
		if d.Queue == from && d.Reason == reason {
			return d, true
		}
	}
	return l.Deaths[len(l.Deaths)-1], true
}
