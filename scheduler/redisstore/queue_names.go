package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"curfew/scheduler"
)

func field(q scheduler.QueueName) string { return fmt.Sprintf("%016x", q.Queue) }

func nameText(q scheduler.QueueName) string { return q.VHost + "\x00" + q.Name }

// NameQueues writes the names of queues next to the schedule, so that other instances can
// report what this one misses.
func (s *Store) NameQueues(ctx context.Context, queues []scheduler.QueueName) error {
	for some := range slices.Chunk(queues, batchLen) {
		pairs := make([]any, 0, 2*len(some))
		for _, q := range some {
			pairs = append(pairs, field(q), nameText(q))
		}
		if err := s.client.HSet(ctx, s.queuesKey, pairs...).Err(); err != nil {
			return explainType("name queues", s.queuesKey, "hash", err)
		}
	}
	return nil
}

// PruneQueues removes the names of queues for which keep is false, and returns the others;
// one that is named during the call may be missing.
func (s *Store) PruneQueues(ctx context.Context, keep func(queue uint64) bool) (kept []uint64, err error) {
	for cursor := uint64(0); ; {
		fields, next, err := s.client.HScan(ctx, s.queuesKey, cursor, "", batchLen).Result()
		if err != nil {
			return nil, explainType("prune queues", s.queuesKey, "hash", err)
		}
		var gone []string
		for field := range slices.Chunk(fields, 2) {
			queue, err := strconv.ParseUint(field[0], 16, 64)
			if err == nil && keep(queue) {
				kept = append(kept, queue)
			} else {
				gone = append(gone, field[0])
			}
		}
		if len(gone) > 0 {
			if err := s.client.HDel(ctx, s.queuesKey, gone...).Err(); err != nil {
				return nil, explainType("prune queues", s.queuesKey, "hash", err)
			}
		}
		if cursor = next; cursor == 0 {
			return kept, nil
		}
	}
}

// name fills in the names of queues, as far as Redis has them.
func (s *Store) name(ctx context.Context, queues []scheduler.QueueCount) error {
	if len(queues) == 0 {
		return nil
	}
	fields := make([]string, len(queues))
	for i := range queues {
		fields[i] = field(queues[i].QueueName)
	}
	texts, err := s.client.HMGet(ctx, s.queuesKey, fields...).Result()
	if err != nil {
		return explainType("read names", s.queuesKey, "hash", err)
	}
	for i, text := range texts {
		text, _ := text.(string) // nil: it has none
		if vhost, name, ok := strings.Cut(text, "\x00"); ok {
			queues[i].VHost, queues[i].Name = vhost, name
		}
	}
	return nil
}
