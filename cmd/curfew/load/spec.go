package load

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Spec is one workload. The zero value of a field means what its comment says.
type Spec struct {
	URL       string        `json:"url"`
	Client    string        `json:"client,omitempty"`    // "raw" (default) or "amqp091"
	Size      int           `json:"size"`                // octets of a body; below 8 there is no latency
	Producers int           `json:"producers"`           // connections that publish
	Consumers int           `json:"consumers"`           // connections that consume; 0: publish only
	Queues    int           `json:"queues"`              // 0: one for each producer
	QueueType string        `json:"queueType,omitempty"` // "": the broker's default, "classic", "classic-v2", "quorum"
	Exchange  string        `json:"exchange,omitempty"`  // "": the default exchange, one queue a message; "direct", "topic", "fanout"
	Persist   bool          `json:"persistent,omitempty"`
	Window    int           `json:"confirmWindow,omitempty"` // unconfirmed publishes a producer may have; 0: no confirms
	Ack       string        `json:"ack"`                     // "auto", "each", "multiple" (one ack for all of a read)
	Prefetch  int           `json:"prefetch,omitempty"`      // 0: no limit
	Rate      int           `json:"rate,omitempty"`          // messages a second of all producers; 0: as fast as it goes
	Backlog   int           `json:"backlog,omitempty"`       // messages sent and not consumed, at most; 0: no limit. None without consumers, nor with fanout
	TTL       time.Duration `json:"ttl,omitempty"`           // expiration of each message; 0: none
	Warmup    time.Duration `json:"warmup,omitempty"`
	Duration  time.Duration `json:"duration"`
	Count     int           `json:"count,omitempty"` // end once so many are published, confirmed and consumed; 0: at the end of Duration
	Reuse     bool          `json:"reuse,omitempty"` // take the queues as they are
	Keep      bool          `json:"keep,omitempty"`  // leave the queues as they are
}

// Clients, ways to ack, and exchanges that a Spec may name.
var (
	clients   = []string{"raw", "amqp091"}
	acks      = []string{"auto", "each", "multiple"}
	exchanges = []string{"", "direct", "topic", "fanout"}
	queues    = []string{"", "classic", "classic-v2", "quorum"}
)

// settled fills in the defaults and refuses what cannot be run.
func (s Spec) settled() (Spec, error) {
	s.Client = cmp.Or(s.Client, "raw")
	s.Ack = cmp.Or(s.Ack, "each")
	s.Producers = max(s.Producers, 1)
	s.Queues = cmp.Or(s.Queues, s.Producers)
	if s.Consumers == 0 || s.Exchange == "fanout" {
		s.Backlog = 0
	}
	return s, errors.Join(
		oneOf("client", s.Client, clients), oneOf("ack", s.Ack, acks),
		oneOf("exchange", s.Exchange, exchanges), oneOf("queue type", s.QueueType, queues),
		positive("duration", s.Duration > 0), positive("queues", s.Queues > 0), positive("size", s.Size >= 0),
		positive("ttl of whole milliseconds", s.TTL%time.Millisecond == 0),
	)
}

func oneOf(what, value string, known []string) error {
	for _, k := range known {
		if k == value {
			return nil
		}
	}
	return fmt.Errorf("load: %s %q is none of %s", what, value, strings.Join(known, ", "))
}

func positive(what string, ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("load: a %s is needed", what)
}
