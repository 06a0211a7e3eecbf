package redisstore

import (
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

// claimScript leases what is due.
//
//	KEYS[1] the sorted set
//	ARGV[1] until: the highest score that is due; ARGV[2] how many at most
//	ARGV[3] the score that ends the lease; ARGV[4] the epoch's member, or ""
//	result  {lowest score afterwards or "", the claimed members joined};
//	        the error EPOCH when the epoch's member is missing
//
// Members whose length is not ours are removed on the way, so the joined text
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

// Claim implements scheduler.Store. It claims at most scriptMax. After Begin its error wraps
// errEpoch once the schedule is no longer the one that was begun.
func (s *Store) Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if leaseUntil <= until {
		return out, 0, fmt.Errorf("redisstore: claim until %d with a lease that ends at %d", until, leaseUntil)
	}
	if err := scheduler.CheckInstant(leaseUntil); err != nil {
		return out, 0, err
	}
	epoch, _ := s.begun()
	reply, err := claimScript.Run(ctx, s.client, []string{s.due}, int64(until), min(max, scriptMax), int64(leaseUntil), epoch).StringSlice()
	if err != nil {
		return out, 0, explain("claim", s.due, err)
	}
	var aliens []any
	for members := reply[1]; members != ""; members = members[scheduler.TextLen:] {
		member := members[:scheduler.TextLen]
		shadow, err := scheduler.ParseText(member)
		if err != nil {
			aliens = append(aliens, member)
			continue
		}
		out = append(out, shadow)
	}
	s.discard(ctx, aliens)
	next, err = parseScore(reply[0])
	return out, next, err
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
