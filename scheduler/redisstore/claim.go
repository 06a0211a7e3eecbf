package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/go-redis/v9"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// scriptMax is the most shadows one script call claims: it holds the server for
// less than 3 ms.
const scriptMax = 1000

// claimScript leases what is due in one shard.
//
//	KEYS[1] the shard's sorted set
//	ARGV[1] until: the highest score that is due; ARGV[2] how many at most
//	ARGV[3] the score that ends the lease; ARGV[4] the epoch's member, or ""
//	result  {lowest score afterwards or "", the claimed members joined};
//	        the error EPOCH when the epoch's member is missing
//
// Members of another length than ours are removed on the way, so the joined text
// can be cut without separators. ZREM of a member that never exists comes first: a full
// Redis refuses ZADD, though it only changes scores here, unless the script has written
// before. Lua's unpack takes at most some 8000 values, so there are chunks.
var claimScript = redis.NewScript(fmt.Sprintf(`
if ARGV[4] ~= '' and not redis.call('ZSCORE', KEYS[1], ARGV[4]) then
	return redis.error_reply('EPOCH another one, or none')
end
local due = redis.call('ZRANGE', KEYS[1], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
local ours = {}
for _, member in ipairs(due) do
	if #member == %d then
		ours[#ours + 1] = member
	else
		redis.call('ZREM', KEYS[1], member)
	end
end
if #ours > 0 then
	redis.call('ZREM', KEYS[1], '')
end
for from = 1, #ours, 500 do
	local args = {}
	for i = from, math.min(from + 499, #ours) do
		args[#args + 1] = ARGV[3]
		args[#args + 1] = ours[i]
	end
	redis.call('ZADD', KEYS[1], 'XX', unpack(args))
end
local lowest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {lowest[2] or '', table.concat(ours)}
`, scheduler.TextLen))

// Claim implements scheduler.Store. It asks all shards at once, each for its share
// of max, and again those that have more due. After Begin its error wraps errEpoch
// once a shard is no longer the one that was begun.
func (s *Store) Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if leaseUntil <= until {
		return out, 0, fmt.Errorf("redisstore: claim until %d with a lease that ends at %d", until, leaseUntil)
	}
	lease, err := scheduler.AppendInstant(nil, leaseUntil)
	if err != nil {
		return out, 0, err
	}
	epoch, _ := s.begun()
	c := claim{store: s, until: until, lease: string(lease), epoch: epoch, left: max, out: out, next: make([]deadline.Instant, len(s.due))}
	ask := make([]int, len(s.due)) // beginning with another shard each time, so that none is always the last
	for i, turn := 0, int(s.turn.Add(1)); i < len(ask); i++ {
		ask[i] = (turn + i) % len(ask)
	}
	for err == nil && len(ask) > 0 {
		err = c.round(ctx, ask)
		ask = c.unfinished(ask)
	}
	s.discard(ctx, c.alien)
	return c.out, c.earliest(), err
}

// claim is the state of one call of Claim.
type claim struct {
	store *Store
	until deadline.Instant
	lease string
	epoch string
	left  int // how many more to claim
	out   []deadline.Ref
	next  []deadline.Instant // lowest score left in each shard, 0 for none
	alien []alien
}

// round claims what is left to claim, shared out among the shards to ask.
func (c *claim) round(ctx context.Context, ask []int) error {
	until, left := strconv.FormatInt(int64(c.until), 10), max(c.left, 0)
	share := func(i int) int {
		n := left / len(ask)
		if i < left%len(ask) {
			n++
		}
		return min(n, scriptMax)
	}
	replies, err := c.store.run(ctx, "claim", claimScript, ask, func(i int) []any {
		return []any{until, share(i), c.lease, c.epoch}
	})
	for i, reply := range replies {
		if reply != nil {
			err = cmp.Or(err, c.read(ask[i], reply))
		}
	}
	return err
}

// read reads what a shard answered.
func (c *claim) read(shard int, reply []string) (err error) {
	lowest, members := reply[0], reply[1]
	if c.next[shard], err = parseScore(lowest); err != nil {
		return err
	}
	for ; members != ""; members = members[scheduler.TextLen:] {
		member := members[:scheduler.TextLen]
		shadow, err := scheduler.ParseText(member)
		if err != nil || c.store.shardOf(shadow.Queue) != shard {
			c.alien = append(c.alien, alien{shard, member})
			continue
		}
		c.out = append(c.out, shadow)
		c.left--
	}
	return nil
}

// unfinished keeps, in place, the shards that have more due, as many as there are
// left to claim.
func (c *claim) unfinished(asked []int) []int {
	more := asked[:0]
	for _, shard := range asked {
		if c.next[shard] != 0 && c.next[shard] <= c.until && len(more) < c.left {
			more = append(more, shard)
		}
	}
	return more
}

func (c *claim) earliest() (at deadline.Instant) {
	for _, next := range c.next {
		if at == 0 || next != 0 && next < at {
			at = next
		}
	}
	return at
}

// parseScore reads a score as Redis writes it, and rounds it up to µs: from then on the
// shadow is due. 0 stands for no score, and for the infinite one of the epoch's member.
func parseScore(text string) (deadline.Instant, error) {
	if text == "" || text == "inf" {
		return 0, nil
	}
	score, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("redisstore: score: %w", err)
	}
	return deadline.Instant(min(max(math.Ceil(score), 1), scheduler.MaxDeadline)), nil
}
