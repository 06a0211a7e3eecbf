package deadline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPurposes: what a queue is for shows by what leads where.
func TestPurposes(t *testing.T) {
	for _, c := range []struct {
		want Purpose
		of   QueueFacts
	}{
		{Work, QueueFacts{}},
		{Work, QueueFacts{TTL: true}},
		{Work, QueueFacts{TTL: true, DeadLetters: true}}, // nobody consumes where its dead letters go
		{Work, QueueFacts{TTL: true, DeadLetters: true, TargetConsumed: true, Consumed: true}},    // its consumers are gone
		{Work, QueueFacts{TTL: true, DeadLetters: true, TargetConsumed: true, Shared: true}},      // its consumers have never come
		{Work, QueueFacts{DeadLetters: true, TargetConsumed: true}},                               // messages may stay
		{Retry, QueueFacts{TTL: true, DeadLetters: true, TargetConsumed: true}},                   // the way back
		{Retry, QueueFacts{TTL: true, DeadLetters: true, TargetConsumed: true, Collects: true}},   // what was rejected waits
		{Retry, QueueFacts{DeadLetters: true, TargetConsumed: true, Onward: true}},                // back to work
		{Retry, QueueFacts{DeadLetters: true, TargetConsumed: true, Onward: true, Shared: true}},  // that others give theirs, too
		{Work, QueueFacts{DeadLetters: true, TargetConsumed: true, Onward: true, Consumed: true}}, //
		{Work, QueueFacts{DeadLetters: true, Onward: true}},                                       // where they go is stuck
		{DeadLetters, QueueFacts{Collects: true}},                                                 //
		{DeadLetters, QueueFacts{Collects: true, TTL: true}},                                      // kept for a time
		{Telemetry, QueueFacts{TTL: true, Bounded: true}},                                         //
		{Reply, QueueFacts{Exclusive: true, TTL: true}}, {Reply, QueueFacts{AutoDelete: true, Name: "amq.gen-x"}},
	} {
		require.Equal(t, c.want, PurposeOf(c.of), "%+v", c.of)
	}
	require.True(t, Purpose(0).Loses())
	require.False(t, Retry.Loses())
	for i, name := range Purposes {
		p, ok := ParsePurpose(name)
		require.True(t, ok)
		require.Equal(t, Purpose(i+1), p)
		require.Equal(t, name, p.String())
	}
	_, ok := ParsePurpose("nonsense")
	require.False(t, ok)
}
