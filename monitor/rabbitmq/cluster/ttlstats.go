package cluster

import (
	"strconv"

	"curfew/broker/deadline"
)

// TimeToLive reads the property expiration of a message; -1: it has none. More than 278 years is none.
func TimeToLive(expiration string) deadline.Millis {
	if ms, err := strconv.ParseUint(expiration, 10, 43); err == nil {
		return deadline.Millis(ms)
	}
	return -1
}

// TTLStats is the number of messages seen in a queue, by their times to live. A tap or a keeper counts them as they come.
type TTLStats struct {
	Messages int             `json:"messages"`
	Expiring int             `json:"expiring"` // of these, how many had a time to live of their own
	Shorter  int             `json:"shorter"`  // of those, how many had one below the queue's
	Least    deadline.Millis `json:"least_ms"` // the lowest of these times to live
	Most     deadline.Millis `json:"most_ms"`  // the highest of them
}

// Add counts a message with the time to live ttl in a queue with the time to live queue;
// below 0: none.
func (s *TTLStats) Add(ttl, queue deadline.Millis) {
	s.Messages++
	if ttl < 0 {
		return
	}
	if s.Expiring == 0 || ttl < s.Least {
		s.Least = ttl
	}
	s.Most = max(s.Most, ttl)
	s.Expiring++
	if queue >= 0 && ttl < queue {
		s.Shorter++
	}
}

// Plus returns the statistics of both sets of messages.
func (s TTLStats) Plus(other TTLStats) TTLStats {
	if s.Expiring == 0 || other.Expiring > 0 && other.Least < s.Least {
		s.Least = other.Least
	}
	s.Most = max(s.Most, other.Most)
	s.Messages, s.Expiring, s.Shorter = s.Messages+other.Messages, s.Expiring+other.Expiring, s.Shorter+other.Shorter
	return s
}
