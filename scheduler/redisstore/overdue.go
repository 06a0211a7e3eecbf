package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

const (
	// sampleLen is how many of the shadows that are due are counted by queue; that holds a
	// server for less than 1 ms.
	sampleLen = 1000
	// topQueues is how many queues are named.
	topQueues = 10
)

// overdueScript counts what is due in one shard.
//
//	KEYS[1] the shard's sorted set
//	ARGV[1] how many due members to tell apart
//	result  {the server's time in µs, members without the epoch's, those due,
//	        the earliest deadline of those told apart or "", queue, count, queue,
//	        count...}
var overdueScript = redis.NewScript(fmt.Sprintf(`
local time = redis.call('TIME')
local now = string.format('%%010d%%06d', time[1], time[2])
local oldest, order, counts = '', {}, {}
for _, member in ipairs(redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])) do
	if #member == %d then
		local deadline, queue = string.sub(member, 1, 16), string.sub(member, 18, 33)
		if oldest == '' or deadline < oldest then
			oldest = deadline
		end
		if not counts[queue] then
			order[#order + 1] = queue
		end
		counts[queue] = (counts[queue] or 0) + 1
	end
end
local stored = redis.call('ZCOUNT', KEYS[1], '-inf', '(inf')
local due = redis.call('ZCOUNT', KEYS[1], '-inf', now)
local result = {now, tostring(stored), tostring(due), oldest}
for _, queue in ipairs(order) do
	result[#result + 1] = queue
	result[#result + 1] = tostring(counts[queue])
end
return result
`, scheduler.TextLen))

// CountOverdue counts what is due in the schedule of p. It changes nothing there.
func (s *Store) CountOverdue(ctx context.Context, p scheduler.Peer) (scheduler.Overdue, error) {
	theirs := newStore(s.client, Options{Instance: p.Name, Shards: p.Shards, Now: s.now})
	replies, err := theirs.run(ctx, "count overdue", overdueScript, theirs.allShards(), func(int) []any {
		return []any{max(sampleLen/p.Shards, topQueues)}
	})
	if err != nil {
		return scheduler.Overdue{}, err
	}
	var m scheduler.Overdue
	for _, reply := range replies {
		if err := add(&m, reply); err != nil {
			return scheduler.Overdue{}, fmt.Errorf("redisstore: count overdue: %w", err)
		}
	}
	slices.SortStableFunc(m.Queues, func(a, b scheduler.QueueCount) int { return cmp.Compare(b.Count, a.Count) })
	m.Queues = m.Queues[:min(len(m.Queues), topQueues)]
	return m, theirs.name(ctx, m.Queues)
}

// add adds what a shard answered. A queue is in one shard only.
func add(m *scheduler.Overdue, reply []string) error {
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(reply[i], 10, 64); err != nil {
			return err
		}
	}
	now := deadline.Instant(n[0])
	m.Stored += n[1]
	m.Due += n[2]
	if n, err := strconv.ParseInt(reply[3], 10, 64); err == nil {
		if at := deadline.Instant(n); m.OldestAt == 0 || at.UnixMilli() < m.OldestAt {
			m.OldestAt, m.LateMillis = at.UnixMilli(), int64(deadline.RoundUp(now.Sub(at)))
		}
	}
	for pair := range slices.Chunk(reply[4:], 2) {
		queue, errQueue := strconv.ParseUint(pair[0], 16, 64)
		count, errCount := strconv.ParseInt(pair[1], 10, 64)
		if errQueue == nil && errCount == nil { // or else it is not of a shadow
			m.Queues = append(m.Queues, scheduler.QueueCount{QueueName: scheduler.QueueName{Queue: queue}, Count: count})
		}
	}
	return nil
}
