package load

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Spec is one workload. Each comment gives the meaning of the field's zero value.
type Spec struct {
	URL       string        `json:"url"`
	Name      string        `json:"name,omitempty"`      // prefix of the names of queues and exchange; "": unique to the run
	Client    string        `json:"client,omitempty"`    // "raw" (default), "raw10" (AMQP 1.0, one queue for each producer), or "amqp091"
	Size      int           `json:"size"`                // octets of a body; below 8 latency is not measured
	Producers int           `json:"producers"`           // connections that publish, at least 1
	Consumers int           `json:"consumers"`           // connections that consume; 0: publish only
	Queues    int           `json:"queues"`              // 0: one for each producer
	QueueType string        `json:"queueType,omitempty"` // "": the broker's default, "classic", "classic-v2", "quorum"
	Exchange  string        `json:"exchange,omitempty"`  // "": the default exchange, one queue per message; "direct", "topic", "fanout"
	Persist   bool          `json:"persistent,omitempty"`
	Window    int           `json:"confirmWindow,omitempty"` // unconfirmed publishes a producer may have; 0: no confirms
	Ack       string        `json:"ack"`                     // "auto", "each", "multiple" (one ack per read)
	Prefetch  int           `json:"prefetch,omitempty"`      // 0: no limit
	Rate      int           `json:"rate,omitempty"`          // messages per second, all producers together; 0: as fast as possible
	Backlog   int           `json:"backlog,omitempty"`       // limit of messages sent and not consumed, expired ones included; 0, no consumers or a fanout: no limit
	TTL       time.Duration `json:"ttl,omitempty"`           // expiration of each message, whole ms; 0: none
	Warmup    time.Duration `json:"warmup,omitempty"`        // not used with a Count
	Duration  time.Duration `json:"duration"`
	Count     int           `json:"count,omitempty"` // end when this many are published, confirmed and consumed, at the latest after Duration; 0: end after Duration
	Reuse     bool          `json:"reuse,omitempty"` // use existing queues as they are
	Keep      bool          `json:"keep,omitempty"`  // do not remove the queues
}

// Clients, ways to ack, and exchanges that a Spec may name.
var (
	clients    = []string{"raw", "raw10", "amqp091"}
	acks       = []string{"auto", "each", "multiple"}
	exchanges  = []string{"", "direct", "topic", "fanout"}
	queueTypes = []string{"", "classic", "classic-v2", "quorum"}
)

// Limits of a Spec.
const (
	maxQueues   = 100_000 // names have five digits
	maxSize     = 512 << 20
	maxPrefetch = 1<<16 - 1
	maxRate     = 1_000_000_000
)

// withDefaults fills in the defaults. An impossible Spec is an error.
func (s Spec) withDefaults() (Spec, error) {
	s.Name = cmp.Or(s.Name, runName())
	s.Client = cmp.Or(s.Client, "raw")
	s.Ack = cmp.Or(s.Ack, "each")
	s.Producers = cmp.Or(s.Producers, 1)
	s.Queues = cmp.Or(s.Queues, s.Producers)
	if s.Consumers == 0 || s.Exchange == "fanout" {
		s.Backlog = 0
	}
	if s.Count > 0 {
		s.Warmup = 0
	}
	most, size := math.MaxInt32, maxSize
	if s.Client == "raw10" {
		size = frameMax - 512 // its messages fit one frame
	}
	return s, errors.Join(
		oneOf("client", s.Client, clients), oneOf("ack", s.Ack, acks),
		oneOf("exchange", s.Exchange, exchanges), oneOf("queue type", s.QueueType, queueTypes),
		between("duration", s.Duration, 1, math.MaxInt64), between("warm-up", s.Warmup, 0, math.MaxInt64), wholeMillis("ttl", s.TTL),
		between("size", s.Size, 0, size), between("producers", s.Producers, 1, most), between("consumers", s.Consumers, 0, most),
		between("queues", s.Queues, 1, maxQueues), between("confirm window", s.Window, 0, most), between("prefetch", s.Prefetch, 0, maxPrefetch),
		between("rate", s.Rate, 0, maxRate), between("backlog", s.Backlog, 0, most), between("count", s.Count, 0, most),
	)
}

// runName returns the prefix for the names of one run, so that simultaneous runs, and
// leftovers, do not interfere.
func runName() string { return fmt.Sprintf("curfew.bench.%06x.", rand.Uint32()>>8) }

func oneOf(what, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("load: %s %q is not one of %q", what, value, known)
}

func between[N int | time.Duration](what string, n, least, most N) error {
	if n < least || n > most {
		return fmt.Errorf("load: %s is %v; it must be %v to %v", what, n, least, most)
	}
	return nil
}

// wholeMillis refuses a duration that an expiration cannot express.
func wholeMillis(what string, d time.Duration) error {
	if d < 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("load: %s is %v; it must be a whole number of milliseconds, at least 0", what, d)
	}
	return nil
}
